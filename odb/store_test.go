package odb

import (
	"os"
	"path/filepath"
	"testing"

	"refaudit/oid"
)

func TestAFolderOfPacksThatCanNotBeListed(t *testing.T) {
	dir := t.TempDir()
	if err := open(t, dir, oid.SHA1).Stores()[0].Unlisted(); err != nil {
		t.Errorf("there is none: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "pack"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if open(t, dir, oid.SHA1).Stores()[0].Unlisted() == nil {
		t.Error("it is a file: all is well")
	}
}
