package odb

import (
	"context"
	"errors"
	"fmt"

	"refaudit/finding"
	"refaudit/internal/vfs"
	"refaudit/oid"
)

// mendAll answers for the objects that are left when every folder has been read afresh: those
// that were not found, and those whose first copy is damaged.
func (l *look) mendAll(ctx context.Context, missing, failed []int32) error {
	w := l.workers[0]
	doubt := len(missing) > 0 && l.view.doubtful()
	for _, i := range missing {
		if doubt {
			failed = append(failed, i)
		} else {
			l.out[i] = oid.Fact{State: oid.Absent}
		}
	}
	m := newMender(l.view, l.db.format, deltaLimit)
	for _, i := range failed {
		if err := ctx.Err(); err != nil {
			return err
		}
		l.out[i] = w.mend(&l.ids[i], m, l.out[i].Err, false)
	}
	w.failed = w.failed[:0]
	return nil
}

// mend answers for an object from any of its copies, and for its parts from copies of those. It
// is damaged only if every copy was looked at. first is what was wrong with the first copy, if
// that is known; with all set, objects of every kind are hashed.
func (w *worker) mend(id *oid.ID, m *mender, first error, all bool) oid.Fact {
	sites, blind := w.view.sites(id)
	if len(sites) == 0 && blind == nil {
		return oid.Fact{State: oid.Absent}
	}
	bad := oid.Fact{State: oid.Unreadable, Err: first}
	for _, s := range sites {
		fact := w.readSite(s, id, all)
		if fact.State == oid.Present {
			return fact
		}
		if !isDamage(fact.Err) && blind == nil {
			blind = fact.Err
		}
		if bad.Err == nil {
			bad.Err = fact.Err
		}
		bad.Kind = max(bad.Kind, fact.Kind)
	}
	fact := m.mend(id, all)
	if fact.State == oid.Present {
		return fact
	}
	bad.Kind = max(bad.Kind, fact.Kind)
	switch {
	case blind != nil:
		bad.Err = notLooked(blind)
	case len(sites) > 1:
		bad.Err = fmt.Errorf("%w (its other copies, %d, are damaged too)", bad.Err, len(sites)-1)
	}
	return bad
}

// readSite reads one copy.
func (w *worker) readSite(s site, id *oid.ID, all bool) (fact oid.Fact) {
	err := vfs.Guard(func() error {
		if s.pack != nil {
			fact = w.readPacked(s.pack, s.off, id, all)
		} else {
			fact = w.objects.loose(s.store, id, all)
		}
		return nil
	})
	if err != nil {
		return oid.Fact{State: oid.Unreadable, Err: fmt.Errorf("%s: %w", s.label(id), err)}
	}
	return fact
}

// mend is what can be said of an object when parts of its chain come from elsewhere.
func (m *mender) mend(id *oid.ID, all bool) (fact oid.Fact) {
	kind, err := m.kind(id, nil)
	if err != nil || kind != oid.Tag && !all {
		return oid.Fact{State: stateOf(err), Kind: kind}
	}
	kind, content, err := m.content(id, nil)
	if err == nil {
		fact, err = factOf(m.format, kind, content)
	}
	fact.State, fact.Kind = stateOf(err), kind
	return fact
}

func stateOf(err error) oid.State {
	if err != nil {
		return oid.Unreadable
	}
	return oid.Present
}

// mender puts objects together when parts of the packs that hold them are damaged: a base that is
// bad in one pack is taken from another place, as git does. Its work is bounded: no accident needs
// more, and who damages a pack on purpose shall not keep us busy.
type mender struct {
	view   *view
	format oid.Format
	limit  int64 // of an object
	steps  int   // that may still be taken: copies tried, deltas followed
	depth  int
}

const (
	mendSteps = 1 << 20
	mendChain = 100000 // longest chain that is followed
	mendParts = 1000   // of a chain, from its broken end, that are looked for elsewhere
	mendDepth = 16
)

var errNoCopy = errors.New("no copy is left")

func newMender(v *view, f oid.Format, limit int64) *mender {
	return &mender{view: v, format: f, limit: limit, steps: mendSteps}
}

// each calls fn for the copies of an object, until one serves. except is a pack that was tried.
func (m *mender) each(id *oid.ID, except *Pack, fn func(s site) error) error {
	if m.depth >= mendDepth || m.steps <= 0 {
		return errNoCopy
	}
	m.depth++
	defer func() { m.depth-- }()
	last := errNoCopy
	sites, _ := m.view.sites(id)
	m.steps -= 1 + len(m.view.packs)
	for _, s := range sites {
		if s.pack != nil && s.pack == except {
			continue
		}
		err := vfs.Guard(func() error { return fn(s) })
		if err == nil {
			return nil
		}
		if last == errNoCopy || errors.Is(err, ErrTooLarge) {
			last = err
		}
	}
	return last
}

// trail is the chain of an object that is to be mended.
func (m *mender) trail(s site) ([]uint64, error) {
	way, _, err := trail(s.pack, s.off, nil, mendChain, func(uint64) bool { return false })
	m.steps -= len(way)
	return way, err
}

// kind is the kind of an object by any copy of it or of the parts of its chains.
func (m *mender) kind(id *oid.ID, except *Pack) (kind oid.Kind, err error) {
	err = m.each(id, except, func(s site) (err error) {
		if s.pack == nil {
			kind, err = looseKind(s.store, id)
			return err
		}
		way, err := m.trail(s)
		if err == nil {
			e, err := s.pack.Entry(way[len(way)-1])
			kind = e.Kind.Kind()
			return err
		}
		for i := len(way) - 1; i > max(0, len(way)-mendParts); i-- { // every part is of the same kind
			if part, ok := s.pack.idAt(way[i]); ok {
				if k, err := m.kind(&part, s.pack); err == nil {
					kind = k
					return nil
				}
			}
		}
		return err
	})
	return kind, err
}

// content is an object's kind and content, which hash to its name.
func (m *mender) content(id *oid.ID, except *Pack) (kind oid.Kind, content []byte, err error) {
	err = m.each(id, except, func(s site) (err error) {
		if s.pack == nil {
			kind, content, err = readLoose(s.store, id, m.limit)
		} else {
			kind, content, err = m.packed(s)
		}
		if err == nil && m.format.Object(kind.String(), content) != *id {
			err = damaged(finding.Pos{File: s.label(id)}, errHash)
		}
		return err
	})
	if err != nil {
		return 0, nil, err
	}
	return kind, content, nil
}

// packed makes an object in a pack, taking from elsewhere what is damaged below it.
func (m *mender) packed(s site) (kind oid.Kind, content []byte, err error) {
	way, err := m.trail(s)
	r := NewReader(m.limit, 0)
	work := uint64(0)
	for i := len(way) - 1; i >= 0; i-- {
		switch {
		case err != nil: // the trail ends here
		case i == len(way)-1:
			kind, content, err = r.whole(s.pack, way[i])
		default:
			content, err = r.apply(s.pack, way[i], content, &work)
		}
		if err == nil {
			continue
		}
		part, ok := s.pack.idAt(way[i])
		if i == 0 || !ok || errors.Is(err, ErrTooLarge) {
			return 0, nil, err
		}
		if kind, content, err = m.content(&part, s.pack); err != nil {
			return 0, nil, err
		}
	}
	return kind, content, err
}
