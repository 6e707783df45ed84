package lockfile

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"refaudit/internal/crashfs"
	"refaudit/internal/vfs"
)

// hooked runs something before an operation of a file system.
type hooked struct {
	vfs.FS
	before func(op, path string)
}

func (h *hooked) Rename(from, to string) error {
	h.before("rename", from)
	return h.FS.Rename(from, to)
}

func staleLock() *crashfs.FS {
	f := crashfs.New()
	f.Put("/r/packed-refs.lock", nil)
	f.Put("/r/packed-refs~pid.lock", []byte("pid 1\n"))
	f.Chtimes("/r/packed-refs.lock", time.Unix(1_600_000_000, 0))
	return f
}

var hour = Stale{Path: "/r/packed-refs", Older: time.Hour, Watch: 20 * time.Millisecond}

func TestAStaleLockIsRemoved(t *testing.T) {
	f := staleLock()
	if age, err := hour.RemoveStale(context.Background(), f); err != nil || age < time.Hour {
		t.Fatal(age, err)
	}
	if names := f.Names("/r"); len(names) != 0 {
		t.Errorf("left %v", names)
	}
	if _, err := hour.RemoveStale(context.Background(), f); err != nil {
		t.Errorf("a lock that is gone: %v", err)
	}
}

// Killed or failing at each operation, the removal of a stale lock leaves it where it was, or gone, or
// aside; and whichever it is, doing it again clears all of it.
func TestTheRemovalOfAStaleLockSurvives(t *testing.T) {
	s := hour
	s.Watch = time.Microsecond
	for _, how := range []crashfs.Fault{crashfs.Fail, crashfs.FailDone, crashfs.Crash} {
		for n, fired := 1, true; fired; n++ {
			f := staleLock()
			f.FailAt(n, how)
			_, err := s.RemoveStale(context.Background(), f)
			if fired = f.Fired(); !fired && err != nil {
				t.Fatal(err)
			}
			what := "no operation"
			if fired {
				what = f.Trace()[n-1]
			}
			f.FailAt(0, 0)
			f.Survivors(100, func(lost string, disk *crashfs.FS) {
				if _, err := s.RemoveStale(context.Background(), disk); err != nil {
					t.Fatalf("fault %v at %q, then a crash (%s): %v", how, what, lost, err)
				}
				for _, name := range disk.Names("/r") {
					if name != "packed-refs~pid.lock" { // it speaks of nothing by itself
						t.Fatalf("fault %v at %q, then a crash (%s): left %s", how, what, lost, name)
					}
				}
				l, err := Acquire(context.Background(), disk, s.Path, Options{PIDFile: true})
				if err != nil {
					t.Fatalf("fault %v at %q, then a crash (%s): %v", how, what, lost, err)
				}
				l.Rollback()
			})
		}
	}
}

func TestWhatALockIsOf(t *testing.T) {
	for name, want := range map[string]string{"/r/a.lock": "/r/a", "/r/a.lock.stale-0123": "/r/a", "/r/a.lock.lock": "/r/a.lock", "/r/a~pid.lock": "", "/r/a": "", "/r/a.stale-1": ""} {
		if got, ok := Locked(name); ok != (want != "") || ok && got != want {
			t.Errorf("%s: %q %v", name, got, ok)
		}
	}
}

func TestAYoungLockStays(t *testing.T) {
	f := crashfs.New()
	f.Put("/r/packed-refs.lock", nil)
	if _, err := hour.RemoveStale(context.Background(), f); !errors.Is(err, ErrNotStale) {
		t.Errorf("%v", err)
	}
	if names := f.Names("/r"); !slices.Equal(names, []string{"packed-refs.lock"}) {
		t.Errorf("%v", names)
	}
}

func TestALockThatChangesWhileItIsWatchedStays(t *testing.T) {
	for name, change := range map[string]func(f *crashfs.FS){
		"taken anew": func(f *crashfs.FS) {
			f.Remove("/r/packed-refs.lock")
			f.Put("/r/packed-refs.lock", nil)
		},
		"touched": func(f *crashfs.FS) { f.Chtimes("/r/packed-refs.lock", time.Unix(1_600_000_001, 0)) },
		"written": func(f *crashfs.FS) { f.Put("/r/packed-refs.lock", []byte("x")) },
	} {
		f := staleLock()
		s := hour
		s.Watch = 200 * time.Millisecond
		go func() {
			time.Sleep(50 * time.Millisecond)
			change(f)
		}()
		moved := false
		disk := &hooked{f, func(string, string) { moved = true }}
		if _, err := s.RemoveStale(context.Background(), disk); !errors.Is(err, ErrNotStale) {
			t.Errorf("%s: %v", name, err)
		}
		if moved { // for as long as it is aside a third could take it
			t.Errorf("%s: it was moved away", name)
		}
		if _, ok := f.Get("/r/packed-refs.lock"); !ok {
			t.Errorf("%s: it is gone", name)
		}
	}
}

// Between the second look and the removal another may take the lock.
func TestALockTakenAtTheLastMomentIsPutBack(t *testing.T) {
	f := staleLock()
	h := &hooked{FS: f, before: func(op, path string) {
		f.Remove(path)
		f.Put(path, []byte("another's"))
	}}
	if _, err := hour.RemoveStale(context.Background(), h); !errors.Is(err, ErrNotStale) {
		t.Errorf("%v", err)
	}
	if data, _ := f.Get("/r/packed-refs.lock"); string(data) != "another's" {
		t.Errorf("%q", data)
	}
	for _, name := range f.Names("/r") {
		if strings.Contains(name, "stale") {
			t.Errorf("left %s", name)
		}
	}
}

func TestTheWatchEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	s := hour
	s.Watch = time.Hour
	if _, err := s.RemoveStale(ctx, staleLock()); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestOnlyFilesAreStaleLocks(t *testing.T) {
	f := crashfs.New()
	f.PutDir("/r/packed-refs.lock")
	f.PutLink("/r/x.lock", "/etc/passwd")
	for _, path := range []string{"/r/packed-refs", "/r/x"} {
		if _, err := (Stale{Path: path}).RemoveStale(context.Background(), f); !errors.Is(err, vfs.ErrNotRegular) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestAFaultNeverLosesAnothersLock(t *testing.T) {
	for n, fired := 1, true; fired; n++ {
		f := staleLock()
		f.FailAt(n, crashfs.Fail)
		s := hour
		s.Watch = time.Millisecond
		_, err := s.RemoveStale(context.Background(), f)
		fired = f.Fired()
		if fired != (err != nil) && !strings.HasPrefix(f.Trace()[n-1], "remove /r/packed-refs~pid") {
			t.Errorf("fault at operation %d: fired %v, error %v", n, fired, err)
		}
		if errors.Is(err, fs.ErrNotExist) {
			t.Errorf("fault at operation %d: %v", n, err)
		}
	}
}
