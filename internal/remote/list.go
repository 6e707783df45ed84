package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"refaudit/internal/refname"
	"refaudit/oid"
)

// Ref is one ref as a server advertises it.
type Ref struct {
	Name   string
	OID    oid.ID
	Peel   oid.ID // of the line NAME^{}; zero: there is none
	Symref string // the ref that it stands for, where the server tells; else ""
}

// Listing is what a server advertises.
type Listing struct {
	Format oid.Format // of its ids; 0: it advertises none
	Refs   []Ref      // in the order of the server
	// Unusable is what the server advertises besides, and no git would use.
	Unusable []Unusable
}

// Unusable is a line of a listing that can't be used.
type Unusable struct {
	Line string
	// Name is a name that git refuses; "" if the line is none of a ref.
	Name string
}

// List asks the server for its refs. The client's own repository gives the configuration, and
// nothing in it is changed. plain leaves out HEAD and what is peeled.
func (r *Remote) List(ctx context.Context, plain bool) (*Listing, error) {
	args := []string{"ls-remote", "--symref"}
	if plain {
		args = append(args, "--refs")
	}
	args = append(append(args, r.service("uploadpack", "--upload-pack")...), "--", r.URL.text)
	var list Listing
	parser := listParser{list: &list}
	err := r.run(ctx, child{env: r.client, args: args, stdout: &parser})
	if err = errors.Join(err, parser.end()); err != nil {
		return nil, err
	}
	return &list, nil
}

// service is the option that names the server's program, where the client's configuration has one for the remote.
func (r *Remote) service(variable, option string) []string {
	if r.o.Name == "" {
		return nil
	}
	if program, set := r.settings.Get("remote." + r.o.Name + "." + variable); set {
		return []string{option + "=" + program}
	}
	return nil
}

// maxListLine bounds a line of a listing: an id and a name, which travel in a packet of 64 KiB.
const maxListLine = 1 << 17

var errListLine = errors.New("git ls-remote: a line without an end")

// listParser takes the output of git ls-remote --symref as it comes:
//
//	ref: refs/heads/main TAB HEAD
//	<id> TAB HEAD
//	<id> TAB refs/tags/v1
//	<id> TAB refs/tags/v1^{}
type listParser struct {
	list    *Listing
	rest    []byte            // a line whose end has not come yet
	symrefs map[string]string // that wait for their ref
	err     error
}

func (p *listParser) Write(b []byte) (int, error) {
	n := len(b)
	for p.err == nil {
		line, after, found := bytes.Cut(b, []byte("\n"))
		if !found {
			p.rest = append(p.rest, b...)
			if len(p.rest) > maxListLine {
				p.err = errListLine
			}
			break
		}
		if len(p.rest) > 0 {
			line = append(p.rest, line...)
			p.rest = p.rest[:0]
		}
		p.err = p.line(string(line))
		b = after
	}
	return n, p.err
}

// end tells what was wrong with the output as a whole.
func (p *listParser) end() error {
	if p.err == nil && len(p.rest) > 0 {
		return errListLine
	}
	if p.err != nil && !errors.Is(p.err, io.EOF) {
		return p.err
	}
	return nil
}

func (p *listParser) line(line string) error {
	value, name, ok := strings.Cut(line, "\t")
	if !ok {
		p.unusable(line, "")
		return nil
	}
	if target, ok := strings.CutPrefix(value, "ref: "); ok {
		if p.symrefs == nil {
			p.symrefs = map[string]string{}
		}
		if refname.Valid([]byte(target), 0) {
			p.symrefs[name] = target
		}
		return nil
	}
	id, err := oid.Parse(value)
	if err != nil {
		p.unusable(line, "")
		return nil
	}
	if p.list.Format == 0 {
		p.list.Format = id.Format()
	}
	if id.Format() != p.list.Format {
		return fmt.Errorf("the remote mixes ids of %v and %v", p.list.Format, id.Format())
	}
	if base, peeled := strings.CutSuffix(name, "^{}"); peeled {
		if n := len(p.list.Refs); n > 0 && p.list.Refs[n-1].Name == base {
			p.list.Refs[n-1].Peel = id
		} else {
			p.unusable(line, "")
		}
		return nil
	}
	if !refname.Valid([]byte(name), refname.AllowOneLevel) {
		p.unusable(line, name)
		return nil
	}
	p.list.Refs = append(p.list.Refs, Ref{Name: name, OID: id, Symref: p.symrefs[name]})
	return nil
}

// maxUnusable is how many unusable lines are kept.
const maxUnusable = 100

func (p *listParser) unusable(line, name string) {
	if len(p.list.Unusable) < maxUnusable {
		p.list.Unusable = append(p.list.Unusable, Unusable{line, name})
	}
}

// FormatOfEmpty is the object format of a remote without refs. Only a clone learns it.
func (r *Remote) FormatOfEmpty(ctx context.Context) (oid.Format, error) {
	s, err := r.NewScratch(TempDir(), "refaudit-empty-", ScratchOptions{Format: oid.SHA1})
	if err != nil {
		return 0, err
	}
	format, err := r.formatByClone(ctx, filepath.Join(s.Dir, "clone.git"), filepath.Join(s.Dir, "config"))
	return format, errors.Join(err, s.Remove())
}

func (r *Remote) formatByClone(ctx context.Context, dir, config string) (oid.Format, error) {
	quiet := *r
	quiet.o.Stderr = io.Discard // it warns of an empty repository
	args := []string{"-c", "include.path=" + config, "clone", "-q", "--bare", "--template=", "--no-tags"}
	args = append(append(args, r.service("uploadpack", "--upload-pack")...), "--", r.URL.text, dir)
	if err := quiet.run(ctx, child{env: r.scratch, args: args}); err != nil {
		return 0, err
	}
	out, err := r.output(ctx, r.scratch, "--git-dir="+dir, "rev-parse", "--show-object-format")
	if err != nil {
		return 0, err
	}
	word := strings.TrimSpace(string(out))
	format, ok := oid.ParseFormat(word)
	if !ok {
		return 0, fmt.Errorf("the remote has the object format %q, which is not known here", word)
	}
	return format, nil
}
