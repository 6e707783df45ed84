//go:build unix

package repo

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// An include that is a FIFO would never end: it is not followed, and said so.
func TestAnIncludedFIFOIsNotOpened(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{"objects", "refs"} {
		os.Mkdir(filepath.Join(dir, d), 0o755)
	}
	os.WriteFile(filepath.Join(dir, "HEAD"), []byte("ref: refs/heads/main\n"), 0o644)
	os.WriteFile(filepath.Join(dir, "config"), []byte("[include]\npath = fifo\npath = /dev/zero\npath = /dev/null\n[core]\nx = y\n"), 0o644)
	if err := unix.Mkfifo(filepath.Join(dir, "fifo"), 0o644); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	var r *Repo
	go func() {
		var err error
		r, err = Open(dir, Options{Env: EmptyEnv})
		done <- err
	}()
	select {
	case err := <-done:
		if err != nil || len(r.Config.Refused) != 2 {
			t.Errorf("%v", err)
		}
		if _, set := r.Config.Get("core.x"); !set {
			t.Error("what stands behind the include was lost")
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it hangs")
	}
}
