package remotehelper

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"refaudit/internal/gittest"
)

// history puts commits with a file each on top of the server's main, a day apart.
func (w *world) history(n int) {
	w.t.Helper()
	var in strings.Builder
	for i := range n {
		fmt.Fprintf(&in, "commit refs/heads/main\ncommitter C <c@example.com> %d +0000\ndata 2\nx\n", 1700000000+86400*(i+1))
		if i == 0 {
			in.WriteString("from refs/heads/main^0\n")
		}
		fmt.Fprintf(&in, "M 100644 inline f%d\ndata %d\nfile %d\n\n", i, len(fmt.Sprintf("file %d\n", i)), i)
	}
	w.src.GitIn(in.String(), "fast-import", "--quiet")
}

func (w *world) count(client string) string {
	return w.must(client, "rev-list", "--count", "origin/main")
}

func TestShallowClients(t *testing.T) {
	for _, o := range []gittest.Options{gittest.AllFormats[0], gittest.AllFormats[3]} {
		t.Run(o.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, o)
			w.history(20)
			w.src.Git("update-ref", "refs/heads/old", "main~8")
			w.silent("", "clone", "-q", "--depth=1", w.inFormat(), w.url(), "c")
			if n := w.count("c"); n != "1" {
				t.Errorf("%s commits", n)
			}
			w.liar("v3")
			w.unchanged("c/.git", func() {
				if said := w.refused("c", "fetch", "--depth=3", "--tags"); !strings.Contains(said, "refs/tags/v3") {
					t.Error(said)
				}
			})
			w.src.Git("update-ref", "-d", "refs/tags/v3")
			for _, c := range [][2]string{
				{"--deepen=2", "3"}, {"--depth=2", "2"}, {"--shallow-exclude=old", "8"}, {"--shallow-since=2023-11-30", "19"}, {"--unshallow", "22"},
			} {
				w.silent("c", "fetch", "-q", "--no-tags", c[0])
				if n := w.count("c"); c[0] != "--shallow-since=2023-11-30" && n != c[1] {
					t.Errorf("%s: %s commits, want %s", c[0], n, c[1])
				}
				w.must("c", "fsck")
			}
			if _, err := os.Stat(w.in("c/.git/shallow")); err == nil {
				t.Error("shallow is there though nothing is cut")
			}
			w.clean("c/.git")
		})
	}
}

// A clone of a shallow repository is shallow; a fetch takes a new boundary over only when told to, as without us.
func TestShallowServers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, gittest.Options{})
	w.history(5)
	w.must("", "clone", "-q", "--bare", "--depth=2", "file://"+w.src.Path, "half.git")
	w.silent("", "clone", "-q", "refaudit::"+w.in("half.git"), "c")
	if n := w.count("c"); n != "2" {
		t.Errorf("%s commits", n)
	}
	w.must("", "init", "-q", "d")
	if r := w.run("d", "fetch", "refaudit::"+w.in("half.git"), "main:x"); r.Code == 0 && w.run("d", "rev-parse", "-q", "--verify", "x").Code == 0 {
		t.Errorf("a boundary was taken over unasked: %v", r)
	}
	w.must("d", "fetch", "--update-shallow", "refaudit::"+w.in("half.git"), "main:x")
	if n := w.must("d", "rev-list", "--count", "x"); n != "2" {
		t.Errorf("%s commits", n)
	}
	w.must("d", "fsck")
	w.clean("d/.git")
}

func TestPartialClones(t *testing.T) {
	for _, o := range []gittest.Options{gittest.AllFormats[0], gittest.AllFormats[3]} {
		t.Run(o.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, o)
			w.history(20)
			w.src.Git("config", "uploadpack.allowFilter", "true")
			w.src.Git("config", "uploadpack.allowAnySHA1InWant", "true")
			for _, filter := range []string{"blob:none", "tree:0"} {
				c := strings.ReplaceAll(filter, ":", "-")
				w.silent("", "clone", "-q", "--filter="+filter, "--no-checkout", w.url(), c)
				missing := func() int {
					r := w.git.Run(t, w.in(c), append(w.env, "GIT_NO_LAZY_FETCH=1"), "", "rev-list", "--objects", "--missing=print", "HEAD")
					return strings.Count("\n"+r.Stdout, "\n?")
				}
				had := missing()
				if had < 2 {
					t.Errorf("%s: %d objects stayed away", filter, had)
				}
				w.must(c, "fsck")
				for _, key := range strings.Fields(w.must(c, "config", "--local", "--name-only", "--list")) {
					if strings.HasPrefix(key, "remote.") && !strings.HasPrefix(key, "remote.origin.") {
						t.Errorf("%s came into the configuration", key)
					}
				}
				w.must(c, "checkout", "-q", "main")
				if now := missing(); now >= had || w.must(c, "status", "--porcelain") != "" {
					t.Errorf("%s: %d objects away, then %d", filter, had, now)
				}
				n := w.commit(w.src.Git("rev-parse", "main"), "new")
				w.must(c, "fetch", "-q")
				if w.must(c, "rev-parse", "origin/main") != n {
					t.Error("a fetch into a partial clone")
				}
				m := w.commit(n, "newer")
				w.must(c, "fetch", "-q", "--no-filter")
				if w.must(c, "rev-parse", "origin/main") != m {
					t.Error("a fetch without a filter")
				}
				w.liar("bad")
				w.unchanged(c+"/.git", func() { w.refused(c, "fetch", "-q", "--tags") })
				w.src.Git("update-ref", "-d", "refs/tags/bad")
				w.clean(c + "/.git")
			}
		})
	}
}

// A lie about a tag of a blob is seen though the blob stays away.
func TestAPromisedTargetIsCompared(t *testing.T) {
	t.Parallel()
	w := newWorld(t, gittest.Options{})
	w.src.Git("config", "uploadpack.allowFilter", "true")
	w.silent("", "clone", "-q", "--filter=blob:none", "--no-checkout", w.url(), "c")
	blob := w.src.WriteObject("blob", []byte("never checked out\n"))
	id := w.src.WriteTag(blob, "blob", "key")
	w.src.Git("update-ref", "refs/tags/key", id)
	w.lie("key", id, blob, w.src.Blob)
	w.unchanged("c/.git", func() {
		if said := w.refused("c", "fetch", "--tags"); !strings.Contains(said, "refs/tags/key") || !strings.Contains(said, blob) {
			t.Error(said)
		}
	})
	w.src.EditPacked(func(s string) string { return strings.Replace(s, "^"+w.src.Blob, "^"+blob, 1) })
	w.silent("c", "fetch", "-q", "--tags")
}
