package usage

import (
	"slices"

	"refaudit/oid"
)

// batch is ids that a worker has met and not looked up yet. They are looked up together, in the
// order of their first bits, so that each part of an index is in the processor's caches when it is
// searched.
type batch struct {
	ids   []byte
	from  []uint32
	tree  []bool
	order []uint32
	start [1<<batchBits + 1]uint32
}

const (
	batchMost = 1 << 17
	batchBits = 11
)

// note puts an id that a tree or commit names into the batch.
func (k *worker) note(id []byte, tree bool, from uint32) {
	b := &k.batch
	b.ids = append(b.ids, id...)
	b.from = append(b.from, from)
	b.tree = append(b.tree, tree)
	if len(b.from) == batchMost {
		k.lookUp()
	}
}

// lookUp marks what the ids of the batch are, and empties it.
func (k *worker) lookUp() {
	b := &k.batch
	size := k.sp.format.Size()
	for _, s := range k.sp.stores {
		s.expect(len(b.from))
	}
	order := b.sorted(size)
	last := -1
	for _, i := range order {
		if h := b.bucket(int(i), size); h != last {
			last = h
			k.sp.warm(h, batchBits, len(order)>>batchBits)
		}
		id := oid.FromBytes(k.sp.format, b.ids[int(i)*size:])
		kind := oid.Blob
		if b.tree[i] {
			kind = oid.Tree
		}
		if v, ok := k.sp.find(&id); ok {
			k.mark(v, kind)
		} else if len(k.absent) < mostTrouble && id != k.sp.emptyTree {
			k.absent = append(k.absent, missing{id, b.from[i]})
		}
	}
	b.ids, b.from, b.tree = b.ids[:0], b.from[:0], b.tree[:0]
}

// bucket is the first bits of an id.
func (b *batch) bucket(i, size int) int {
	return (int(b.ids[i*size])<<8 | int(b.ids[i*size+1])) >> (16 - batchBits)
}

// sorted are the places of ids in the order of their first bits.
func (b *batch) sorted(size int) []uint32 {
	n := len(b.from)
	if cap(b.order) < n {
		b.order = make([]uint32, n, max(n, batchMost/8))
	}
	order := b.order[:n]
	if n < 64 {
		for i := range order {
			order[i] = uint32(i)
		}
		return order
	}
	clear(b.start[:])
	for i := range n {
		b.start[b.bucket(i, size)+1]++
	}
	for i := range len(b.start) - 1 {
		b.start[i+1] += b.start[i]
	}
	for i := range n {
		at := &b.start[b.bucket(i, size)]
		order[*at] = uint32(i)
		*at++
	}
	return order
}

// sortNumbers sorts numbers; the result may be in the same place or another.
func sortNumbers(numbers []uint32) []uint32 {
	const width = 11
	if len(numbers) < 512 {
		slices.Sort(numbers)
		return numbers
	}
	other := make([]uint32, len(numbers))
	var count [1 << width]uint32
	most := uint32(0)
	for _, v := range numbers {
		most = max(most, v)
	}
	for shift := uint(0); shift < 32 && most>>shift != 0; shift += width {
		clear(count[:])
		for _, v := range numbers {
			count[v>>shift&(1<<width-1)]++
		}
		at := uint32(0)
		for i, n := range count {
			count[i] = at
			at += n
		}
		for _, v := range numbers {
			digit := v >> shift & (1<<width - 1)
			other[count[digit]] = v
			count[digit]++
		}
		numbers, other = other, numbers
	}
	return numbers
}
