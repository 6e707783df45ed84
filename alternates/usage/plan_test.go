package usage

import (
	"bytes"
	"encoding/binary"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"refaudit/internal/gittest"
	"refaudit/repo"
)

// situation makes what a row of the table in docs/usage.md speaks of, and what is asked for then.
type situation func(t *testing.T) (*gittest.Repo, Options)

func plain(t *testing.T) *gittest.Repo { return gittest.New(t, gittest.Options{}) }

// bitmapped has a bitmap in one pack.
func bitmapped(t *testing.T) *gittest.Repo {
	r := plain(t)
	r.Git("repack", "-adbq")
	return r
}

// commit adds a commit to main.
func addCommit(r *gittest.Repo, message string) string {
	c := r.Git("commit-tree", r.Git("rev-parse", "refs/heads/main^{tree}"), "-p", "refs/heads/main", "-m", message)
	r.Git("update-ref", "refs/heads/main", c)
	return c
}

// forkOf borrows from a repository and has a commit of its own, in a pack without bitmap.
func forkOf(t *testing.T, pool *gittest.Repo) *gittest.Repo {
	path := filepath.Join(t.TempDir(), "fork.git")
	pool.Git("clone", "-q", "--bare", "--shared", pool.Path, path)
	f := *pool
	f.Path = path
	f.Git("update-ref", "refs/heads/own", f.Git("commit-tree", f.Tree, "-p", f.B, "-m", "own"))
	return &f
}

// harm changes a byte of the only file that fits.
func harm(t *testing.T, r *gittest.Repo, glob string, at int) {
	t.Helper()
	files, _ := filepath.Glob(r.File(glob))
	if len(files) != 1 {
		t.Fatalf("%s: %v", glob, files)
	}
	name, _ := filepath.Rel(r.Path, files[0])
	data := r.ReadFile(name)
	if at < 0 {
		at += len(data)
	}
	data[at] ^= 0x41
	r.WriteFile(name, data)
}

