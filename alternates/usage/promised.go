package usage

import (
	"refaudit/internal/bitmap"
	"refaudit/internal/vfs"
	"refaudit/oid"
)

// notPromised leaves those of the missing objects that no remote has promised. Promised is what an
// object in a pack with a .promisor file names: whoever sent that pack has sent it without them. Whether
// the remote is still configured doesn't matter for that.
func (w *walk) notPromised(absent []missing) ([]missing, error) {
	open := make(map[oid.ID]struct{}, len(absent))
	for _, m := range absent {
		if m.from == none || !w.fromPromisor(m.from) {
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
func (w *walk) fromPromisor(v uint32) bool {
	i := w.sp.storeOf(v)
	p, _ := w.sp.stores[i].packOf(v - w.sp.first[i])
	return i < w.promisors && p != nil && p.src.Has("promisor")
}

// searchPromisors takes out of open what any object of a promisor pack names.
func (w *walk) searchPromisors(open map[oid.ID]struct{}) error {
	rd := w.reader(0)
	for i, s := range w.sp.stores[:w.promisors] {
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

// kinds are the kinds of all objects of a pack, by position; 0 of those whose deltas lead nowhere.
func (p *pack) kinds(format oid.Format) ([]oid.Kind, error) {
	kinds := make([]oid.Kind, len(p.index))
	seen := bitmap.NewSet(len(p.index))
	var way []uint32
	for start := range kinds {
		way = way[:0]
		pos := uint32(start)
		for !seen.Has(pos) { // each position once: what is seen is known, or leads back into this way
			seen.Add(pos)
			way = append(way, pos)
			e, err := p.src.Entry(p.offset(pos))
			if err != nil {
				return nil, err
			}
			base, ok := pos, false
			if kinds[pos] = e.Kind.Kind(); e.Kind.IsDelta() {
				base, ok = p.base(&e, pos, format)
			}
			if !ok {
				break
			}
			pos = base
		}
		for _, v := range way {
			kinds[v] = kinds[pos]
		}
	}
	return kinds, nil
}

// named calls fn for the ids that an object names.
func named(kind oid.Kind, data []byte, format oid.Format, fn func(oid.ID)) {
	switch kind {
	case oid.Tree:
		entries(data, format.Size(), nil, func(_ uint32, id []byte) { fn(oid.FromBytes(format, id)) })
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
