package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
)

// ChildError is a git program that failed, or that a signal ended.
type ChildError struct {
	Command string // such as fetch
	Err     error
	// Stderr is the end of what it said, where that was kept.
	Stderr string
}

func (e *ChildError) Error() string {
	s := fmt.Sprintf("git %s: %v", e.Command, e.Err)
	if why := reasons(e.Stderr); why != "" {
		s += ": " + why
	}
	return s
}

func (e *ChildError) Unwrap() error { return e.Err }

// reasons are the lines that tell most of what went wrong: those that begin with "fatal:", of git here and
// at the other end; without any, the last line.
func reasons(text string) string {
	var fatal []string
	last := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if why, ok := strings.CutPrefix(line, "fatal: "); ok && !slices.Contains(fatal, why) {
			fatal = append(fatal, why)
		}
		if line != "" {
			last = line
		}
	}
	if len(fatal) == 0 {
		return last
	}
	return strings.Join(fatal, "; ")
}

// child is one run of a git program.
type child struct {
	env    []string
	args   []string
	stdin  io.Reader
	stdout io.Writer
}

// grace is how long a program that was told to end may take to do so.
const grace = 5 * time.Second

// run runs a git program to its end. It stays in our process group and session, so that it can
// ask for passwords, and a Ctrl-C reaches it too. When the context ends it is asked to end.
func (r *Remote) run(ctx context.Context, c child) error {
	if r.o.Limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, r.o.Limit, fmt.Errorf("it took longer than %v", r.o.Limit))
		defer cancel()
	}
	args := append(append([]string{}, r.rules...), c.args...)
	if r.o.Trace != nil {
		r.o.Trace(args)
	}
	cmd := exec.CommandContext(ctx, r.o.Program, args...)
	cmd.Dir, cmd.Env = r.o.Dir, c.env
	cmd.Stdin, cmd.Stdout = c.stdin, c.stdout
	heard := &tail{}
	cmd.Stderr = io.MultiWriter(r.o.Stderr, heard)
	if f, ok := r.o.Stderr.(interface{ Fd() uintptr }); ok && f != nil {
		cmd.Stderr = r.o.Stderr // the program sees whether it is a terminal
	}
	cmd.Cancel = func() error {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			return cmd.Process.Kill()
		}
		return nil
	}
	cmd.WaitDelay = grace
	err := cmd.Run()
	if cause := context.Cause(ctx); cause != nil && err != nil {
		err = cause
	}
	if err == nil {
		return nil
	}
	return &ChildError{Command: command(c.args), Err: plain(err), Stderr: heard.String()}
}

// command is git's command among its arguments.
func command(args []string) string {
	for i := 0; i < len(args); i++ {
		switch {
		case args[i] == "-c":
			i++
		case !strings.HasPrefix(args[i], "-"):
			return args[i]
		}
	}
	return ""
}

// plain says of a program that could not be found that it could not, once.
func plain(err error) error {
	if missing := (*exec.Error)(nil); errors.As(err, &missing) {
		return missing.Err
	}
	return err
}

// output is what a short command prints.
func (r *Remote) output(ctx context.Context, env []string, args ...string) ([]byte, error) {
	var out bytes.Buffer
	err := r.run(ctx, child{env: env, args: args, stdout: &out})
	return out.Bytes(), err
}

// tail keeps the end of what is written to it.
type tail struct{ b []byte }

const tailLen = 8 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	if len(t.b) > 2*tailLen {
		t.b = append(t.b[:0], t.b[len(t.b)-tailLen:]...)
	}
	return len(p), nil
}

func (t *tail) String() string { return string(t.b) }
