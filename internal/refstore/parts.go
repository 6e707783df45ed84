package refstore

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"reflect"
	"slices"
	"sort"
	"sync"

	"refaudit/finding"
	"refaudit/internal/refname"
	"refaudit/packed"
	"refaudit/reftable"
)

// Where nobody wants the records of a store, but only to hear what is wrong with it, its parts are looked at side by
// side: if each is sound by itself and they fit together, so is the whole. One of which there is anything to tell
// is read from front to back as ever, so that all is told in its order.

// partLeast is the least size of a part, in bytes. Tests make it smaller.
var partLeast int64 = 512 << 10

// errOdd ends the reading of a part about which there is something to tell.
var errOdd = errors.New("not sound")

func odd(finding.Finding) error { return errOdd }

// part is what is found of one part of a store by itself: of the refs with names from first on, up to the next part's.
type part struct {
	first []byte // nil: of the first part
	names *conflicts
	sum   Summary
	edge  edge
}

// quiet is a visit that has nothing to do with v's but what it reads; it ends where there is something to tell.
func (v *visit) quiet(ctx context.Context, one *part) *visit {
	one.names = newConflicts()
	if one.first != nil {
		one.edge.first = one.first
		one.names.edge = &one.edge
	}
	return &visit{ctx: ctx, repo: v.repo, place: v.place, o: v.o, sum: &one.sum, report: odd}
}

// unsure tells whether names of the part may differ only in case from names of another.
func (one *part) unsure() bool { return len(one.names.lower) > 0 }

// allSound does all that there is to do, side by side; false if any of it finds something odd.
func (v *visit) allSound(tasks []func(context.Context) error) bool {
	ctx, cancel := context.WithCancel(v.ctx)
	defer cancel()
	errs := make([]error, len(tasks))
	run := func(i int) {
		if errs[i] = tasks[i](ctx); errs[i] != nil {
			cancel() // for the others there is nothing left to find out
		}
	}
	var wg sync.WaitGroup
	for i := 1; i < len(tasks); i++ {
		wg.Go(func() { run(i) })
	}
	run(0)
	wg.Wait()
	return errors.Join(errs...) == nil
}

// packedPart is a part of a packed-refs file, with the loose refs whose names fall into it.
type packedPart struct {
	part
	from, to int64
	loose    []looseRef
	read     packed.Summary
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
	var tasks []func(context.Context) error
	var all []*part
	for i := range parts {
		tasks = append(tasks, func(ctx context.Context) error { return p.look(ctx, f, &parts[i]) })
		all = append(all, &parts[i].part)
	}
	if !p.allSound(tasks) || !fit(all) {
		return false
	}
	whole := packed.Summary{Header: parts[0].read.Header, Size: size, Sorted: true}
	for i := range parts {
		whole.Lines += parts[i].read.Lines
		whole.Refs += parts[i].read.Refs
		whole.Peels += parts[i].read.Peels
		p.sum.Refs += parts[i].sum.Refs
	}
	p.sum.Packed = &whole
	p.over.at = len(p.over.loose)
	return true
}

// cut makes n parts of about the same size; false where a line at a cut is not a ref's.
func (p *packedVisit) cut(f io.ReaderAt, size, n int64) ([]packedPart, bool) {
	parts := make([]packedPart, n)
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
func (p *packedVisit) look(ctx context.Context, f io.ReaderAt, one *packedPart) error {
	q := &packedVisit{visit: p.quiet(ctx, &one.part), names: one.names, over: overlay{loose: one.loose}, label: p.label, header: p.header}
	o := packed.Options{File: p.label, Severity: p.o.Severity, Part: one.first != nil}
	var err error
	one.read, err = packed.Read(io.NewSectionReader(f, one.from, one.to-one.from), one.to-one.from, p.repo.Format, o, odd, func(e *packed.Entry) error {
		if one.unsure() {
			return errOdd
		}
		return q.entry(e)
	})
	if err == nil {
		err = q.over.rest(q.pass)
	}
	if err != nil {
		return err
	}
	s := &one.read
	plain := packed.Summary{Header: s.Header, Size: s.Size, Lines: s.Lines, Refs: s.Refs, Peels: s.Peels, Sorted: true}
	if q.over.unsorted || one.unsure() || len(one.sum.Unread)+len(one.sum.Refused) > 0 || !reflect.DeepEqual(*s, plain) {
		return errOdd
	}
	return nil
}

// sound tells whether the tables have nothing to tell of, and then has counted their refs.
func (w *tableVisit) sound() bool {
	if w.each != nil || w.o.Deep || w.place.prefix != "" || len(w.tables) == 0 {
		return false
	}
	largest := slices.MaxFunc(w.tables, func(a, b *reftable.Table) int { return cmp.Compare(a.Size(), b.Size()) })
	n := min(int64(w.o.Workers), largest.Size()/partLeast)
	if n < 2 {
		return false
	}
	cuts := largest.Split(int(n))
	if cuts == nil {
		return false
	}
	for _, t := range w.tables {
		t.Damage = func(*finding.Corrupt) error { return errOdd }
	}
	parts := make([]tablePart, n)
	var tasks []func(context.Context) error
	var all []*part
	for i := range parts {
		one := &parts[i]
		if i > 0 {
			one.first = cuts[i-1]
		}
		if i < len(cuts) {
			one.end = cuts[i]
		}
		all = append(all, &one.part)
		tasks = append(tasks, func(ctx context.Context) error { return w.look(ctx, one) })
	}
	if !w.allSound(tasks) || !fit(all) {
		return false
	}
	var read []*reftable.Stretch
	head := false
	for i := range parts {
		read = append(read, parts[i].read)
		head = head || parts[i].head
	}
	if !head {
		return false // that is to be told of
	}
	if whole, err := reftable.JudgeStretches(read, odd); !whole || err != nil {
		return false
	}
	for i := range parts {
		w.sum.Refs += parts[i].sum.Refs
	}
	w.head = true
	return true
}

// tablePart is a part of a stack of tables.
type tablePart struct {
	part
	end  []byte // the first name of the next part; nil: this is the last
	head bool   // HEAD was met
	read *reftable.Stretch
}

// look reads one part. The error is nil if it is sound.
func (w *tableVisit) look(ctx context.Context, one *tablePart) error {
	q := &tableVisit{visit: w.quiet(ctx, &one.part), tables: w.tables, names: one.names}
	one.read = reftable.MergeStretch(w.tables, one.first, one.end)
	for one.read.Next() {
		if q.n++; q.n&0xfff == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		if err := q.record(one.read.Merged); err != nil {
			return err
		}
		if one.unsure() {
			return errOdd
		}
	}
	if err := one.read.Err(); err != nil {
		return err
	}
	if len(one.sum.Unread) > 0 {
		return errOdd
	}
	one.head = q.head
	return nil
}

// fit tells whether sound parts make a sound whole: the names rise from one to the next, and none of a
// part lies below one of an earlier part.
func fit(parts []*part) bool {
	var open [][]byte // names so far that the last one begins with, itself included
	for _, one := range parts {
		for i, name := range open {
			if i == len(open)-1 && bytes.Compare(name, one.first) >= 0 || one.edge.below(name) {
				return false
			}
		}
		last := one.names.prev
		if len(last) == 0 {
			continue // a part without names
		}
		kept := slices.DeleteFunc(open, func(name []byte) bool { return !bytes.HasPrefix(last, name) })
		for _, n := range one.names.folders {
			kept = append(kept, last[:n])
		}
		open = append(kept, last)
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
