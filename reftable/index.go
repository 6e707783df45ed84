package reftable

import (
	"bytes"

	"refaudit/finding"
)

// An index block holds the last key of other blocks and where they begin: index blocks of the
// level below, or the blocks that are indexed. Specification: Documentation/technical/reftable.adoc in git.
//
//	varint( prefix_length )  varint( suffix_length << 3 )  suffix  varint( block_position )
//
// The root, to which the footer points, may itself be several blocks in a row.

// maxLevels bounds a descent: an index of a file of 2^63 bytes needs fewer.
const maxLevels = 32

// indexRecord is one entry of an index block.
type indexRecord struct {
	key   []byte // the last key of the block it points to
	child int64  // where that block begins
}

// nextIndex decodes the record at p over rec, whose key must be that of the record before it, and tells
// where the next one begins. A child lies before its index block, for writers know it already:
// so every descent ends.
func (t *Table) nextIndex(b *block, p int, rec *indexRecord) (int, *finding.Corrupt) {
	recs := b.data[:b.recs]
	start := p
	key, extra, p := decodeKey(recs, p, rec.key)
	if p < 0 {
		return 0, t.corrupt(finding.ReftableIndexMismatch, b.off, b.place(start), 0, "key of an index record is damaged")
	}
	child, p := varint(recs, p)
	if p < 0 {
		return 0, t.corrupt(finding.ReftableIndexMismatch, b.off, b.place(start), 0, "position of an index record is damaged")
	}
	if extra != 0 {
		return 0, t.corrupt(finding.ReftableIndexMismatch, b.off, b.place(start), int64(p-start), "index record is of type %d, not 0", extra)
	}
	if child > 0 && child < uint64(headerLen(t.Version)) {
		return 0, t.corrupt(finding.ReftableIndexMismatch, b.off, b.place(start), int64(p-start), "index record points to %d, in the header", child)
	}
	if child >= uint64(b.off) {
		return 0, t.corrupt(finding.ReftableIndexMismatch, b.off, b.place(start), int64(p-start), "index record points to %d, which is not before its own block", child)
	}
	rec.key, rec.child = key, int64(child)
	return p, nil
}

// searchIndex finds the first record whose key is not below key; ok is false if all are.
func (t *Table) searchIndex(b *block, key []byte, rec *indexRecord) (ok bool, bad *finding.Corrupt) {
	p, good := b.searchRestarts(key)
	if !good {
		return false, t.corrupt(finding.ReftableRestart, b.off, b.place(b.recs), int64(3*b.restarts), "a restart of an index block leads to no whole key")
	}
	rec.key = rec.key[:0]
	for p < b.recs {
		if p, bad = t.nextIndex(b, p, rec); bad != nil {
			return false, bad
		}
		if bytes.Compare(rec.key, key) >= 0 {
			return true, nil
		}
	}
	return false, nil
}

// descend finds the block of the given kind that holds key if any does: the first whose last
// key is not below it. It is 0 and not ok if all keys of the index are below.
func (t *Table) descend(w *window, root int64, kind byte, key []byte) (off int64, ok bool, bad *finding.Corrupt) {
	var b block
	var rec indexRecord
	for off = root; !ok; off = b.next { // the blocks of the root
		k, _, bad := t.blockAt(w, off)
		if bad == nil && k != kindIndex {
			if off != root {
				return 0, false, nil
			}
			bad = t.corrupt(finding.ReftableIndexMismatch, off, off, 1, "footer places an index here, and the block is of kind %q", k)
		}
		if bad == nil {
			ok, bad = t.searchIndexBlock(w, off, key, &b, &rec)
		}
		if bad != nil {
			return 0, false, bad
		}
	}
	for level := 1; ; level++ {
		off = rec.child
		k, _, bad := t.blockAt(w, off)
		if bad == nil && k == kind {
			return off, true, nil
		}
		if bad == nil && (k != kindIndex || level == maxLevels) {
			bad = t.corrupt(finding.ReftableIndexMismatch, off, off, 1, "index points to this block, which is of kind %q instead of %q", k, kind)
		}
		if bad == nil {
			ok, bad = t.searchIndexBlock(w, off, key, &b, &rec)
		}
		if bad == nil && !ok {
			bad = t.corrupt(finding.ReftableIndexMismatch, off, off, int64(len(b.data)), "index says that this block's last key is %q or above, and it is below", key)
		}
		if bad != nil {
			return 0, false, bad
		}
	}
}

func (t *Table) searchIndexBlock(w *window, off int64, key []byte, b *block, rec *indexRecord) (bool, *finding.Corrupt) {
	if bad := t.readBlock(w, off, b); bad != nil {
		return false, bad
	}
	return t.searchIndex(b, key, rec)
}

// leaves lists the positions of the indexed blocks, in the order of the index, as far as the
// index can be read. It looks at no leaf but its kind.
func (t *Table) leaves(root int64, kind byte) []int64 {
	w := t.window(t.end, t.seekStep())
	var found []int64
	seen := map[int64]bool{}
	read := int64(0) // blocks that overlap could make more of it than the file has
	var visit func(off int64, level int)
	visit = func(off int64, level int) {
		var b block
		if seen[off] || level > maxLevels || read > t.end || t.readBlock(&w, off, &b) != nil {
			return
		}
		seen[off] = true
		read += int64(len(b.data))
		var children []int64
		var rec indexRecord
		for p := b.first(); p < b.recs; {
			next, bad := t.nextIndex(&b, p, &rec)
			if bad != nil {
				if next = b.restartAfter(p); next == 0 {
					break
				}
				rec.key = rec.key[:0]
			} else {
				children = append(children, rec.child)
			}
			p = next
		}
		for _, child := range children {
			switch k, _, _ := t.blockAt(&w, child); k {
			case kind:
				found = append(found, child)
			case kindIndex:
				visit(child, level+1)
			}
		}
	}
	for off := root; ; {
		k, _, _ := t.blockAt(&w, off)
		if k != kindIndex || seen[off] {
			return found
		}
		visit(off, 1)
		var b block
		if t.readBlock(&w, off, &b) != nil {
			return found
		}
		off = b.next
	}
}
