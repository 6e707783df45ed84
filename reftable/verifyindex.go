package reftable

import (
	"bytes"
	"cmp"
	"slices"

	"refaudit/finding"
)

// index follows a section's index from the root: every block of the section must be reached,
// in order, under its own last key, and on each level the key is that of the block below.
func (v *verifier) index(sec *section) {
	switch {
	case sec.root != 0:
	case v.t.BlockSize == 0 && len(sec.leaves) > 1 && sec.kind != kindObj:
		v.block(finding.ReftableIndexMismatch, sec.leaves[0].off, sec.leaves[0].off, 0, "%d blocks of kind %q without an index, which a table of unaligned blocks must have", len(sec.leaves), sec.kind)
		return
	default:
		return
	}
	d := &descent{v: v, sec: sec}
	for off := sec.root; v.err == nil; {
		kind, _, bad := v.t.blockAt(&v.w, off)
		if bad != nil {
			v.corrupt(bad)
			return
		}
		if kind != kindIndex {
			if off == sec.root {
				v.block(finding.ReftableIndexMismatch, off, off, 1, "footer places an index here, and the block is of kind %q", kind)
				return
			}
			break
		}
		next, _ := d.visit(off, 1)
		if next == 0 {
			d.lost = true
			break
		}
		off = next
	}
	for ; d.next < len(sec.leaves) && !d.lost; d.next++ {
		d.unreached(d.next)
	}
}

// descent is the state of following one index.
type descent struct {
	v    *verifier
	sec  *section
	next int  // of the section's leaves, the one that the index should lead to
	lost bool // part of the index could not be read
}

func (d *descent) unreached(i int) {
	l := &d.sec.leaves[i]
	d.v.block(finding.ReftableIndexMismatch, l.off, l.off, l.end-l.off, "no index leads to this block of kind %q: searches do not find what is in it", d.sec.kind)
}

// visit follows an index block and tells where the next block begins (0: it can't be read) and its last key.
func (d *descent) visit(off int64, level int) (next int64, last []byte) {
	v := d.v
	if _, again := v.visited[off]; again {
		v.block(finding.ReftableIndexMismatch, off, off, 0, "an index leads to this block more than once")
		return 0, nil
	}
	var b block
	if bad := v.t.readBlock(&v.w, off, &b); bad != nil {
		v.visited[off] = 0
		v.corrupt(bad)
		return 0, nil
	}
	v.visited[off] = b.next
	if v.indexed += int64(len(b.data)); v.indexed > v.t.end {
		v.block(finding.ReftableIndexMismatch, off, off, int64(len(b.data)), "index blocks overlap: together they are longer than the table")
		return 0, nil
	}
	records, last := d.records(&b)
	for _, r := range records {
		if v.err != nil {
			break
		}
		d.follow(r, b.off, level)
	}
	return b.next, last
}

// indexItem is an index record and its place.
type indexItem struct {
	indexRecord
	off, length int64
}

// records decodes an index block; last is its last key, nil if that is not known.
func (d *descent) records(b *block) (items []indexItem, last []byte) {
	v := d.v
	if bad := v.t.checkFirst(b); bad != nil {
		v.corrupt(bad)
	}
	check := restartCheck{v: v}
	check.begin(b)
	var rec indexRecord
	sure := true
	for p := b.first(); p < b.recs; {
		next, bad := v.t.nextIndex(b, p, &rec)
		if bad != nil {
			v.corrupt(bad)
			d.lost, sure = true, false
			if next = b.restartAfter(p); next == 0 {
				next = b.recs
			}
			check.pass(p, next)
			rec.key = rec.key[:0]
			p = next
			continue
		}
		sure = true
		check.record(p, b.data[p] == 0)
		if len(items) > 0 && bytes.Compare(rec.key, items[len(items)-1].key) <= 0 {
			v.block(finding.ReftableBlockOrder, b.off, b.place(p), int64(next-p), "index key %q does not sort behind the one before it", rec.key)
		}
		items = append(items, indexItem{indexRecord{bytes.Clone(rec.key), rec.child}, b.place(p), int64(next - p)})
		p = next
	}
	check.end()
	if n := len(items); n > 0 && sure {
		last = items[n-1].key
	}
	return items, last
}

// follow goes where one record leads.
func (d *descent) follow(r indexItem, blk int64, level int) {
	v := d.v
	kind, _, bad := v.t.blockAt(&v.w, r.child)
	if bad != nil {
		v.corrupt(bad)
		d.lost = true
		return
	}
	if kind == kindIndex && level < maxLevels {
		next, last := d.visit(r.child, level+1)
		if next == 0 {
			d.lost = true
		} else {
			d.compare(r, blk, last)
		}
		return
	}
	i, found := slices.BinarySearchFunc(d.sec.leaves, r.child, func(l leaf, at int64) int { return cmp.Compare(l.off, at) })
	switch {
	case !found && kind == d.sec.kind && d.sec.lost: // a block that could not be read, as was said
		return
	case !found:
		v.block(finding.ReftableIndexMismatch, blk, r.off, r.length, "index record %q leads to %d, where no block of kind %q begins", r.key, r.child, d.sec.kind)
		return
	case i < d.next:
		v.block(finding.ReftableIndexMismatch, blk, r.off, r.length, "index record %q leads to the block at %d, which a record before it has passed", r.key, r.child)
		return
	}
	for ; d.next < i && !d.lost; d.next++ {
		d.unreached(d.next)
	}
	d.next = i + 1
	d.compare(r, blk, d.sec.leaves[i].last)
}

// compare holds the key of a record against the last key of the block it leads to, if that is known.
func (d *descent) compare(r indexItem, blk int64, last []byte) {
	if last != nil && !bytes.Equal(r.key, last) {
		d.v.block(finding.ReftableIndexMismatch, blk, r.off, r.length, "index record says that the block at %d ends with %q, and it ends with %q", r.child, r.key, last)
	}
}
