package vfs

import (
	"encoding/binary"
	"io/fs"
	"time"
)

// Mark appends to b all by which a system tells one state of a file from others: mode, size,
// times, owner, and which file it is. newest is the latest of its times. On Unix the time of
// the last change of the inode is among them, which no program can set.
func Mark(b []byte, st fs.FileInfo) (mark []byte, newest time.Time) {
	changed, dev, ino := changedAt(st)
	newest = st.ModTime()
	if changed.After(newest) {
		newest = changed
	}
	for _, v := range [...]uint64{uint64(st.Mode()), uint64(st.Size()), uint64(st.ModTime().UnixNano()), uint64(changed.UnixNano()), dev, ino, uint64(ownerOf(st))} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return b, newest
}
