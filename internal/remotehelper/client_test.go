package remotehelper

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"refaudit/internal/gittest"
)

// Every git that is here, as a client of one server.
func TestGitsOfEveryAge(t *testing.T) {
	for version, p := range gits(t) {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, gittest.Options{})
			w.use(p)
			w.silent("", "clone", "-q", w.url(), "c")
			n := w.commit(w.src.B, "new")
			w.src.Git("tag", "-a", "-m", "x", "v3", n)
			w.must("c", "fetch")
			if w.must("c", "rev-parse", "origin/main") != n || w.tags("c") != "v1 v2 v3" {
				t.Error("a fetch")
			}
			w.silent("c", "push", "-q", "origin", w.src.A+":refs/heads/pushed")
			w.history(3)
			w.silent("", "clone", "-q", "--depth=1", w.url(), "d")
			w.liar("v4")
			w.unchanged("c/.git", func() {
				if said := w.refused("c", "fetch", "--tags"); !strings.Contains(said, "refs/tags/v4") {
					t.Error(said)
				}
			})
			w.clean("d/.git")
			other := newWorld(t, gittest.AllFormats[1])
			other.use(p)
			other.silent("", "clone", "-q", other.url(), "c")
			if other.must("c", "rev-parse", "--show-object-format", "v1^{}") != "sha256\n"+other.src.A {
				t.Error("a clone in SHA-256")
			}
		})
	}
}

func TestPlacesOfAClient(t *testing.T) {
	t.Parallel()
	w := newWorld(t, gittest.AllFormats[2])
	w.silent("", "clone", "-q", "--ref-format=reftable", w.url(), "c")
	fetched := func(name, client string, args ...string) {
		t.Helper()
		n := w.commit(w.src.Git("rev-parse", "main"), name)
		w.must(client, args...)
		if got := w.must("c", "rev-parse", "origin/main"); got != n {
			t.Errorf("%s: origin/main is at %s", name, got)
		}
	}
	w.must("c", "worktree", "add", "-q", "../tree")
	fetched("a linked worktree", "tree", "fetch", "-q", "--depth=2")
	fetched("outside, by --git-dir", "", "--git-dir=c/.git", "fetch", "-q", "--unshallow")
	if err := os.Mkdir(w.in("c/sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	fetched("a folder below", "c/sub", "fetch", "-q")
	env := w.env
	w.env = append(w.env, "GIT_OBJECT_DIRECTORY="+w.in("elsewhere"), "GIT_ALTERNATE_OBJECT_DIRECTORIES="+w.in("c/.git/objects"))
	if err := os.Mkdir(w.in("elsewhere"), 0o700); err != nil {
		t.Fatal(err)
	}
	fetched("an object folder of its own", "c", "fetch", "-q")
	if list, _ := filepath.Glob(w.in("elsewhere") + "/??/*"); len(list) == 0 {
		t.Error("the objects are not where GIT_OBJECT_DIRECTORY says")
	}
	w.liar("v4")
	w.unchanged("elsewhere", func() { w.refused("c", "fetch", "-q", "--tags") })
	w.src.Git("update-ref", "-d", "refs/tags/v4")
	w.env = env
	w.clean("c/.git")
	w.must("", "clone", "-q", "--bare", "file://"+w.src.Path, "pool.git")
	w.silent("", "clone", "-q", "--reference", w.in("pool.git"), w.url(), "borrower")
	if packs, _ := filepath.Glob(w.in("borrower/.git/objects/pack/*.pack")); len(packs) > 0 {
		t.Errorf("what the pool has was fetched: %v", packs)
	}
	w.whole("borrower")
	if out := w.must("", "ls-remote", w.url(), "main"); !strings.Contains(out, "refs/heads/main") {
		t.Errorf("outside of any repository: %s", out)
	}
}

// Whoever may write a shared repository may still do so afterwards.
func TestSharedRepositories(t *testing.T) {
	t.Parallel()
	w := newWorld(t, gittest.Options{})
	w.must("", "init", "-q", "--bare", "--shared=group", "c.git")
	w.must("c.git", "fetch", "-q", w.url(), "main:main")
	filepath.WalkDir(w.in("c.git/objects"), func(path string, d os.DirEntry, err error) error {
		if err != nil {
			t.Fatal(err)
		}
		st, err := d.Info()
		if err != nil {
			t.Fatal(err)
		}
		if d.IsDir() && st.Mode()&0o020 == 0 || st.Mode()&0o040 == 0 {
			t.Errorf("%s: %v", path, st.Mode())
		}
		return nil
	})
}
