package vfs

import (
	"errors"
	"io/fs"
	"os"
)

// GroupOS is OS for a process that may not give its files every group that they are to have, and has somebody
// do it who may. A pointer to it is an FS, so that it can be told from others.
type GroupOS struct {
	OS
	// Give gives an open file a group, and tells whether it did. It may be called from several goroutines.
	Give func(f *os.File, gid uint32) bool
}

// Create implements FS.
func (g *GroupOS) Create(path string, perm fs.FileMode) (File, error) {
	f, err := g.OS.Create(path, perm)
	if err != nil {
		return nil, err
	}
	return groupFile{f.(osFile), g.Give}, nil
}

type groupFile struct {
	osFile
	give func(*os.File, uint32) bool
}

// Chown implements File.
func (f groupFile) Chown(uid, gid int) error {
	err := f.osFile.Chown(uid, gid)
	if uid == -1 && errors.Is(err, fs.ErrPermission) && f.give(f.File, uint32(gid)) {
		return nil
	}
	return err
}
