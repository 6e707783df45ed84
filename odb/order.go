package odb

import (
	"fmt"
	"slices"
	"sort"

	"refaudit/internal/vfs"
)

// An Order is a pack's entries in the order in which they lie in the pack: the position of an
// object in the pack, from 0, is what bitmaps and .rev files number objects by.
type Order struct {
	entries []placed // by offset
	end     uint64   // of the last entry
}

type placed struct {
	off   uint64
	index uint32
}

// Order sorts the pack's entries by offset, once.
func (p *Pack) Order() (*Order, error) {
	return p.order.get(func() (o *Order, err error) {
		body, err := p.Body()
		if err == nil {
			err = vfs.Guard(func() (err error) {
				o, err = newOrder(p.index.value, uint64(len(body)))
				return err
			})
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.store.label(p.File("idx")), err)
		}
		return o, nil
	})
}

func newOrder(x *Index, end uint64) (*Order, error) {
	o := &Order{entries: make([]placed, x.Count()), end: end}
	for i := range o.entries {
		off, ok := x.Offset(i)
		if !ok || off < packHeaderLen || off >= end {
			return nil, fmt.Errorf("object %v has an offset outside the pack", x.ID(i))
		}
		o.entries[i] = placed{off, uint32(i)}
	}
	slices.SortFunc(o.entries, func(a, b placed) int {
		switch {
		case a.off < b.off:
			return -1
		case a.off > b.off:
			return 1
		}
		return int(a.index) - int(b.index)
	})
	for i := 1; i < len(o.entries); i++ {
		if o.entries[i-1].off == o.entries[i].off {
			return nil, fmt.Errorf("objects %v and %v have the same offset", x.ID(int(o.entries[i-1].index)), x.ID(int(o.entries[i].index)))
		}
	}
	return o, nil
}

// Len is how many entries the pack has.
func (o *Order) Len() int { return len(o.entries) }

// Offset is where the entry at this position begins.
func (o *Order) Offset(pos int) uint64 { return o.entries[pos].off }

// Index is which object of the index stands at this position.
func (o *Order) Index(pos int) int { return int(o.entries[pos].index) }

// DiskSize is how many bytes the entry at this position takes in the pack, its header included.
func (o *Order) DiskSize(pos int) uint64 {
	next := o.end
	if pos+1 < len(o.entries) {
		next = o.entries[pos+1].off
	}
	return next - o.entries[pos].off
}

// Find tells at which position the entry at this offset stands.
func (o *Order) Find(off uint64) (pos int, ok bool) {
	pos = sort.Search(len(o.entries), func(i int) bool { return o.entries[i].off >= off })
	return pos, pos < len(o.entries) && o.entries[pos].off == off
}
