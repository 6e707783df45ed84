// Package vfs is the one door to the file system: a Dir reads one folder tree and can't write.
//
// A repository that is read may be hostile, and the reader root. So only regular files are
// opened, never a FIFO or a device, and a symbolic link that leads out of the tree is followed
// only to files of the tree's owner.
package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ErrOutside is the refusal to follow a symbolic link out of the tree to somebody else's file.
var ErrOutside = errors.New("leads out of the repository to a file of another owner")

// ErrNotRegular is the refusal to open what is no regular file.
var ErrNotRegular = errors.New("is not a regular file")

// ErrTooLarge is a file over the limit that its reader set.
var ErrTooLarge = errors.New("is larger than the limit")

// Dir is a folder tree, read-only. It is safe for concurrent use.
type Dir struct {
	root  string
	owner uint32 // of the root folder
}

// Open takes the folder at path, which must exist; symbolic links on the way to it are the caller's affair.
func Open(path string) (*Dir, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	st, err := os.Stat(abs)
	if err != nil {
		return nil, err
	}
	if !st.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: abs, Err: errors.New("is not a folder")}
	}
	return &Dir{root: abs, owner: ownerOf(st)}, nil
}

// Root is the absolute path of the folder.
func (d *Dir) Root() string { return d.root }

// Path is the path of name, which is relative to the root and need not be UTF-8.
func (d *Dir) Path(name string) string {
	if name == "" || name == "." {
		return d.root
	}
	return d.root + string(os.PathSeparator) + filepath.FromSlash(name)
}

// Open opens a regular file for reading.
func (d *Dir) Open(name string) (*os.File, error) {
	f, _, err := d.openPath(d.Path(name))
	return f, err
}

func (d *Dir) openPath(path string) (*os.File, fs.FileInfo, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, nil, &fs.PathError{Op: "open", Path: path, Err: ErrNotRegular}
	}
	f, err := openNonblock(path)
	if err != nil {
		return nil, nil, err
	}
	if st, err = f.Stat(); err == nil {
		if !st.Mode().IsRegular() {
			err = &fs.PathError{Op: "open", Path: path, Err: ErrNotRegular}
		} else {
			err = d.allow(path, ownerOf(st))
		}
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	noteCold(f, path, st)
	return f, st, nil
}

// allow lets a file pass that belongs to the tree's owner or, whosever it is, lies inside the tree.
func (d *Dir) allow(path string, owner uint32) error {
	if owner == d.owner {
		return nil
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	root, err := filepath.EvalSymlinks(d.root)
	if err != nil {
		return err
	}
	if real == root || strings.HasPrefix(real, root+string(os.PathSeparator)) {
		return nil
	}
	return &fs.PathError{Op: "open", Path: path, Err: ErrOutside}
}

// ReadFile reads a regular file whole, if it has at most limit bytes.
func (d *Dir) ReadFile(name string, limit int64) ([]byte, error) {
	return d.readPath(d.Path(name), limit)
}

func (d *Dir) readPath(path string, limit int64) ([]byte, error) {
	f, size, err := d.openPlain(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAll(f, path, size, limit)
}

// readAll reads to the end, however long the file has become since its size was asked.
func readAll(f plainFile, path string, size, limit int64) ([]byte, error) {
	if size > limit {
		return nil, &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("%w of %d bytes", ErrTooLarge, limit)}
	}
	buf := make([]byte, 0, size+1)
	for {
		n, err := f.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if err == io.EOF {
			return buf, nil
		}
		if err != nil {
			return nil, err
		}
		if int64(len(buf)) > limit {
			return nil, &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("%w of %d bytes", ErrTooLarge, limit)}
		}
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
	}
}

// ReadDir lists a folder, by name.
func (d *Dir) ReadDir(name string) ([]fs.DirEntry, error) { return os.ReadDir(d.Path(name)) }

// Lstat describes name itself, Stat what it leads to.
func (d *Dir) Lstat(name string) (fs.FileInfo, error) { return os.Lstat(d.Path(name)) }

// Stat describes what name leads to.
func (d *Dir) Stat(name string) (fs.FileInfo, error) { return os.Stat(d.Path(name)) }

// Readlink is the text of a symbolic link.
func (d *Dir) Readlink(name string) (string, error) { return os.Readlink(d.Path(name)) }

// Map maps a regular file into memory, read-only; a small one it reads. Only files that are never rewritten in place
// may be mapped: packs, their indexes and bitmaps. Reading a mapping belongs inside Guard.
func (d *Dir) Map(name string) (*Mapping, error) {
	path := d.Path(name)
	f, size, err := d.openPlain(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if size == 0 {
		return &Mapping{}, nil
	}
	if size != int64(int(size)) {
		return nil, &fs.PathError{Op: "map", Path: path, Err: ErrTooLarge}
	}
	if m, err := copySmall(f, size); m != nil || err != nil {
		return m, err
	}
	m, err := mapFile(f.Fd(), int(size))
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", path, err)
	}
	return m, nil
}
