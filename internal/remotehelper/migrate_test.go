package remotehelper

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"refaudit/internal/crashfs"
)

// quarantined is a file system with a quarantine that holds two packs and three loose objects.
func quarantined() *crashfs.FS {
	f := crashfs.New()
	for _, name := range []string{
		"pack/pack-1.pack", "pack/pack-1.idx", "pack/pack-1.rev", "pack/pack-1.promisor", "pack/pack-2.pack", "pack/pack-2.idx",
		"pack/pack-3.idx", "pack/pack-4.pack", "pack/tmp_pack_x", "info/alternates", "ab/c1", "ab/c2", "cd/e1", "cd/tmp_obj_x",
	} {
		f.Put("/r/objects/q/objects/"+name, []byte(name))
	}
	f.Put("/r/objects/ab/c0", []byte("old"))
	f.Put("/r/objects/ab/c2", []byte("old"))
	f.PutDir("/r/objects/pack")
	return f
}

func migrationOf(f *crashfs.FS) *migration {
	return &migration{fs: f, from: "/r/objects/q/objects", to: "/r/objects"}
}

func TestMigration(t *testing.T) {
	f := quarantined()
	m := migrationOf(f)
	if err := m.run(); err != nil {
		t.Fatal(err)
	}
	want := []string{"pack-1.idx", "pack-1.keep", "pack-1.pack", "pack-1.promisor", "pack-1.rev", "pack-2.idx", "pack-2.keep", "pack-2.pack"}
	if got := f.Names("/r/objects/pack"); !slices.Equal(got, want) {
		t.Errorf("packs: %v", got)
	}
	if got := f.Names("/r/objects/ab"); !slices.Equal(got, []string{"c0", "c1", "c2"}) {
		t.Errorf("loose: %v", got)
	}
	if b, _ := f.Get("/r/objects/ab/c2"); string(b) != "old" {
		t.Error("an object that was there was replaced")
	}
	if b, ok := f.Get("/r/objects/cd/e1"); !ok || string(b) != "cd/e1" {
		t.Error("a folder that was not there")
	}
	if !slices.Equal(m.keeps, []string{"/r/objects/pack/pack-1.keep", "/r/objects/pack/pack-2.keep"}) {
		t.Errorf("keeps: %v", m.keeps)
	}
	f.Survivors(200, func(what string, after *crashfs.FS) { // what was moved is there for good
		for _, name := range []string{"pack/pack-1.idx", "pack/pack-1.pack", "pack/pack-1.promisor", "pack/pack-2.idx", "pack/pack-2.pack", "ab/c1", "cd/e1"} {
			if _, ok := after.Get("/r/objects/" + name); !ok {
				t.Errorf("%s is gone after a crash: %s", name, what)
			}
		}
	})
	trace := strings.Join(f.Trace(), "\n")
	for _, order := range [][2]string{
		{"pack-1.keep", "/r/objects/pack/pack-1.pack"}, {"/r/objects/pack/pack-1.promisor", "/r/objects/pack/pack-1.idx"},
		{"/r/objects/pack/pack-1.pack", "/r/objects/pack/pack-1.idx"}, {"/r/objects/pack/pack-1.rev", "/r/objects/pack/pack-1.idx"},
	} {
		if a, b := strings.Index(trace, order[0]), strings.Index(trace, order[1]); a < 0 || b < 0 || a > b {
			t.Errorf("%s does not come before %s:\n%s", order[0], order[1], trace)
		}
	}
}

// A pack that is there already stays as it is, and so does somebody else's .keep.
func TestMigrationOfWhatIsThere(t *testing.T) {
	f := quarantined()
	f.Put("/r/objects/pack/pack-1.pack", []byte("mine"))
	f.Put("/r/objects/pack/pack-1.idx", []byte("mine"))
	f.Put("/r/objects/pack/pack-1.keep", []byte("somebody"))
	m := migrationOf(f)
	if err := m.run(); err != nil {
		t.Fatal(err)
	}
	for _, ext := range []string{"pack", "idx"} {
		if b, _ := f.Get("/r/objects/pack/pack-1." + ext); string(b) != "mine" {
			t.Errorf("%s was replaced", ext)
		}
	}
	if _, ok := f.Get("/r/objects/pack/pack-1.promisor"); !ok {
		t.Error("nobody knows that the pack's objects are promised")
	}
	if b, _ := f.Get("/r/objects/pack/pack-1.keep"); string(b) != "somebody" || slices.Contains(m.keeps, "/r/objects/pack/pack-1.keep") {
		t.Errorf("somebody's .keep was taken over: %v", m.keeps)
	}
}

// After a fault at any operation no half of a pack counts, and no .keep is left. After a crash, an
// index that is there has its pack.
func TestMigrationSurvivesFaults(t *testing.T) {
	for _, how := range []crashfs.Fault{crashfs.Fail, crashfs.FailDone, crashfs.Crash} {
		for n, fired := 1, true; fired; n++ {
			f := quarantined()
			f.FailAt(n, how)
			m := migrationOf(f)
			err := m.run()
			fired = f.Fired()
			if fired && err == nil && how != crashfs.FailDone && !tolerated(f.Trace()) {
				t.Fatalf("fault %d at %d of\n%s\nwas not told", how, n, strings.Join(f.Trace(), "\n"))
			}
			if !fired && err != nil {
				t.Fatal(err)
			}
			where := fmt.Sprintf("fault %d at operation %d, %v", how, n, err)
			if how != crashfs.Crash {
				checkPacks(t, where, f)
				if err != nil && !errors.Is(err, fs.ErrExist) {
					for _, name := range f.Names("/r/objects/pack") {
						if strings.HasSuffix(name, ".keep") && !strings.Contains(err.Error(), name) && how == crashfs.Fail {
							t.Errorf("%s: %s is left", where, name)
						}
					}
				}
				continue
			}
			f.Survivors(40, func(what string, after *crashfs.FS) { checkPacks(t, where+", "+what, after) })
		}
	}
}

// tolerated tells whether the operation that failed is one whose failure leads to another way: the
// move of a whole folder.
func tolerated(trace []string) bool {
	for _, line := range trace {
		if strings.Contains(line, "rename") && strings.Contains(line, "/objects/cd ") {
			return true
		}
	}
	return false
}

func checkPacks(t *testing.T, where string, f *crashfs.FS) {
	t.Helper()
	names := f.Names("/r/objects/pack")
	for _, base := range []string{"pack-1", "pack-2"} {
		if !slices.Contains(names, base+".idx") {
			continue
		}
		for _, ext := range []string{"pack", "promisor", "rev"} {
			if base == "pack-2" && ext != "pack" {
				continue
			}
			if !slices.Contains(names, base+"."+ext) {
				t.Errorf("%s: %s.idx is there and %s.%s is not: %v", where, base, base, ext, names)
			}
		}
	}
	if b, ok := f.Get("/r/objects/ab/c2"); !ok || string(b) != "old" {
		t.Errorf("%s: an object of the client is gone", where)
	}
}
