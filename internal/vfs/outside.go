package vfs

import "io/fs"

// ReadPath reads a regular file anywhere, under the rule for links that lead out of the tree: it
// belongs to the tree's owner, or it lies inside. A file in the tree can name such a path too.
func (d *Dir) ReadPath(path string, limit int64) ([]byte, error) {
	return d.readPath(path, limit)
}

// Owner is the user id of the tree's owner: of its root folder. On Windows all owners are 0.
func (d *Dir) Owner() uint32 { return d.owner }

// Owner is the user id of the owner of what st describes; 0 on Windows.
func Owner(st fs.FileInfo) uint32 { return ownerOf(st) }
