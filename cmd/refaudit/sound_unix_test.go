//go:build unix

package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"refaudit/internal/gittest"
)

// What git reads whole is no incomplete audit, however odd it looks.
func TestWhatGitReadsWholeIsReadWhole(t *testing.T) {
	link := func(to string) func(string) error {
		return func(path string) error {
			os.Remove(path)
			return os.Symlink(to, path)
		}
	}
	cases := []struct {
		name, path string
		make       func(path string) error
	}{
		{"HEAD is a link to a packed branch", "HEAD", link("refs/heads/main")},
		{"HEAD is a link to an unborn branch", "HEAD", link("refs/heads/unborn")},
		{"a worktree's HEAD is a link to a packed branch", "worktrees/w/HEAD", link("refs/heads/w")},
		{"a worktree's HEAD is a link to an unborn branch", "worktrees/w/HEAD", link("refs/heads/unborn")},
		{"a file among the worktrees", "worktrees/.DS_Store", func(path string) error { return os.WriteFile(path, []byte("Bud1"), 0o644) }},
		{"a dead link among the worktrees", "worktrees/dead", link("/no/such/worktree")},
		{"a link to a file among the worktrees", "worktrees/file", link("../config")},
		{"a FIFO among the worktrees", "worktrees/fifo", func(path string) error { return syscall.Mkfifo(path, 0o644) }},
		{"an empty folder among the worktrees", "worktrees/empty", func(path string) error { return os.Mkdir(path, 0o755) }},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r, _ := gittest.Clean(t, gittest.Options{})
			r.Git("worktree", "add", "-q", "-b", "w", filepath.Join(t.TempDir(), "w"), "main")
			r.Git("pack-refs", "--all")
			if err := c.make(r.File(c.path)); err != nil {
				t.Fatal(err)
			}
			for _, which := range []gittest.Which{gittest.Newest, gittest.Old} {
				if _, stderr, code := r.Use(which).Try("fsck"); code != 0 {
					t.Fatalf("git fsck: %d, %s", code, stderr)
				}
			}
			for _, args := range [][]string{{"scan", "--level=deep"}, {"fingerprint"}, {"guard"}, {"size"}} {
				if got := command(t, nil, nil, append(args, r.Path)...); got.code != 0 {
					t.Errorf("%s: exit %d, %s%s", args[0], got.code, got.out, got.err)
				}
			}
		})
	}
}

// A link that git can't follow to a name is no HEAD.
func TestAHeadThatLeadsNowhereIsNotSound(t *testing.T) {
	r, _ := gittest.Clean(t, gittest.Options{})
	r.Git("worktree", "add", "-q", "-b", "w", filepath.Join(t.TempDir(), "w"), "main")
	for _, to := range []string{"../../refs/heads/gone", "refs/heads/..", "nowhere"} {
		os.Remove(r.File("worktrees/w/HEAD"))
		if err := os.Symlink(to, r.File("worktrees/w/HEAD")); err != nil {
			t.Fatal(err)
		}
		if got := command(t, nil, nil, "scan", r.Path); got.code != exitBoth {
			t.Errorf("%s: exit %d, %s%s", to, got.code, got.out, got.err)
		}
	}
}
