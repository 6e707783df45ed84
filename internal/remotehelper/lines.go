package remotehelper

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
)

// maxLine bounds a command. A ref name that travels in a packet has 64 KiB at most.
const maxLine = 1 << 20

var errLongLine = errors.New("a command that is too long")

// lines reads commands ahead of those who want them, and so learns at once when git goes away.
type lines struct {
	ch   chan string
	done chan struct{} // closed at the end, when err is set
	err  error
}

func newLines(r io.Reader) *lines {
	l := &lines{ch: make(chan string, 1), done: make(chan struct{})}
	go l.read(bufio.NewReader(r))
	return l
}

func (l *lines) read(r *bufio.Reader) {
	defer close(l.done)
	for {
		line, err := readLine(r)
		if err != nil {
			l.err = err
			return
		}
		l.ch <- line
	}
}

// readLine is the next line without its end. A last one that has none is no command.
func readLine(r *bufio.Reader) (string, error) {
	var b []byte
	for {
		part, err := r.ReadSlice('\n')
		b = append(b, part...)
		switch {
		case err == nil:
			return strings.TrimSuffix(string(b), "\n"), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return "", err
		case len(b) > maxLine:
			return "", errLongLine
		}
	}
}

// next is the next command; io.EOF after the last.
func (l *lines) next(ctx context.Context) (string, error) {
	select {
	case line := <-l.ch:
		return line, nil
	default:
	}
	select {
	case line := <-l.ch:
		return line, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	case <-l.done:
	}
	select { // what came before the end
	case line := <-l.ch:
		return line, nil
	default:
		return "", l.err
	}
}

// watch ends the context when git goes away: while it waits for an answer it has nothing to say, so
// an end of its commands is its own.
func (l *lines) watch(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-l.done:
			cancel(errGone)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}
