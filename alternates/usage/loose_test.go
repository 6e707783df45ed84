package usage

import (
	"os"
	"strings"
	"testing"

	"refaudit/internal/gittest"
)

// without is what is measured where some loose files are not there.
func without(t *testing.T, r *gittest.Repo, ids ...string) *Usage {
	t.Helper()
	kept := map[string][]byte{}
	for _, id := range ids {
		kept[id] = r.ReadFile(r.LooseName(id))
		r.RemoveLoose(id)
	}
	s := NewSession(2)
	defer s.Close()
	u := measured(t, s, r, Options{Method: Walk})
	for id, content := range kept {
		r.WriteFile(r.LooseName(id), content)
	}
	return u
}

// A loose file that was cut is no copy: the one that git reads counts, in our own pack or in the pool.
func TestLooseFilesThatWereCut(t *testing.T) {
	gittest.Need(t, gittest.Newest)
	for _, o := range gittest.AllFormats {
		packed := gittest.New(t, o)
		packed.Git("repack", "-aq")
		both := forkOf(t, packed)
		for _, id := range []string{both.A, both.Tree, both.Blob} {
			both.WriteFile(both.LooseName(id), packed.ReadFile(packed.LooseName(id)))
		}
		for where, r := range map[string]*gittest.Repo{"a pack": packed, "a pool": both} {
			for what, id := range map[string]string{"commit": r.A, "tree": r.Tree, "blob": r.Blob} {
				whole := r.ReadFile(r.LooseName(id))
				want := without(t, r, id)
				if !want.Complete() {
					t.Fatalf("%v: %v", o, want.Unknown)
				}
				for how, content := range map[string][]byte{"to nothing": {}, "short": whole[:8], "in the header": whole[:3], "to what is no zlib": []byte("no zlib"), "to a folder": nil} {
					if os.Remove(r.File(r.LooseName(id))); content == nil {
						if err := os.Mkdir(r.File(r.LooseName(id)), 0o755); err != nil {
							t.Fatal(err)
						}
					} else {
						r.WriteFile(r.LooseName(id), content)
					}
					s := NewSession(2)
					for _, method := range []Method{Auto, Walk} {
						u := measured(t, s, r, Options{Method: method})
						for _, f := range Figures {
							if got, known := u.Bytes[f]; f != Files && (!known || got != want.Bytes[f]) {
								t.Errorf("%v, a %s cut %s, another copy in %s: %s is %d, want %d; %s", o, what, how, where, f, got, want.Bytes[f], u.Unknown[f])
							}
						}
					}
					s.Close()
					os.RemoveAll(r.File(r.LooseName(id)))
				}
				r.WriteFile(r.LooseName(id), whole)
			}
		}
	}
}

// A loose file that is smaller than other copies and whole is the copy that counts.
func TestASmallerLooseFileThatIsWhole(t *testing.T) {
	gittest.Need(t, gittest.Newest)
	r := plain(t)
	blob := r.WriteObject("blob", []byte(strings.Repeat("the same again ", 4000)))
	r.Git("update-ref", "refs/tags/blob", blob)
	r.Git("-c", "pack.compression=0", "-c", "core.compression=0", "repack", "-aq")
	st, err := os.Stat(r.File(r.LooseName(blob)))
	if err != nil {
		t.Fatal(err)
	}
	s := NewSession(2)
	defer s.Close()
	u := measured(t, s, r, Options{})
	if packed := without(t, r, blob); u.Bytes[Reachable] >= packed.Bytes[Reachable] {
		t.Errorf("%d is reachable with a loose file of %d, %d without it", u.Bytes[Reachable], st.Size(), packed.Bytes[Reachable])
	}
}

// An empty file proves no object to be there, whatever else knows of that.
func TestAnEmptyLooseFileIsNoObject(t *testing.T) {
	gittest.Need(t, gittest.Newest)
	for _, o := range gittest.AllFormats {
		for _, graph := range []bool{false, true} {
			for what, id := range map[string]func(r *gittest.Repo) string{
				"commit": func(r *gittest.Repo) string { return r.A },
				"blob":   func(r *gittest.Repo) string { return r.Blob },
			} {
				r := gittest.New(t, o)
				if graph {
					r.Git("commit-graph", "write", "--reachable")
				}
				path := r.File(r.LooseName(id(r)))
				os.Chmod(path, 0o644)
				if err := os.Truncate(path, 0); err != nil {
					t.Fatal(err)
				}
				s := NewSession(2)
				u := measured(t, s, r, Options{})
				s.Close()
				if why := u.Unknown[Reachable]; !strings.Contains(why, "absent") {
					t.Errorf("%v, an empty %s, commit-graph %v: %d is reachable, unknown because of %q", o, what, graph, u.Bytes[Reachable], why)
				}
			}
		}
	}
}
