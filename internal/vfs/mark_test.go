package vfs

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

func TestAMarkTellsStatesApart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("one"), 0o644); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-time.Hour).Truncate(time.Second)
	set := func() {
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	mark := func() ([]byte, time.Time) {
		st, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		return Mark(nil, st)
	}
	set()
	first, newest := mark()
	if again, _ := mark(); !bytes.Equal(first, again) {
		t.Error("a file that nobody touched has two marks")
	}
	if runtime.GOOS == "windows" {
		return // without the inode's time, who sets the time back isn't seen
	}
	if newest.Before(old.Add(time.Minute)) {
		t.Errorf("newest is %v: the change of the times was an hour later", newest)
	}
	time.Sleep(20 * time.Millisecond) // as coarse as file systems are here
	if err := os.WriteFile(path, []byte("two"), 0o644); err != nil {
		t.Fatal(err)
	}
	set()
	if again, _ := mark(); bytes.Equal(first, again) {
		t.Error("same size, same inode, the time set back: the mark is the same")
	}
}
