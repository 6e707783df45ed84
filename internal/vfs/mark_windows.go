package vfs

import (
	"io/fs"
	"syscall"
	"time"
)

func changedAt(st fs.FileInfo) (at time.Time, dev, ino uint64) {
	if s, ok := st.Sys().(*syscall.Win32FileAttributeData); ok {
		return time.Unix(0, s.CreationTime.Nanoseconds()), 0, 0
	}
	return st.ModTime(), 0, 0
}
