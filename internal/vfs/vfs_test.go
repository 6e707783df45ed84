//go:build unix

package vfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestOnlyRegularFilesAreOpened(t *testing.T) {
	root := t.TempDir()
	if err := unix.Mkfifo(filepath.Join(root, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	os.Mkdir(filepath.Join(root, "folder"), 0o700)
	os.Symlink("fifo", filepath.Join(root, "link"))
	os.Symlink("/dev/null", filepath.Join(root, "device"))
	d, err := Open(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"fifo", "folder", "link", "device"} {
		done := make(chan error, 1)
		go func() { _, err := d.Open(name); done <- err }()
		select {
		case err := <-done:
			if !errors.Is(err, ErrNotRegular) {
				t.Errorf("%s: %v", name, err)
			}
		case <-time.After(5 * time.Second):
			t.Fatalf("%s: open hangs", name)
		}
	}
	if _, err := d.Open("none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("absent file: %v", err)
	}
}

// Read by root, a repository of somebody else can't show root's files.
func TestLinksOutOfTheTreeStayWithItsOwner(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give files away")
	}
	base := t.TempDir()
	root := filepath.Join(base, "repo")
	os.Mkdir(root, 0o755)
	for name, owner := range map[string]int{"root's": 0, "theirs": 4242} {
		path := filepath.Join(base, name)
		os.WriteFile(path, []byte(name), 0o644)
		os.Chown(path, owner, owner)
		os.Symlink(path, filepath.Join(root, name))
	}
	os.WriteFile(filepath.Join(root, "inner"), nil, 0o644) // root's, inside
	os.Chown(root, 4242, 4242)
	d, err := Open(root)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.ReadFile("root's", 100); !errors.Is(err, ErrOutside) {
		t.Errorf("root's file through their link: %v", err)
	}
	if _, err := d.Map("root's"); !errors.Is(err, ErrOutside) {
		t.Errorf("root's file mapped through their link: %v", err)
	}
	for _, name := range []string{"theirs", "inner"} {
		if _, err := d.ReadFile(name, 100); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestReadFileKeepsToItsLimit(t *testing.T) {
	d, _ := Open(t.TempDir())
	os.WriteFile(d.Path("f"), make([]byte, 100), 0o600)
	if b, err := d.ReadFile("f", 100); err != nil || len(b) != 100 {
		t.Errorf("%d %v", len(b), err)
	}
	if _, err := d.ReadFile("f", 99); !errors.Is(err, ErrTooLarge) {
		t.Errorf("%v", err)
	}
}

func TestAMappedFileThatShrinksIsAnError(t *testing.T) {
	d, _ := Open(t.TempDir())
	size := 8 * os.Getpagesize()
	os.WriteFile(d.Path("pack"), make([]byte, size), 0o600)
	m, err := d.Map("pack")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if err := os.Truncate(d.Path("pack"), 0); err != nil {
		t.Fatal(err)
	}
	var sum byte
	err = Guard(func() error {
		for _, b := range m.Bytes() {
			sum += b
		}
		return nil
	})
	if !errors.Is(err, ErrFault) {
		t.Errorf("read past the end of a cut file: %v", err)
	}
}

func TestGuardLetsOtherPanicsThrough(t *testing.T) {
	defer func() {
		if recover() != "a bug" {
			t.Error("the panic was swallowed")
		}
	}()
	Guard(func() error { panic("a bug") })
}
