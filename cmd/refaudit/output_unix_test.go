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

// small starts a program that may write files of so many blocks of 512 bytes: as on a disk that gets full.
func small(blocks string) []string {
	return []string{"/bin/sh", "-c", `trap "" XFSZ; ulimit -f ` + blocks + `; exec "$@"`, "sh"}
}

// A full disk costs nobody the last good report.
func TestAFileThatCannotBeWrittenIsLeftAsItWas(t *testing.T) {
	r, _ := gittest.Mismatch(t, gittest.Options{})
	for _, blocks := range []string{"0", "1"} {
		for _, c := range []struct {
			command string
			flags   []string
		}{
			{"scan", []string{"-o"}}, {"scan", []string{"--metrics-textfile"}}, {"scan", []string{"--write-baseline"}}, {"scan", []string{"-o", "--metrics-textfile", "--write-baseline"}},
			{"fix", []string{"-o", "--metrics-textfile"}}, {"size", []string{"-o", "--metrics-textfile"}}, {"guard", []string{"-o"}}, {"fingerprint", []string{"-o"}}, {"undo", []string{"-o"}},
		} {
			for _, format := range []string{"text", "jsonl", "sarif", "junit", "html"} {
				if blocks != "0" && (c.command != "scan" || format == "text" || c.flags[0] == "--write-baseline") {
					continue // it has room for that
				}
				if c.command == "fingerprint" && format != "text" && format != "jsonl" || c.command == "undo" && format == "text" {
					continue // there is no such report, or nothing to say in it
				}
				dir := t.TempDir()
				args := []string{c.command, "--format", format}
				for i, flag := range c.flags {
					file := filepath.Join(dir, strconv.Itoa(i))
					if err := os.WriteFile(file, []byte("GOOD\n"), 0o600); err != nil {
						t.Fatal(err)
					}
					args = append(args, flag, file)
				}
				what := r.Path
				if c.command == "undo" {
					what = "20200101T000000Z-0123456789"
				}
				cmd := program(t, t.TempDir(), small(blocks), append(args, what)...)
				var said strings.Builder
				cmd.Stderr = &said
				if err := cmd.Run(); err == nil || cmd.ProcessState.ExitCode() < exitFindings {
					t.Errorf("%q, %s blocks: %v", args, blocks, err)
				}
				left, err := os.ReadDir(dir)
				if err != nil || len(left) != len(c.flags) {
					t.Errorf("%q, %s blocks: %v is left, error %v", args, blocks, left, err)
				}
				for i, flag := range c.flags {
					text, err := os.ReadFile(filepath.Join(dir, strconv.Itoa(i)))
					if flag == "--write-baseline" && blocks != "0" { // short enough
						continue
					}
					if err != nil || string(text) != "GOOD\n" {
						t.Errorf("%q, %s blocks: the file of %s is %q, error %v", args, blocks, flag, text, err)
					}
				}
				if named := strings.Contains(said.String(), c.flags[0]+": "); !named || !strings.Contains(said.String(), "too large") {
					t.Errorf("%q, %s blocks: %s", args, blocks, &said)
				}
			}
		}
	}
}
