package remotehelper

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"refaudit/internal/remote"
	"refaudit/oid"
)

// backend does the work behind the protocol.
type backend interface {
	List(ctx context.Context, forPush bool) (*remote.Listing, error)
	// Fetch brings objects into the repository; ready is called when nothing but the move is left,
	// and an error from it ends it. The paths are .keep files that git is to remove.
	Fetch(ctx context.Context, wants []want, o *options, ready func() error) (keeps []string, err error)
	Push(ctx context.Context, refspecs []string, o *options) ([]status, error)
}

// want is one line of a fetch batch.
type want struct {
	id   oid.ID
	name string // a ref, or the id again
}

// session speaks the protocol of gitremote-helpers: commands in, answers out.
//
//	capabilities            -> one a line, blank line
//	option <name> <value>   -> ok | unsupported | error <why>
//	list [for-push]         -> <value> SP <name>, one a line, blank line
//	fetch <id> <name>       -> [lock <path>] blank line, after a batch that a blank line ends
//	push [+]<src>:<dst>     -> ok <dst> | error <dst> <why>, blank line, after such a batch
//	blank line              -> the end
type session struct {
	in      *lines
	out     io.Writer
	backend backend
	options options
}

// capabilities: with connect or stateless-connect git would fetch by itself, with
// check-connectivity it would take our word for what it can check.
const capabilities = "fetch\noption\npush\nobject-format\n\n"

var (
	errProtocol = errors.New("not a command of the remote helper protocol")
	// errGone is git having gone away while it was to wait for us.
	errGone = errors.New("git has gone away")
)

func (s *session) serve(ctx context.Context) error {
	for {
		line, err := s.in.next(ctx)
		if err == io.EOF || err == nil && line == "" {
			return nil
		}
		if err != nil {
			return err
		}
		if err := s.command(ctx, line); err != nil {
			return err
		}
	}
}

func (s *session) command(ctx context.Context, line string) error {
	word, rest, _ := strings.Cut(line, " ")
	switch {
	case line == "capabilities":
		return s.say(capabilities)
	case word == "option":
		name, value, _ := strings.Cut(rest, " ")
		return s.say(s.options.set(name, value) + "\n")
	case line == "list":
		return s.list(ctx, false)
	case line == "list for-push":
		return s.list(ctx, true)
	case word == "fetch":
		return s.fetch(ctx, line)
	case word == "push":
		return s.push(ctx, line)
	}
	return fmt.Errorf("%w: %q", errProtocol, line)
}

func (s *session) say(text string) error {
	if _, err := io.WriteString(s.out, text); err != nil {
		return fmt.Errorf("%w: %w", errGone, err)
	}
	return nil
}

// list tells git what there is. A symref is told only where its target is; a mirror push would
// delete what is told beside the refs themselves.
func (s *session) list(ctx context.Context, forPush bool) error {
	list, err := s.backend.List(ctx, forPush)
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for i := range list.Refs {
		known[list.Refs[i].Name] = true
	}
	w := bufio.NewWriter(s.out)
	if s.options.objectFormat && list.Format != 0 {
		fmt.Fprintf(w, ":object-format %v\n", list.Format)
	}
	for i := range list.Refs {
		r := &list.Refs[i]
		switch {
		case forPush && !strings.HasPrefix(r.Name, "refs/"):
			continue
		case r.Symref != "" && known[r.Symref] && !forPush:
			fmt.Fprintf(w, "@%s %s\n", r.Symref, r.Name)
		default:
			fmt.Fprintf(w, "%v %s\n", r.OID, r.Name)
		}
		if !r.Peel.IsZero() && !forPush {
			fmt.Fprintf(w, "%v %s^{}\n", r.Peel, r.Name)
		}
	}
	w.WriteByte('\n')
	if err := w.Flush(); err != nil {
		return fmt.Errorf("%w: %w", errGone, err)
	}
	return nil
}

// batch reads the rest of a batch of one command, up to the blank line.
func (s *session) batch(ctx context.Context, first string) ([]string, error) {
	word, rest, _ := strings.Cut(first, " ")
	all := []string{rest}
	for {
		line, err := s.in.next(ctx)
		if err != nil {
			return nil, fmt.Errorf("in a batch of %s: %w", word, noEOF(err))
		}
		if line == "" {
			return all, nil
		}
		again, rest, _ := strings.Cut(line, " ")
		if again != word {
			return nil, fmt.Errorf("%w: %q in a batch of %s", errProtocol, line, word)
		}
		all = append(all, rest)
	}
}

func noEOF(err error) error {
	if err == io.EOF {
		return errGone
	}
	return err
}

func (s *session) fetch(ctx context.Context, first string) error {
	batch, err := s.batch(ctx, first)
	if err != nil {
		return err
	}
	wants := make([]want, len(batch))
	for i, text := range batch {
		hex, name, _ := strings.Cut(text, " ")
		if wants[i].id, err = oid.Parse(hex); err != nil {
			return fmt.Errorf("fetch: %w", err)
		}
		wants[i].name = name
	}
	ctx, stop := s.in.watch(ctx)
	defer stop()
	keeps, err := s.backend.Fetch(ctx, wants, &s.options, func() error { return context.Cause(ctx) })
	if err != nil {
		return err
	}
	answer := ""
	if len(keeps) > 0 {
		answer = "lock " + keeps[0] + "\n" // git takes one; the others go when we go
	}
	return s.say(answer + "\n")
}

func (s *session) push(ctx context.Context, first string) error {
	batch, err := s.batch(ctx, first)
	if err != nil {
		return err
	}
	ctx, stop := s.in.watch(ctx)
	defer stop()
	rows, err := s.backend.Push(ctx, batch, &s.options)
	s.options.endPush()
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, row := range rows {
		b.WriteString(row.line())
	}
	return s.say(b.String() + "\n")
}
