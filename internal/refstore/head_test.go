package refstore_test

import (
	"os"
	"path/filepath"
	"testing"

	"refaudit/internal/gittest"
	"refaudit/internal/refstore"
	"refaudit/repo"
)

// A setting that holds on one branch only is found where HEAD is in a table.
func TestOnbranchInAReftable(t *testing.T) {
	r := gittest.New(t, gittest.Options{RefFormat: gittest.Reftable})
	r.WriteFile("more", []byte("[refaudit]\n\tpeelMismatch = warn\n"))
	r.Git("config", "includeIf.onbranch:main.path", "more")
	r.Git("worktree", "add", "-q", "-b", "other", r.Path+"-wt", r.B)
	for path, want := range map[string]bool{r.Path: true, r.Path + "-wt": false} {
		got, err := repo.Open(path, repo.Options{Env: repo.EmptyEnv, Head: refstore.Head})
		if err != nil {
			t.Fatal(err)
		}
		if _, set := got.Config.Get("refaudit.peelMismatch"); set != want {
			t.Errorf("%s: set %v", path, set)
		}
	}
	if err := os.Truncate(filepath.Join(r.Path, "reftable", "tables.list"), 0); err != nil {
		t.Fatal(err)
	}
	opened, err := repo.Open(r.Path, repo.Options{Env: repo.EmptyEnv, Head: refstore.Head})
	if err == nil && len(opened.Config.Refused) == 0 {
		t.Error("an unreadable stack looked like another branch")
	}
}
