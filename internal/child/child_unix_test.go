//go:build unix

package child

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func text(r io.Reader) (string, error) {
	b, err := io.ReadAll(r)
	return string(b), err
}

// begun gives what the first line is, and goes on to the end.
func begun(ready chan<- struct{}) func(io.Reader) (string, error) {
	return func(r io.Reader) (string, error) {
		if _, err := r.Read(make([]byte, 9)); err != nil {
			return "", err
		}
		close(ready)
		return text(r)
	}
}

// shell is a command, and a way to tell whether anybody whom it started is left.
func shell(t *testing.T, script string) (cmd *exec.Cmd, left func() bool) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	cmd = exec.Command("sh", "-c", script)
	cmd.ExtraFiles = []*os.File{w} // whoever lives holds it
	return cmd, func() bool {
		w.Close()
		r.SetReadDeadline(time.Now().Add(5 * time.Second))
		_, err := r.Read(make([]byte, 1))
		return err != io.EOF
	}
}

func TestWhatAProgramPrintsAndHowItEnds(t *testing.T) {
	for script, c := range map[string]struct{ out, err string }{
		"echo a; echo b":          {"a\nb\n", ""},
		"":                        {"", ""},
		"echo a; exit 3":          {"", "exit status 3"},
		"(sleep 0.2; echo a) &":   {"a\n", ""}, // to the end of the pipe, as git reads
		"exec >&-; sleep 0.2":     {"", ""},
		"exec >&-; kill -15 $$":   {"", "signal: terminated"},
		"test -z \"$(cat)\"":      {"", ""}, // nothing to read
		"no-such-program; exit 0": {"", ""},
	} {
		cmd, _ := shell(t, script)
		out, err := Run(t.Context(), cmd, text)
		if out != c.out || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%q: %q, error %v", script, out, err)
		}
	}
	if _, err := Run(t.Context(), exec.Command("/no/such/program"), text); err == nil {
		t.Error("a program that is not there ran")
	}
}

// A shell that waits for a child, children that hear no request, and a program that prints nothing any more.
func TestTheEndOfTheContextEndsAll(t *testing.T) {
	why := errors.New("it took too long")
	for _, script := range []string{
		"echo; sleep 1234 #",
		"echo; exec sleep 1234",
		"echo; sleep 1234 & sleep 1234; true",
		"echo; sleep 1234 &",
		"trap '' TERM; echo; sleep 1234; sleep 1234",
		"echo; exec >&-; sleep 1234; true",
		"while :; do echo; done",
	} {
		cmd, left := shell(t, script)
		ctx, cancel := context.WithCancelCause(t.Context())
		ready := make(chan struct{})
		go func() { <-ready; cancel(why) }()
		start := time.Now()
		_, err := Run(ctx, cmd, begun(ready))
		if took := time.Since(start); err != why || took > 10*time.Second {
			t.Errorf("%q: error %v after %v", script, err, took)
		}
		if left() {
			t.Errorf("%q: somebody is left", script)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if _, err := Run(ctx, exec.Command("true"), text); err != why {
		t.Errorf("before the start: error %v", err)
	}
}

// Who prints what can't be read is ended, though more is printed.
func TestAReaderThatGivesUpEndsAll(t *testing.T) {
	why := errors.New("no sense in it")
	for _, script := range []string{"while :; do echo; done", "echo; sleep 1234; true"} {
		cmd, left := shell(t, script)
		_, err := Run(t.Context(), cmd, func(r io.Reader) (int, error) {
			r.Read(make([]byte, 1))
			return 0, why
		})
		if err != why || left() {
			t.Errorf("%q: error %v, or somebody is left", script, err)
		}
	}
}
