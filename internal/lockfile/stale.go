package lockfile

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"refaudit/internal/vfs"
)

// ErrNotStale is a lock that is not removed: too young, or it changed while it was watched.
var ErrNotStale = errors.New("is not stale")

// Watch is how long a lock is watched before it counts as abandoned.
const Watch = 2 * time.Second

// Stale is a lock to be removed.
type Stale struct {
	Path  string        // what is locked; the lock is Path.lock
	Older time.Duration // the least age
	Watch time.Duration // between the two looks; Watch if 0
}

// RemoveStale removes a lock that its holder left behind: it must be old by the clock of its own
// disk, and stand unchanged through the watch. It is moved aside before it is removed, and linked
// back should it turn out to be another's by then. A lock that is gone is no error. What an
// earlier removal has left aside, because it was killed there, goes too.
func (s Stale) RemoveStale(ctx context.Context, fsys vfs.FS) (age time.Duration, err error) {
	lock := s.Path + Suffix
	left, err := s.leftAside(fsys)
	if err != nil {
		return 0, err
	}
	var seen []watched
	for _, path := range append([]string{lock}, left...) {
		st, err := fsys.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("look at %s: %w", path, err)
		}
		if !st.Mode.IsRegular() {
			return 0, fmt.Errorf("%s: %w", path, vfs.ErrNotRegular)
		}
		seen = append(seen, watched{path, st})
	}
	if len(seen) == 0 {
		return 0, nil
	}
	now, err := fsys.Now(filepath.Dir(lock))
	if err != nil {
		return 0, fmt.Errorf("ask the disk of %s for the time: %w", lock, err)
	}
	for _, w := range seen {
		if age = now.Sub(w.first.ModTime); age < s.Older {
			return age, fmt.Errorf("%s: %w: it is %v old", w.path, ErrNotStale, age.Round(time.Second))
		}
	}
	watch := s.Watch
	if watch == 0 {
		watch = Watch
	}
	if err := sleep(ctx, watch); err != nil {
		return age, err
	}
	age = now.Sub(seen[0].first.ModTime)
	for _, w := range seen {
		if err := s.remove(fsys, w); err != nil {
			return age, err
		}
	}
	return age, nil
}

// watched is a file as it was when the watch began.
type watched struct {
	path  string
	first vfs.Info
}

// remove takes away a file that has not changed since.
func (s Stale) remove(fsys vfs.FS, w watched) error {
	second, err := fsys.Lstat(w.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look at %s again: %w", w.path, err)
	}
	if !w.first.Same(second) {
		return fmt.Errorf("%s: %w: it changed while it was watched", w.path, ErrNotStale)
	}
	if w.path != s.Path+Suffix { // nobody else uses the name
		if err := removed(fsys.Remove(w.path)); err != nil {
			return fmt.Errorf("remove %s: %w", w.path, err)
		}
		return nil
	}
	if err := s.takeAway(fsys, w.first); err != nil {
		return err
	}
	if err := removed(fsys.Remove(PIDFile(s.Path))); err != nil {
		return fmt.Errorf("remove the stale lock's PID file: %w", err)
	}
	return nil
}

// asideMark stands between the name of a lock that was moved aside and something random.
const asideMark = ".stale-"

// Locked is what a file is the lock of, by its name: a lock, or one that was moved aside; false for all other files.
func Locked(path string) (locked string, ok bool) {
	if at := strings.LastIndex(path, Suffix+asideMark); at >= 0 {
		return path[:at], true
	}
	locked, ok = strings.CutSuffix(path, Suffix)
	return locked, ok && !strings.HasSuffix(locked, "~pid")
}

// leftAside lists what earlier removals of this lock have left.
func (s Stale) leftAside(fsys vfs.FS) (paths []string, err error) {
	dir := filepath.Dir(s.Path)
	names, err := fsys.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for locks in %s: %w", dir, err)
	}
	for _, name := range names {
		if strings.HasPrefix(name, filepath.Base(s.Path)+Suffix+asideMark) {
			paths = append(paths, filepath.Join(dir, name))
		}
	}
	return paths, nil
}

// takeAway moves the lock to a name of our own, where nobody else touches it, and looks at it there.
func (s Stale) takeAway(fsys vfs.FS, seen vfs.Info) error {
	lock := s.Path + Suffix
	aside := lock + asideMark + randomName()
	err := fsys.Rename(lock, aside)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("move %s aside: %w", lock, err)
	}
	st, err := fsys.Lstat(aside)
	if err != nil {
		return fmt.Errorf("look at %s, moved aside: %w", aside, err)
	}
	if !seen.Same(st) {
		if err := fsys.Link(aside, lock); err != nil {
			return fmt.Errorf("%s: moved to %s, was another's by then, and could not be put back: %w", lock, aside, err)
		}
		return errors.Join(fmt.Errorf("%s: %w: another took it meanwhile", lock, ErrNotStale), fsys.Remove(aside))
	}
	if err := fsys.Remove(aside); err != nil {
		return fmt.Errorf("remove %s: %w", aside, err)
	}
	return nil
}

func randomName() string {
	var b [6]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