var situations = map[string]situation{
	"no bitmap": func(t *testing.T) (*gittest.Repo, Options) { return plain(t), Options{} },
	"no bitmap, bitmap asked for": func(t *testing.T) (*gittest.Repo, Options) {
		return plain(t), Options{Method: Bitmap}
	},
	"own bitmap": func(t *testing.T) (*gittest.Repo, Options) {
		r := bitmapped(t)
		r.Git("update-ref", "refs/heads/old", r.A)
		r.Git("update-ref", "--no-deref", "HEAD", r.B)
		return r, Options{By: ByType}
	},
	"own bitmap, walk asked for": func(t *testing.T) (*gittest.Repo, Options) { return bitmapped(t), Options{Method: Walk} },
	"own bitmap, commits since": func(t *testing.T) (*gittest.Repo, Options) {
		r := bitmapped(t)
		r.Git("tag", "-d", "v1")
		r.Git("tag", "-d", "v2")
		addCommit(r, "since")
		return r, Options{}
	},
	"own bitmap, of another history": func(t *testing.T) (*gittest.Repo, Options) {
		r := bitmapped(t)
		for _, ref := range strings.Fields(r.Git("for-each-ref", "--format=%(refname)")) {
			r.Git("update-ref", "-d", ref)
		}
		r.Git("update-ref", "refs/heads/main", r.Git("commit-tree", r.Tree, "-m", "another root"))
		return r, Options{}
	},
	"own bitmap, damaged": func(t *testing.T) (*gittest.Repo, Options) {
		r := bitmapped(t)
		harm(t, r, "objects/pack/*.bitmap", 40)
		return r, Options{}
	},
	"own bitmap, of another pack": func(t *testing.T) (*gittest.Repo, Options) {
		r := bitmapped(t)
		old, _ := filepath.Glob(r.File("objects/pack/*.bitmap"))
		data, err := os.ReadFile(old[0])
		if err != nil {
			t.Fatal(err)
		}
		addCommit(r, "more")
		r.Git("repack", "-adbq")
		now, _ := filepath.Glob(r.File("objects/pack/*.bitmap"))
		name, _ := filepath.Rel(r.Path, now[0])
		r.WriteFile(name, data)
		return r, Options{}
	},
	"own bitmap, reverse index damaged": func(t *testing.T) (*gittest.Repo, Options) {
		r := bitmapped(t)
		harm(t, r, "objects/pack/*.rev", 14)
		return r, Options{}
	},
	"own multi-pack bitmap": func(t *testing.T) (*gittest.Repo, Options) {
		r := plain(t)
		r.Git("tag", "-d", "v1")
		r.Git("repack", "-dq")
		addCommit(r, "more")
		r.Git("tag", "-d", "v2")
		r.Git("repack", "-dq")
		r.Git("multi-pack-index", "write", "--bitmap")
		return r, Options{}
	},
	"own multi-pack bitmap, multi-pack-index damaged": func(t *testing.T) (*gittest.Repo, Options) {
		r := plain(t)
		r.Git("repack", "-dq")
		r.Git("multi-pack-index", "write", "--bitmap")
		data := r.ReadFile("objects/pack/multi-pack-index")
		row := bytes.Index(data, []byte("BTMP")) // a chunk that nothing else would find fault with
		harm(t, r, "objects/pack/multi-pack-index", int(binary.BigEndian.Uint64(data[row+4:])))
		return r, Options{}
	},
	"own chain of multi-pack bitmaps": func(t *testing.T) (*gittest.Repo, Options) {
		r := plain(t)
		r.Git("tag", "-d", "v1")
		r.Git("repack", "-dq")
		r.Git("multi-pack-index", "write", "--bitmap", "--incremental")
		addCommit(r, "more")
		r.Git("repack", "-dq")
		r.Git("multi-pack-index", "write", "--bitmap", "--incremental")
		return r, Options{}
	},
	"own bitmap, shallow": func(t *testing.T) (*gittest.Repo, Options) {
		r := bitmapped(t)
		r.WriteFile("shallow", []byte(r.B+"\n"))
		return r, Options{}
	},
	"own bitmap, grafts": func(t *testing.T) (*gittest.Repo, Options) {
		r := bitmapped(t)
		r.WriteFile("info/grafts", []byte(r.B+"\n"))
		return r, Options{}
	},
	"pool's bitmap": func(t *testing.T) (*gittest.Repo, Options) { return forkOf(t, bitmapped(t)), Options{} },
	"pool's bitmap, alternates excluded": func(t *testing.T) (*gittest.Repo, Options) {
		return forkOf(t, bitmapped(t)), Options{ExcludeAlternates: true}
	},
	"pool's bitmap, alternates excluded, bitmap asked for": func(t *testing.T) (*gittest.Repo, Options) {
		return forkOf(t, bitmapped(t)), Options{ExcludeAlternates: true, Method: Bitmap}
	},
	"pool's bitmap, walk asked for": func(t *testing.T) (*gittest.Repo, Options) {
		return forkOf(t, bitmapped(t)), Options{Method: Walk}
	},
	"pool's bitmap, damaged": func(t *testing.T) (*gittest.Repo, Options) {
		pool := bitmapped(t)
		f := forkOf(t, pool)
		harm(t, pool, "objects/pack/*.bitmap", -1)
		return f, Options{}
	},
	"pool's refs can't be read": func(t *testing.T) (*gittest.Repo, Options) {
		pool := bitmapped(t)
		f := forkOf(t, pool)
		pool.WriteFile("packed-refs", []byte("<html>\n"))
		return f, Options{}
	},
	"own bitmap and pool's": func(t *testing.T) (*gittest.Repo, Options) {
		pool := bitmapped(t)
		f := forkOf(t, pool)
		f.Git("repack", "-adbq") // not -l: a bitmap has to hold all that its commits reach
		return f, Options{}
	},
}

