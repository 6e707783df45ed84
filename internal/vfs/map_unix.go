//go:build unix

package vfs

import (
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Mapping is a file in memory. Its bytes are valid until Close.
type Mapping struct {
	data   []byte
	copied int64 // bytes, where it is a copy in a buffer and no map
	buffer *buffer
}

// Bytes is the whole file.
func (m *Mapping) Bytes() []byte { return m.data }

// Close unmaps it. Nothing may read its bytes any more.
func (m *Mapping) Close() error {
	if m.closeCopy() || m.data == nil {
		return nil
	}
	data := m.data
	m.data = nil
	return unix.Munmap(data)
}

func mapFile(fd uintptr, size int) (*Mapping, error) {
	data, err := unix.Mmap(int(fd), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return &Mapping{data: data}, nil
}

// openNonblock does not wait, should the file have become a FIFO since we looked.
func openNonblock(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
}

func ownerOf(st fs.FileInfo) uint32 {
	if s, ok := st.Sys().(*syscall.Stat_t); ok {
		return s.Uid
	}
	return 0
}
