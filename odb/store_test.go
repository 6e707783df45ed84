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

// A file that can't be looked at may be a pack's; one that is gone is none.
func TestAPackThatCanNotBeLookedAt(t *testing.T) {
	for _, ext := range []string{"pack", "idx"} {
		dir := t.TempDir()
		b := newBuilder(oid.SHA1)
		id := b.whole(oid.Blob, []byte("x"))
		b.write(t, dir, "pack-x", 2)
		path := filepath.Join(dir, "pack", "pack-x."+ext)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join(dir, "nothing"), path); err != nil {
			t.Skip(err)
		}
		if db := open(t, dir, oid.SHA1); db.Stores()[0].Unlisted() != nil || lookOne(t, db, id).State != oid.Absent {
			t.Errorf("%s: what is gone is not nothing", ext)
		}
		os.Remove(path)
		if err := os.Symlink(path, path); err != nil {
			t.Fatal(err)
		}
		db := open(t, dir, oid.SHA1)
		if got := lookOne(t, db, id); db.Stores()[0].Unlisted() == nil || got.State == oid.Absent || len(db.Problems()) == 0 {
			t.Errorf("%s: %+v, problems %v", ext, got, db.Problems())
		}
	}
}

func TestHalfAPackIsNamed(t *testing.T) {
	for _, ext := range []string{"pack", "idx"} {
		dir := t.TempDir()
		newBuilder(oid.SHA1).write(t, dir, "pack-x", 2)
		if got := open(t, dir, oid.SHA1).Stores()[0].Half(); got != "" {
			t.Errorf("a whole one: %q", got)
		}
		os.Remove(filepath.Join(dir, "pack", "pack-x."+ext))
		want := map[string]string{"pack": "pack/pack-x.idx", "idx": "pack/pack-x.pack"}[ext]
		if got := open(t, dir, oid.SHA1).Stores()[0].Half(); got != want {
			t.Errorf("without %s: %q, want %q", ext, got, want)
		}
	}
}
