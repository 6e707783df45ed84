package main

import (
	"bytes"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"refaudit/internal/gittest"
)

// terminal opens a pseudo-terminal: what a person sits at, and what the program has.
func terminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("NOT TESTED, this needs a terminal: %v", err)
	}
	t.Cleanup(func() { person.Close() })
	if err := unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	program, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { program.Close() })
	return person, program
}

// Whatever --jobs says, one repository is asked about at a time, and each question comes after its plan.
func TestFixAsksAboutOneRepositoryAtATime(t *testing.T) {
	a, _ := gittest.Mismatch(t, gittest.Options{})
	b, _ := gittest.Mismatch(t, gittest.Options{})
	person, theirs := terminal(t)
	cmd := program(t, t.TempDir(), nil, "fix", "--jobs=2", a.Path, b.Path)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs, theirs, theirs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	var seen bytes.Buffer
	person.SetReadDeadline(time.Now().Add(20 * time.Second))
	buf := make([]byte, 4096)
	until := func(n int) string {
		t.Helper()
		for strings.Count(seen.String(), "[y/N]") < n {
			k, err := person.Read(buf)
			seen.Write(buf[:k])
			if err != nil {
				t.Fatalf("no question %d: %v\n%s", n, err, seen.String())
			}
		}
		return seen.String()
	}
	if shown := until(1); strings.Contains(shown, b.Path) {
		t.Errorf("the second repository is shown before the first is decided:\n%s", shown)
	}
	time.Sleep(200 * time.Millisecond)
	io.WriteString(person, "y\n")
	shown := until(2)
	if at := strings.Index(shown, "did: "); at < 0 || at > strings.Index(shown, b.Path) {
		t.Errorf("the first repository's repair is not told before the second is asked about:\n%s", shown)
	}
	io.WriteString(person, "n\n")
	go io.Copy(io.Discard, person)
	if code := exitOf(t, cmd.Wait()); code != exitFindings {
		t.Errorf("exit %d", code)
	}
}

// On a terminal fix shows the plan, asks, and does what the answer says.
func TestFixAsksOnATerminal(t *testing.T) {
	for answer, changed := range map[string]bool{"y": true, "yes": true, "n": false, "": false, "what?": false} {
		r, want := gittest.Mismatch(t, gittest.Options{})
		before := string(r.ReadFile("packed-refs"))
		person, theirs := terminal(t)
		cmd := program(t, t.TempDir(), nil, "fix", r.Path)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs, theirs, theirs
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		theirs.Close()
		var seen bytes.Buffer
		person.SetReadDeadline(time.Now().Add(20 * time.Second))
		buf := make([]byte, 4096)
		for !strings.Contains(seen.String(), "[y/N]") {
			n, err := person.Read(buf)
			seen.Write(buf[:n])
			if err != nil {
				t.Fatalf("no question: %v\n%s", err, seen.String())
			}
		}
		if shown := seen.String(); !strings.Contains(shown, "-^"+want[0].Cached.String()) || !strings.Contains(shown, "+^"+want[0].Expected.String()) {
			t.Errorf("the question comes without the change:\n%s", shown)
		}
		if now := string(r.ReadFile("packed-refs")); now != before {
			t.Fatal("it wrote before it was answered")
		}
		io.WriteString(person, answer+"\n")
		go io.Copy(io.Discard, person)
		code := exitOf(t, cmd.Wait())
		now := string(r.ReadFile("packed-refs"))
		if wantCode := map[bool]int{true: 0, false: 1}[changed]; (now != before) != changed || code != wantCode {
			t.Errorf("answer %q: exit %d, changed %v", answer, code, now != before)
		}
	}
}
