package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"refaudit/internal/gittest"
)

func TestGuard(t *testing.T) {
	dir := t.TempDir()
	r := gittest.New(t, gittest.Options{})
	guard := func(more ...string) ran {
		t.Helper()
		var out ran
		gittest.Unchanged(t, r.Path, func() {
			out = command(t, nil, nil, append([]string{"guard", "--state", dir, "--format=jsonl", r.Path}, more...)...)
		})
		return out
	}
	verdict := func(out ran) any { return out.of(t, "repository")[0]["verdict"] }
	if out := guard(); out.code != 0 || verdict(out) != "first" {
		t.Errorf("exit %d: %s%s", out.code, out.out, out.err)
	}
	if out := guard(); out.code != 0 || verdict(out) != "fine" {
		t.Errorf("exit %d: %s%s", out.code, out.out, out.err)
	}
	for _, ref := range []string{"refs/heads/main", "refs/tags/v1", "refs/tags/v2"} {
		if err := os.Rename(r.File(ref), filepath.Join(t.TempDir(), "away")); err != nil {
			t.Fatal(err)
		}
	}
	out := guard()
	repo := out.of(t, "repository")[0]
	if out.code != 6 || verdict(out) != "suspicious" || repo["lost"] != float64(3) || len(repo["lost_refs"].([]any)) != 3 || repo["recorded_refs"] != float64(3) {
		t.Errorf("exit %d: %s%s", out.code, out.out, out.err)
	}
	text := command(t, nil, nil, "guard", "--quiet", "--state", dir, r.Path)
	for _, want := range []string{"all 3 refs are gone", "lost: refs/heads/main, refs/tags/v1, refs/tags/v2\n", "refaudit guard --accept " + r.Path} {
		if text.code != 6 || !strings.Contains(text.out, want) {
			t.Errorf("no %q: exit %d: %s%s", want, text.code, text.out, text.err)
		}
	}
	if out := guard("--max-lost=3"); out.code != 6 {
		t.Errorf("none left is suspicious whatever is allowed: exit %d", out.code)
	}
	if out := guard("--accept"); out.code != 0 || verdict(out) != "accepted" {
		t.Errorf("exit %d: %s%s", out.code, out.out, out.err)
	}
	if out := command(t, nil, nil, "guard", "--quiet", "--state", dir, r.Path); out.code != 0 || out.out+out.err != "" {
		t.Errorf("exit %d: %s%s", out.code, out.out, out.err)
	}
}

func TestGuardCodes(t *testing.T) {
	broken, _ := gittest.TableCrc(t, gittest.Options{RefFormat: gittest.Reftable})
	clean, _ := gittest.Clean(t, gittest.Options{})
	unsorted := gittest.New(t, gittest.Options{})
	unsorted.Git("pack-refs", "--all")
	unsorted.WriteFile("packed-refs", []byte("# pack-refs with: peeled fully-peeled sorted \n"+unsorted.A+" refs/heads/z\n"+unsorted.A+" refs/heads/a\n"))
	wrong, _ := gittest.Mismatch(t, gittest.Options{})
	none := filepath.Join(t.TempDir(), "none")
	dir := t.TempDir()
	for _, c := range []struct {
		args []string
		want int
	}{
		{[]string{clean.Path}, 0},
		{[]string{wrong.Path}, 0}, // a wrong cache keeps gc from nothing
		{[]string{broken.Path}, 7},
		{[]string{broken.Path, "--accept"}, 7},
		{[]string{unsorted.Path}, 1},
		{[]string{none}, 3},
		{[]string{clean.Path, broken.Path}, 7},
		{[]string{clean.Path, "--max-lost=-1"}, 129},
		{[]string{"--recursive", t.TempDir()}, 3},
	} {
		if out := command(t, nil, nil, append([]string{"guard", "--state", dir}, c.args...)...); out.code != c.want {
			t.Errorf("%v: exit %d, want %d: %s%s", c.args, out.code, c.want, out.out, out.err)
		}
	}
}

// git asks its hook pre-auto-gc, which stands in the git dir with GIT_DIR set.
func TestGuardAsAHook(t *testing.T) {
	dir := t.TempDir()
	r := gittest.New(t, gittest.Options{})
	r.Git("config", "refaudit.guard.ignore", "refs/heads/*")
	r.Git("config", "refaudit.guard.maxLost", "1")
	hook := func() ran {
		return commandIn(t.Context(), r.Path, nil, map[string]string{"GIT_DIR": "."}, "guard", "--quiet", "--state", dir)
	}
	if out := hook(); out.code != 0 {
		t.Errorf("exit %d: %s%s", out.code, out.out, out.err)
	}
	r.Git("update-ref", "-d", "refs/heads/main")
	r.Git("tag", "-d", "v1")
	if out := hook(); out.code != 0 {
		t.Errorf("settings: exit %d: %s%s", out.code, out.out, out.err)
	}
	r.Git("config", "refaudit.guard.maxLost", "many")
	if out := hook(); out.code != 3 {
		t.Errorf("exit %d: %s%s", out.code, out.out, out.err)
	}
}
