package usage

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"refaudit/internal/bitmap"
	"refaudit/odb"
)

// order is a pack's objects in the order in which they lie: position i is the i-th object.
type order struct {
	index []uint32 // of each position: the object's place in the index
	pos   []uint32 // of each place in the index: its position
	// The offset of each position, and at last where the last object ends: in 32 bits, where the
	// pack is that small, else in 64.
	off32 []uint32
	off64 []uint64
}

const packHeader = 12

var errOrder = errors.New("objects overlap or lie outside the pack")

// orderByRev takes the order from a reverse index. Its places are claims: that the offsets which they
// lead to rise makes them true.
func orderByRev(x *odb.Index, rev bitmap.Rev, end uint64) (*order, error) {
	o := newOrder(x.Count(), end)
	for i := range o.index {
		o.index[i] = rev.At(i)
	}
	return o, o.fill(x, end)
}

// orderBySort sorts the offsets.
func orderBySort(x *odb.Index, end uint64) (*order, error) {
	n := x.Count()
	o := newOrder(n, end)
	keys := make([]uint64, n)
	for i := range keys {
		off, ok := x.Offset(i)
		if !ok || off >= 1<<40 {
			return nil, fmt.Errorf("object %v: %w", x.ID(i), errOrder)
		}
		keys[i], o.index[i] = off, uint32(i)
	}
	sortByKey(keys, o.index)
	return o, o.fill(x, end)
}

func newOrder(n int, end uint64) *order {
	o := &order{index: make([]uint32, n), pos: make([]uint32, n)}
	if end <= math.MaxUint32 {
		o.off32 = make([]uint32, n+1)
	} else {
		o.off64 = make([]uint64, n+1)
	}
	return o
}

// fill computes the rest from index, and checks that the offsets rise from the pack's header to its end.
func (o *order) fill(x *odb.Index, end uint64) error {
	last := uint64(packHeader - 1)
	for i, at := range o.index {
		if int(at) >= len(o.index) {
			return fmt.Errorf("object %d of %d: %w", at, len(o.index), errOrder)
		}
		off, ok := x.Offset(int(at))
		if !ok || off <= last || off >= end {
			return fmt.Errorf("object %v: %w", x.ID(int(at)), errOrder)
		}
		last = off
		o.pos[at] = uint32(i)
		o.setOffset(i, off)
	}
	o.setOffset(len(o.index), end)
	return nil
}

func (o *order) setOffset(i int, off uint64) {
	if o.off32 != nil {
		o.off32[i] = uint32(off)
	} else {
		o.off64[i] = off
	}
}

// offset is where position i begins in the pack; of the number of positions, where the last one ends.
func (o *order) offset(i uint32) uint64 {
	if o.off32 != nil {
		return uint64(o.off32[i])
	}
	return o.off64[i]
}

// findBelow is the position that begins at off, which lies before position near; bases mostly do not
// lie far.
func (o *order) findBelow(off uint64, near uint32) (uint32, bool) {
	step, hi := uint32(1), near
	lo := hi - min(step, hi)
	for lo > 0 && o.offset(lo) > off {
		hi = lo
		step *= 2
		lo -= min(step, lo)
	}
	for lo < hi {
		mid := lo + (hi-lo)/2
		if o.offset(mid) < off {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo, lo < near && o.offset(lo) == off
}

// sortByKey sorts values by their keys, eleven bits at a time; equal bits are left out.
func sortByKey(keys []uint64, values []uint32) {
	if len(keys) < 256 {
		sortFew(keys, values)
		return
	}
	const width = 11
	var differ uint64
	for _, k := range keys {
		differ |= k ^ keys[0]
	}
	fromK, fromV := keys, values
	toK, toV := make([]uint64, len(keys)), make([]uint32, len(keys))
	var count [1 << width]uint32
	for shift := 0; differ>>shift != 0; shift += width {
		if differ>>shift&(1<<width-1) == 0 {
			continue
		}
		clear(count[:])
		for _, k := range fromK {
			count[k>>shift&(1<<width-1)]++
		}
		at := uint32(0)
		for i, n := range count {
			count[i] = at
			at += n
		}
		for i, k := range fromK {
			digit := k >> shift & (1<<width - 1)
			toK[count[digit]], toV[count[digit]] = k, fromV[i]
			count[digit]++
		}
		fromK, toK, fromV, toV = toK, fromK, toV, fromV
	}
	copy(keys, fromK)
	copy(values, fromV)
}

// sortFew is sortByKey for fewer than 256.
func sortFew(keys []uint64, values []uint32) {
	type row struct {
		key   uint64
		value uint32
	}
	var room [256]row
	rows := room[:len(keys)]
	for i, k := range keys {
		rows[i] = row{k, values[i]}
	}
	slices.SortFunc(rows, func(a, b row) int { return cmp.Compare(a.key, b.key) })
	for i, r := range rows {
		keys[i], values[i] = r.key, r.value
	}
}
