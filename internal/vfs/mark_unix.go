//go:build unix

package vfs

import (
	"io/fs"
	"syscall"
	"time"
)

func changedAt(st fs.FileInfo) (at time.Time, dev, ino uint64) {
	s, ok := st.Sys().(*syscall.Stat_t)
	if !ok {
		return st.ModTime(), 0, 0
	}
	c := ctimeOf(s)
	return time.Unix(int64(c.Sec), int64(c.Nsec)), uint64(s.Dev), uint64(s.Ino)
}
