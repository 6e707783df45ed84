//go:build unix

package main

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"refaudit/internal/gittest"
)

// What -o names is replaced if it is a file, never if it is a device or a pipe: root would lose /dev/null.
func TestOutputGoesIntoWhatIsNoFile(t *testing.T) {
	r, _ := gittest.Clean(t, gittest.Options{})
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"scan", "-o", pipe}, {"fix", "--yes", "-o", pipe}, {"scan", "--metrics-textfile", pipe}} {
		got := make(chan string)
		go func() {
			f, err := os.Open(pipe)
			if err != nil {
				t.Error(err)
			}
			b, err := io.ReadAll(f)
			if err != nil {
				t.Error(err)
			}
			f.Close()
			got <- string(b)
		}()
		out := command(t, nil, map[string]string{"XDG_STATE_HOME": t.TempDir()}, append(args, r.Path)...)
		st, err := os.Lstat(pipe)
		if err != nil || st.Mode()&fs.ModeNamedPipe == 0 {
			t.Fatalf("%q: what was a pipe is %v: %v", args, st.Mode(), err)
		}
		if text := <-got; out.code != 0 || !strings.Contains(text, "repositor") {
			t.Errorf("%q: exit %d, %q: %s", args, out.code, text, out.err)
		}
	}
}
