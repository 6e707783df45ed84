package vfs

import (
	"errors"
	"io/fs"
	"os"
)

// ErrHeld is a file that another process, or another holder in this one, has locked.
var ErrHeld = errors.New("is locked by another process")

// A Held is a lock on a file of our own, outside of any repository. The system lets go of it
// when the process ends, however it ends; the file stays.
type Held struct{ f *os.File }

// Hold locks the file at path, which is made where it isn't there, without waiting: ErrHeld if
// somebody has it.
func Hold(path string) (*Held, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	if err := lockFile(f); err != nil {
		f.Close()
		return nil, &fs.PathError{Op: "lock", Path: path, Err: err}
	}
	return &Held{f}, nil
}

// Release lets go of the lock.
func (h *Held) Release() error { return h.f.Close() }
