//go:build unix

package vfs

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// plainFile is a regular file that is read from start to end, or mapped, at once. It lacks what an os.File has besides:
// each of those is offered to the system's poller, which has no use for regular files, and has to be kept
// from being closed in the midst of a read.
type plainFile struct {
	fd   int
	path string
	file *os.File // nil unless the file had to be opened as one
}

// openPlain is openPath for a file that is read at once; also tells its size.
func (d *Dir) openPlain(path string) (plainFile, int64, error) {
	if guest.on.Load() { // it must be noted
		f, st, err := d.openPath(path)
		if err != nil {
			return plainFile{}, 0, err
		}
		return plainFile{int(f.Fd()), path, f}, st.Size(), nil
	}
	var st unix.Stat_t
	if err := patiently(func() error { return unix.Stat(path, &st) }); err != nil {
		return plainFile{}, 0, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return plainFile{}, 0, &fs.PathError{Op: "open", Path: path, Err: ErrNotRegular}
	}
	f := plainFile{path: path}
	err := patiently(func() (err error) {
		f.fd, err = unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return plainFile{}, 0, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	switch err = patiently(func() error { return unix.Fstat(f.fd, &st) }); {
	case err != nil:
		err = &fs.PathError{Op: "stat", Path: path, Err: err}
	case st.Mode&unix.S_IFMT != unix.S_IFREG: // it has become another one since
		err = &fs.PathError{Op: "open", Path: path, Err: ErrNotRegular}
	default:
		err = d.allow(path, st.Uid)
	}
	if err != nil {
		f.Close()
		return plainFile{}, 0, err
	}
	return f, st.Size, nil
}

// patiently calls fn again if a signal has interrupted it.
func patiently(fn func() error) error {
	for {
		if err := fn(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// Read implements io.Reader.
func (f plainFile) Read(p []byte) (n int, err error) {
	err = patiently(func() error { n, err = unix.Read(f.fd, p); return err })
	switch {
	case err != nil:
		return 0, &fs.PathError{Op: "read", Path: f.path, Err: err}
	case n == 0 && len(p) > 0:
		return 0, io.EOF
	}
	return n, nil
}

// Fd is as of an os.File.
func (f plainFile) Fd() uintptr { return uintptr(f.fd) }

// Close closes it.
func (f plainFile) Close() error {
	if f.file != nil {
		return f.file.Close()
	}
	return unix.Close(f.fd)
}
