package state

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"refaudit/internal/crashfs"
	"refaudit/internal/vfs"
)

func text(s string) func(io.Writer) error {
	return func(w io.Writer) error { _, err := io.WriteString(w, s); return err }
}

func TestAFileIsReplaced(t *testing.T) {
	f := New(vfs.OS{}, filepath.Join(t.TempDir(), "a", "b"))
	if _, err := f.Read("known/ab", 100); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("never written: %v", err)
	}
	if names, err := f.Names("known"); names != nil || err != nil {
		t.Errorf("never written: %v %v", names, err)
	}
	for _, s := range []string{"one", "two"} {
		if err := f.Write("known/ab", Private, text(s)); err != nil {
			t.Fatal(err)
		}
		if got, err := f.Read("known/ab", 100); string(got) != s || err != nil {
			t.Errorf("%q %v", got, err)
		}
	}
	if _, err := f.Read("known/ab", 2); !errors.Is(err, vfs.ErrTooLarge) {
		t.Errorf("over the limit: %v", err)
	}
	bad := errors.New("no more")
	err := f.Write("known/ab", Private, func(w io.Writer) error { io.WriteString(w, "half"); return bad })
	if got, _ := f.Read("known/ab", 100); !errors.Is(err, bad) || string(got) != "two" {
		t.Errorf("%v, %q", err, got)
	}
	if names, err := f.Names("known"); strings.Join(names, " ") != "ab" || err != nil {
		t.Errorf("%v %v", names, err)
	}
	list, err := os.ReadDir(f.path("known"))
	if err != nil || len(list) != 1 {
		t.Errorf("left behind: %v %v", list, err)
	}
}

func TestWhatACrashLeftIsSweptLater(t *testing.T) {
	f := New(vfs.OS{}, t.TempDir())
	for name, age := range map[string]time.Duration{"old": 25 * time.Hour, "young": time.Hour} {
		path := f.path("x-" + name + unfinished)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		when := time.Now().Add(-age)
		if err := os.Chtimes(path, when, when); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Write("x", Public, text("x")); err != nil {
		t.Fatal(err)
	}
	left, _ := filepath.Glob(f.path("*" + unfinished))
	if len(left) != 1 || filepath.Base(left[0]) != "x-young"+unfinished {
		t.Errorf("left: %v", left)
	}
}

// Whatever fails, and wherever the machine goes down, the file is the old one or the new one; and
// when the write says that it is done, the new one.
func TestAFileIsOldOrNew(t *testing.T) {
	const name = "/var/lib/refaudit/x"
	for _, kind := range []crashfs.Fault{crashfs.Fail, crashfs.FailDone, crashfs.Crash} {
		for n, fired := 1, true; fired; n++ {
			fsys := crashfs.New()
			fsys.Put(name, []byte("old"))
			f := New(fsys, "/var/lib/refaudit")
			fsys.FailAt(n, kind)
			err := f.Write("x", Private, text("new"))
			fired = fsys.Fired()
			if !fired && err != nil {
				t.Fatal(err)
			}
			fsys.Survivors(64, func(what string, after *crashfs.FS) {
				got, _ := after.Get(name)
				if string(got) != "new" && (string(got) != "old" || err == nil) {
					t.Errorf("fault %d at operation %d, %s: %q; error %v", kind, n, what, got, err)
				}
			})
		}
	}
}

func TestALockIsWaitedFor(t *testing.T) {
	f := New(vfs.OS{}, filepath.Join(t.TempDir(), "state"))
	ctx := context.Background()
	held, err := f.Lock(ctx, "scan", 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Lock(ctx, "scan", 0); !errors.Is(err, ErrHeld) {
		t.Errorf("held: %v", err)
	}
	over, cancel := context.WithCancelCause(ctx)
	why := errors.New("why")
	cancel(why)
	if _, err := f.Lock(over, "scan", -1); !errors.Is(err, why) {
		t.Errorf("cancelled: %v", err)
	}
	go func() { time.Sleep(100 * time.Millisecond); held.Release() }()
	again, err := f.Lock(ctx, "scan", 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	again.Release()
}

func TestPlace(t *testing.T) {
	for _, c := range []struct {
		xdg, home string
		root      bool
		want      string
	}{
		{"/x", "/h", false, "/x/refaudit"},
		{"/x", "/h", true, "/x/refaudit"},
		{"x", "/h", false, "/h/.local/state/refaudit"},
		{"", "/h", true, "/var/lib/refaudit"},
		{"", "", false, ""},
	} {
		env := map[string]string{"XDG_STATE_HOME": c.xdg, "HOME": c.home}
		got, err := Place(func(n string) (string, bool) { v, ok := env[n]; return v, ok }, c.root)
		if filepath.ToSlash(got) != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%+v: %q %v", c, got, err)
		}
	}
}
