package lockfile

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"refaudit/internal/crashfs"
	"refaudit/internal/vfs"
)

func acquire(t *testing.T, fsys vfs.FS, path string) *Lock {
	t.Helper()
	l, err := Acquire(context.Background(), fsys, path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Rollback() })
	return l
}

func TestASecondWriterGetsTheLockErrorAndLeavesTheFirstAlone(t *testing.T) {
	f := crashfs.New()
	f.PutDir("/r")
	first := acquire(t, f, "/r/tables.list")
	started := time.Now()
	_, err := Acquire(context.Background(), f, "/r/tables.list", Options{Timeout: 30 * time.Millisecond})
	var h *HeldError
	if !errors.Is(err, ErrHeld) || !errors.As(err, &h) || !h.Mine || h.Lock != "/r/tables.list.lock" {
		t.Fatalf("second: %v", err)
	}
	if d := time.Since(started); d < 30*time.Millisecond || d > time.Second {
		t.Errorf("waited %v", d)
	}
	if err := first.Ours(); err != nil {
		t.Errorf("the first lost its lock: %v", err)
	}
	// Also when somebody has removed the first one's file.
	f.Remove("/r/tables.list.lock")
	if _, err := Acquire(context.Background(), f, "/r/tables.list", Options{}); !errors.Is(err, ErrHeld) {
		t.Errorf("second, the file gone: %v", err)
	}
	first.Rollback()
	acquire(t, f, "/r/tables.list")
}

func TestAForeignLockIsWaitedForAndThenReported(t *testing.T) {
	f := crashfs.New()
	f.Put("/r/packed-refs.lock", nil)
	f.Put("/r/packed-refs~pid.lock", []byte("pid 4711\n"))
	_, err := Acquire(context.Background(), f, "/r/packed-refs", Options{Timeout: 10 * time.Millisecond})
	if !errors.Is(err, ErrHeld) || !strings.Contains(err.Error(), "packed-refs.lock: held by process 4711") {
		t.Errorf("%v", err)
	}
	go func() {
		time.Sleep(20 * time.Millisecond)
		f.Remove("/r/packed-refs.lock")
	}()
	l, err := Acquire(context.Background(), f, "/r/packed-refs", Options{Timeout: Forever})
	if err != nil {
		t.Fatal(err)
	}
	l.Rollback()
	f.Put("/r/packed-refs.lock", nil)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if _, err := Acquire(ctx, f, "/r/packed-refs", Options{Timeout: Forever}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a wait without end is not ended: %v", err)
	}
}

func TestThePausesGrowToASecond(t *testing.T) {
	for n, want := range map[int]time.Duration{1: 1, 2: 4, 10: 100, 31: 961, 32: 1000, 1 << 30: 1000} {
		want *= time.Millisecond
		if d := backoff(n); d < want*3/4 || d > want*5/4 {
			t.Errorf("pause %d: %v", n, d)
		}
	}
}

func TestRollbackIsIdempotentAndSparesOthers(t *testing.T) {
	f := crashfs.New()
	f.PutDir("/r")
	l := acquire(t, f, "/r/packed-refs")
	temp, cleared, err := l.Stage()
	if err != nil || cleared {
		t.Fatal(err, cleared)
	}
	temp.Write([]byte("x"))
	for range 2 {
		if err := l.Rollback(); err != nil {
			t.Fatal(err)
		}
	}
	if names := f.Names("/r"); len(names) != 0 {
		t.Errorf("left: %v", names)
	}
	if err := temp.Replace(); err == nil {
		t.Error("published after the rollback")
	}
	l = acquire(t, f, "/r/packed-refs")
	f.Remove("/r/packed-refs.lock")
	f.Put("/r/packed-refs.lock", []byte("another's"))
	l.Rollback()
	if _, ok := f.Get("/r/packed-refs.lock"); !ok {
		t.Error("the rollback removed another's lock")
	}
}

func TestALostLockPublishesNothing(t *testing.T) {
	for _, how := range []string{"gone", "another's"} {
		f := crashfs.New()
		f.Put("/r/list", []byte("old"))
		f.Put("/r/packed-refs", []byte("old"))
		a, b := acquire(t, f, "/r/list"), acquire(t, f, "/r/packed-refs")
		a.Write([]byte("new"))
		temp, _, _ := b.Stage()
		temp.Write([]byte("new"))
		if err := temp.Flush(); err != nil {
			t.Fatal(err)
		}
		for _, lock := range []string{"/r/list.lock", "/r/packed-refs.lock"} {
			f.Remove(lock)
			if how == "another's" {
				f.Put(lock, nil)
			}
		}
		for name, err := range map[string]error{"/r/list": a.Commit(), "/r/packed-refs": temp.Replace()} {
			if data, _ := f.Get(name); !errors.Is(err, ErrLost) || string(data) != "old" {
				t.Errorf("%s, %s: %q %v", how, name, data, err)
			}
		}
	}
}

