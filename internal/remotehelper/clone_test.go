package remotehelper

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"refaudit/internal/gittest"
)

func TestCloneAndFetch(t *testing.T) {
	for _, o := range gittest.AllFormats {
		t.Run(o.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, o)
			w.src.Git("update-ref", "refs/heads/aaa", w.src.B) // as good a guess for HEAD as main
			w.env = append(w.env, "GIT_TRANSPORT_HELPER_DEBUG=1")
			r := w.run("", "clone", w.inFormat(), w.url(), "c")
			if r.Code != 0 {
				t.Fatal(r)
			}
			if bad := regexp.MustCompile(`Got cap \*?(stateless-connect|connect|check-connectivity|import).*|unexpectedly said.*|also locked.*`).FindString(r.Stderr); bad != "" {
				t.Error(bad)
			}
			packs, _ := filepath.Glob(w.in("c/.git/objects/pack/*.pack"))
			if len(packs) != 1 || !strings.Contains(r.Stderr, "lock "+strings.TrimSuffix(packs[0], ".pack")+".keep") {
				t.Errorf("packs %v, and git was told\n%s", packs, r.Stderr)
			}
			w.env = w.env[:len(w.env)-1]
			for what, want := range map[string]string{
				"rev-parse v1^{}": w.src.A, "rev-parse HEAD": w.src.B, "symbolic-ref HEAD": "refs/heads/main",
				"symbolic-ref refs/remotes/origin/HEAD": "refs/remotes/origin/main",
				"rev-parse --show-object-format":        w.src.Format.String(),
			} {
				if got := w.must("c", strings.Fields(what)...); got != want {
					t.Errorf("%s: %s, want %s", what, got, want)
				}
			}
			if w.git.Reftable() && w.must("c", "rev-parse", "--show-ref-format") != w.src.RefFormat {
				t.Error("another ref format")
			}
			w.whole("c")
			n := w.commit(w.src.B, "new")
			w.src.Git("tag", "-a", "-m", "x", "v3", n)
			w.src.Git("tag", "light", n)
			w.src.Git("tag", "-a", "-m", "x", "stray", w.src.Git("commit-tree", w.src.Tree, "-m", "stray"))
			w.must("c", "fetch")
			if got := w.must("c", "rev-parse", "origin/main"); got != n {
				t.Errorf("origin/main is at %s", got)
			}
			if got := w.tags("c"); got != "light v1 v2 v3" {
				t.Errorf("tags that follow: %s", got)
			}
			w.clean("c/.git")
		})
	}
}

func TestARefusedFetchLeavesTheClientAlone(t *testing.T) {
	for _, o := range gittest.AllFormats {
		t.Run(o.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, o)
			w.must("", "clone", "-q", w.inFormat(), w.url(), "c")
			w.liar("v4")
			for _, how := range []string{"", "--tags", "--depth=1 --tags", "--no-tags origin refs/tags/v4:refs/tags/v4", "--no-tags origin " + w.src.Git("rev-parse", "refs/tags/v4")} {
				w.unchanged("c/.git", func() {
					said := w.refused("c", append([]string{"fetch"}, strings.Fields(how)...)...)
					for _, want := range []string{"refs/tags/v4", w.src.A, w.src.B, "peelMismatch", "refaudit.remote.onFinding=warn"} {
						if !strings.Contains(said, want) {
							t.Errorf("fetch %s: no %q in %s", how, want, said)
						}
					}
				})
			}
			if said := w.refused("", "clone", "-q", w.url(), "no"); !strings.Contains(said, "refs/tags/v4") {
				t.Error(said)
			}
			if _, err := os.Stat(w.in("no")); err == nil {
				t.Error("a refused clone left its folder")
			}
			r := w.run("c", "-c", "refaudit.remote.onFinding=warn", "fetch")
			if r.Code != 0 || !strings.Contains(r.Stderr, "refs/tags/v4") || w.must("c", "rev-parse", "v4^{}") != w.src.B {
				t.Errorf("onFinding=warn: %v", r)
			}
			w.clean("c/.git")
		})
	}
}

// A tag that follows comes in a batch of its own: no ref changes, though the first batch's objects are here.
func TestAFollowingTagIsJudged(t *testing.T) {
	w := newWorld(t, gittest.Options{})
	w.silent("", "clone", "-q", w.url(), "c")
	n := w.commit(w.src.B, "new")
	id := w.src.WriteTag(n, "commit", "v3")
	w.src.Git("update-ref", "refs/tags/v3", id)
	w.lie("v3", id, n, w.src.A)
	refs := w.must("c", "for-each-ref")
	if said := w.refused("c", "fetch"); !strings.Contains(said, "refs/tags/v3") {
		t.Error(said)
	}
	if now := w.must("c", "for-each-ref"); now != refs {
		t.Errorf("refs moved:\n%s\n%s", refs, now)
	}
	w.clean("c/.git")
}

