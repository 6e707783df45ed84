//go:build unix

package vfs

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestReadPathKeepsToTheOwner(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give files away")
	}
	base := t.TempDir()
	root := filepath.Join(base, "repo")
	os.Mkdir(root, 0o755)
	paths := map[string]string{}
	for name, owner := range map[string]int{"root's": 0, "theirs": 4242} {
		paths[name] = filepath.Join(base, name)
		os.WriteFile(paths[name], []byte(name), 0o644)
		os.Chown(paths[name], owner, owner)
	}
	os.WriteFile(filepath.Join(root, "inner"), nil, 0o644)
	os.Chown(root, 4242, 4242)
	d, err := Open(root)
	if err != nil {
		t.Fatal(err)
	}
	if st, _ := os.Stat(root); d.Owner() != 4242 || Owner(st) != 4242 {
		t.Errorf("owner %d", d.Owner())
	}
	if _, err := d.ReadPath(paths["root's"], 100); !errors.Is(err, ErrOutside) {
		t.Errorf("root's file: %v", err)
	}
	if b, err := d.ReadPath(paths["theirs"], 100); err != nil || string(b) != "theirs" {
		t.Errorf("their file: %q %v", b, err)
	}
	if _, err := d.ReadPath(filepath.Join(root, "inner"), 100); err != nil {
		t.Errorf("a file inside: %v", err)
	}
}
