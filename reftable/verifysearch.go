package reftable

import (
	"bytes"

	"refaudit/finding"
)

// VerifySearch looks at what readers find refs by: every level of the ref index, the restarts of the blocks of refs,
// and their size. A listing begins with a search too, so where one goes wrong git may see some refs less, or none, and
// tells nobody. Damage of records is for a reading of all to tell, and Verify tells all that this does. The table's
// own Damage is not asked. The error is report's.
func VerifySearch(t *Table, report func(finding.Finding) error) error {
	it := t.Iter()
	it.told = true
	it.Damage = func(*finding.Corrupt) error { return nil }
	s := it.watch()
	for it.nextBlock() {
		if s.sound {
			it.toLast()
		}
	}
	return s.judge(report)
}

// Searches makes the merge look at what readers find refs by, as VerifySearch does, on its way through all refs.
func (m *Merged) Searches() {
	for _, it := range m.iters {
		m.searches = append(m.searches, it.watch())
	}
}

// JudgeSearches reports what was found, table by table, when the merge has come to its end.
func (m *Merged) JudgeSearches(report func(finding.Finding) error) error {
	for _, s := range m.searches {
		if err := s.judge(report); err != nil {
			return err
		}
	}
	return nil
}

// search is what is known of one table's blocks of refs while they are read.
type search struct {
	it    *RefIter
	v     *verifier
	found []finding.Finding
	sound bool  // the restarts of the block at hand are, and so its last key will be known
	lost  int64 // when the block at hand was begun
}

func (it *RefIter) watch() *search {
	s := &search{it: it}
	s.v = newVerifier(it.t, VerifyOptions{}, func(f finding.Finding) error {
		s.found = append(s.found, f)
		return nil
	})
	s.v.ref.kind, s.v.ref.root = kindRef, it.t.RefIndex
	it.loaded = s.begin
	return s
}

// begin looks at a block that was just read.
func (s *search) begin() {
	s.end()
	b := &s.it.blk
	l := leaf{off: b.off, next: b.next, end: b.off + int64(len(b.data))}
	s.v.fits(l, kindRef)
	s.sound, s.lost = s.it.t.checkFirst(b) == nil && s.v.searchable(b), s.it.lost // what checkFirst says, every reading tells
	s.v.ref.leaves = append(s.v.ref.leaves, l)
}

// end takes the last key of the block that was read to its end.
func (s *search) end() {
	if s.sound && s.it.lost == s.lost {
		s.v.ref.leaves[len(s.v.ref.leaves)-1].last = bytes.Clone(s.it.key)
	}
}

// judge holds the index against the blocks, and reports what was found.
func (s *search) judge(report func(finding.Finding) error) error {
	s.end()
	s.v.ref.lost = s.it.lost > 0
	if s.it.t.RefIndex != 0 {
		s.v.index(&s.v.ref)
	}
	for i := range s.found {
		if err := report(s.found[i]); err != nil {
			return err
		}
	}
	return nil
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

// toLast goes to the last record of the block at hand, whose restarts are sound.
func (it *RefIter) toLast() {
	it.p, it.fresh, it.ordered = it.blk.restart(it.blk.restarts-1), true, false
	for it.nextInBlock() {
	}
}
