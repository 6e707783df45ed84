//go:build unix

package vfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestMissing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	os.WriteFile(file, nil, 0o600)
	for _, path := range []string{file + ".none", filepath.Join(file, "below")} {
		if _, err := os.Stat(path); !Missing(err) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if Missing(fs.ErrPermission) || Missing(nil) {
		t.Error("something else than absence")
	}
}

func TestEnter(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	os.WriteFile(file, nil, 0o600)
	if err := Enter(dir); err != nil {
		t.Error(err)
	}
	if err := Enter(file); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("a file that can't be run: %v", err)
	}
	if err := Enter(file + ".none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	os.Chmod(file, 0o700)
	if err := Enter(file); err != nil {
		t.Error(err)
	}
}

func TestDevice(t *testing.T) {
	dir := t.TempDir()
	os.Mkdir(filepath.Join(dir, "sub"), 0o700)
	a, err := Device(dir)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := Device(filepath.Join(dir, "sub")); err != nil || a != b {
		t.Errorf("one file system has two numbers: %v", err)
	}
	if p, err := Device("/proc"); err == nil && p == a {
		t.Error("two file systems have one number")
	}
	if _, err := Device(filepath.Join(dir, "none")); !Missing(err) {
		t.Errorf("%v", err)
	}
}
