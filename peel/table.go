package peel

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"

	"refaudit/oid"
)

// nodes is a list that grows without being copied: by handle, in chunks.
type nodes struct {
	chunks [][]node
	count  Handle
}

const chunkBits = 12

func (l *nodes) at(h Handle) *node { return &l.chunks[h>>chunkBits][h&(1<<chunkBits-1)] }

func (l *nodes) add(n node) Handle {
	last := int(l.count >> chunkBits)
	if last == len(l.chunks) {
		var chunk []node // the first one grows from nothing: most repositories are small
		if last > 0 {
			chunk = make([]node, 0, 1<<chunkBits)
		}
		l.chunks = append(l.chunks, chunk)
	}
	l.chunks[last] = append(l.chunks[last], n)
	l.count++
	return l.count - 1
}

// cut takes back the nodes from first on.
func (l *nodes) cut(first Handle) {
	last := int(first >> chunkBits)
	if last < len(l.chunks) {
		l.chunks = l.chunks[:last+1]
		l.chunks[last] = l.chunks[last][:first&(1<<chunkBits-1)]
	}
	l.count = first
}

// table finds the node of an id: open addressing. A slot holds a hash of the id and its handle + 1:
//
//	 63         32 31           0
//	+-------------+--------------+
//	| hash        | handle + 1   |  0: free
//	+-------------+--------------+
//
// Ids come from files that may be hostile, so all their bytes are mixed with a secret of this process.
type table struct {
	slots []uint64
	seed  [2]uint64
	met   byte // of what putAll has touched ahead, or no code would be made for that
}

func newTable() table {
	return table{slots: make([]uint64, 256), seed: [2]uint64{rand.Uint64() | 1, rand.Uint64() | 1}}
}

// lanes is how many ids are looked for side by side: each waits for memory, and so they wait together.
const lanes = 16

// putAll gives each id a node, if it has none, and appends the handles to out.
func (t *table) putAll(l *nodes, ids []oid.ID, out []Handle) []Handle {
	var hashes [lanes]uint32
	for len(ids) > 0 {
		group := ids[:min(lanes, len(ids))]
		ids = ids[len(group):]
		for 4*(int(l.count)+lanes) > 3*len(t.slots) {
			t.grow()
		}
		mask := uint32(len(t.slots) - 1)
		for i := range group {
			hashes[i] = t.hash(&group[i])
		}
		var slots [lanes]uint64
		for i := range group {
			slots[i] = t.slots[hashes[i]&mask]
		}
		for i, s := range slots {
			if s != 0 && uint32(s>>32) == hashes[i] {
				t.met ^= l.at(Handle(uint32(s) - 1)).id.Bytes()[0]
			}
		}
		for i := range group {
			out = append(out, t.put(l, &group[i], hashes[i]))
		}
	}
	return out
}

// put gives the id a node, if it has none. There must be a free slot.
func (t *table) put(l *nodes, id *oid.ID, hash uint32) Handle {
	mask := uint32(len(t.slots) - 1)
	for at := hash & mask; ; at = (at + 1) & mask {
		s := t.slots[at]
		if s == 0 {
			h := l.add(node{id: *id, next: -1, last: -1})
			t.slots[at] = uint64(hash)<<32 | uint64(h+1)
			return h
		}
		if uint32(s>>32) == hash && l.at(Handle(uint32(s)-1)).id == *id {
			return Handle(uint32(s) - 1)
		}
	}
}

// get finds id.
func (t *table) get(l *nodes, id *oid.ID) (h Handle, ok bool) {
	mask, hash := uint32(len(t.slots)-1), t.hash(id)
	for at := hash & mask; ; at = (at + 1) & mask {
		s := t.slots[at]
		if s == 0 {
			return 0, false
		}
		if uint32(s>>32) == hash && l.at(Handle(uint32(s)-1)).id == *id {
			return Handle(uint32(s) - 1), true
		}
	}
}

func (t *table) grow() {
	old := t.slots
	t.slots = make([]uint64, 2*len(old))
	for _, s := range old {
		if s != 0 {
			t.fill(s)
		}
	}
}

// rebuild fills the slots with all nodes.
func (t *table) rebuild(l *nodes) {
	clear(t.slots)
	for h := range l.count {
		t.fill(uint64(t.hash(&l.at(h).id))<<32 | uint64(h+1))
	}
}

// fill puts a slot's content, which is nowhere yet, into the table.
func (t *table) fill(s uint64) {
	mask := uint32(len(t.slots) - 1)
	at := uint32(s>>32) & mask
	for t.slots[at] != 0 {
		at = (at + 1) & mask
	}
	t.slots[at] = s
}

func (t *table) hash(id *oid.ID) uint32 {
	h := t.seed[0]
	b := id.Bytes()
	for len(b) >= 8 {
		hi, lo := bits.Mul64(binary.LittleEndian.Uint64(b)^h, t.seed[1])
		h = hi ^ lo
		b = b[8:]
	}
	if len(b) >= 4 {
		hi, lo := bits.Mul64(uint64(binary.LittleEndian.Uint32(b))^h, t.seed[1])
		h = hi ^ lo
	}
	return uint32(h)
}
