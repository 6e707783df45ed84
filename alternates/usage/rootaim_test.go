package usage

import (
	"path/filepath"
	"testing"

	"refaudit/internal/gittest"
)

// git follows a symref to a name outside refs/, which counts by itself nowhere.
func TestSymrefsToNamesOutsideRefs(t *testing.T) {
	gittest.Need(t, gittest.Newest)
	for _, format := range gittest.AllFormats {
		for name, c := range map[string]struct {
			target string
			own    string // the ref that holds the object, if it isn't the target
		}{
			"a root ref":               {"FOO", ""},
			"one that git knows":       {"ORIG_HEAD", ""},
			"of the main worktree":     {"main-worktree/FOO", "FOO"},
			"of another worktree":      {"worktrees/wt/FOO", ""},
			"HEAD of another worktree": {"worktrees/wt/HEAD", ""},
			"two steps":                {"BAR", "FOO"},
			"to a branch":              {"TO_MAIN", ""},
			"nothing":                  {"NOTHING", ""},
			"no worktree":              {"worktrees/none/FOO", ""},
		} {
			t.Run(format.String()+" "+name, func(t *testing.T) {
				t.Parallel()
				r := gittest.New(t, format)
				r.Git("worktree", "add", "-q", "--detach", "--no-checkout", filepath.Join(t.TempDir(), "wt"), r.A)
				id := r.Git("commit-tree", r.Tree, "-m", "reached by nothing else")
				holder := c.target
				if c.own != "" {
					holder = c.own
				}
				within := *r
				within.Path = r.File("worktrees/wt")
				switch name {
				case "to a branch":
					r.Git("symbolic-ref", holder, "refs/heads/main")
				case "nothing", "no worktree":
				case "of another worktree", "HEAD of another worktree": // from there, or git's record in a table has the whole name
					within.Git("update-ref", "--no-deref", filepath.Base(holder), id)
				default:
					r.Git("update-ref", "--no-deref", holder, id)
				}
				if name == "two steps" {
					r.Git("symbolic-ref", "BAR", "FOO")
				}
				if _, stderr, code := r.Try("symbolic-ref", "refs/heads/so", c.target); code != 0 {
					if format.RefFormat == gittest.Reftable {
						return // git makes none there
					}
					t.Logf("by hand: %s", stderr)
					r.WriteFile("refs/heads/so", []byte("ref: "+c.target+"\n"))
				}
				s := NewSession(2)
				defer s.Close()
				for _, exclude := range []string{"", "refs/heads/main", "refs/heads/so"} {
					var args []string
					var o Options
					if exclude != "" {
						args, o.Exclude = []string{"--exclude=" + exclude}, []string{exclude}
					}
					want := newOracle(t, r).figures(args...)
					u := measured(t, s, r, o)
					if !u.Complete() || u.Bytes[Reachable] != want[Reachable] || u.Bytes[Unreachable] != want[Unreachable] {
						t.Errorf("without %q: %v %v, want %v", exclude, u.Bytes, u.Unknown, want)
					}
				}
			})
		}
	}
}
