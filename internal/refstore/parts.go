package refstore

import (
	"bytes"
	"context"
	"errors"
	"io"
	"reflect"
	"sort"
	"sync"

	"refaudit/finding"
	"refaudit/internal/refname"
	"refaudit/packed"
)

// Where nobody wants the records of a packed-refs file, but only to hear what is wrong with it, its parts are
// looked at side by side: if each is sound by itself and they fit together, so is the file. One of which there is
// anything to tell is read from front to back as ever, so that all is told in its order.

// partLeast is the least size of a part, in bytes. Tests make it smaller.
var partLeast int64 = 512 << 10

// errOdd ends the reading of a part about which there is something to tell.
var errOdd = errors.New("not sound")

// part is one part of a packed-refs file, with the loose refs whose names fall into it.
type part struct {
	from, to int64
	first    []byte // the name in its first line; nil for the first part
	loose    []looseRef

	sum  packed.Summary
	refs int64
	// The names of the part that its last name begins with, itself included: later ones may lie below them.
	open [][]byte
	edge edge
}

// sound tells whether the file has nothing to tell of, and then has counted its refs.
func (p *packedVisit) sound(f io.ReaderAt, size int64) bool {
	n := min(int64(p.o.Workers), size/partLeast)
	if p.each != nil || n < 2 {
		return false
	}
	parts, ok := p.cut(f, size, n)
	if !ok {
		return false
	}
	ctx, cancel := context.WithCancel(p.ctx)
	defer cancel()
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range parts {
		wg.Go(func() {
			if errs[i] = p.look(ctx, f, &parts[i]); errs[i] != nil {
				cancel() // for the others there is nothing left to find out
			}
		})
	}
	wg.Wait()
	if errors.Join(errs...) != nil || !fit(parts) {
		return false
	}
	whole := packed.Summary{Header: parts[0].sum.Header, Size: size, Sorted: true}
	for i := range parts {
		whole.Lines += parts[i].sum.Lines
		whole.Refs += parts[i].sum.Refs
		whole.Peels += parts[i].sum.Peels
		p.sum.Refs += parts[i].refs
	}
	p.sum.Packed = &whole
	p.over.at = len(p.over.loose)
	return true
}

// cut makes n parts of about the same size; false where a line at a cut is not a ref's.
func (p *packedVisit) cut(f io.ReaderAt, size, n int64) ([]part, bool) {
	parts := make([]part, n)
	loose := p.over.loose
	for i := range parts[1:] {
		at, name := lineAt(f, size/n*int64(i+1), p.repo.Format.HexLen())
		if name == nil || at <= parts[i].from || i > 0 && bytes.Compare(parts[i].first, name) >= 0 {
			return nil, false
		}
		below := sort.Search(len(loose), func(j int) bool { return loose[j].name >= string(name) })
		parts[i].loose, loose = loose[:below], loose[below:]
		parts[i].to = at
		parts[i+1].from, parts[i+1].first = at, name
	}
	parts[n-1].to, parts[n-1].loose = size, loose
	return parts, true
}

// lineAt finds the first line of a ref that begins behind an offset: where it does, and the name in it; nil if
// that can't be told.
func lineAt(f io.ReaderAt, after int64, digits int) (at int64, name []byte) {
	var buf [4 << 10]byte
	n, err := f.ReadAt(buf[:], after)
	if err != nil && err != io.EOF {
		return 0, nil
	}
	rest := buf[:n]
	for {
		eol := bytes.IndexByte(rest, '\n')
		if eol < 0 || eol+1 == len(rest) {
			return 0, nil
		}
		if rest = rest[eol+1:]; rest[0] != '^' {
			break
		}
	}
	eol := bytes.IndexByte(rest, '\n')
	if eol < digits+2 {
		return 0, nil
	}
	return after + int64(n-len(rest)), bytes.Clone(rest[digits+1 : eol])
}

// look reads one part. The error is nil if it is sound.
func (p *packedVisit) look(ctx context.Context, f io.ReaderAt, one *part) error {
	var sum Summary
	report := func(finding.Finding) error { return errOdd }
	q := &packedVisit{names: newConflicts(), over: overlay{loose: one.loose}, label: p.label, header: p.header,
		visit: &visit{ctx: ctx, repo: p.repo, place: p.place, o: p.o, sum: &sum, report: report}}
	isPart := one.first != nil
	if isPart {
		one.edge.first = one.first
		q.names.edge = &one.edge
	}
	var err error
	one.sum, err = packed.Read(io.NewSectionReader(f, one.from, one.to-one.from), one.to-one.from, p.repo.Format,
		packed.Options{File: p.label, Severity: p.o.Severity, Part: isPart}, report, func(e *packed.Entry) error {
			if len(q.names.lower) > 0 {
				return errOdd // a name in another part may differ from it only in case
			}
			return q.entry(e)
		})
	if err == nil {
		err = q.over.rest(q.pass)
	}
	if err != nil {
		return err
	}
	s := &one.sum
	plain := packed.Summary{Header: s.Header, Size: s.Size, Lines: s.Lines, Refs: s.Refs, Peels: s.Peels, Sorted: true}
	if q.over.unsorted || len(q.names.lower) > 0 || len(sum.Unread) > 0 || !reflect.DeepEqual(*s, plain) {
		return errOdd
	}
	one.refs = sum.Refs
	for _, n := range q.names.folders {
		one.open = append(one.open, q.names.prev[:n])
	}
	one.open = append(one.open, q.names.prev)
	return nil
}

// fit tells whether sound parts make a sound whole: the names rise from one to the next, and none of a
// part lies below one of an earlier part.
func fit(parts []part) bool {
	var open [][]byte // names of earlier parts that the last name before begins with
	for i := range parts {
		one := &parts[i]
		if i > 0 {
			last := parts[i-1].open[len(parts[i-1].open)-1]
			if bytes.Compare(last, one.first) >= 0 {
				return false
			}
			for _, name := range open {
				if one.edge.below(name) {
					return false
				}
			}
		}
		last := one.open[len(one.open)-1]
		kept := one.open
		for _, name := range open {
			if bytes.HasPrefix(last, name) {
				kept = append(kept, name)
			}
		}
		open = kept
	}
	return true
}

// An edge watches names in order for those that lie below a name that the first of them begins with: "a/b" and
// "a-c" come behind "a", and only the first can't stand beside it.
type edge struct {
	first   []byte
	begun   bool
	common  int   // how many bytes the name before has in common with the first
	lengths []int // of beginnings of the first that are folders of some name
}

// add takes the next name, which has so many bytes in common with the one before.
func (e *edge) add(name []byte, same int) {
	switch {
	case !e.begun:
		e.begun, e.common = true, refname.CommonPrefix(e.first, name)
		for i := range e.common {
			if name[i] == '/' {
				e.lengths = append(e.lengths, i)
			}
		}
	case same < e.common:
		e.common = same
	}
	if e.common < len(name) && name[e.common] == '/' {
		if n := len(e.lengths); n == 0 || e.lengths[n-1] != e.common {
			e.lengths = append(e.lengths, e.common)
		}
	}
}

// below tells whether some name lies below this one, which comes before the first.
func (e *edge) below(name []byte) bool {
	if !bytes.HasPrefix(e.first, name) {
		return false // nor does any other begin with it
	}
	for _, n := range e.lengths {
		if n == len(name) {
			return true
		}
	}
	return false
}
