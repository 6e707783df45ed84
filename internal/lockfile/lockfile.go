// Package lockfile takes and gives back locks as git does, so that git and refaudit keep each
// other out: a file NAME.lock, made with O_EXCL, locks NAME.
//
// There are two ways to publish new content. Commit writes it into the lock file and renames that
// over NAME (tables.list). Stage writes NAME.new while the lock file stays empty, and renames that
// (packed-refs). Either way the bytes are synced before the rename and the folder after it,
// and just before the rename the lock is known to be still ours.
package lockfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"refaudit/internal/vfs"
)

// Suffix is what the name of a lock file ends in.
const Suffix = ".lock"

// Forever as a timeout: wait until the lock is free.
const Forever time.Duration = -1

// ErrHeld is a lock that another holds. The error is a *HeldError.
var ErrHeld = errors.New("is locked")

// ErrLost is a lock that was ours and is no more: somebody took it for a stale one.
var ErrLost = errors.New("the lock is no longer ours: somebody removed it, so nothing was written")

// ErrNotDurable tells that new content is in place, but that a crash may still undo it.
var ErrNotDurable = errors.New("written, but the folder could not be synced")

// Options say how a lock is taken.
type Options struct {
	Timeout time.Duration // how long to try; 0: once, Forever: without end
	PIDFile bool          // core.lockfilePid: tell others who holds it
	Perm    Perm          // of the lock file
	Bound   string        // why Timeout is shorter than the user has set, for the error; "": it is not
}

// A Lock is held from Acquire to Commit or Rollback, whichever comes first.
type Lock struct {
	fsys vfs.FS
	path string // of what is locked
	perm Perm

	mu     sync.Mutex
	file   vfs.File // the lock file: while it is open, no other file can get its inode
	id     vfs.ID   // of the lock file
	pid    bool     // there is a PID file of ours
	temps  []*Temp  // files that go away with the lock
	closed bool     // committed or rolled back
	wrote  error    // the first failure of a write
}

// Acquire locks path. It tries until the timeout has passed or ctx is done, with pauses that grow
// as git's do. A lock that stays taken is a *HeldError, also when its holder is this process.
func Acquire(ctx context.Context, fsys vfs.FS, path string, o Options) (*Lock, error) {
	started := time.Now()
	for n := 1; ; n++ {
		l, err := try(fsys, path, o)
		if err == nil {
			return l, nil
		}
		if !errors.Is(err, fs.ErrExist) && !errors.Is(err, errOurs) {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		waited := time.Since(started)
		if o.Timeout >= 0 && waited >= o.Timeout {
			return nil, held(fsys, path, waited, errors.Is(err, errOurs), o.Bound)
		}
		pause := backoff(n)
		if o.Timeout >= 0 {
			pause = min(pause, o.Timeout-waited+time.Millisecond)
		}
		if err := sleep(ctx, pause); err != nil {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
	}
}

// backoff is the pause after the n-th try: n² milliseconds, a second at most, a quarter more or less.
func backoff(n int) time.Duration {
	ms := min(n, 32)
	ms = min(ms*ms, 1000)
	return time.Duration(ms) * time.Millisecond * time.Duration(750+rand.IntN(500)) / 1000
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

func try(fsys vfs.FS, path string, o Options) (*Lock, error) {
	l := &Lock{fsys: fsys, path: path, perm: o.Perm}
	l.mu.Lock() // RollbackAll may find it as soon as it is registered
	defer l.mu.Unlock()
	if err := register(l); err != nil {
		return nil, err
	}
	f, err := fsys.Create(l.lockPath(), 0o666)
	if err != nil {
		forget(l)
		return nil, err
	}
	st, err := f.Stat()
	if err == nil {
		err = o.Perm.apply(f, st)
	}
	if err != nil {
		err = errors.Join(err, f.Close(), fsys.Remove(l.lockPath()))
		forget(l)
		return nil, err
	}
	l.file, l.id = f, st.ID
	if o.PIDFile {
		l.pid = writePID(fsys, PIDFile(path))
	}
	return l, nil
}

func (l *Lock) lockPath() string { return l.path + Suffix }

// Path is what is locked.
func (l *Lock) Path() string { return l.path }

// Ours tells whether the lock file is still the one that we made; ErrLost if not.
func (l *Lock) Ours() error {
	st, err := l.fsys.Lstat(l.lockPath())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: %w", l.lockPath(), ErrLost)
	case err != nil:
		return fmt.Errorf("look at %s: %w", l.lockPath(), err)
	case st.ID != l.id:
		return fmt.Errorf("%s: %w", l.lockPath(), ErrLost)
	}
	return nil
}

// Write adds to the content that Commit publishes.
func (l *Lock) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return 0, fmt.Errorf("write %s: %w", l.lockPath(), fs.ErrClosed)
	}
	n, err := l.file.Write(p)
	if err != nil && l.wrote == nil {
		l.wrote = err
	}
	return n, err
}