// A file system may give the inode of a file that was removed to the next one, unless somebody has it open.
func TestALockThatTookTheInodeOfOurs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "packed-refs")
	l, err := Acquire(context.Background(), vfs.OS{}, path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	temp, _, err := l.Stage()
	if err != nil {
		t.Fatal(err)
	}
	temp.Write([]byte("new"))
	if err := temp.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path + ".lock"); err != nil {
		t.Skip("NOT TESTED, an open file can't be removed here:", err)
	}
	if err := os.WriteFile(path+".lock", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := temp.Replace(); !errors.Is(err, ErrLost) {
		t.Errorf("published under another's lock: %v", err)
	}
	if err := l.Rollback(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path + ".lock"); err != nil {
		t.Errorf("the other's lock: %v", err)
	}
}

func TestADeadStagingFileIsCleared(t *testing.T) {
	f := crashfs.New()
	f.Put("/r/packed-refs.new", []byte("junk"))
	l := acquire(t, f, "/r/packed-refs")
	temp, cleared, err := l.Stage()
	if err != nil || !cleared {
		t.Fatal(err, cleared)
	}
	temp.Write([]byte("content"))
	if err := errors.Join(temp.Flush(), temp.Replace()); err != nil {
		t.Fatal(err)
	}
	if data, _ := f.Get("/r/packed-refs"); string(data) != "content" {
		t.Errorf("%q", data)
	}
	l.Rollback()
	if names := f.Names("/r"); !slices.Equal(names, []string{"packed-refs"}) {
		t.Errorf("%v", names)
	}
}

// publish is each of the two ways, from the lock to its release.
var publish = map[string]func(vfs.FS) error{
	"commit": func(fsys vfs.FS) error {
		l, err := Acquire(context.Background(), fsys, "/r/file", Options{PIDFile: true})
		if err != nil {
			return err
		}
		defer l.Rollback()
		if _, err := l.Write([]byte("after")); err != nil {
			return err
		}
		return l.Commit()
	},
	"stage": func(fsys vfs.FS) error {
		l, err := Acquire(context.Background(), fsys, "/r/file", Options{PIDFile: true})
		if err != nil {
			return err
		}
		defer l.Rollback()
		temp, _, err := l.Stage()
		if err != nil {
			return err
		}
		if _, err := temp.Write([]byte("after")); err != nil {
			return err
		}
		if err := temp.Flush(); err != nil {
			return err
		}
		return temp.Replace()
	},
	"stage, whose write nobody looks at": func(fsys vfs.FS) error {
		l, err := Acquire(context.Background(), fsys, "/r/file", Options{})
		if err != nil {
			return err
		}
		defer l.Rollback()
		temp, _, err := l.Stage()
		if err != nil {
			return err
		}
		temp.Write([]byte("after"))
		if temp.Flush() != nil {
			return errors.New("not flushed")
		}
		return temp.Replace()
	},
}

func TestAFaultAtEachOperationLeavesOldOrNew(t *testing.T) {
	for name, run := range publish {
		for n, fired := 1, true; fired; n++ {
			f := crashfs.New()
			f.Put("/r/file", []byte("before"))
			f.FailAt(n, crashfs.Fail)
			err := run(f)
			fired = f.Fired()
			what := ""
			if fired {
				what = f.Trace()[n-1]
			}
			data, _ := f.Get("/r/file")
			if string(data) != "before" && string(data) != "after" {
				t.Fatalf("%s, fault at %s: file is %q", name, what, data)
			}
			if err == nil && string(data) != "after" || err != nil && !errors.Is(err, ErrNotDurable) && string(data) != "before" {
				t.Errorf("%s, fault at %s: file is %q, error %v", name, what, data, err)
			}
			// What is done when the new content is in place may fail unheard, and what is not insisted on.
			unheard := !fired || strings.Contains(what, "~pid") || strings.HasPrefix(what, "remove") || strings.HasPrefix(what, "lstat") && string(data) == "after" ||
				strings.HasPrefix(what, "rename") && string(data) == "after" || what == "close /r/file.lock" && string(data) == "after"
			if (err == nil) != unheard && !strings.HasPrefix(what, "remove") {
				t.Errorf("%s, fault at %s: error %v", name, what, err)
			}
			left := slices.DeleteFunc(f.Names("/r"), func(s string) bool { return s == "file" })
			if len(left) > 0 && !strings.HasPrefix(what, "remove") && !strings.HasPrefix(what, "lstat") {
				t.Errorf("%s, fault at %s: left %v", name, what, left)
			}
			f.FailAt(0, 0)
			f.Survivors(4000, func(lost string, after *crashfs.FS) {
				got, _ := after.Get("/r/file")
				if s := string(got); s != "after" && (err == nil || s != "before") {
					t.Errorf("%s, fault at %s, then a crash (%s): %q, error %v", name, what, lost, got, err)
				}
			})
		}
	}
}

