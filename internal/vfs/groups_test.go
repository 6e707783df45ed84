//go:build unix

package vfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// Where only somebody else can give a group, they are asked, and what they say is the answer.
func TestAGroupIsGivenBySomebodyWhoMay(t *testing.T) {
	var asked []uint32
	g := &GroupOS{Give: func(f *os.File, gid uint32) bool {
		asked = append(asked, gid)
		return gid == 4243
	}}
	f, err := g.Create(filepath.Join(t.TempDir(), "file"), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Chown(-1, int(st.GID)); err != nil || len(asked) > 0 {
		t.Errorf("its own group: %v, asked for %v", err, asked)
	}
	if os.Geteuid() == 0 {
		t.Skip("NOT TESTED further, root may give every group")
	}
	if err := f.Chown(-1, 4243); err != nil {
		t.Error(err)
	}
	if err := f.Chown(-1, 4244); !errors.Is(err, fs.ErrPermission) {
		t.Error(err)
	}
	if err := f.Chown(4242, 4243); !errors.Is(err, fs.ErrPermission) {
		t.Error(err)
	}
	if len(asked) != 2 {
		t.Errorf("asked for %v", asked)
	}
}
