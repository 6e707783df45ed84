//go:build unix

package gittest

import (
	"fmt"
	"io/fs"
	"syscall"
)

func identity(st fs.FileInfo) (inode uint64, owner string) {
	s := st.Sys().(*syscall.Stat_t)
	return uint64(s.Ino), fmt.Sprintf("%d:%d", s.Uid, s.Gid)
}
