package fleet

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"refaudit/internal/gittest"
	"refaudit/repo"
	"refaudit/scan"
)

func stamp(t testing.TB, path string, now time.Time) Stamp {
	t.Helper()
	target, err := scan.Open(path, scan.ByPath, repo.Options{Env: repo.EmptyEnv})
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewStamper(at(now)).Stamp(context.Background(), target)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Whatever changes what an audit would give changes the stamp, be it as small as it likes.
func TestEveryChangeShows(t *testing.T) {
	for _, o := range gittest.AllFormats {
		t.Run(o.String(), func(t *testing.T) {
			r := gittest.New(t, o)
			pool := gittest.New(t, gittest.Options{Format: o.Format})
			r.Git("pack-refs", "--all")
			tree := filepath.Join(t.TempDir(), "tree")
			r.Git("worktree", "add", "--detach", tree, "main")
			inTree := func(args ...string) {
				if res := r.Program.Run(t, tree, nil, "", args...); res.Code != 0 {
					t.Fatal(res)
				}
			}
			seen := map[[32]byte]string{}
			was := stamp(t, r.Path, time.Now())
			seen[was.Sum] = "as it was made"
			change := func(what string, do func()) {
				t.Helper()
				time.Sleep(20 * time.Millisecond) // as coarse as file systems are here
				do()
				s := stamp(t, r.Path, time.Now())
				if other, ok := seen[s.Sum]; ok {
					t.Errorf("%s: the stamp is that of %q", what, other)
				}
				if seen[s.Sum] = what; s.Sum != stamp(t, r.Path, time.Now()).Sum {
					t.Errorf("%s: two stamps", what)
				}
			}
			change("a ref", func() { r.Git("update-ref", "refs/heads/new", r.A) })
			change("another value", func() { r.Git("update-ref", "refs/heads/new", r.B) })
			change("HEAD", func() { r.Git("symbolic-ref", "HEAD", "refs/heads/new") })
			change("packed", func() { r.Git("pack-refs", "--all") })
			change("deleted", func() { r.Git("update-ref", "-d", "refs/heads/new") })
			change("a worktree's ref", func() { inTree("update-ref", "refs/worktree/x", r.A) })
			change("a worktree's HEAD", func() { inTree("checkout", "-q", "--detach", r.A) })
			change("the configuration", func() { r.Git("config", "refaudit.peelMissing", "error") })
			change("an object", func() { r.WriteObject("blob", []byte("more")) })
			change("a pack", func() { r.Git("repack", "-a", "-d") })
			change("info/refs", func() { r.WriteFile("info/refs", []byte(r.A+"\trefs/heads/main\n")) })
			change("an alternate", func() { r.WriteFile("objects/info/alternates", []byte(pool.File("objects")+"\n")) })
			change("an object of the pool", func() { pool.WriteObject("blob", []byte("of the pool")) })
			change("a pack of the pool", func() { pool.Git("repack", "-a", "-d") })
			change("the pool is gone", func() {
				if err := os.Rename(pool.File("objects"), pool.File("away")); err != nil {
					t.Fatal(err)
				}
			})
			change("a boundary", func() { r.WriteFile("shallow", []byte(r.A+"\n")) })
			if o.RefFormat == gittest.Files {
				change("a lock", func() { r.WriteFile("packed-refs.lock", nil) })
				change("a byte, the time set back", func() {
					st, err := os.Stat(r.Packed())
					if err != nil {
						t.Fatal(err)
					}
					f, err := os.OpenFile(r.Packed(), os.O_WRONLY, 0)
					if err != nil {
						t.Fatal(err)
					}
					f.WriteAt([]byte("f"), st.Size()-30)
					f.Close()
					os.Chtimes(r.Packed(), st.ModTime(), st.ModTime())
				})
				change("what a link leads to", func() {
					real := filepath.Join(t.TempDir(), "packed-refs")
					if err := os.Rename(r.Packed(), real); err != nil {
						t.Fatal(err)
					}
					if err := os.Symlink(real, r.Packed()); err != nil {
						t.Fatal(err)
					}
					stamp(t, r.Path, time.Now())
					os.WriteFile(real, []byte("# pack-refs with: peeled\n"), 0o644)
				})
			} else {
				change("a table, the time set back", func() {
					name := r.Tables()[0]
					st, err := os.Stat(name)
					if err != nil {
						t.Fatal(err)
					}
					os.Chmod(name, 0o644)
					f, err := os.OpenFile(name, os.O_WRONLY, 0)
					if err != nil {
						t.Fatal(err)
					}
					f.WriteAt([]byte{0}, 30)
					f.Close()
					os.Chmod(name, st.Mode())
					os.Chtimes(name, st.ModTime(), st.ModTime())
				})
			}
		})
	}
}

func TestALookDoesNotChangeTheStamp(t *testing.T) {
	r, _ := gittest.Clean(t, gittest.Options{})
	one := stamp(t, r.Path, time.Now())
	r.Git("for-each-ref")
	r.Git("rev-parse", "HEAD")
	if stamp(t, r.Path, time.Now().Add(time.Hour)).Sum != one.Sum {
		t.Error("reading has changed it")
	}
}

// A file that was touched within two seconds of the look may be touched again, and stat says the same.
func TestWhatIsYoungIsNotReliedOn(t *testing.T) {
	r, _ := gittest.Clean(t, gittest.Options{})
	touched := time.Now()
	r.Git("update-ref", "refs/heads/new", r.A)
	for _, c := range []struct {
		now           time.Time
		settled, deep bool
	}{
		{touched, false, false},
		{touched.Add(time.Second), false, false},
		{touched.Add(-time.Hour), false, false}, // a clock that is wrong
		{touched.Add(10 * time.Second), true, false},
		{touched.Add(2 * time.Minute), true, true},
	} {
		s := stamp(t, r.Path, c.now)
		if s.Settled(scan.Standard) != c.settled || s.Settled(scan.Deep) != c.deep {
			t.Errorf("%v later: settled %v, deep %v (%v)", c.now.Sub(touched), s.Settled(scan.Standard), s.Settled(scan.Deep), s.Quiet)
		}
	}
	// So it is with what is borrowed, also where the pool was looked at for another repository first.
	pool := gittest.New(t, gittest.Options{})
	time.Sleep(10 * time.Millisecond)
	made := time.Now()
	pool.WriteObject("blob", []byte("new"))
	old := made.Add(-time.Hour)
	stamper := NewStamper(at(made))
	for range 2 {
		fork := gittest.New(t, gittest.Options{})
		fork.WriteFile("objects/info/alternates", []byte(pool.File("objects")+"\n"))
		target, err := scan.Open(fork.Path, scan.ByPath, repo.Options{Env: repo.EmptyEnv})
		if err != nil {
			t.Fatal(err)
		}
		filepath.WalkDir(fork.Path, func(path string, d os.DirEntry, err error) error { return os.Chtimes(path, old, old) })
		w := newWalk(context.Background(), made.Add(time.Hour))
		if err := stamper.pool(w, pool.File("objects")); err != nil || w.quiet > racy {
			t.Errorf("the pool was quiet for %v; %v", w.quiet, err)
		}
		if s, err := stamper.Stamp(context.Background(), target); err != nil || s.Settled(scan.Standard) {
			t.Errorf("%v %v", s.Quiet, err)
		}
	}
}

func TestAFolderThatCantBeListedGivesNoStamp(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root lists everything")
	}
	r, _ := gittest.Clean(t, gittest.Options{})
	os.Chmod(r.File("refs/heads"), 0)
	defer os.Chmod(r.File("refs/heads"), 0o755)
	target, err := scan.Open(r.Path, scan.ByPath, repo.Options{Env: repo.EmptyEnv})
	if err == nil {
		_, err = NewStamper(time.Now).Stamp(context.Background(), target)
	}
	if err == nil {
		t.Error("it has one")
	}
}

func BenchmarkStamp(b *testing.B) {
	r, _ := gittest.Clean(b, gittest.Options{})
	target, err := scan.Open(r.Path, scan.ByPath, repo.Options{Env: repo.EmptyEnv})
	if err != nil {
		b.Fatal(err)
	}
	stamper := NewStamper(time.Now)
	for b.Loop() {
		if _, err := stamper.Stamp(context.Background(), target); err != nil {
			b.Fatal(err)
		}
	}
}
