package vfs

import (
	"errors"
	"io"
	"math/bits"
	"sync"
	"sync/atomic"
)

// A small file is read rather than mapped: each page of a map that is looked at interrupts the program, and to take a
// map down, the system interrupts all processors that the program runs on. That takes longer than to copy some
// pages into memory that was used before. But what was read can't be given up when memory is short, as a map
// can, so there is a limit on all that is open at once.
const (
	smallFile  = 128 << 10
	smallFiles = 16 << 20
)

// buffer is memory for small files.
type buffer struct{ room []byte }

// buffers are those that no file is in, by the logarithm of their sizes.
var buffers [18]sync.Pool

// class is the least buffer for so many bytes, of a page or more.
func class(size int64) int { return max(12, bits.Len64(uint64(size-1))) }

// copied is the bytes of small files that are open.
var copied atomic.Int64

// copySmall reads a file of so many bytes as a mapping; nil if it is to be mapped.
func copySmall(f io.Reader, size int64) (*Mapping, error) {
	if size > smallFile {
		return nil, nil
	}
	if copied.Add(size) > smallFiles {
		copied.Add(-size)
		return nil, nil
	}
	b, _ := buffers[class(size)].Get().(*buffer)
	if b == nil {
		b = &buffer{make([]byte, 1<<class(size))}
	}
	n, err := io.ReadFull(f, b.room[:size])
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) { // else it has become shorter
		copied.Add(-size)
		return nil, err
	}
	return &Mapping{data: b.room[:n:n], copied: size, buffer: b}, nil
}

// closeCopy ends a mapping that is a copy; false if it is none.
func (m *Mapping) closeCopy() bool {
	if m.copied == 0 {
		return false
	}
	copied.Add(-m.copied)
	buffers[class(m.copied)].Put(m.buffer)
	*m = Mapping{}
	return true
}
