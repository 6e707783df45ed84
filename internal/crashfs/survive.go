package crashfs

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"
)

// What a crash may leave of bytes that were not synced.
const (
	keptOld  = iota // what the last sync made safe, perhaps nothing
	keptNew         // all of them
	keptZero        // the length, and zeros
	keptHalf        // the first half
	keptWays
)

// Survivors calls fn with each file system that a crash at this moment could leave, described in
// words. Where there are more than limit of them, it takes those that lose all and nothing
// that was not synced, and a choice of the others, the same at every run.
func (f *FS) Survivors(limit int, fn func(what string, after *FS)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	dirty := f.dirty()
	total := 1
	for range f.pending {
		total = capped(total*2, limit+1)
	}
	for range dirty {
		total = capped(total*keptWays, limit+1)
	}
	names, bytes := make([]bool, len(f.pending)), make([]int, len(dirty))
	if total <= limit {
		for {
			fn(f.describe(names, bytes, dirty), f.after(names, bytes, dirty))
			if !advance(names, bytes) {
				return
			}
		}
	}
	fn("nothing unsynced", f.after(names, bytes, dirty))
	rnd := rand.New(rand.NewPCG(1, uint64(len(f.pending)*1000+len(dirty))))
	for range limit - 2 {
		for i := range names {
			names[i] = rnd.IntN(2) == 0
		}
		for i := range bytes {
			bytes[i] = rnd.IntN(keptWays)
		}
		fn(f.describe(names, bytes, dirty), f.after(names, bytes, dirty))
	}
	for i := range names {
		names[i] = true
	}
	for i := range bytes {
		bytes[i] = keptNew
	}
	fn("everything", f.after(names, bytes, dirty))
}

func capped(n, limit int) int { return min(n, limit) }

func advance(names []bool, bytes []int) bool {
	for i := range names {
		names[i] = !names[i]
		if names[i] {
			return true
		}
	}
	for i := range bytes {
		bytes[i] = (bytes[i] + 1) % keptWays
		if bytes[i] != 0 {
			return true
		}
	}
	return false
}

func (f *FS) describe(names []bool, bytes []int, dirty []*inode) string {
	var b strings.Builder
	for i, kept := range names {
		if !kept {
			fmt.Fprintf(&b, "lost %q; ", f.pending[i].text)
		}
	}
	for i, way := range bytes {
		if way != keptNew {
			fmt.Fprintf(&b, "bytes of inode %d %s; ", dirty[i].ino, [...]string{"old", "", "zero", "half"}[way])
		}
	}
	return b.String()
}

// dirty lists the files with bytes that a crash may lose, each once.
func (f *FS) dirty() []*inode {
	seen := map[*inode]bool{}
	var list []*inode
	var walk func(n *inode)
	walk = func(n *inode) {
		if n == nil || seen[n] {
			return
		}
		seen[n] = true
		if n.dirty {
			list = append(list, n)
		}
		for _, names := range []map[string]*inode{n.names, n.safe} {
			for _, name := range sortedNames(names) {
				walk(names[name])
			}
		}
	}
	walk(f.root)
	for _, c := range f.pending {
		for _, s := range c.steps {
			walk(s.to)
		}
	}
	sort.Slice(list, func(i, j int) bool { return list[i].ino < list[j].ino })
	return list
}

// after makes the file system that is there when the machine is up again.
func (f *FS) after(names []bool, bytes []int, dirty []*inode) *FS {
	out := &FS{next: f.next, now: f.now, uid: f.uid}
	way := map[*inode]int{}
	for i, n := range dirty {
		way[n] = bytes[i]
	}
	made := map[*inode]*inode{}
	safe := map[*inode]map[string]*inode{}
	safeOf := func(n *inode) map[string]*inode {
		if safe[n] == nil {
			safe[n] = map[string]*inode{}
			for name, to := range n.safe {
				safe[n][name] = to
			}
		}
		return safe[n]
	}
	for i, c := range f.pending {
		if names[i] {
			for _, s := range c.steps {
				s.into(safeOf(s.dir))
			}
		}
	}
	var copyOf func(n *inode) *inode
	copyOf = func(n *inode) *inode {
		if made[n] != nil {
			return made[n]
		}
		c := &inode{ino: n.ino, mode: n.mode, uid: n.uid, gid: n.gid, mtime: n.mtime, link: n.link}
		made[n] = c
		if n.mode.IsDir() {
			c.names, c.safe = map[string]*inode{}, map[string]*inode{}
			for name, to := range safeOf(n) {
				c.names[name] = copyOf(to)
				c.safe[name] = c.names[name]
			}
		}
		c.data = n.data
		if n.dirty {
			switch way[n] {
			case keptOld:
				c.data = n.disk
			case keptZero:
				c.data = make([]byte, len(n.data))
			case keptHalf:
				c.data = n.data[:len(n.data)/2]
			}
		}
		c.disk = c.data
		return c
	}
	out.root = copyOf(f.root)
	return out
}

