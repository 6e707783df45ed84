package usage

import (
	"os"
	"slices"
	"strings"
	"testing"

	"refaudit/finding"
	"refaudit/internal/gittest"
)

// Where a pack can't be read, another copy of an object that is found may not be the one that counts.
func TestAPackThatIsUnreadBesideOtherCopies(t *testing.T) {
	gittest.Need(t, gittest.Newest)
	reach := []Figure{Reachable, Own, Borrowed, Unreachable, OwnStoredElsewhere, Duplicate}
	cut := func(glob string, size int64) func(t *testing.T, r *gittest.Repo) string {
		return func(t *testing.T, r *gittest.Repo) string {
			path := only(t, r, glob)
			os.Chmod(path, 0o644)
			if err := os.Truncate(path, size); err != nil {
				t.Fatal(err)
			}
			return "objects/pack/pack-"
		}
	}
	harms := map[string]func(t *testing.T, r *gittest.Repo) string{
		"an empty index": cut("objects/pack/*.idx", 0),
		"half an index":  cut("objects/pack/*.idx", 1100),
		"an empty pack":  cut("objects/pack/*.pack", 0),
		"half a pack":    cut("objects/pack/*.pack", 99),
		"the folder itself": func(t *testing.T, r *gittest.Repo) string {
			if err := os.RemoveAll(r.File("objects/pack")); err != nil {
				t.Fatal(err)
			}
			r.WriteFile("objects/pack", []byte("no folder"))
			return "pack"
		},
	}
	for _, o := range gittest.AllFormats {
		for name, harm := range harms {
			for where, make := range map[string]func() *gittest.Repo{
				"loose": func() *gittest.Repo {
					r := gittest.New(t, o)
					r.Git("repack", "-aq")
					return r
				},
				"in a pool": func() *gittest.Repo {
					f := forkOf(t, gittest.New(t, o))
					f.Git("repack", "-aq")
					return f
				},
			} {
				r := make()
				reason := harm(t, r)
				s := NewSession(2)
				for _, method := range []Method{Auto, Walk} {
					u := measured(t, s, r, Options{Method: method, By: ByType})
					for _, f := range reach {
						if why := u.Unknown[f]; !strings.Contains(why, reason) {
							t.Errorf("%v, %s, other copies %s: %s is %d, unknown because of %q", o, name, where, f, u.Bytes[f], why)
						}
					}
					if u.Shares != nil {
						t.Errorf("%v, %s: shares %v", o, name, u.Shares)
					}
					if !slices.ContainsFunc(u.Findings, func(f finding.Finding) bool { return f.ID == finding.AuditSkipped && strings.Contains(f.File, reason) }) {
						t.Errorf("%v, %s: findings %v", o, name, u.Findings)
					}
				}
				s.Close()
			}
		}
	}
}

// A pack of a pool counts for what our own folder has not.
func TestAPackOfAPoolThatIsUnread(t *testing.T) {
	pool := plain(t)
	pool.Git("repack", "-aq")
	borrowing, f := gittest.New(t, gittest.Options{}), forkOf(t, pool)
	borrowing.WriteFile("objects/info/alternates", f.ReadFile("objects/info/alternates"))
	path := only(t, pool, "objects/pack/*.idx")
	os.Chmod(path, 0o644)
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	s := NewSession(2)
	defer s.Close()
	if u := measured(t, s, f, Options{}); !strings.Contains(u.Unknown[Reachable], ".idx") {
		t.Errorf("what lies in the pool alone: %v, unknown %v", u.Bytes, u.Unknown)
	}
	if u := measured(t, s, borrowing, Options{}); u.Bytes[Reachable] == 0 {
		t.Errorf("what our own folder has: %v", u.Unknown)
	}
	if u := measured(t, s, f, Options{Exclude: []string{"*"}}); u.Unknown[Reachable] != "" {
		t.Errorf("nothing: %v", u.Unknown)
	}
}