// The table of docs/usage.md, row by row: the method, the reason, and that the numbers are git's.
func TestTheTableOfMethods(t *testing.T) {
	gittest.Need(t, gittest.Newest)
	text, err := os.ReadFile("../../docs/usage.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "| situation |")
	rows := map[string]bool{}
	for _, line := range strings.Split(table, "\n")[2:] {
		cells := strings.Split(line, " | ")
		if len(cells) != 3 {
			break
		}
		name, method, because := strings.TrimPrefix(cells[0], "| "), cells[1], strings.TrimSuffix(cells[2], " |")
		rows[name] = true
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			build := situations[name]
			if build == nil {
				t.Fatal("the row is not tested")
			}
			r, o := build(t)
			s := NewSession(2)
			defer s.Close()
			u := measured(t, s, r, o)
			if string(u.Method) != method || !strings.Contains(u.Reason, because) {
				t.Errorf("%s: %s, the table says %s: %s", u.Method, u.Reason, method, because)
			}
			bad := strings.Contains(name, "damaged") || strings.Contains(name, "another pack")
			if told := len(u.Findings) > 0; told != (bad || strings.Contains(name, "can't be read")) {
				t.Errorf("findings: %v", u.Findings)
			}
			if len(u.Unknown) == 0 {
				sameNumbers(t, r, u)
			} else if !strings.Contains(name, "can't be read") {
				t.Errorf("not known: %v", u.Unknown)
			}
		})
	}
	for name := range situations {
		if !rows[name] {
			t.Errorf("%q is in no row of the table", name)
		}
	}
}

// sameNumbers compares figures with git's.
func sameNumbers(t *testing.T, r *gittest.Repo, u *Usage) {
	t.Helper()
	if want := newOracle(t, r).figures(); !maps.Equal(u.Bytes, want) {
		t.Errorf("%v\nwant %v", u.Bytes, want)
	}
}

// The split by type is the same by every method. A bitmap of a layer that lies on others says of their
// objects whether they are reached, and not what they are.
func TestTypesByEachMethod(t *testing.T) {
	gittest.Need(t, gittest.Newest)
	for name, make := range situations {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, o := make(t)
			s := NewSession(2)
			defer s.Close()
			o.By, o.Method = ByType, Walk
			want := measured(t, s, r, o).Shares
			for _, o.Method = range []Method{Auto, Bitmap} {
				if u := measured(t, s, r, o); !slices.Equal(u.Shares, want) {
					t.Errorf("by %s: %v, by walking %v", u.Method, u.Shares, want)
				}
			}
		})
	}
}

// The short way, taken after gc, and the long way give the same, whether or not all that there is is reached.
func TestTheShortWay(t *testing.T) {
	for _, o := range gittest.AllFormats {
		r := gittest.New(t, o)
		r.Git("tag", "-a", "-m", "of a tag", "v3", "v2")
		r.Git("repack", "-adbq")
		for _, change := range []func(){
			func() {},
			func() { r.Git("tag", "-d", "v1") },
			func() { r.Git("update-ref", "refs/heads/main", r.A) },
			func() { r.Git("tag", "-d", "v2") },
			func() { r.Git("-c", "pack.writeReverseIndex=false", "repack", "-adbqF", "-k") },
		} {
			change()
			s := NewSession(2)
			at := open(t, r, Options{})
			m := &measuring{s: s, repo: at, u: &Usage{Bytes: map[Figure]int64{}, Unknown: map[Figure]string{}}}
			if err := m.open(); err != nil {
				t.Fatal(err)
			}
			q := m.newQuick()
			if done, err := q.run(func() error { return m.readRefs(t.Context()) }); !done || err != nil {
				t.Fatalf("%v: the short way is not taken: %+v, error %v", o, q, err)
			}
			sameNumbers(t, r, m.u)
			m.close()
			long := measured(t, s, r, Options{By: ByType})
			if long.Method != m.u.Method || long.Reason != m.u.Reason {
				t.Errorf("%s: %s, the long way %s: %s", m.u.Method, m.u.Reason, long.Method, long.Reason)
			}
			s.Close()
		}
	}
}

func open(t testing.TB, r *gittest.Repo, o Options) *repo.Repo {
	t.Helper()
	at, err := repo.Open(r.Path, o.Repo)
	if err != nil {
		t.Fatal(err)
	}
	return at
}
