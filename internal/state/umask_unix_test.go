//go:build unix

package state

import (
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"refaudit/internal/vfs"
)

// A service may run with any umask: what everyone may read stays so, and what nobody else may, too.
func TestModesDoNotDependOnTheUmask(t *testing.T) {
	for _, umask := range []int{0, 0o077, 0o777} {
		dir := t.TempDir()
		before := syscall.Umask(umask)
		for name, perm := range map[string]os.FileMode{"public": Public, "private": Private} {
			if err := New(vfs.OS{}, dir).Write(name, perm, func(w io.Writer) error { return nil }); err != nil {
				t.Error(err)
			}
			if st, err := os.Stat(filepath.Join(dir, name)); err != nil || st.Mode().Perm() != perm {
				t.Errorf("umask %o: %v %v, want %v", umask, st.Mode(), err, perm)
			}
		}
		syscall.Umask(before)
	}
}
