// Package crashfs is a file system in memory for tests of what changes a repository. It fails on
// request at its n-th operation, and it knows what a crash of the machine would leave: bytes
// only after the file was synced, names only after their folder was.
//
// What POSIX leaves open is left open here: after a crash each thing that was not synced may have
// reached the disk or not, in any order, so Survivors gives many file systems, not one.
package crashfs

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"refaudit/internal/vfs"
)

// ErrFault is the error of an operation that was told to fail.
var ErrFault = errors.New("injected fault")

// ErrCrashed is the error of every operation from a crash on.
var ErrCrashed = errors.New("the machine has crashed")

// Fault says how an operation fails.
type Fault uint8

// The ways to fail.
const (
	Fail     Fault = iota // nothing happens and an error comes back; a write has written half
	FailDone              // it happens, and an error comes back all the same, as network file systems do
	Crash                 // nothing happens, here or ever after
)

// FS is the file system. It is safe for concurrent use.
type FS struct {
	mu      sync.Mutex
	root    *inode
	next    uint64
	now     time.Time
	uid     uint32
	pending []change // names that a crash may lose, oldest first

	ops   int // so far
	at    int // the operation that fails; 0: none
	fault Fault
	fired bool
	down  bool
	trace []string
}

var _ vfs.FS = (*FS)(nil)

// inode is a file, a folder or a symbolic link.
type inode struct {
	ino      uint64
	mode     fs.FileMode
	uid, gid uint32
	mtime    time.Time
	data     []byte // of a file
	disk     []byte // of a file: what the last sync made safe
	dirty    bool   // data differs from disk
	lost     bool   // a sync has failed: the kernel forgot that the bytes are dirty
	link     string // of a symbolic link
	names    map[string]*inode
	safe     map[string]*inode // of a folder: what the last sync made safe
}

// change is one step from names that are safe to names that are: it happens whole or not at all.
type change struct {
	steps []step
	text  string
}

type step struct {
	dir  *inode
	name string
	to   *inode // nil: the name goes away
	from *inode // of a name that goes away: only if it still stands for this
}

// New makes an empty file system.
func New() *FS {
	f := &FS{now: time.Unix(1_700_000_000, 0)}
	f.root = f.newInode(fs.ModeDir | 0o755)
	return f
}

// FailAt makes the n-th operation from now, counted from 1, fail. 0 lets all pass.
func (f *FS) FailAt(n int, how Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ops, f.at, f.fault, f.fired, f.trace = 0, n, how, false, nil
}

// Fired tells whether the operation that was to fail was reached.
func (f *FS) Fired() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fired
}

// Ops counts the operations since FailAt, and Trace lists them.
func (f *FS) Ops() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ops
}

// Trace lists the operations since FailAt, one a line: "rename /a /b".
func (f *FS) Trace() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.trace)
}

func (f *FS) newInode(mode fs.FileMode) *inode {
	f.next++
	n := &inode{ino: f.next, mode: mode, uid: f.uid, gid: f.uid, mtime: f.tick()}
	if mode.IsDir() {
		n.names, n.safe = map[string]*inode{}, map[string]*inode{}
	}
	return n
}

func (f *FS) tick() time.Time {
	f.now = f.now.Add(time.Millisecond)
	return f.now
}

// begin counts one operation. It tells whether the operation happens, and the error that it gives.
func (f *FS) begin(format string, args ...any) (happens bool, err error) {
	if f.down {
		return false, ErrCrashed
	}
	f.ops++
	f.trace = append(f.trace, fmt.Sprintf(format, args...))
	if f.ops != f.at {
		return true, nil
	}
	f.fired = true
	switch f.fault {
	case FailDone:
		return true, ErrFault
	case Crash:
		f.down = true
		return false, ErrCrashed
	}
	return false, ErrFault
}

func pathErr(op, path string, err error) error {
	return &fs.PathError{Op: op, Path: path, Err: err}
}

