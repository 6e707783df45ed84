package crashfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"refaudit/internal/vfs"
)

// replace is the way to put new content in a file's place; each omission of it is a bug that
// the survivors of a crash have to show.
func replace(f *FS, syncFile, syncDir bool) error {
	h, err := f.Create("/d/f.new", 0o666)
	if err != nil {
		return err
	}
	_, err = h.Write([]byte("new content"))
	if syncFile {
		err = errors.Join(err, h.Sync())
	}
	if err := errors.Join(err, h.Close()); err != nil {
		return err
	}
	if err := f.Rename("/d/f.new", "/d/f"); err != nil {
		return err
	}
	if syncDir {
		return f.SyncDir("/d")
	}
	return nil
}

func survivors(t *testing.T, f *FS) map[string]bool {
	t.Helper()
	seen := map[string]bool{}
	f.Survivors(1000, func(what string, after *FS) {
		data, ok := after.Get("/d/f")
		if !ok {
			data = []byte("(none)")
		}
		seen[string(data)] = true
	})
	return seen
}

func TestACrashKeepsOnlyWhatWasSynced(t *testing.T) {
	for _, c := range []struct {
		syncFile, syncDir bool
		want              []string
	}{
		{true, true, []string{"new content"}},
		{true, false, []string{"old content", "new content"}},
		{false, true, []string{"", "new content", "new c", string(make([]byte, 11))}},
	} {
		f := New()
		f.Put("/d/f", []byte("old content"))
		if err := replace(f, c.syncFile, c.syncDir); err != nil {
			t.Fatal(err)
		}
		seen := survivors(t, f)
		for _, w := range c.want {
			if !seen[w] {
				t.Errorf("sync file %v, folder %v: no crash leaves %q: %v", c.syncFile, c.syncDir, w, seen)
			}
		}
		if c.syncFile && len(seen) != len(c.want) {
			t.Errorf("sync file %v, folder %v: %v", c.syncFile, c.syncDir, seen)
		}
	}
}

func TestEachOperationFailsOnce(t *testing.T) {
	for _, how := range []Fault{Fail, FailDone, Crash} {
		n := 1
		for ; ; n++ {
			f := New()
			f.Put("/d/f", []byte("old content"))
			f.FailAt(n, how)
			err := replace(f, true, true)
			if f.Fired() != (err != nil) {
				t.Fatalf("operation %d: fired %v, error %v", n, f.Fired(), err)
			}
			if !f.Fired() {
				break
			}
			for data := range survivors(t, f) {
				if data != "old content" && data != "new content" {
					t.Errorf("operation %d: %q", n, data)
				}
			}
		}
		if n != 7 {
			t.Errorf("%d operations", n-1)
		}
	}
}

func TestAFailedSyncLosesTheBytes(t *testing.T) {
	f := New()
	h, _ := f.Create("/f", 0o666)
	h.Write([]byte("x"))
	f.FailAt(1, Fail)
	if err := h.Sync(); !errors.Is(err, ErrFault) {
		t.Fatal(err)
	}
	if err := h.Sync(); err != nil {
		t.Fatal(err)
	}
	f.SyncDir("/")
	old := false
	f.Survivors(100, func(_ string, after *FS) {
		data, ok := after.Get("/f")
		old = old || ok && len(data) == 0
	})
	if !old {
		t.Error("the second sync brought lost bytes back")
	}
}

func TestItIsAFileSystem(t *testing.T) {
	f := New()
	f.Put("/a/b/file", []byte("12345"))
	f.PutLink("/a/link", "b/file")
	f.PutLink("/a/dir", "../a/b")
	f.PutLink("/a/loop", "loop")
	for _, name := range []string{"/a/link", "/a/dir/file", "/a/b/file"} {
		if b, st, err := vfs.ReadFile(f, name, 5); err != nil || string(b) != "12345" || st.Size != 5 {
			t.Errorf("%s: %q %v", name, b, err)
		}
	}
	if to, err := f.Readlink("/a/link"); err != nil || to != "b/file" {
		t.Errorf("%q %v", to, err)
	}
	if _, err := f.Stat("/a/loop"); err == nil {
		t.Error("a loop has a state")
	}
	if st, err := f.Lstat("/a/loop"); err != nil || st.Mode&fs.ModeSymlink == 0 {
		t.Errorf("%v %v", st, err)
	}
	if _, err := f.Create("/a/link", 0o666); !errors.Is(err, fs.ErrExist) {
		t.Errorf("create over a link: %v", err)
	}
	if err := f.Link("/a/b/file", "/a/second"); err != nil {
		t.Error(err)
	}
	if err := f.Link("/a/b/file", "/a/second"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("link over a file: %v", err)
	}
	one, _ := f.Stat("/a/b/file")
	if two, err := f.Stat("/a/second"); err != nil || one != two {
		t.Errorf("%v %v", one, two)
	}
	if err := f.Remove("/a/b"); err == nil {
		t.Error("a full folder was removed")
	}
	if err := errors.Join(f.Remove("/a/b/file"), f.Remove("/a/b"), vfs.MkdirAll(f, "/x/y/z", 0o755)); err != nil {
		t.Error(err)
	}
	if _, err := f.Stat("/a/link"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a dangling link: %v", err)
	}
	lost := false
	f.Survivors(1000, func(_ string, after *FS) { lost = lost || after.Names("/x/y") == nil })
	if lost {
		t.Error("MkdirAll leaves names that a crash loses")
	}
}

func TestLoadAndStore(t *testing.T) {
	dir, out := t.TempDir(), filepath.Join(t.TempDir(), "out")
	os.MkdirAll(filepath.Join(dir, "x"), 0o755)
	os.WriteFile(filepath.Join(dir, "x", "f"), []byte("data"), 0o600)
	os.Symlink("f", filepath.Join(dir, "x", "l"))
	f := New()
	if err := f.Load(dir, "/r"); err != nil {
		t.Fatal(err)
	}
	if err := f.Store("/r", out); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(out, "x", "l")); err != nil || string(b) != "data" {
		t.Errorf("%q %v", b, err)
	}
}
