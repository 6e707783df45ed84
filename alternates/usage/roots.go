package usage

import (
	"errors"
	"fmt"

	"refaudit/internal/vfs"
	"refaudit/oid"
)

// roots are the objects that refs lead to, by kind; tags are followed, so that what each tag points
// at is among them.
type roots struct {
	numbers [5][]uint32 // by oid.Kind
	absent  []oid.ID
	broken  []error
}

// resolve finds ids, each once, and what the tags among them point at.
func (v *view) resolve(ids []oid.ID) (*roots, error) {
	r := &roots{}
	known := make(map[oid.ID]struct{}, len(ids))
	var todo []oid.ID
	add := func(id oid.ID) {
		if _, ok := known[id]; !ok {
			known[id] = struct{}{}
			todo = append(todo, id)
		}
	}
	for _, id := range ids {
		add(id)
	}
	rd := takeReader(v.space)
	defer readers.Put(rd)
	kinds := &kindReader{reader: rd}
	err := vfs.Guard(func() error {
		for len(todo) > 0 {
			numbers := make([]uint32, 0, len(todo))
			for i := range todo {
				if n, ok := v.find(&todo[i]); ok {
					numbers = append(numbers, n)
				} else if todo[i] != v.emptyTree {
					r.absent = append(r.absent, todo[i])
				}
			}
			todo = nil
			for _, n := range sortNumbers(numbers) {
				kind, err := kinds.kind(n)
				var target oid.ID
				if err == nil && kind == oid.Tag {
					target, err = rd.tagTarget(n)
				}
				if err != nil {
					r.broken = append(r.broken, err)
					continue
				}
				r.numbers[kind] = append(r.numbers[kind], n)
				if kind == oid.Tag {
					add(target)
				}
			}
		}
		return nil
	})
	return r, err
}

// kindReader tells the kinds of objects, from the headers of pack entries.
type kindReader struct {
	*reader
	work  map[*pack]int        // steps along deltas
	whole map[*pack][]oid.Kind // packs whose kinds are all known
}

// kind is the kind of the object under a number.
func (k *kindReader) kind(v uint32) (oid.Kind, error) {
	i := k.sp.storeOf(v)
	p, pos := k.sp.stores[i].packOf(v - k.sp.first[i])
	if p == nil {
		kind, _, err := k.loose(k.sp.stores[i], k.sp.stores[i].loose[pos].id)
		return kind, err
	}
	for {
		if kinds := k.whole[p]; kinds != nil {
			if kinds[pos] == 0 {
				return 0, k.wrong(p, v, errCycle)
			}
			return kinds[pos], nil
		}
		e, err := p.src.Entry(p.offset(pos))
		if err != nil || !e.Kind.IsDelta() {
			return e.Kind.Kind(), err
		}
		base, ok := p.base(&e, pos, k.sp.format)
		if !ok {
			return 0, k.wrong(p, v, errNoBase)
		}
		pos = base
		if k.work == nil {
			k.work, k.whole = map[*pack]int{}, map[*pack][]oid.Kind{}
		}
		if k.work[p]++; k.work[p] > len(p.index) { // then it is less work to learn all
			if k.whole[p], err = p.kinds(k.sp.format); err != nil {
				return 0, err
			}
		}
	}
}

var errTag = errors.New("a malformed tag")

// tagTarget is what a tag points at.
func (r *reader) tagTarget(v uint32) (oid.ID, error) {
	o, err := r.read(v)
	if err != nil {
		return oid.ID{}, err
	}
	if o.kind != oid.Tag {
		return oid.ID{}, fmt.Errorf("object %v is a %v, not a tag", r.sp.id(v), o.kind)
	}
	id, err := targetOf(o.data, r.sp.format)
	if err != nil {
		return id, fmt.Errorf("object %v: %w", r.sp.id(v), err)
	}
	return id, nil
}

// targetOf reads the first line of a tag.
//
//	object <id>
//	type <kind>
//	...
func targetOf(tag []byte, format oid.Format) (oid.ID, error) {
	const head = len("object ")
	hex := format.HexLen()
	var id oid.ID
	if len(tag) <= head+hex || string(tag[:head]) != "object " || tag[head+hex] != '\n' || !parseHex(&id, tag[head:], format) {
		return id, errTag
	}
	return id, nil
}