// walk finds the folder of a path and the last part of its name, which it follows if asked to.
func (f *FS) walk(name string, follow bool) (dir *inode, base string, node *inode, err error) {
	for hops := 0; hops < 40; hops++ {
		dir, node, base = f.root, f.root, "/"
		parts := strings.Split(strings.Trim(path.Clean(name), "/"), "/")
		if parts[0] == "" {
			return dir, base, node, nil
		}
		again := false
		for i, part := range parts {
			if node == nil || !node.mode.IsDir() {
				return nil, "", nil, fs.ErrNotExist
			}
			dir, base, node = node, part, node.names[part]
			last := i == len(parts)-1
			if node == nil || node.mode&fs.ModeSymlink == 0 || last && !follow {
				continue
			}
			to := node.link
			if !path.IsAbs(to) {
				to = "/" + strings.Join(parts[:i], "/") + "/" + to
			}
			name, again = to+"/"+strings.Join(parts[i+1:], "/"), true
			break
		}
		if !again {
			return dir, base, node, nil
		}
	}
	return nil, "", nil, errors.New("too many symbolic links")
}

// apply makes a change of names and remembers that a crash may lose it.
func (f *FS) apply(text string, steps ...step) {
	for _, s := range steps {
		s.into(s.dir.names)
		s.dir.mtime = f.tick()
	}
	f.pending = append(f.pending, change{steps, text})
}

func (s step) into(names map[string]*inode) {
	if s.to != nil {
		names[s.name] = s.to
	} else if s.from == nil || names[s.name] == s.from {
		delete(names, s.name)
	}
}

// Create implements vfs.FS.
func (f *FS) Create(name string, perm fs.FileMode) (vfs.File, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	happens, err := f.begin("create %s", name)
	if !happens {
		return nil, pathErr("create", name, err)
	}
	dir, base, node, werr := f.walk(name, false)
	if werr != nil {
		return nil, pathErr("create", name, werr)
	}
	if node != nil {
		return nil, pathErr("create", name, fs.ErrExist)
	}
	n := f.newInode(perm &^ 0o022)
	f.apply("create "+name, step{dir: dir, name: base, to: n})
	if err != nil {
		return nil, pathErr("create", name, err)
	}
	return &file{fs: f, node: n, name: name}, nil
}

// Open implements vfs.FS.
func (f *FS) Open(name string) (vfs.Reader, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.look("open", name, true)
	if err != nil {
		return nil, err
	}
	if !n.mode.IsRegular() {
		return nil, pathErr("open", name, vfs.ErrNotRegular)
	}
	return &file{fs: f, node: n, name: name}, nil
}

// Map implements vfs.FS.
func (f *FS) Map(name string) (vfs.Mapped, vfs.Info, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.look("map", name, true)
	if err != nil {
		return nil, vfs.Info{}, err
	}
	if !n.mode.IsRegular() {
		return nil, vfs.Info{}, pathErr("map", name, vfs.ErrNotRegular)
	}
	return mapped(n.data), n.info(), nil
}

type mapped []byte

func (m mapped) Bytes() []byte { return m }

func (m mapped) Close() error { return nil }

func (f *FS) look(op, name string, follow bool) (*inode, error) {
	if _, err := f.begin("%s %s", op, name); err != nil {
		return nil, pathErr(op, name, err)
	}
	_, _, node, err := f.walk(name, follow)
	if err == nil && node == nil {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, pathErr(op, name, err)
	}
	return node, nil
}

// Stat implements vfs.FS.
func (f *FS) Stat(name string) (vfs.Info, error) { return f.stat("stat", name, true) }

// Lstat implements vfs.FS.
func (f *FS) Lstat(name string) (vfs.Info, error) { return f.stat("lstat", name, false) }

func (f *FS) stat(op, name string, follow bool) (vfs.Info, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.look(op, name, follow)
	if err != nil {
		return vfs.Info{}, err
	}
	return n.info(), nil
}

func (n *inode) info() vfs.Info {
	return vfs.Info{ID: vfs.ID{Dev: 1, Ino: n.ino}, Mode: n.mode, Size: int64(len(n.data)), ModTime: n.mtime, UID: n.uid, GID: n.gid}
}

// Readlink implements vfs.FS.
func (f *FS) Readlink(name string) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.look("readlink", name, false)
	if err != nil {
		return "", err
	}
	if n.mode&fs.ModeSymlink == 0 {
		return "", pathErr("readlink", name, fs.ErrInvalid)
	}
	return n.link, nil
}

