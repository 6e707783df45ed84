package usage

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"refaudit/finding"
	"refaudit/internal/gittest"
)

// Of a folder that can't be seen in whole nobody knows what lies there twice, or is not in use. What git reaches
// stays known where git itself sees no objects: in half a pack.
func TestWhatLiesTwiceInAFolderThatIsNotSeenInWhole(t *testing.T) {
	gittest.Need(t, gittest.Newest)
	remove := func(t *testing.T, file string) {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	loop := func(t *testing.T, file string) { // as good as a folder that nobody may enter, and root can't look either
		remove(t, file)
		if err := os.Symlink(file, file); err != nil {
			t.Skip(err)
		}
	}
	for name, c := range map[string]struct {
		harm   func(t *testing.T, file string)
		ext    string
		reason string
		half   bool
	}{
		"no index":                 {remove, "idx", ".pack has no index beside it", true},
		"no pack":                  {remove, "pack", ".idx has no pack beside it", true},
		"an index that is unasked": {loop, "idx", ".idx: ", false},
		"a pack that is unasked":   {loop, "pack", ".pack: ", false},
	} {
		for _, where := range []string{"own", "the only own", "own, borrowing", "the pool's"} {
			t.Run(name+" "+where, func(t *testing.T) {
				t.Parallel()
				pool := plain(t)
				r := pool
				if strings.HasSuffix(where, "own") {
					r.Git("repack", "-adbq")
					if where == "own" { // and a whole pack with a bitmap beside it
						tree := r.GitIn("100644 blob "+r.GitIn("more\n", "hash-object", "-w", "--stdin")+"\tf\n", "mktree")
						r.GitIn(tree+"\n", "pack-objects", "-q", r.File("objects/pack/pack"))
						r.Git("prune-packed")
					}
				} else {
					r = forkOf(t, pool)
					r.Git("repack", "-aq")
					pool.Git("repack", "-aq")
				}
				whose := r
				if where == "the pool's" {
					whose = pool
				}
				files, _ := filepath.Glob(whose.File("objects/pack/*." + c.ext))
				if where == "own" { // the one that no ref needs
					files = slices.DeleteFunc(files, func(f string) bool { _, err := os.Stat(strings.TrimSuffix(f, c.ext) + "bitmap"); return err == nil })
				}
				if len(files) != 1 {
					t.Fatal(files)
				}
				want := newOracle(t, r).figures()
				c.harm(t, files[0])
				unknown := []Figure{Duplicate}
				if whose == r {
					unknown = []Figure{Unreachable}
					if r != pool || !c.half {
						unknown = append(unknown, Duplicate)
					}
				}
				switch {
				case where == "the only own" || !c.half && whose == r: // which copies count isn't known
					unknown = append(unknown, Reachable, Own, Borrowed, OwnStoredElsewhere)
					want = nil
				case c.half:
					want = newOracle(t, r).figures()
				}
				for _, o := range []Options{{}, {Method: Walk}, {By: ByType}} {
					s := NewSession(2)
					u := measured(t, s, r, o)
					s.Close()
					slices.Sort(unknown)
					if got := slices.Sorted(maps.Keys(u.Unknown)); !slices.Equal(got, unknown) {
						t.Errorf("%v: not known: %v\nwant %v", o, got, unknown)
					}
					for f, why := range u.Unknown {
						if !strings.Contains(why, c.reason) {
							t.Errorf("%v: %s: %s", o, f, why)
						}
					}
					for f, n := range want {
						if !slices.Contains(unknown, f) && n != u.Bytes[f] {
							t.Errorf("%v: %s is %d, want %d", o, f, u.Bytes[f], n)
						}
					}
					if told := slices.ContainsFunc(u.Findings, func(f finding.Finding) bool { return f.ID == finding.AuditSkipped }); told == c.half {
						t.Errorf("%v: findings %v", o, u.Findings)
					}
				}
			})
		}
	}
}
