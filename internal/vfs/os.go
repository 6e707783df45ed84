package vfs

import (
	"errors"
	"io/fs"
	"os"
	"time"
)

// OS is the file system of the machine.
type OS struct{}

var _ FS = OS{}

type osFile struct{ *os.File }

type osReader struct{ *os.File }

// Create implements FS.
func (OS) Create(path string, perm fs.FileMode) (File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

// Open implements FS.
func (OS) Open(path string) (Reader, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: path, Err: ErrNotRegular}
	}
	f, err := openNonblock(path)
	if err != nil {
		return nil, err
	}
	if st, err = f.Stat(); err == nil && !st.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: ErrNotRegular}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return osReader{f}, nil
}

// Map implements FS.
func (o OS) Map(path string) (Mapped, Info, error) {
	r, err := o.Open(path)
	if err != nil {
		return nil, Info{}, err
	}
	defer r.Close()
	st, err := r.Stat()
	if err != nil || st.Size == 0 {
		return &Mapping{}, st, err
	}
	if st.Size != int64(int(st.Size)) {
		return nil, st, &fs.PathError{Op: "map", Path: path, Err: ErrTooLarge}
	}
	m, err := mapFile(r.(osReader).Fd(), int(st.Size))
	if err != nil {
		return nil, st, &fs.PathError{Op: "map", Path: path, Err: err}
	}
	return m, st, nil
}

// Stat implements FS.
func (OS) Stat(path string) (Info, error) {
	st, err := os.Stat(path)
	if err != nil {
		return Info{}, err
	}
	return infoOf(path, st, true)
}

// Lstat implements FS.
func (OS) Lstat(path string) (Info, error) {
	st, err := os.Lstat(path)
	if err != nil {
		return Info{}, err
	}
	return infoOf(path, st, false)
}

// Readlink implements FS.
func (OS) Readlink(path string) (string, error) { return os.Readlink(path) }

// ReadDir implements FS.
func (OS) ReadDir(path string) ([]string, error) {
	list, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(list))
	for i, e := range list {
		names[i] = e.Name()
	}
	return names, nil
}

// Rename implements FS.
func (OS) Rename(from, to string) error { return os.Rename(from, to) }

// Link implements FS.
func (OS) Link(from, to string) error { return os.Link(from, to) }

// Remove implements FS.
func (OS) Remove(path string) error { return os.Remove(path) }

// Mkdir implements FS.
func (OS) Mkdir(path string, perm fs.FileMode) error { return os.Mkdir(path, perm) }

// Chmod implements FS.
func (OS) Chmod(path string, mode fs.FileMode) error { return os.Chmod(path, mode) }

// Chtimes implements FS.
func (OS) Chtimes(path string, mtime time.Time) error {
	return os.Chtimes(path, time.Time{}, mtime)
}

// SyncDir implements FS. Where a file system has no such thing as syncing a folder, its names
// are as durable as they ever get, and that is no error.
func (OS) SyncDir(path string) error {
	d, err := openDir(path)
	if err != nil || d == nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, errNoSync) || errors.Is(err, errors.ErrUnsupported) {
		err = nil
	}
	return errors.Join(err, d.Close())
}

// Now implements FS. Where the system can make a file without a name, the folder stays as it is.
func (OS) Now(dir string) (time.Time, error) {
	f, err := unnamedFile(dir)
	if err != nil {
		return namedNow(dir)
	}
	st, err := f.Stat()
	if err := errors.Join(err, f.Close()); err != nil {
		return time.Time{}, err
	}
	return st.ModTime(), nil
}

func namedNow(dir string) (time.Time, error) {
	f, err := os.CreateTemp(dir, "refaudit-clock-*")
	if err != nil {
		return time.Time{}, err
	}
	st, err := f.Stat()
	if err := errors.Join(err, f.Close(), os.Remove(f.Name())); err != nil {
		return time.Time{}, err
	}
	return st.ModTime(), nil
}

func (f osFile) Stat() (Info, error) { return infoOfFile(f.File) }

func (f osFile) Chown(uid, gid int) error { return chown(f.File, uid, gid) }

func (f osReader) Stat() (Info, error) { return infoOfFile(f.File) }
