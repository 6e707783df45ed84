package vfs

import (
	"io/fs"
	"os"
	"unsafe"

	"golang.org/x/sys/windows"
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
	at := uintptr(unsafe.Pointer(unsafe.SliceData(m.data)))
	m.data = nil
	return windows.UnmapViewOfFile(at)
}

func mapFile(fd uintptr, size int) (*Mapping, error) {
	h, err := windows.CreateFileMapping(windows.Handle(fd), nil, windows.PAGE_READONLY, 0, 0, nil)
	if err != nil {
		return nil, err
	}
	defer windows.CloseHandle(h)
	at, err := windows.MapViewOfFile(h, windows.FILE_MAP_READ, 0, 0, uintptr(size))
	if err != nil {
		return nil, err
	}
	return &Mapping{data: unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&at))), size)}, nil
}

func openNonblock(path string) (*os.File, error) { return os.Open(path) }

func ownerOf(fs.FileInfo) uint32 { return 0 }
