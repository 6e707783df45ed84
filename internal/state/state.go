// Package state keeps small files of our own from one run to the next: what was audited when, and
// which refs there were. They lie outside of every repository.
//
// A file is whole or absent: it is written under another name, synced, and then renamed. What can
// be made again, or would only be looked at once more, needs no more care than that.
package state

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"refaudit/internal/vfs"
)

// Folder is where the files lie. It is safe for concurrent use, also by several processes.
type Folder struct {
	fsys vfs.FS
	dir  string
}

// New is the folder at dir, an absolute path. It is made when the first file is.
func New(fsys vfs.FS, dir string) *Folder { return &Folder{fsys: fsys, dir: dir} }

// Place tells where the folder of a user is: below XDG_STATE_HOME where that is set, root's in /var/lib.
func Place(getenv func(string) (string, bool), root bool) (string, error) {
	if dir, _ := getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "refaudit"), nil
	}
	if root {
		return "/var/lib/refaudit", nil
	}
	if home, _ := getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "state", "refaudit"), nil
	}
	return "", errors.New("no place for the state: neither XDG_STATE_HOME nor HOME is an absolute path (--state names one)")
}

// Dir is the path of the folder.
func (f *Folder) Dir() string { return f.dir }

func (f *Folder) path(name string) string { return filepath.Join(f.dir, filepath.FromSlash(name)) }

// Open opens a file for reading; fs.ErrNotExist if it was never written. Names have slashes.
func (f *Folder) Open(name string) (vfs.Reader, error) { return f.fsys.Open(f.path(name)) }

// Read is a file whole, if it has at most limit bytes.
func (f *Folder) Read(name string, limit int64) ([]byte, error) {
	b, _, err := vfs.ReadFile(f.fsys, f.path(name), limit)
	return b, err
}

// Files that everyone may read hold numbers alone; the others name repositories and refs.
const (
	Public  fs.FileMode = 0o644
	Private fs.FileMode = 0o600
)

const unfinished = ".tmp"

// abandoned is when a file whose writing was cut short is swept away.
const abandoned = 24 * time.Hour

// Write replaces a file by what fill writes, or leaves it as it is. Of two writers the last one wins:
// who builds on what the file held takes a lock.
func (f *Folder) Write(name string, perm fs.FileMode, fill func(io.Writer) error) error {
	path := f.path(name)
	if err := f.makeFolder(filepath.Dir(path)); err != nil {
		return err
	}
	f.sweep(filepath.Dir(path))
	var random [6]byte
	rand.Read(random[:]) // never fails
	tmp := path + "-" + hex.EncodeToString(random[:]) + unfinished
	file, err := f.fsys.Create(tmp, perm)
	if err != nil {
		return err
	}
	err = file.Chmod(perm) // whatever the umask says
	if err == nil {
		err = fill(file)
	}
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = f.fsys.Rename(tmp, path)
	}
	if err != nil {
		return errors.Join(err, f.fsys.Remove(tmp))
	}
	return f.fsys.SyncDir(filepath.Dir(path))
}

// makeFolder makes the folder, which everyone may enter, and one below it, which nobody else may.
func (f *Folder) makeFolder(dir string) error {
	if _, err := f.fsys.Stat(dir); err == nil {
		return nil
	}
	if err := vfs.MkdirAll(f.fsys, f.dir, 0o755); err != nil {
		return err
	}
	return vfs.MkdirAll(f.fsys, dir, 0o700)
}

// sweep removes what a crash has left half written. What can't be removed does no harm.
func (f *Folder) sweep(dir string) {
	names, err := f.fsys.ReadDir(dir)
	if err != nil {
		return
	}
	for _, name := range names {
		if !strings.HasSuffix(name, unfinished) {
			continue
		}
		path := filepath.Join(dir, name)
		if st, err := f.fsys.Lstat(path); err == nil && time.Since(st.ModTime) > abandoned {
			f.fsys.Remove(path)
		}
	}
}

// Names are the files in a folder below, sorted; none if it was never written to.
func (f *Folder) Names(dir string) ([]string, error) {
	all, err := f.fsys.ReadDir(f.path(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var names []string
	for _, n := range all {
		if !strings.HasSuffix(n, unfinished) && !strings.HasSuffix(n, ".lock") {
			names = append(names, n)
		}
	}
	return names, err
}

// ErrHeld is a lock that was not obtained in time.
var ErrHeld = errors.New("another refaudit is at work")

// Lock takes the lock of this name, for which it waits so long at the most; a negative time is for
// ever. The system lets go of it when the process ends.
func (f *Folder) Lock(ctx context.Context, name string, wait time.Duration) (*vfs.Held, error) {
	path := f.path(name + ".lock")
	if err := f.makeFolder(filepath.Dir(path)); err != nil {
		return nil, err
	}
	end := time.Now().Add(wait)
	for {
		held, err := vfs.Hold(path)
		if !errors.Is(err, vfs.ErrHeld) {
			return held, err
		}
		if wait >= 0 && !time.Now().Before(end) {
			return nil, fmt.Errorf("%w: %w", ErrHeld, err)
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
