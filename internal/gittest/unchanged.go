package gittest

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Unchanged runs fn and fails the test if anything below dir is another afterwards: a name, a
// byte, a mode, a size, a time of modification, an inode.
func Unchanged(t testing.TB, dir string, fn func()) {
	t.Helper()
	before := snapshot(t, dir)
	fn()
	after := snapshot(t, dir)
	for name, b := range before {
		a, ok := after[name]
		switch {
		case !ok:
			t.Errorf("%s is gone", name)
		case a != b:
			t.Errorf("%s was changed:\n before %v\n after  %v", name, b, a)
		}
	}
	for name := range after {
		if _, ok := before[name]; !ok {
			t.Errorf("%s is new", name)
		}
	}
}

// entry is what must stay as it is of one file or folder.
type entry struct {
	mode  fs.FileMode
	size  int64
	mtime time.Time
	inode uint64
	owner string
	sum   [sha256.Size]byte // of the content, or of a link's text
}

func (e entry) String() string {
	return fmt.Sprintf("%v %d bytes, %v, inode %d, owner %s, sha256 %x", e.mode, e.size, e.mtime.Format(time.RFC3339Nano), e.inode, e.owner, e.sum[:6])
}

func snapshot(t testing.TB, dir string) map[string]entry {
	t.Helper()
	tree := map[string]entry{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		st, err := os.Lstat(path)
		if err != nil {
			return err
		}
		e := entry{mode: st.Mode(), size: st.Size(), mtime: st.ModTime()}
		e.inode, e.owner = identity(st)
		switch {
		case st.Mode().IsRegular():
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			e.sum = sha256.Sum256(b)
		case st.Mode()&fs.ModeSymlink != 0:
			link, err := os.Readlink(path)
			if err != nil {
				return err
			}
			e.sum = sha256.Sum256([]byte(link))
		}
		name, _ := filepath.Rel(dir, path)
		tree[name] = e
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// SameTree tells whether two folders hold the same names with the same bytes and modes.
func SameTree(t testing.TB, a, b string) bool {
	t.Helper()
	one, two := snapshot(t, a), snapshot(t, b)
	if len(one) != len(two) {
		return false
	}
	for name, e := range one {
		o, ok := two[name]
		if !ok || o.mode != e.mode || o.size != e.size && e.mode.IsRegular() || !bytes.Equal(o.sum[:], e.sum[:]) {
			return false
		}
	}
	return true
}