func TestACrashAtEachOperationLeavesOldOrNew(t *testing.T) {
	for name, run := range publish {
		for n, fired := 1, true; fired; n++ {
			f := crashfs.New()
			f.Put("/r/file", []byte("before"))
			f.FailAt(n, crashfs.Crash)
			run(f)
			fired = f.Fired()
			RollbackAll() // the process is dead: it knows of no lock any more
			f.Survivors(4000, func(lost string, after *crashfs.FS) {
				if got, _ := after.Get("/r/file"); string(got) != "before" && string(got) != "after" {
					t.Errorf("%s, crash at operation %d (%s): %q", name, n, lost, got)
				}
			})
		}
	}
}

// A rename whose answer got lost has happened.
func TestARenameThatReportsFailureButHappened(t *testing.T) {
	for name, run := range publish {
		f := crashfs.New()
		f.Put("/r/file", []byte("before"))
		run(f)
		at := slices.IndexFunc(f.Trace(), func(s string) bool { return strings.HasPrefix(s, "rename") }) + 1
		f = crashfs.New()
		f.Put("/r/file", []byte("before"))
		f.FailAt(at, crashfs.FailDone)
		if err := run(f); err != nil || !f.Fired() {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestLaterThanTheOldOne(t *testing.T) {
	f := crashfs.New()
	f.PutDir("/r")
	l := acquire(t, f, "/r/f")
	temp, _, _ := l.Stage()
	for _, ahead := range []time.Duration{-time.Hour, 0, time.Hour} {
		st, _ := f.Stat(temp.Path())
		old := st.ModTime.Add(ahead)
		if err := temp.Later(old); err != nil {
			t.Fatal(err)
		}
		if st, _ := f.Stat(temp.Path()); !st.ModTime.After(old) {
			t.Errorf("%v is not after %v", st.ModTime, old)
		}
	}
}

func TestLinksAreFollowedAsGitDoes(t *testing.T) {
	f := crashfs.New()
	f.Put("/store/pr", nil)
	f.Put("/r/plain", nil)
	f.PutLink("/r/packed-refs", "../store/one")
	f.PutLink("/store/one", "/store/two")
	f.PutLink("/store/two", "pr")
	f.PutLink("/r/dangling", "../store/none")
	f.PutLink("/r/loop", "loop")
	for from, want := range map[string]string{
		"/r/plain": "/r/plain", "/r/packed-refs": "/store/pr", "/r/dangling": "/r/../store/none", "/r/none": "/r/none",
	} {
		if got, err := Resolve(f, from); err != nil || got != want {
			t.Errorf("%s: %q %v", from, got, err)
		}
	}
	if got, err := Resolve(f, "/r/loop"); err == nil {
		t.Errorf("a loop leads to %q", got)
	}
}

func TestThePIDFileIsGits(t *testing.T) {
	f := crashfs.New()
	f.PutDir("/r")
	l, err := Acquire(context.Background(), f, "/r/packed-refs", Options{PIDFile: true})
	if err != nil {
		t.Fatal(err)
	}
	pid, ok := Holder(f, "/r/packed-refs")
	if data, _ := f.Get("/r/packed-refs~pid.lock"); !ok || pid <= 0 || !strings.HasPrefix(string(data), "pid ") {
		t.Errorf("%d %q", pid, data)
	}
	l.Rollback()
	if names := f.Names("/r"); len(names) > 0 {
		t.Errorf("%v", names)
	}
	for _, bad := range []string{"", "pid", "pid -3", "pid 12x", "12", "pid " + strings.Repeat("9", 100)} {
		f.Put("/r/packed-refs~pid.lock", []byte(bad))
		if pid, ok := Holder(f, "/r/packed-refs"); ok {
			t.Errorf("%q: %d", bad, pid)
		}
	}
}

func TestWhoMayOpenTheNewFile(t *testing.T) {
	group := func(m fs.FileMode) fs.FileMode { return m | 0o660 }
	for _, c := range []struct {
		shared     func(fs.FileMode) fs.FileMode
		made, want fs.FileMode
	}{{nil, 0o600, 0o664}, {nil, 0o666, 0o666}, {group, 0o600, 0o660}, {group, 0o644, 0o664}} {
		f := crashfs.New()
		f.Put("/r/old", nil)
		like, _ := f.Stat("/r/old")
		like.Mode, like.UID, like.GID = 0o664, 7, 8
		for _, root := range []bool{false, true} {
			h, _ := f.Create("/r/new", 0o666)
			h.Chmod(c.made)
			st, _ := h.Stat()
			if err := (Perm{Shared: c.shared, Like: like, Root: root}).apply(h, st); err != nil {
				t.Fatal(err)
			}
			got, _ := f.Stat("/r/new")
			owner := map[bool]uint32{true: 7, false: 0}[root]
			if got.Mode != c.want || got.UID != owner || got.GID != 8 {
				t.Errorf("made %o, root %v: %o, owner %d, group %d", c.made, root, got.Mode, got.UID, got.GID)
			}
			f.Remove("/r/new")
		}
	}
}

// The mode of a symbolic link is 0777, whoever may write what it leads to.
func TestALinkGivesNobodyARight(t *testing.T) {
	if got := (Perm{Like: vfs.Info{Mode: fs.ModeSymlink | 0o777}}).mode(0o644); got != 0o644 {
		t.Errorf("%04o", got)
	}
}
