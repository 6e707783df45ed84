package lockfile

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
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
// back should it turn out to be another's by then. A lock that is gone is no error.
func (s Stale) RemoveStale(ctx context.Context, fsys vfs.FS) (age time.Duration, err error) {
	lock := s.Path + Suffix
	first, err := fsys.Lstat(lock)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("look at %s: %w", lock, err)
	}
	if !first.Mode.IsRegular() {
		return 0, fmt.Errorf("%s: %w", lock, vfs.ErrNotRegular)
	}
	now, err := fsys.Now(filepath.Dir(lock))
	if err != nil {
		return 0, fmt.Errorf("ask the disk of %s for the time: %w", lock, err)
	}
	if age = now.Sub(first.ModTime); age < s.Older {
		return age, fmt.Errorf("%s: %w: it is %v old", lock, ErrNotStale, age.Round(time.Second))
	}
	watch := s.Watch
	if watch == 0 {
		watch = Watch
	}
	if err := sleep(ctx, watch); err != nil {
		return age, err
	}
	second, err := fsys.Lstat(lock)
	if errors.Is(err, fs.ErrNotExist) {
		return age, nil
	}
	if err != nil {
		return age, fmt.Errorf("look at %s again: %w", lock, err)
	}
	if !first.Same(second) {
		return age, fmt.Errorf("%s: %w: it changed while it was watched", lock, ErrNotStale)
	}
	if err := s.takeAway(fsys, first); err != nil {
		return age, err
	}
	if err := removed(fsys.Remove(PIDFile(s.Path))); err != nil {
		return age, fmt.Errorf("remove the stale lock's PID file: %w", err)
	}
	return age, nil
}

// takeAway moves the lock to a name of our own, where nobody else touches it, and looks at it there.
func (s Stale) takeAway(fsys vfs.FS, seen vfs.Info) error {
	lock := s.Path + Suffix
	aside := lock + ".stale-" + randomName()
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
