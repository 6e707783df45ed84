package usage

import (
	"os"
	"path/filepath"
	"testing"

	"refaudit/internal/gittest"
)

// Where the file of a ref is none, git's listing passes over it, and what is packed is served.
func TestWhatHidesNoPackedRef(t *testing.T) {
	gittest.Need(t, gittest.Newest)
	for name, place := range map[string]func(t *testing.T, r *gittest.Repo){
		"a link to nothing":          link("refs/heads/side", "/nowhere/x"),
		"a relative link to nothing": link("refs/heads/side", "x"),
		"a link to itself":           link("refs/heads/side", "side"),
		"a link with a ref's name":   link("refs/heads/side", "refs/heads/main"),
		"a link to garbage":          link("refs/heads/side", "../../config"),
		"a link to a ref":            link("refs/heads/side", "main"),
		"a FIFO":                     func(t *testing.T, r *gittest.Repo) { gittest.Run(t, "", nil, "", "mkfifo", r.File("refs/heads/side")) },
		"an empty folder":            func(t *testing.T, r *gittest.Repo) { os.MkdirAll(r.File("refs/heads/side"), 0o777) },
		"a folder with a ref":        file("refs/heads/side/x", "ID\n"),
		"a link from a worktree":     nil,
	} {
		for _, format := range []gittest.Options{{}, {Format: gittest.AllFormats[len(gittest.AllFormats)-1].Format}} {
			r := gittest.New(t, format)
			r.WriteFile("refs/heads/side", []byte(r.Git("commit-tree", r.Tree, "-m", "on a side branch")+"\n"))
			r.Git("pack-refs", "--all")
			r.WriteFile("refs/heads/main", []byte(r.A+"\n"))
			if name == "a link from a worktree" {
				r.Git("worktree", "add", "-q", "--detach", "--no-checkout", filepath.Join(t.TempDir(), "wt"), r.A)
				place = link("worktrees/wt/refs/bisect/bad", "nothing")
				os.MkdirAll(r.File("worktrees/wt/refs/bisect"), 0o777)
			}
			place(t, r)
			s := NewSession(2)
			u := measured(t, s, r, Options{})
			s.Close()
			_, _, code := r.Try("rev-list", "--all", "--objects")
			if code != 0 || name == "a link to garbage" {
				if _, known := u.Bytes[Reachable]; known {
					t.Errorf("%s: git dies, and we count %v", name, u.Bytes)
				}
				continue
			}
			if want := newOracle(t, r).figures(); !u.Complete() || u.Bytes[Reachable] != want[Reachable] || u.Bytes[Unreachable] != want[Unreachable] {
				t.Errorf("%s: %v %v, want %v", name, u.Bytes, u.Unknown, want)
			}
		}
	}
}
