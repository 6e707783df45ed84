package reftable

import (
	"bytes"
	"encoding/binary"
	"slices"

	"refaudit/internal/refname"
)

// maxObjIDLen is the longest id that the footer's five bits can announce.
const maxObjIDLen = 31

// An objectIndex collects in which blocks of refs which objects are named.
type objectIndex struct {
	idLen   int
	ids     []byte // one after the other
	entries []objectEntry
}

type objectEntry struct {
	head uint64 // the first eight bytes of the id, which nearly always decide the order
	n    uint32 // which of ids it is
	off  int64  // the block
}

func (x *objectIndex) add(id []byte, off int64) {
	x.entries = append(x.entries, objectEntry{head: binary.BigEndian.Uint64(id), n: uint32(len(x.entries)), off: off})
	x.ids = append(x.ids, id...)
}

func (x *objectIndex) id(e *objectEntry) []byte {
	return x.ids[int(e.n)*x.idLen : (int(e.n)+1)*x.idLen]
}

// sort orders the entries by id, then by block.
func (x *objectIndex) sort() {
	slices.SortFunc(x.entries, func(a, b objectEntry) int {
		switch {
		case a.head < b.head:
			return -1
		case a.head > b.head:
			return 1
		}
		if c := bytes.Compare(x.id(&a), x.id(&b)); c != 0 {
			return c
		}
		return int(a.n) - int(b.n) // blocks were written in order
	})
}

// abbreviation is how many bytes tell all ids apart, at least 2.
func (x *objectIndex) abbreviation() int {
	most := 1
	for i := 1; i < len(x.entries); i++ {
		a, b := x.id(&x.entries[i-1]), x.id(&x.entries[i])
		if n := refname.CommonPrefix(a, b); n < x.idLen {
			most = max(most, n)
		}
	}
	return min(most+1, maxObjIDLen)
}

// writeObjects writes the object blocks, without their index.
func (t *Writer) writeObjects() error {
	x := &t.objects
	x.sort()
	n := x.abbreviation()
	t.foot.ObjIDLen = n
	t.begin(kindObj)
	var blocks []int64
	for i := 0; i < len(x.entries); {
		key := x.id(&x.entries[i])[:n]
		blocks = blocks[:0]
		for ; i < len(x.entries) && bytes.Equal(x.id(&x.entries[i])[:n], key); i++ {
			if off := x.entries[i].off; len(blocks) == 0 || blocks[len(blocks)-1] != off {
				blocks = append(blocks, off)
			}
		}
		if n < x.idLen && !slices.IsSorted(blocks) { // ids that only their cut-off end tells apart
			slices.Sort(blocks)
			blocks = slices.Compact(blocks)
		}
		if err := t.addObject(key, blocks); err != nil {
			return err
		}
	}
	t.objects = objectIndex{}
	return nil
}

// addObject writes one object record. Where its positions don't fit even an empty block, it
// gets none: that says that any block of refs may name the object.
func (t *Writer) addObject(key []byte, blocks []int64) error {
	extra := byte(0)
	v := t.value[:0]
	if len(blocks) < 8 {
		extra = byte(len(blocks))
	} else {
		v = appendVarint(v, uint64(len(blocks)))
	}
	last := int64(0)
	for _, off := range blocks {
		v = appendVarint(v, uint64(off-last))
		last = off
	}
	t.value = v
	if t.blk.add(key, extra, v) {
		return nil
	}
	if t.err = t.flush(); t.err != nil {
		return t.err
	}
	t.begin(kindObj)
	if t.blk.add(key, extra, v) || t.blk.add(key, 0, []byte{0}) {
		return nil
	}
	t.err = ErrTooBig
	return t.err
}
