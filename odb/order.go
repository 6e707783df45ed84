package odb

import (
	"cmp"
	"slices"

	"refaudit/internal/vfs"
	"refaudit/oid"
)

// placed is an object of an index by where it lies.
type placed struct {
	off   uint64
	index uint32
}

// idAt is the id of the object whose entry begins at off. The index is sorted by offset when this
// is first asked.
func (p *Pack) idAt(off uint64) (id oid.ID, ok bool) {
	x, err := p.Index()
	if err != nil {
		return id, false
	}
	order, err := p.order.get(func() (order []placed, err error) {
		err = vfs.Guard(func() error {
			order = sortedByOffset(x)
			return nil
		})
		return order, err
	})
	if err != nil {
		return id, false
	}
	i, ok := slices.BinarySearchFunc(order, off, func(e placed, off uint64) int { return cmp.Compare(e.off, off) })
	if ok {
		id = x.ID(int(order[i].index))
	}
	return id, ok
}

func sortedByOffset(x *Index) []placed {
	order := make([]placed, 0, x.Count())
	for i := range x.Count() {
		if off, ok := x.Offset(i); ok {
			order = append(order, placed{off, uint32(i)})
		}
	}
	slices.SortFunc(order, func(a, b placed) int { return cmp.Compare(a.off, b.off) })
	return order
}
