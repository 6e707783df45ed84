package vfs

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
)

// ErrFault is a mapped file that could not be read: it was cut under us, or the disk failed.
var ErrFault = errors.New("a mapped file could not be read: it shrank, or the disk failed")

// Guard runs fn, in which a fault on a mapped file becomes ErrFault instead of ending the
// program. It holds for this goroutine only: each goroutine that reads a mapping has its own.
func Guard(fn func() error) (err error) {
	old := debug.SetPanicOnFault(true)
	defer debug.SetPanicOnFault(old)
	defer func() {
		switch r := recover().(type) {
		case nil:
		case interface {
			runtime.Error
			Addr() uintptr
		}:
			err = fmt.Errorf("%w (at %#x)", ErrFault, r.Addr())
		default:
			panic(r)
		}
	}()
	return fn()
}
