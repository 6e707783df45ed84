package main

import (
	"path/filepath"
	"strings"
	"testing"

	"refaudit/internal/gittest"
)

func TestFingerprint(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"a.git", "b.git"} {
		gittest.InitAt(t, gittest.Options{RefFormat: map[string]string{"a.git": gittest.Files, "b.git": gittest.Reftable}[name]}, filepath.Join(root, name))
	}
	r := command(t, nil, nil, "fingerprint", "--recursive", root)
	rows := strings.Split(strings.TrimSuffix(r.out, "\n"), "\n")
	if r.code != 0 || len(rows) != 2 || len(rows[0]) != 64+2+len(root)+6 || rows[0][:64] != rows[1][:64] || r.err != "" {
		t.Errorf("exit %d: %q %s", r.code, rows, r.err)
	}
	r = command(t, nil, nil, "fingerprint", "--format=jsonl", "--recursive", root)
	for _, m := range r.of(t, "repository") {
		if m["fingerprint"] != rows[0][:64] || m["head"] != "refs/heads/main" || m["state"] != "clean" {
			t.Errorf("%v", m)
		}
	}
	broken, _ := gittest.TableCrc(t, gittest.Options{RefFormat: gittest.Reftable})
	gittest.Unchanged(t, broken.Path, func() {
		r = command(t, nil, nil, "fingerprint", broken.Path, filepath.Join(root, "a.git"))
	})
	if r.code != 3 || !strings.HasPrefix(r.out, rows[0][:64]) || strings.Count(r.out, "\n") != 1 || !strings.Contains(r.err, "no fingerprint") {
		t.Errorf("exit %d: %q %q", r.code, r.out, r.err)
	}
	r = command(t, nil, nil, "fingerprint", "--format=jsonl", broken.Path)
	if m := r.of(t, "repository")[0]; r.code != 3 || m["fingerprint"] != nil || m["state"] != "incomplete" {
		t.Errorf("exit %d: %v", r.code, m)
	}
	for args, want := range map[string]int{"--format=html": 129, "--no-such": 129, filepath.Join(root, "none"): 3} {
		if r := command(t, nil, nil, "fingerprint", args); r.code != want || r.out != "" {
			t.Errorf("%s: exit %d: %s", args, r.code, r.out)
		}
	}
}
