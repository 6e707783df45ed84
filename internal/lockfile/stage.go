package lockfile

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"refaudit/internal/vfs"
)

// A Temp is a file written while a lock is held: new content that will take the place of another
// file (Replace), or a new file that is first written under another name (Publish). Until then
// it goes away with the lock.
type Temp struct {
	lock *Lock
	path string
	file vfs.File // while it is open
	info vfs.Info // when it was made; its ID holds
	done bool     // renamed or removed

	wrote error // the first failure of a write
}

// Stage makes the file NAME.new for the locked NAME, as git does for packed-refs; the lock file stays
// empty. One that is there already is dead, since we hold the lock, and is removed first; cleared tells so.
func (l *Lock) Stage() (t *Temp, cleared bool, err error) {
	path := l.path + ".new"
	t, err = l.Temp(path, l.perm)
	if !errors.Is(err, fs.ErrExist) {
		return t, false, err
	}
	if err := l.Ours(); err != nil {
		return nil, false, err
	}
	if err := l.fsys.Remove(path); err != nil {
		return nil, false, fmt.Errorf("clear %s, left behind: %w", path, err)
	}
	t, err = l.Temp(path, l.perm)
	return t, true, err
}

// Temp makes a file at path, which must be free.
func (l *Lock) Temp(path string, perm Perm) (*Temp, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, fmt.Errorf("create %s: %w", path, fs.ErrClosed)
	}
	f, err := l.fsys.Create(path, 0o666)
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", path, err)
	}
	t := &Temp{lock: l, path: path, file: f}
	l.temps = append(l.temps, t)
	if t.info, err = f.Stat(); err == nil {
		err = perm.apply(f, t.info)
	}
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", path, errors.Join(err, t.discard()))
	}
	return t, nil
}

// Path is where the file is now.
func (t *Temp) Path() string { return t.path }

// Write implements io.Writer.
func (t *Temp) Write(p []byte) (int, error) {
	t.lock.mu.Lock()
	defer t.lock.mu.Unlock()
	if t.file == nil {
		return 0, fmt.Errorf("write %s: %w", t.path, fs.ErrClosed)
	}
	n, err := t.file.Write(p)
	if err != nil && t.wrote == nil {
		t.wrote = err
	}
	return n, err
}

// Flush syncs and closes the file: from here on its bytes survive a crash. A failure is final.
func (t *Temp) Flush() error {
	t.lock.mu.Lock()
	defer t.lock.mu.Unlock()
	f := t.file
	t.file = nil
	if f == nil {
		return fmt.Errorf("flush %s: %w", t.path, fs.ErrClosed)
	}
	if t.wrote != nil {
		return fmt.Errorf("write %s: %w", t.path, errors.Join(t.wrote, f.Close()))
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("flush %s: %w", t.path, err)
	}
	return nil
}

// Later makes the file's time of change later than old, which readers that look no deeper rely on.
func (t *Temp) Later(old time.Time) error {
	for _, step := range []time.Duration{0, time.Millisecond, 2 * time.Second} {
		if step > 0 {
			if err := t.lock.fsys.Chtimes(t.path, old.Add(step)); err != nil {
				return fmt.Errorf("date %s: %w", t.path, err)
			}
		}
		st, err := t.lock.fsys.Lstat(t.path)
		if err != nil {
			return fmt.Errorf("date %s: %w", t.path, err)
		}
		if st.ModTime.After(old) {
			return nil
		}
	}
	return fmt.Errorf("date %s: the file system keeps no time later than %v", t.path, old)
}

// Replace puts the flushed file in the place of the locked one and syncs the folder. The lock
// stays held. Unless it returns nil or ErrNotDurable, the old content still stands.
func (t *Temp) Replace() error { return t.Publish(t.lock.path) }

// Publish gives the flushed file its name, in place of what has it, and syncs the folder.
func (t *Temp) Publish(path string) error {
	t.lock.mu.Lock()
	defer t.lock.mu.Unlock()
	if t.file != nil || t.done {
		return fmt.Errorf("publish %s: %w", t.path, fs.ErrInvalid)
	}
	if t.lock.closed {
		return fmt.Errorf("publish %s: %w", t.path, fs.ErrClosed)
	}
	if err := t.lock.Ours(); err != nil {
		return err
	}
	if err := renameOver(t.lock.fsys, t.path, path, t.info.ID); err != nil {
		return err
	}
	t.path, t.done = path, true
	return syncFolder(t.lock.fsys, path)
}

// discard removes a file that was not published.
func (t *Temp) discard() error {
	if t.done {
		return nil
	}
	t.done = true
	var err error
	if t.file != nil {
		err = t.file.Close()
		t.file = nil
	}
	if st, serr := t.lock.fsys.Lstat(t.path); serr == nil && st.ID != t.info.ID && t.info.ID != (vfs.ID{}) {
		return err // another has the name now
	}
	return errors.Join(err, removed(t.lock.fsys.Remove(t.path)))
}

// maxLinks is how many symbolic links git follows from packed-refs to the file that it locks.
const maxLinks = 5

// Resolve follows symbolic links from path to the file that git locks and replaces, which need
// not exist. Like git it reads the links one by one and leaves folders as they are written.
func Resolve(fsys vfs.FS, path string) (string, error) {
	for range maxLinks {
		st, err := fsys.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) {
			return path, nil
		}
		if err != nil {
			return "", err
		}
		if st.Mode&fs.ModeSymlink == 0 {
			return path, nil
		}
		to, err := fsys.Readlink(path)
		if err != nil {
			return "", err
		}
		if !filepath.IsAbs(to) {
			to = filepath.Dir(path) + string(filepath.Separator) + to // not Join: a/../b is not b where a is a link
		}
		path = to
	}
	st, err := fsys.Lstat(path)
	if err == nil && st.Mode&fs.ModeSymlink != 0 {
		return "", fmt.Errorf("%s: more than %d symbolic links in a row; git locks the wrong file then", path, maxLinks)
	}
	return path, nil
}
