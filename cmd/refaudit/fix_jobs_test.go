package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"refaudit/internal/gittest"
)

// Four repositories that each keep fix waiting for a lock take as long as one. Each one's results
// stay together, in the order of the arguments.
func TestFixWorksOnSeveralRepositoriesAtATime(t *testing.T) {
	vars := map[string]string{"XDG_STATE_HOME": t.TempDir()}
	var paths []string
	for range 4 {
		r, _ := gittest.Mismatch(t, gittest.Options{})
		r.WriteFile("packed-refs.lock", nil)
		paths = append(paths, r.Path)
	}
	good, _ := gittest.Mismatch(t, gittest.Options{RefFormat: gittest.Reftable})
	paths = append(paths, good.Path)
	const wait = 800 * time.Millisecond
	began := time.Now()
	out := command(t, nil, vars, append([]string{"fix", "--yes", "--jobs=5", "--format=jsonl", "--lock-timeout=" + wait.String()}, paths...)...)
	if took := time.Since(began); took > 3*wait {
		t.Errorf("it took %v, as if they were mended one after the other", took)
	}
	if out.code != exitLocked || strings.Count(out.err, "packed-refs.lock") != 4 || len(out.of(t, "repair")) != 1 {
		t.Errorf("exit %d: %s%s", out.code, out.out, out.err)
	}
	var order []string
	for _, l := range out.lines(t) {
		if repo, _ := l["repo"].(string); repo != "" && (len(order) == 0 || order[len(order)-1] != repo) {
			order = append(order, repo)
		}
	}
	if strings.Join(order, "\n") != strings.Join(paths, "\n") {
		t.Errorf("the results come in the order\n%q\nof\n%q", order, paths)
	}
}

// The exit code is that of the worst, whatever the order and however many work at a time.
func TestTheWorstOfSeveralRepositoriesIsTold(t *testing.T) {
	vars := map[string]string{"XDG_STATE_HOME": t.TempDir()}
	clean, _ := gittest.Clean(t, gittest.Options{})
	bad, _ := gittest.Mismatch(t, gittest.Options{})
	locked, _ := gittest.Mismatch(t, gittest.Options{})
	locked.WriteFile("packed-refs.lock", nil)
	gone := filepath.Join(t.TempDir(), "gone")
	corrupt, _ := gittest.FalseType(t, gittest.Options{})
	for _, c := range []struct {
		paths []string
		want  int
	}{
		{[]string{clean.Path, bad.Path}, exitOK},
		{[]string{clean.Path, locked.Path}, exitLocked},
		{[]string{gone, clean.Path}, exitIncomplete},
		{[]string{corrupt.Path, locked.Path}, exitFindings},
		{[]string{gone, corrupt.Path, locked.Path}, exitBoth},
	} {
		for _, jobs := range []string{"1", "3"} {
			out := command(t, nil, vars, append([]string{"fix", "--yes", "--lock-timeout=10ms", "--jobs=" + jobs}, c.paths...)...)
			if out.code != c.want {
				t.Errorf("%q, %s at a time: exit %d, want %d: %s", c.paths, jobs, out.code, c.want, out.err)
			}
		}
	}
}

// A repository that is named twice, or by a worktree too, is mended once, and does not stand in its own way.
func TestARepositoryIsNamedTwice(t *testing.T) {
	for _, o := range gittest.AllFormats[1:3] {
		for range 5 {
			r, _ := gittest.Mismatch(t, o)
			tree := filepath.Join(t.TempDir(), "wt")
			r.Git("worktree", "add", "-q", tree, "main")
			vars := map[string]string{"XDG_STATE_HOME": t.TempDir()}
			out := command(t, nil, vars, "fix", "--yes", "--jobs=3", "--format=jsonl", "--lock-timeout=0s", r.Path, tree, r.Path)
			if out.code != 0 || len(out.of(t, "repair")) != 1 {
				t.Fatalf("%v: exit %d: %s%s", o, out.code, out.out, out.err)
			}
		}
	}
}