// Commit publishes what was written to the lock, in the order that survives a crash: the data,
// then the name, then the folder that holds the name. Unless it returns nil or ErrNotDurable
// the old content still stands, and Rollback is due.
func (l *Lock) Commit() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return fmt.Errorf("commit %s: %w", l.path, fs.ErrClosed)
	}
	if err := l.flush(); err != nil {
		return err
	}
	if err := renameOver(l.fsys, l.lockPath(), l.path, l.id); err != nil {
		return err
	}
	l.finish()
	return syncFolder(l.fsys, l.path)
}

// flush syncs the lock file, makes sure that it is still the lock, and closes it. A sync that failed is
// not tried again: the kernel has forgotten which bytes it didn't write.
func (l *Lock) flush() error {
	f := l.file
	l.file = nil
	if f == nil {
		return fmt.Errorf("flush %s: %w", l.lockPath(), fs.ErrClosed)
	}
	if l.wrote != nil {
		return fmt.Errorf("write %s: %w", l.lockPath(), errors.Join(l.wrote, f.Close()))
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("flush %s: %w", l.lockPath(), errors.Join(err, f.Close()))
	}
	ours := l.Ours()
	if err := f.Close(); err != nil {
		return fmt.Errorf("flush %s: %w", l.lockPath(), errors.Join(err, ours))
	}
	return ours
}

// renameOver renames and, where that fails, looks whether it has happened all the same: a
// network file system may do it and lose the answer.
func renameOver(fsys vfs.FS, from, to string, id vfs.ID) error {
	err := fsys.Rename(from, to)
	if err == nil {
		return nil
	}
	if st, serr := fsys.Lstat(to); serr == nil && st.ID == id {
		return nil
	}
	return fmt.Errorf("replace %s: %w", to, err)
}

func syncFolder(fsys vfs.FS, path string) error {
	if err := fsys.SyncDir(filepath.Dir(path)); err != nil {
		return fmt.Errorf("%s: %w: %w", path, ErrNotDurable, err)
	}
	return nil
}

// Rollback gives the lock back and removes what was staged under it. After Commit, and a second
// time, it does nothing.
func (l *Lock) Rollback() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	var errs []error
	for _, t := range l.temps {
		errs = append(errs, t.discard())
	}
	ours := l.Ours()
	if l.file != nil {
		errs = append(errs, l.file.Close())
		l.file = nil
	}
	switch err := ours; {
	case err == nil:
		errs = append(errs, removed(l.fsys.Remove(l.lockPath())))
	case !errors.Is(err, ErrLost): // a lost lock is not ours to remove
		errs = append(errs, err)
	}
	l.finish()
	return errors.Join(errs...)
}

// finish ends the hold: what it leaves on the disk is settled.
func (l *Lock) finish() {
	l.closed = true
	for _, t := range l.temps {
		t.discard()
	}
	l.temps = nil
	if l.pid {
		l.fsys.Remove(PIDFile(l.path))
		l.pid = false
	}
	forget(l)
}

// removed forgives a file that was gone already.
func removed(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// HeldError is a lock that another holds.
type HeldError struct {
	Lock   string        // path of the lock file
	Waited time.Duration // how long we tried
	Mine   bool          // the holder is this process
	Age    time.Duration // of the lock file, by this machine's clock; 0: not known
	PID    int           // of the holder, where it left one; 0: not known
	Bound  string        // why we did not wait longer; "": nothing said that we should
}

func (e *HeldError) Error() string {
	s := e.Lock + ": held by another process"
	if e.Mine {
		s = e.Lock + ": held by another repair in this process"
	} else if e.PID != 0 {
		s = e.Lock + ": held by process " + strconv.Itoa(e.PID)
	}
	if e.Age > 0 {
		s += fmt.Sprintf(", %v old", e.Age.Round(time.Second))
	}
	s += fmt.Sprintf("; not obtained in %v", e.Waited.Round(time.Millisecond))
	if e.Bound != "" {
		s += " (" + e.Bound + ")"
	}
	return s + ". Try again; if no git runs here it was left behind, and refaudit fix --stale-locks --older-than=AGE removes it"
}

// Is makes errors.Is(err, ErrHeld) true.
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

func held(fsys vfs.FS, path string, waited time.Duration, mine bool, bound string) error {
	e := &HeldError{Lock: path + Suffix, Waited: waited, Mine: mine, Bound: bound}
	if st, err := fsys.Lstat(e.Lock); err == nil {
		e.Age = max(0, time.Since(st.ModTime))
	}
	e.PID, _ = Holder(fsys, path)
	return e
}
