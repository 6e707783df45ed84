package vfs

import (
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"time"
)

// FS is what a change of a repository needs of a file system. All its paths are absolute.
// It says nothing of durability that POSIX does not: a file's bytes survive a crash once File.Sync
// has returned, a name once SyncDir has.
//
// OS is the one that programs use; internal/crashfs is the one that tests do.
type FS interface {
	// Create makes a file that did not exist (ErrExist otherwise; a symbolic link counts as one) and opens it for writing.
	Create(path string, perm fs.FileMode) (File, error)
	// Open opens a regular file for reading, never a FIFO or a device; symbolic links are followed.
	Open(path string) (Reader, error)
	// Map maps a regular file that is never rewritten in place. Reading it belongs inside Guard.
	Map(path string) (Mapped, Info, error)
	// Stat describes what path leads to, Lstat path itself.
	Stat(path string) (Info, error)
	Lstat(path string) (Info, error)
	// Readlink is the text of a symbolic link.
	Readlink(path string) (string, error)
	// ReadDir gives the names in a folder, sorted.
	ReadDir(path string) ([]string, error)
	// Rename gives a file another name in place of whatever has it.
	Rename(from, to string) error
	// Link gives a file a second name, which must be free.
	Link(from, to string) error
	// Remove takes away a file's name, or an empty folder.
	Remove(path string) error
	// Mkdir makes one folder.
	Mkdir(path string, perm fs.FileMode) error
	// Chmod sets the mode of a folder that was just made, the setgid bit included.
	Chmod(path string, mode fs.FileMode) error
	// Chtimes sets the time of the last change.
	Chtimes(path string, mtime time.Time) error
	// SyncDir makes the names in a folder survive a crash.
	SyncDir(path string) error
	// Now is the time by the clock that dates new files in a folder, which may be another machine's.
	Now(dir string) (time.Time, error)
}

// File is a file that is being written.
type File interface {
	io.Writer
	Stat() (Info, error)
	Chmod(mode fs.FileMode) error
	Chown(uid, gid int) error // -1: leave it
	Sync() error
	Close() error
}

// Reader is a regular file that is being read.
type Reader interface {
	io.ReaderAt
	Stat() (Info, error)
	Close() error
}

// Mapped is a file in memory. Its bytes are valid until Close.
type Mapped interface {
	Bytes() []byte
	Close() error
}

// ID tells files of one machine apart, for as long as one of them exists.
type ID struct{ Dev, Ino uint64 }

// Ident is the owner of a file.
type Ident struct{ UID, GID uint32 }

// Info is what a file system says of a file.
type Info struct {
	ID
	Mode     fs.FileMode
	Size     int64
	ModTime  time.Time
	UID, GID uint32 // 0 where there are none
}

// Same tells whether two descriptions, taken at two times, are of one file that nobody wrote to
// meanwhile. The inode alone would not do: a file system gives the number of a removed file to the next.
func (i Info) Same(other Info) bool {
	return i.ID == other.ID && i.Size == other.Size && i.ModTime.Equal(other.ModTime)
}

// ReadFile reads a regular file whole, if it has at most limit bytes.
func ReadFile(fsys FS, path string, limit int64) ([]byte, Info, error) {
	f, err := fsys.Open(path)
	if err != nil {
		return nil, Info{}, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, Info{}, err
	}
	b, err := ReadAll(f, path, st.Size, limit)
	return b, st, err
}

// ReadAll reads from the start to the end of r, whose size is a guess, if that is at most limit bytes.
func ReadAll(r io.ReaderAt, path string, size, limit int64) ([]byte, error) {
	if size > limit {
		return nil, &fs.PathError{Op: "read", Path: path, Err: ErrTooLarge}
	}
	buf := make([]byte, 0, size+1)
	for {
		n, err := r.ReadAt(buf[len(buf):cap(buf)], int64(len(buf)))
		buf = buf[:len(buf)+n]
		if int64(len(buf)) > limit {
			return nil, &fs.PathError{Op: "read", Path: path, Err: ErrTooLarge}
		}
		if errors.Is(err, io.EOF) {
			return buf, nil
		}
		if err != nil {
			return nil, err
		}
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
	}
}

// MkdirAll makes a folder and those above it that are missing, and makes their names survive a crash.
func MkdirAll(fsys FS, path string, perm fs.FileMode) error {
	st, err := fsys.Stat(path)
	if err == nil {
		if !st.Mode.IsDir() {
			return &fs.PathError{Op: "mkdir", Path: path, Err: errors.New("is not a folder")}
		}
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	parent := filepath.Dir(path)
	if parent == path {
		return err
	}
	if err := MkdirAll(fsys, parent, perm); err != nil {
		return err
	}
	if err := fsys.Mkdir(path, perm); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return fsys.SyncDir(parent)
}
