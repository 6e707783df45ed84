package usage

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"

	"refaudit/oid"
)

// batch is ids that a worker has met and not looked up yet. They are looked up together, in the
// order of their first bits, so that each part of an index is in the processor's caches when it is
// searched, and an id that was met often is looked up once.
type batch struct {
	ids     []byte
	from    []uint32
	tree    []bool
	items   [2][]uint64      // to sort in: the first bits of an id, and its place above
	group   [together]uint32 // places above
	touched byte             // means nothing, but keeps what is read only to be near from being left out
}

const (
	batchMost = 1 << 16
	batchBits = 22 // of an id that are sorted by, in two steps
	partBits  = batchBits / 2
)

// note puts an id that a tree or commit names into the batch.
func (k *worker) note(id []byte, tree bool, from uint32) {
	b := &k.batch
	if cap(b.ids) < batchMost*len(id) {
		b.makeRoom(len(id))
	}
	b.ids = append(b.ids, id...)
	b.from = append(b.from, from)
	b.tree = append(b.tree, tree)
	if len(b.from) == batchMost {
		k.lookUp()
	}
}

// makeRoom makes room for a whole batch, which is empty: what is never used of it is never touched, while
// slices that grow touch several times what they hold in the end.
func (b *batch) makeRoom(size int) {
	b.ids = make([]byte, 0, batchMost*size)
	b.from = make([]uint32, 0, batchMost)
	b.tree = make([]bool, 0, batchMost)
	for i := range b.items {
		b.items[i] = make([]uint64, batchMost)
	}
}

// lookUp marks what the ids of the batch are, and empties it.
func (k *worker) lookUp() {
	b := &k.batch
	size := k.sp.format.Size()
	for _, s := range k.sp.stores {
		s.expect(len(b.from))
	}
	var last []byte
	lastTree := false
	n := 0
	for _, item := range b.sorted(size) {
		i := uint32(item)
		raw, tree := b.ids[int(i)*size:int(i+1)*size], b.tree[i]
		if tree == lastTree && bytes.Equal(raw, last) {
			continue
		}
		last, lastTree = raw, tree
		b.group[n] = i
		if n++; n == together {
			k.lookUpGroup(n, size)
			n = 0
		}
	}
	k.lookUpGroup(n, size)
	b.empty()
}

func (b *batch) empty() { b.ids, b.from, b.tree = b.ids[:0], b.from[:0], b.tree[:0] }

// lookUpGroup marks the first n of a group.
func (k *worker) lookUpGroup(n, size int) {
	b := &k.batch
	var ids [together][]byte
	var found [together]uint32
	for g, i := range b.group[:n] {
		ids[g] = b.ids[int(i)*size : int(i+1)*size]
	}
	b.touched ^= k.sp.findAll(ids[:n], found[:])
	for g, i := range b.group[:n] {
		kind := oid.Blob
		if b.tree[i] {
			kind = oid.Tree
		}
		if found[g] != none {
			k.mark(found[g], kind)
			continue
		}
		id := oid.FromBytes(k.sp.format, b.ids[int(i)*size:])
		if len(k.absent) < mostTrouble && id != k.sp.emptyTree {
			k.absent = append(k.absent, missing{id, b.from[i]})
		}
	}
}

// sorted are the places of ids, in the lower halves, in the order of their first bits, which are above.
func (b *batch) sorted(size int) []uint64 {
	n := len(b.from)
	if n == 0 {
		return nil
	}
	items, other := b.items[0][:n], b.items[1][:n]
	for i := range items {
		items[i] = uint64(binary.BigEndian.Uint32(b.ids[i*size:])>>(32-batchBits))<<32 | uint64(i)
	}
	if n < 256 {
		slices.Sort(items)
		return items
	}
	return radix(items, other, 32, 32+batchBits)
}

// sortNumbers sorts numbers; the result may be in the same place or another.
func sortNumbers(numbers []uint32) []uint32 {
	if len(numbers) < 512 {
		slices.Sort(numbers)
		return numbers
	}
	return radix(numbers, make([]uint32, len(numbers)), 0, uint(bits.Len32(slices.Max(numbers))))
}

// radix sorts by the bits from one place up to another, partBits at a time, the lowest first; the result may be in
// items or in other, which is as long.
func radix[T uint32 | uint64](items, other []T, from, to uint) []T {
	for shift := from; shift < to; shift += partBits {
		var count [1 << partBits]uint32
		for _, item := range items {
			count[item>>shift&(1<<partBits-1)]++
		}
		at := uint32(0)
		for i, n := range count {
			count[i] = at
			at += n
		}
		for _, item := range items {
			digit := item >> shift & (1<<partBits - 1)
			other[count[digit]] = item
			count[digit]++
		}
		items, other = other, items
	}
	return items
}
