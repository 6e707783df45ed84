package vfs

import (
	"os"

	"golang.org/x/sys/unix"
)

// unnamedFile makes a file in a folder's file system that has no name and goes when it is closed.
func unnamedFile(dir string) (*os.File, error) {
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), dir), nil
}