// ReadDir implements vfs.FS.
func (f *FS) ReadDir(name string) ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.look("readdir", name, true)
	if err != nil {
		return nil, err
	}
	if !n.mode.IsDir() {
		return nil, pathErr("readdir", name, fs.ErrInvalid)
	}
	return sortedNames(n.names), nil
}

func sortedNames(m map[string]*inode) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// Rename implements vfs.FS.
func (f *FS) Rename(from, to string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	happens, err := f.begin("rename %s %s", from, to)
	if !happens {
		return pathErr("rename", from, err)
	}
	fdir, fbase, node, werr := f.walk(from, false)
	if werr != nil || node == nil {
		return pathErr("rename", from, fs.ErrNotExist)
	}
	tdir, tbase, _, werr := f.walk(to, false)
	if werr != nil {
		return pathErr("rename", to, werr)
	}
	f.apply("rename "+from+" "+to, step{dir: fdir, name: fbase, from: node}, step{dir: tdir, name: tbase, to: node})
	return wrap("rename", from, err)
}

// Link implements vfs.FS.
func (f *FS) Link(from, to string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	happens, err := f.begin("link %s %s", from, to)
	if !happens {
		return pathErr("link", from, err)
	}
	_, _, node, werr := f.walk(from, false)
	if werr != nil || node == nil {
		return pathErr("link", from, fs.ErrNotExist)
	}
	dir, base, old, werr := f.walk(to, false)
	if werr != nil {
		return pathErr("link", to, werr)
	}
	if old != nil {
		return pathErr("link", to, fs.ErrExist)
	}
	f.apply("link "+from+" "+to, step{dir: dir, name: base, to: node})
	return wrap("link", from, err)
}

// Remove implements vfs.FS.
func (f *FS) Remove(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	happens, err := f.begin("remove %s", name)
	if !happens {
		return pathErr("remove", name, err)
	}
	dir, base, node, werr := f.walk(name, false)
	if werr != nil || node == nil {
		return pathErr("remove", name, fs.ErrNotExist)
	}
	if len(node.names) > 0 {
		return pathErr("remove", name, errors.New("folder is not empty"))
	}
	f.apply("remove "+name, step{dir: dir, name: base, from: node})
	return wrap("remove", name, err)
}

// Mkdir implements vfs.FS.
func (f *FS) Mkdir(name string, perm fs.FileMode) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	happens, err := f.begin("mkdir %s", name)
	if !happens {
		return pathErr("mkdir", name, err)
	}
	dir, base, node, werr := f.walk(name, false)
	if werr != nil {
		return pathErr("mkdir", name, werr)
	}
	if node != nil {
		return pathErr("mkdir", name, fs.ErrExist)
	}
	f.apply("mkdir "+name, step{dir: dir, name: base, to: f.newInode(fs.ModeDir | perm)})
	return wrap("mkdir", name, err)
}

// Chmod implements vfs.FS.
func (f *FS) Chmod(name string, mode fs.FileMode) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	happens, err := f.begin("chmod %s", name)
	if !happens {
		return pathErr("chmod", name, err)
	}
	_, _, n, werr := f.walk(name, true)
	if werr != nil || n == nil {
		return pathErr("chmod", name, fs.ErrNotExist)
	}
	n.mode = n.mode.Type() | mode&(fs.ModePerm|fs.ModeSetgid)
	return wrap("chmod", name, err)
}

// Chtimes implements vfs.FS.
func (f *FS) Chtimes(name string, mtime time.Time) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.look("chtimes", name, true)
	if err != nil {
		return err
	}
	n.mtime = mtime
	return nil
}

// Now implements vfs.FS.
func (f *FS) Now(dir string) (time.Time, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, err := f.look("now", dir, true); err != nil {
		return time.Time{}, err
	}
	return f.tick(), nil
}

// SyncDir implements vfs.FS.
func (f *FS) SyncDir(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.look("syncdir", name, true)
	if err != nil {
		return err
	}
	f.pending = slices.DeleteFunc(f.pending, func(c change) bool {
		for _, s := range c.steps {
			if s.dir == n {
				c.commit()
				return true
			}
		}
		return false
	})
	return nil
}

func (c change) commit() {
	for _, s := range c.steps {
		s.into(s.dir.safe)
	}
}

func wrap(op, path string, err error) error {
	if err == nil {
		return nil
	}
	return pathErr(op, path, err)
}
