//go:build unix

package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
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

// /dev/stdout is a link to what is open already, be it a file: root would lose the link, and whoever appends to a log the log.
func TestOutputGoesIntoWhatIsOpen(t *testing.T) {
	r, _ := gittest.Clean(t, gittest.Options{})
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	f, err := os.OpenFile(log, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	open := filepath.Join("/proc", strconv.Itoa(os.Getpid()), "fd", strconv.Itoa(int(f.Fd())))
	if _, err := os.Stat(open); err != nil {
		t.Skip("there is no /proc here: ", err)
	}
	link, fd := filepath.Join(dir, "stdout"), filepath.Join(dir, "fd")
	for name, to := range map[string]string{link: open, fd: filepath.Dir(open)} {
		if err := os.Symlink(to, name); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.WriteString("before\n"); err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{link, filepath.Join(fd, filepath.Base(open)), open} {
		if out := command(t, nil, nil, "scan", "-o", name, r.Path); out.code != 0 || out.err != "" {
			t.Fatalf("%s: exit %d, %s", name, out.code, out.err)
		}
		text, err := os.ReadFile(log)
		if err != nil || !strings.HasPrefix(string(text), "before\n") || strings.Count(string(text), "repository") != i+1 {
			t.Errorf("%s: %q %v", name, text, err)
		}
	}
	if st, err := os.Lstat(link); err != nil || st.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link is %v: %v", st.Mode(), err)
	}
}

// A link to where reports are kept stays one.
func TestOutputGoesWhereALinkLeads(t *testing.T) {
	r, _ := gittest.Clean(t, gittest.Options{})
	real, link := filepath.Join(t.TempDir(), "real"), filepath.Join(t.TempDir(), "link")
	if err := errors.Join(os.WriteFile(real, []byte("old"), 0o644), os.Symlink(real, link)); err != nil {
		t.Fatal(err)
	}
	out := command(t, nil, nil, "scan", "-o", link, r.Path)
	text, err := os.ReadFile(real)
	if to, e := os.Readlink(link); out.code != 0 || err != nil || e != nil || to != real || !strings.Contains(string(text), "repository") {
		t.Errorf("exit %d, %q %v, link to %q %v", out.code, text, err, to, e)
	}
}

// As with other programs, "-" is standard output.
func TestOutputToADash(t *testing.T) {
	r, _ := gittest.Clean(t, gittest.Options{})
	t.Chdir(t.TempDir())
	want := command(t, nil, nil, "scan", r.Path)
	got := command(t, nil, nil, "scan", "-o", "-", r.Path)
	if got.code != 0 || got.out != want.out || got.out == "" {
		t.Errorf("exit code %d, %q, want %q", got.code, got.out, want.out)
	}
	if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
		t.Errorf("%v is left, error %v", left, err)
	}
}

// Standard output holds the report, and nothing else.
func TestOtherFilesAreNoDash(t *testing.T) {
	r, _ := gittest.Clean(t, gittest.Options{})
	t.Chdir(t.TempDir())
	for _, flag := range []string{"--metrics-textfile", "--write-baseline"} {
		got := command(t, nil, nil, "scan", flag, "-", r.Path)
		if got.code != exitUsage || got.out != "" || !strings.Contains(got.err, flag+" takes a file; one named - is ./-") {
			t.Errorf("%s -: exit %d, %q, %q", flag, got.code, got.out, got.err)
		}
		if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
			t.Errorf("%v is left, error %v", left, err)
		}
		if got := command(t, nil, nil, "scan", flag, "./-", r.Path); got.code != exitOK {
			t.Errorf("%s ./-: exit %d, %q", flag, got.code, got.err)
		}
		if err := os.Remove("-"); err != nil {
			t.Error(err)
		}
	}
}

// Nothing is begun where something else is wrong.
func TestNoFileIsBegunInVain(t *testing.T) {
	r, _ := gittest.Clean(t, gittest.Options{})
	dir := t.TempDir()
	got := command(t, nil, nil, "scan", "-o", filepath.Join(dir, "out"), "--metrics-textfile", filepath.Join(dir, "none", "m"), r.Path)
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 || got.code != exitUsage {
		t.Errorf("exit code %d, %v is left, error %v", got.code, left, err)
	}
}
