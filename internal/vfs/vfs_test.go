//go:build unix

package vfs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
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
	size := smallFile + 8*os.Getpagesize()
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

// Small files are read, until so many are open that they are mapped.
func TestSmallFilesAreCopied(t *testing.T) {
	d, _ := Open(t.TempDir())
	text := bytes.Repeat([]byte("text of a pack. "), smallFile/16)
	os.WriteFile(d.Path("small"), text, 0o600)
	os.WriteFile(d.Path("large"), append(text, '.'), 0o600)
	before := copied.Load()
	var open []*Mapping
	for i := range smallFiles/smallFile + 3 {
		m, err := d.Map("small")
		if err != nil || !bytes.Equal(m.Bytes(), text) {
			t.Fatal(i, err)
		}
		open = append(open, m)
		if isCopy := m.copied > 0; isCopy != (before+int64(len(text)*(i+1)) <= smallFiles) {
			t.Fatalf("file %d of %d bytes: %v", i, len(text), isCopy)
		}
	}
	large, err := d.Map("large")
	if err != nil || large.copied > 0 || len(large.Bytes()) != len(text)+1 {
		t.Error(err)
	}
	for _, m := range append(open, large) {
		if err := errors.Join(m.Close(), m.Close()); err != nil || m.Bytes() != nil {
			t.Error(err)
		}
	}
	if copied.Load() != before {
		t.Errorf("%d bytes are said to be open, not %d", copied.Load(), before)
	}
	m, err := d.Map("small")
	if err != nil || m.copied == 0 {
		t.Error("there is no room again", err)
	}
	m.Close()
}

// A small file that is cut between the question for its size and the reading is what it is.
func TestASmallFileThatShrinks(t *testing.T) {
	before := copied.Load()
	m, err := copySmall(strings.NewReader("half"), 8)
	if err != nil || string(m.Bytes()) != "half" {
		t.Error(err)
	}
	m.Close()
	failed := errors.New("the disk")
	if m, err := copySmall(io.MultiReader(strings.NewReader("half"), iotest.ErrReader(failed)), 8); m != nil || !errors.Is(err, failed) {
		t.Error(m, err)
	}
	if copied.Load() != before {
		t.Error("what is not open is counted")
	}
}

func BenchmarkMap(b *testing.B) {
	d, _ := Open(b.TempDir())
	for _, size := range []int{8 << 10, smallFile, smallFile + 1} {
		os.WriteFile(d.Path("file"), make([]byte, size), 0o600)
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			b.SetBytes(int64(size))
			for b.Loop() {
				m, err := d.Map("file")
				if err != nil {
					b.Fatal(err)
				}
				for at := 0; at < size; at += 4096 {
					sink ^= m.Bytes()[at]
				}
				m.Close()
			}
		})
	}
}

var sink byte

func BenchmarkReadFile(b *testing.B) {
	d, _ := Open(b.TempDir())
	os.WriteFile(d.Path("HEAD"), []byte("ref: refs/heads/main\n"), 0o600)
	for b.Loop() {
		if _, err := d.ReadFile("HEAD", 1<<20); err != nil {
			b.Fatal(err)
		}
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