// Settle makes all that is there safe, as if the machine had been quiet for a while.
func (f *FS) Settle() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.pending {
		c.commit()
	}
	f.pending = nil
	for _, n := range f.dirty() {
		n.disk, n.dirty, n.lost = n.data, false, false
	}
}

// Put makes a file and the folders above it, all of them safe; a test begins with it.
func (f *FS) Put(name string, data []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	dir := f.mkdirs(path.Dir(name))
	n := dir.names[path.Base(name)]
	if n == nil {
		n = f.newInode(0o644)
	}
	n.data, n.disk, n.mtime = data, data, f.tick()
	dir.names[path.Base(name)], dir.safe[path.Base(name)] = n, n
}

// Own gives what lies at name to another owner.
func (f *FS) Own(name string, uid uint32) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, _, n, err := f.walk(name, true); err == nil && n != nil {
		n.uid = uid
	}
}

// PutLink makes a symbolic link.
func (f *FS) PutLink(name, to string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	dir := f.mkdirs(path.Dir(name))
	n := f.newInode(fs.ModeSymlink | 0o777)
	n.link = to
	dir.names[path.Base(name)], dir.safe[path.Base(name)] = n, n
}

// PutDir makes a folder and those above it.
func (f *FS) PutDir(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mkdirs(name)
}

func (f *FS) mkdirs(name string) *inode {
	dir := f.root
	for _, part := range strings.Split(strings.Trim(path.Clean(name), "/"), "/") {
		if part == "" {
			continue
		}
		next := dir.names[part]
		if next == nil {
			next = f.newInode(fs.ModeDir | 0o755)
			dir.names[part], dir.safe[part] = next, next
		}
		dir = next
	}
	return dir
}

// Get is the content of a file, as a reader would find it; no operation is counted.
func (f *FS) Get(name string) (data []byte, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, _, n, err := f.walk(name, true)
	if err != nil || n == nil || !n.mode.IsRegular() {
		return nil, false
	}
	return n.data, true
}

// Names lists a folder; no operation is counted.
func (f *FS) Names(name string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, _, n, err := f.walk(name, true)
	if err != nil || n == nil {
		return nil
	}
	return sortedNames(n.names)
}

// Load copies a folder of the machine to name.
func (f *FS) Load(dir, name string) error {
	return filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		to := path.Join(name, filepath.ToSlash(rel))
		switch {
		case e.IsDir():
			f.PutDir(to)
		case e.Type()&fs.ModeSymlink != 0:
			text, err := os.Readlink(p)
			if err != nil {
				return err
			}
			f.PutLink(to, text)
		case e.Type().IsRegular():
			data, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			f.Put(to, data)
		}
		return nil
	})
}

// Store copies what lies under name to a folder of the machine, for git to read.
func (f *FS) Store(name, dir string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, _, n, err := f.walk(name, true)
	if err != nil || n == nil {
		return pathErr("store", name, fs.ErrNotExist)
	}
	return n.store(dir)
}

func (n *inode) store(to string) error {
	switch {
	case n.mode.IsDir():
		if err := os.MkdirAll(to, 0o755); err != nil {
			return err
		}
		for _, name := range sortedNames(n.names) {
			if err := n.names[name].store(filepath.Join(to, name)); err != nil {
				return err
			}
		}
		return nil
	case n.mode&fs.ModeSymlink != 0:
		return os.Symlink(n.link, to)
	}
	return os.WriteFile(to, n.data, 0o644)
}
