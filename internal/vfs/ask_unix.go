//go:build unix

package vfs

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"
)

// Missing tells whether an error means that there is no such file, also where a file stands in the
// place of one of its folders.
func Missing(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) }

// Enter asks, as access(2) does, for the right to enter the folder or run the program at path.
func Enter(path string) error {
	if err := unix.Access(path, unix.X_OK); err != nil {
		return &fs.PathError{Op: "access", Path: path, Err: err}
	}
	return nil
}

// Device is a number that tells the file systems of folders apart.
func Device(path string) (uint64, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return 0, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	return uint64(st.Dev), nil
}
