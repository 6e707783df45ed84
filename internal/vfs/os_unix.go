//go:build unix

package vfs

import (
	"io/fs"
	"os"
	"syscall"
)

const errNoSync = syscall.EINVAL

func infoOf(_ string, st fs.FileInfo, _ bool) (Info, error) {
	i := Info{Mode: st.Mode(), Size: st.Size(), ModTime: st.ModTime()}
	if s, ok := st.Sys().(*syscall.Stat_t); ok {
		i.ID = ID{Dev: uint64(s.Dev), Ino: uint64(s.Ino)}
		i.UID, i.GID = s.Uid, s.Gid
	}
	return i, nil
}

func infoOfFile(f *os.File) (Info, error) {
	st, err := f.Stat()
	if err != nil {
		return Info{}, err
	}
	return infoOf("", st, true)
}

func openDir(path string) (*os.File, error) { return os.Open(path) }

func chown(f *os.File, uid, gid int) error { return f.Chown(uid, gid) }
