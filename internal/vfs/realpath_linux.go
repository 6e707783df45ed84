package vfs

import (
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// cantAsk tells that the system does not know openat2 (Linux before 5.6), or refuses it.
var cantAsk atomic.Bool

// hasNoLinks tells whether there is something at path and no symbolic link on the way to it, nor at its end.
// false may also mean that it can't be told.
func hasNoLinks(path string) bool {
	if cantAsk.Load() {
		return false
	}
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS}
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &how)
	switch err {
	case nil:
		unix.Close(fd)
		return true
	case unix.ENOSYS, unix.EPERM:
		cantAsk.Store(true)
	}
	return false
}
