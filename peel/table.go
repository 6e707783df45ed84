package peel

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"

	"refaudit/oid"
)

// table finds the node of an id: open addressing, a slot holds a handle + 1. Ids come from
// files that may be hostile, so all their bytes are mixed with a secret of this process.
type table struct {
	slots []uint32
	used  int
	seed  [2]uint64
}

func newTable() table {
	return table{slots: make([]uint32, 1024), seed: [2]uint64{rand.Uint64() | 1, rand.Uint64() | 1}}
}

// put finds id, or gives it the handle fresh.
func (t *table) put(nodes []node, id *oid.ID, fresh Handle) (h Handle, known bool) {
	if 4*(t.used+1) > 3*len(t.slots) {
		t.slots = make([]uint32, 2*len(t.slots))
		t.rebuild(nodes)
	}
	mask := uint64(len(t.slots) - 1)
	for at := t.hash(id) & mask; ; at = (at + 1) & mask {
		s := t.slots[at]
		if s == 0 {
			t.slots[at] = uint32(fresh) + 1
			t.used++
			return fresh, false
		}
		if nodes[s-1].id == *id {
			return Handle(s - 1), true
		}
	}
}

// get finds id.
func (t *table) get(nodes []node, id *oid.ID) (h Handle, ok bool) {
	mask := uint64(len(t.slots) - 1)
	for at := t.hash(id) & mask; ; at = (at + 1) & mask {
		s := t.slots[at]
		if s == 0 {
			return 0, false
		}
		if nodes[s-1].id == *id {
			return Handle(s - 1), true
		}
	}
}

func (t *table) rebuild(nodes []node) {
	clear(t.slots)
	mask := uint64(len(t.slots) - 1)
	for i := range nodes {
		at := t.hash(&nodes[i].id) & mask
		for t.slots[at] != 0 {
			at = (at + 1) & mask
		}
		t.slots[at] = uint32(i) + 1
	}
	t.used = len(nodes)
}

func (t *table) hash(id *oid.ID) uint64 {
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
	return h
}
