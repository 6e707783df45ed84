package odb

import (
	"bytes"
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
	for _, i := range failed {
		if err := ctx.Err(); err != nil {
			return err
		}
		l.out[i] = w.mend(&l.ids[i])
	}
	w.failed = w.failed[:0]
	return nil
}

// mend answers for an object from any of its copies, and for its parts from copies of those. It
// is damaged only if every copy was looked at.
func (w *worker) mend(id *oid.ID) oid.Fact {
	sites, blind := w.view.sites(id)
	if len(sites) == 0 && blind == nil {
		return oid.Fact{State: oid.Absent}
	}
	bad := oid.Fact{State: oid.Unreadable}
	for _, s := range sites {
		fact := w.readSite(s, id)
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
	fact := mended(w.view, w.db.format, id)
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
func (w *worker) readSite(s site, id *oid.ID) (fact oid.Fact) {
	err := vfs.Guard(func() error {
		if s.pack != nil {
			fact = w.readPacked(s.pack, s.off, id)
		} else {
			fact = w.tags.loose(s.store, id)
		}
		return nil
	})
	if err != nil {
		return oid.Fact{State: oid.Unreadable, Err: fmt.Errorf("%s: %w", s.label(id), err)}
	}
	return fact
}

// mended is what can be said of an object when parts of its chain come from elsewhere.
func mended(v *view, f oid.Format, id *oid.ID) (fact oid.Fact) {
	kind, err := newMender(v, f, deltaLimit).kind(id)
	if err != nil || kind != oid.Tag {
		return oid.Fact{State: stateOf(err), Kind: kind}
	}
	_, content, err := newMender(v, f, deltaLimit).content(id)
	if err == nil {
		fact.Target, fact.Claims, err = parseTag(f, content, int64(len(content)), int64(bytes.LastIndexByte(content, '\n')))
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

// mender puts an object together when parts of the packs that hold it are damaged: a base that is
// bad in one pack is taken from another place, as git does. It tries each copy of each part once,
// up to a number that no accident reaches.
type mender struct {
	view   *view
	format oid.Format
	limit  int64 // of an object
	tried  map[try]bool
	depth  int
	chains chains
}

type try struct {
	site
	id oid.ID
}

const (
	mendTries = 10000
	mendDepth = 16
)

var errNoCopy = errors.New("no copy is left")

func newMender(v *view, f oid.Format, limit int64) *mender {
	return &mender{view: v, format: f, limit: limit, tried: map[try]bool{}}
}

// each calls fn for copies of the object that were not tried yet, until one serves.
func (m *mender) each(id *oid.ID, fn func(s site) error) error {
	if m.depth >= mendDepth {
		return errNoCopy
	}
	m.depth++
	defer func() { m.depth-- }()
	last := errNoCopy
	sites, _ := m.view.sites(id)
	for _, s := range sites {
		t := try{s, *id}
		if m.tried[t] || len(m.tried) >= mendTries {
			continue
		}
		m.tried[t] = true
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

// kind is the kind of an object by any copy of it or of the parts of its chains.
func (m *mender) kind(id *oid.ID) (kind oid.Kind, err error) {
	err = m.each(id, func(s site) (err error) {
		if s.pack == nil {
			var tr tagReader
			f, err := openLoose(s.store, id, &tr.z, &tr.file)
			if err != nil {
				return err
			}
			kind = f.kind
			return f.Close()
		}
		way, err := trail(s.pack, s.off, nil, func(uint64) bool { return false })
		if err == nil {
			kind = way[len(way)-1].entry.Kind.Kind()
			return nil
		}
		for i := len(way) - 1; i > 0; i-- { // every part is of the same kind
			if part, ok := s.pack.idAt(way[i].off); ok {
				if k, err := m.kind(&part); err == nil {
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
func (m *mender) content(id *oid.ID) (kind oid.Kind, content []byte, err error) {
	err = m.each(id, func(s site) (err error) {
		if s.pack == nil {
			kind, content, err = readLoose(s.store, id, m.limit)
		} else {
			kind, content, err = m.packed(s.pack, s.off)
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

// packed makes the object at off in p, taking from elsewhere what is damaged below it.
func (m *mender) packed(p *Pack, off uint64) (kind oid.Kind, content []byte, err error) {
	way, err := trail(p, off, nil, func(uint64) bool { return false })
	r := NewReader(m.limit, 0)
	work := uint64(0)
	for i := len(way) - 1; i >= 0; i-- {
		l := &way[i]
		switch {
		case err != nil: // the end of the trail
		case l.entry.Kind.IsDelta():
			content, err = r.apply(p, l, content, &work)
		default:
			kind = l.entry.Kind.Kind()
			content, err = r.inflate(p, l, func(n int) []byte { return make([]byte, n) })
		}
		if err == nil {
			continue
		}
		part, ok := p.idAt(l.off)
		if i == 0 || !ok || errors.Is(err, ErrTooLarge) {
			return 0, nil, err
		}
		if kind, content, err = m.content(&part); err != nil {
			return 0, nil, err
		}
	}
	return kind, content, err
}
