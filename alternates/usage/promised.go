package usage

import (
	"refaudit/internal/vfs"
	"refaudit/odb"
	"refaudit/oid"
)

// notPromised leaves those of the missing objects that no remote has promised. Promised is what an
// object in a pack with a .promisor file names: whoever sent that pack has sent it without them.
func (w *walk) notPromised(absent []missing) ([]missing, error) {
	open := make(map[oid.ID]struct{}, len(absent))
	for _, m := range absent {
		if m.from == none || !w.sp.fromPromisor(m.from) {
			open[m.id] = struct{}{}
		}
	}
	if len(open) > 0 { // something of our own names it; the remote's objects may do so too
		err := vfs.Guard(func() error { return w.searchPromisors(open) })
		if err != nil {
			return nil, err
		}
	}
	var left []missing
	for _, m := range absent {
		if _, ok := open[m.id]; ok {
			left = append(left, m)
		}
	}
	return left, nil
}

// fromPromisor tells whether an object lies in a pack of a promisor remote.
func (sp *space) fromPromisor(v uint32) bool {
	i := sp.storeOf(v)
	p, _ := sp.stores[i].packOf(v - sp.first[i])
	return p != nil && p.src.Has("promisor")
}

// searchPromisors takes out of open what any object of a promisor pack names.
func (w *walk) searchPromisors(open map[oid.ID]struct{}) error {
	rd := w.reader(0)
	for i, s := range w.sp.stores {
		for _, p := range s.packs {
			if !p.src.Has("promisor") {
				continue
			}
			kinds, err := p.kinds(w.sp.format)
			if err != nil {
				return err
			}
			for pos, kind := range kinds {
				if len(open) == 0 {
					return nil
				}
				if kind == oid.Blob || kind == 0 {
					continue
				}
				o, err := rd.read(w.sp.first[i] + p.first + uint32(pos))
				if err != nil {
					continue // what it names is not known to be promised
				}
				named(kind, o.data, w.sp.format, func(id oid.ID) { delete(open, id) })
			}
		}
	}
	return nil
}

// kinds are the kinds of all objects of a pack, by position; 0 of those whose kind can't be told.
func (p *pack) kinds(format oid.Format) ([]oid.Kind, error) {
	kinds := make([]oid.Kind, len(p.index))
	bases := make([]uint32, len(p.index))
	for pos := range kinds {
		e, err := p.src.Entry(p.offset(uint32(pos)))
		if err != nil {
			return nil, err
		}
		bases[pos] = uint32(pos)
		if kinds[pos] = e.Kind.Kind(); !e.Kind.IsDelta() {
			continue
		}
		if base, ok := p.base(&e, uint32(pos), format); ok {
			bases[pos] = base
			if e.Kind == odb.OfsDelta {
				kinds[pos] = kinds[base] // stands before; is known unless it hangs on a RefDelta
			}
		}
	}
	for again := true; again; { // deltas whose base stands after them
		again = false
		for pos, kind := range kinds {
			if kind == 0 && kinds[bases[pos]] != 0 {
				kinds[pos], again = kinds[bases[pos]], true
			}
		}
	}
	return kinds, nil
}

// named calls fn for the ids that an object names.
func named(kind oid.Kind, data []byte, format oid.Format, fn func(oid.ID)) {
	switch kind {
	case oid.Tree:
		newEntries(data, nil, format.Size(), nil, 0, func(_ uint32, id []byte) { fn(oid.FromBytes(format, id)) })
	case oid.Commit:
		var c commit
		if _, err := c.parse(data, format); err == nil {
			fn(c.tree)
			for _, p := range c.parents {
				fn(p)
			}
		}
	case oid.Tag:
		if id, err := targetOf(data, format); err == nil {
			fn(id)
		}
	}
}
