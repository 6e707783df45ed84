package reftable

import (
	"bytes"

	"refaudit/finding"
)

// VerifySearch looks at what readers find refs by: every level of the ref index, the restarts of the blocks of refs,
// and their size. A listing begins with a search too, so where one goes wrong git may see some refs less, or none, and
// tells nobody. It decodes few records: damage of those is for a reading of all to tell, and Verify tells all that
// this does. The table's own Damage is not asked. The error is report's.
func VerifySearch(t *Table, report func(finding.Finding) error) error {
	v := &verifier{t: t, report: report, w: t.window(t.end, t.seekStep()), told: map[place]bool{}, visited: map[int64]int64{}}
	it := t.Iter()
	it.told = true
	it.Damage = func(*finding.Corrupt) error { return v.err }
	v.ref.kind, v.ref.root = kindRef, t.RefIndex
	for it.nextBlock() && v.err == nil {
		b := &it.blk
		l := leaf{off: b.off, next: b.next, end: b.off + int64(len(b.data))}
		v.fits(l, kindRef)
		if t.checkFirst(b) == nil && v.searchable(b) { // what checkFirst says, every reading tells
			l.last = it.lastKey()
		}
		v.ref.leaves = append(v.ref.leaves, l)
	}
	v.ref.lost = it.lost > 0
	if t.RefIndex != 0 {
		v.index(&v.ref)
	}
	return v.err
}

// fits holds a block against the block size: git reads no more of it.
func (v *verifier) fits(b leaf, kind byte) {
	if size := int64(v.t.BlockSize); size > 0 && b.end-b.off > size {
		v.block(finding.ReftableBlockOrder, b.off, b.off, b.end-b.off, "block of kind %q has %d bytes, more than the block size, %d", kind, b.end-b.off, size)
	}
}

// searchable tells whether the restarts of a block rise, and lead to keys that are whole and rise as well.
func (v *verifier) searchable(b *block) bool {
	var before []byte
	for i, last := 0, 0; i < b.restarts; i++ {
		at := b.restart(i)
		key, whole := b.fullKey(at)
		switch {
		case at <= last:
			v.restart(b, i, "restart to %d does not rise above the one before it, to %d", at, last)
			return false
		case !whole:
			v.restart(b, i, "restart leads to %d, where no record with a whole key begins", at)
			return false
		case i > 0 && bytes.Compare(key, before) <= 0:
			v.restart(b, i, "restart leads to %d, to the key %q, which does not sort behind that of the restart before it", at, key)
			return false
		}
		last, before = at, key
	}
	return true
}

func (v *verifier) restart(b *block, i int, format string, args ...any) {
	v.block(finding.ReftableRestart, b.off, b.place(b.recs+3*i), 3, format, args...)
}

// lastKey is the last key of the block at hand, whose restarts are sound; nil if it could not be read.
func (it *RefIter) lastKey() []byte {
	it.p, it.fresh, it.ordered = it.blk.restart(it.blk.restarts-1), true, false
	lost := it.lost
	for it.nextInBlock() {
	}
	if it.lost > lost {
		return nil
	}
	return bytes.Clone(it.key)
}
