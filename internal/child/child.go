// Package child runs programs that may hang, and ends them together with what they have started.
//
// To end a program is not enough: what a shell has started lives on, and holds the pipe that we read.
package child

import (
	"context"
	"io"
	"os/exec"
	"time"
)

// grace is how long programs may take to end that were asked to.
var grace = time.Second

// Run runs a program and has read take in what it prints, to the end. The program is in a process group of its
// own, where there are such, so that a Ctrl-C doesn't reach it: when the context ends, or read fails, the whole group is
// asked to end, and soon is killed. Nobody is waited for after that, whoever still holds the pipe; read may then go
// on for a while, and what it gives is forgotten. The error is read's, the context's cause, or says how the program ended.
func Run[T any](ctx context.Context, cmd *exec.Cmd, read func(io.Reader) (T, error)) (T, error) {
	var nothing T
	if ctx.Err() != nil {
		return nothing, context.Cause(ctx)
	}
	ownGroup(cmd)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nothing, err
	}
	if err := cmd.Start(); err != nil {
		return nothing, err
	}
	type answer struct {
		value T
		err   error
	}
	answers, closed := make(chan answer, 1), make(chan struct{})
	go func() {
		defer close(closed)
		v, err := read(out)
		answers <- answer{v, err}
		io.Copy(io.Discard, out)
	}()
	exited := make(chan error, 1)
	wait := func() { exited <- cmd.Wait() } // it closes the pipe, too
	var a answer
	select {
	case a = <-answers:
	case <-ctx.Done():
		end(cmd, wait, closed, exited)
		return nothing, context.Cause(ctx)
	}
	if a.err != nil {
		end(cmd, wait, closed, exited)
		return nothing, a.err
	}
	go wait()
	select {
	case err := <-exited:
		if err != nil {
			return nothing, err
		}
		return a.value, nil
	case <-ctx.Done():
		end(cmd, func() {}, nil, exited)
		return nothing, context.Cause(ctx)
	}
}

// end ends a program's group. closed tells that nobody holds the pipe any more, exited that the program has ended;
// wait waits for that, unless somebody does already.
func end(cmd *exec.Cmd, wait func(), closed <-chan struct{}, exited <-chan error) {
	terminate(cmd)
	select {
	case <-closed:
	case <-exited:
		kill(cmd) // what it has left behind
		return
	case <-time.After(grace):
	}
	kill(cmd)
	go wait()
	select {
	case <-exited:
	case <-time.After(grace): // it can't be killed, as in a system call that hangs
	}
}
