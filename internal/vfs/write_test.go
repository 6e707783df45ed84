//go:build unix

package vfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestCreateIsExclusive(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.lock")
	f, err := OS{}.Create(path, 0o666)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := (OS{}).Create(path, 0o666); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a second time: %v", err)
	}
	os.Symlink("elsewhere", filepath.Join(dir, "link"))
	if _, err := (OS{}).Create(filepath.Join(dir, "link"), 0o666); !errors.Is(err, fs.ErrExist) {
		t.Errorf("through a dangling link: %v", err)
	}
}

func TestFilesAreToldApart(t *testing.T) {
	dir := t.TempDir()
	one, two := filepath.Join(dir, "one"), filepath.Join(dir, "two")
	os.WriteFile(one, []byte("a"), 0o600)
	os.WriteFile(two, []byte("a"), 0o600)
	os.Symlink("one", filepath.Join(dir, "link"))
	a, err := OS{}.Stat(one)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := OS{}.Stat(two)
	l, _ := OS{}.Stat(filepath.Join(dir, "link"))
	ll, _ := OS{}.Lstat(filepath.Join(dir, "link"))
	if a.ID == b.ID || a.ID != l.ID || ll.ID == l.ID || ll.Mode&fs.ModeSymlink == 0 {
		t.Errorf("%v %v %v %v", a, b, l, ll)
	}
	folder := filepath.Join(dir, "folder")
	if err := errors.Join((OS{}).Mkdir(folder, 0o777), (OS{}).Chmod(folder, 0o750|fs.ModeSetgid)); err != nil {
		t.Fatal(err)
	}
	if st, _ := (OS{}).Stat(folder); st.Mode != fs.ModeDir|fs.ModeSetgid|0o750 {
		t.Errorf("the folder has mode %v", st.Mode)
	}
	later := a.ModTime.Add(time.Hour)
	if err := (OS{}).Chtimes(one, later); err != nil {
		t.Fatal(err)
	}
	if c, _ := (OS{}).Stat(one); !c.ModTime.Equal(later) || a.Same(c) {
		t.Errorf("%v is not %v", c.ModTime, later)
	}
}

func TestOpenTakesRegularFilesOnly(t *testing.T) {
	dir := t.TempDir()
	unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600)
	for _, name := range []string{"fifo", "."} {
		if _, err := (OS{}).Open(filepath.Join(dir, name)); !errors.Is(err, ErrNotRegular) {
			t.Errorf("%s: %v", name, err)
		}
	}
	os.WriteFile(filepath.Join(dir, "f"), []byte("12345"), 0o600)
	if b, st, err := ReadFile(OS{}, filepath.Join(dir, "f"), 5); err != nil || string(b) != "12345" || st.Size != 5 {
		t.Errorf("%q %v %v", b, st, err)
	}
	m, st, err := OS{}.Map(filepath.Join(dir, "f"))
	if err != nil || string(m.Bytes()) != "12345" || st.Size != 5 {
		t.Errorf("mapped: %v %v", st, err)
	}
	m.Close()
	if _, _, err := (OS{}).Map(filepath.Join(dir, "fifo")); !errors.Is(err, ErrNotRegular) {
		t.Errorf("a FIFO was mapped: %v", err)
	}
	if _, _, err := ReadFile(OS{}, filepath.Join(dir, "f"), 4); !errors.Is(err, ErrTooLarge) {
		t.Errorf("over the limit: %v", err)
	}
}

func TestMkdirAllAndSync(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b", "c")
	for range 2 {
		if err := MkdirAll(OS{}, path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := (OS{}).SyncDir(path); err != nil {
		t.Error(err)
	}
	os.WriteFile(filepath.Join(path, "f"), nil, 0o600)
	if err := MkdirAll(OS{}, filepath.Join(path, "f"), 0o700); err == nil {
		t.Error("a file passes for a folder")
	}
	if names, err := (OS{}).ReadDir(path); err != nil || len(names) != 1 || names[0] != "f" {
		t.Errorf("%v %v", names, err)
	}
}

func TestNowIsTheDisksAndLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	before, _ := OS{}.Stat(dir)
	now, err := OS{}.Now(dir)
	if err != nil || time.Since(now).Abs() > time.Minute {
		t.Errorf("%v %v", now, err)
	}
	named, err := namedNow(dir)
	if err != nil || named.Sub(now).Abs() > time.Minute {
		t.Errorf("%v %v", named, err)
	}
	if names, _ := (OS{}).ReadDir(dir); len(names) > 0 {
		t.Errorf("left %v", names)
	}
	if _, err := (OS{}).Now(filepath.Join(dir, "none")); err == nil {
		t.Error("a folder that is not there has a clock")
	}
	if runtime.GOOS == "linux" {
		OS{}.Chtimes(dir, before.ModTime)
		OS{}.Now(dir)
		if after, _ := (OS{}).Stat(dir); !after.ModTime.Equal(before.ModTime) {
			t.Error("asking for the time changed the folder")
		}
	}
}