// Each kind of wrong peel has its id, and what is right passes whatever its name.
func TestKindsOfWrongPeels(t *testing.T) {
	w := newWorld(t, gittest.Options{})
	w.src.Git("update-ref", "refs/heads/odd", w.src.A)
	w.src.Git("update-ref", "refs/notes/x", w.src.V1) // a tag outside of refs/tags/
	nested := w.src.WriteTag(w.src.V1, "tag", "nested")
	w.src.Git("update-ref", "refs/tags/nested", nested)
	w.silent("", "clone", "-q", "--mirror", w.url(), "good.git")
	w.src.Git("pack-refs", "--all")
	sound := w.src.ReadFile("packed-refs")
	for id, edit := range map[string][2]string{
		"refs/heads/odd is served with a peel":     {w.src.A + " refs/heads/odd\n", w.src.A + " refs/heads/odd\n^" + w.src.B + "\n"},
		"refs/notes/x is served with the peel":     {"refs/notes/x\n^" + w.src.A, "refs/notes/x\n^" + w.src.B},
		"refs/tags/nested is served with the peel": {"refs/tags/nested\n^" + w.src.A, "refs/tags/nested\n^" + w.src.V1},
		"refs/tags/v1 is served with the peel":     {"refs/tags/v1\n^" + w.src.A, "refs/tags/v1\n^" + w.src.Tree},
	} {
		w.src.WriteFile("packed-refs", []byte(strings.Replace(string(sound), edit[0], edit[1], 1)))
		if said := w.refused("", "clone", "-q", "--mirror", w.url(), "no.git"); !strings.Contains(said, id) || strings.Count(said, "error: refaudit") != 1 {
			t.Errorf("%s: %s", id, said)
		}
	}
}

func TestAPolicyHoldsForWhatIsFetched(t *testing.T) {
	w := newWorld(t, gittest.Options{})
	w.silent("", "clone", "-q", w.url(), "c")
	w.src.Git("update-ref", "refs/tags/v9", w.src.WriteTag(w.src.A, "commit", "v0")) // a tag under another name than its own
	w.unchanged("c/.git", func() {
		if said := w.refused("c", "-c", "refaudit.tagNameMismatch=error", "fetch"); !strings.Contains(said, "refs/tags/v9") || !strings.Contains(said, "tagNameMismatch") {
			t.Error(said)
		}
	})
	if r := w.run("c", "-c", "refaudit.tagNameMismatch=warn", "fetch"); r.Code != 0 || !strings.Contains(r.Stderr, "warning: refaudit: refs/tags/v9") {
		t.Error(r)
	}
	w.liar("v4")
	w.silent("c", "-c", "refaudit.peelMismatch=ignore", "fetch", "-q")
	for _, bad := range []string{"refaudit.remote.onFinding=perhaps", "refaudit.peelMismatch=perhaps"} {
		w.commit(w.src.Git("rev-parse", "main"), "new")
		if said := w.refused("c", "-c", bad, "fetch"); !strings.Contains(said, "perhaps") {
			t.Errorf("%s: %s", bad, said)
		}
	}
}

func TestEmptyRemotes(t *testing.T) {
	for _, o := range gittest.AllFormats[:2] {
		w := newWorld(t, o)
		empty := gittest.Init(t, o)
		w.must("", "clone", "-q", "file://"+empty.Path, "plain") // gits before 2.41 always take SHA-1
		r := w.run("", "clone", "-q", "refaudit::"+empty.Path, "c")
		if r.Code != 0 || w.must("c", "rev-parse", "--show-object-format") != w.must("plain", "rev-parse", "--show-object-format") {
			t.Errorf("%v: %v", o, r)
		}
		if r := w.run("c", "fetch"); r.Code != 0 {
			t.Error(r)
		}
		w.clean("c/.git")
	}
}

func TestRemotesOfTheOtherFormat(t *testing.T) {
	w := newWorld(t, gittest.AllFormats[0])
	w.silent("", "clone", "-q", w.url(), "c")
	other := gittest.New(t, gittest.AllFormats[1])
	w.unchanged("c/.git", func() {
		if said := w.refused("c", "fetch", "refaudit::"+other.Path, "main"); !strings.Contains(said, "sha256") {
			t.Error(said)
		}
	})
}

// A server may advertise anything. What git could not use is left out and said; it can't make git
// believe that it has something already, nor add a line.
func TestOddNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t, gittest.Options{})
	lines := []string{w.src.A + " HEAD\x00symref=HEAD:refs/heads/a..b agent=x\n", w.src.A + " refs/heads/a b\n", w.src.A + " refs/heads/main unchanged\n",
		w.src.A + " refs/heads/\x1b[31m\n", w.src.B + " refs/heads/good\n", w.src.A + " refs/heads/-x\n", w.src.A + " refs/heads/\xff\n", w.src.V1 + " refs/tags/v1\n", w.src.A + " refs/tags/v1^{}\n"}
	var packets strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&packets, "%04x%s", len(l)+4, l)
	}
	answer, script := w.in("answer"), w.in("ssh")
	err := os.WriteFile(answer, []byte(packets.String()+"0000"), 0o600)
	if err == nil {
		err = os.WriteFile(script, []byte("#!/bin/sh\ncat "+answer+"\ncat >/dev/null\n"), 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	w.env = append(w.env, "GIT_SSH_COMMAND="+script, "GIT_SSH_VARIANT=ssh")
	r := w.run("", "ls-remote", "refaudit::ssh://host/x")
	want := []string{w.src.A + "\tHEAD", w.src.B + "\trefs/heads/good", w.src.A + "\trefs/heads/-x", w.src.A + "\trefs/heads/\xff", w.src.V1 + "\trefs/tags/v1", w.src.A + "\trefs/tags/v1^{}"}
	if got := strings.Split(strings.TrimSpace(r.Stdout), "\n"); r.Code != 0 || !slices.Equal(got, want) {
		t.Errorf("%q", r)
	}
	if strings.Count(r.Stderr, "warning: refaudit: left out") != 3 || strings.Contains(r.Stderr, "\x1b") {
		t.Errorf("%q", r.Stderr)
	}
}
