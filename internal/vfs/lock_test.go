package vfs

import (
	"errors"
	"path/filepath"
	"testing"
)

func TestALockIsHeldOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	h, err := Hold(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Hold(path); !errors.Is(err, ErrHeld) {
		t.Errorf("a second holder: %v", err)
	}
	if err := h.Release(); err != nil {
		t.Fatal(err)
	}
	again, err := Hold(path)
	if err != nil {
		t.Fatal(err)
	}
	again.Release()
	if _, err := Hold(filepath.Join(path, "below")); err == nil || errors.Is(err, ErrHeld) {
		t.Errorf("no place for a lock: %v", err)
	}
}
