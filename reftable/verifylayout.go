package reftable

import (
	"cmp"
	"slices"

	"refaudit/finding"
)

// The order of sections: blocks of refs, their index, objects, their index, logs, their index.
const (
	rankRef = iota
	rankRefIndex
	rankObj
	rankObjIndex
	rankLog
	rankLogIndex
)

// layout goes through the file block by block: which kinds follow one another, whether the
// footer says where each section begins, and that nothing stands between blocks but padding.
func (v *verifier) layout() {
	known, told := v.known(), make([]int64, 0, len(v.told))
	for at := range v.told {
		told = append(told, at.off)
	}
	slices.Sort(told)
	rank := -1
	for off := int64(0); v.t.hasBlocks() && off < v.t.end && v.err == nil; {
		i, found := slices.BinarySearchFunc(known, off, func(l leaf, at int64) int { return cmp.Compare(l.off, at) })
		if !found {
			next := v.t.end
			if i < len(known) {
				next = known[i].off
			}
			if i, _ := slices.BinarySearch(told, off); i == len(told) || told[i] >= next {
				v.stray(off, next)
			}
			off = next
			continue
		}
		b := known[i]
		kind, _, _ := v.t.blockAt(&v.w, off)
		rank = v.rank(kind, rank, off)
		if kind == kindRef || kind == kindObj {
			v.fits(b, kind)
		}
		off = v.padding(b)
	}
	v.begins(&v.obj, v.t.Obj, "object")
	v.begins(&v.log, v.t.Log, "log")
}

// known lists all blocks that were read, in the order of the file.
func (v *verifier) known() []leaf {
	all := slices.Concat(v.ref.leaves, v.log.leaves, v.obj.leaves)
	for off, next := range v.visited {
		if next != 0 {
			all = append(all, leaf{off: off, next: next})
		}
	}
	for i := range all {
		if all[i].end == 0 {
			_, length, _ := v.t.blockAt(&v.w, all[i].off)
			all[i].end = all[i].off + int64(length)
		}
	}
	slices.SortFunc(all, func(a, b leaf) int { return cmp.Compare(a.off, b.off) })
	return slices.CompactFunc(all, func(a, b leaf) bool { return a.off == b.off })
}

// rank judges a block's kind behind what was there before it.
func (v *verifier) rank(kind byte, before int, off int64) int {
	now := rankRef
	switch kind {
	case kindObj:
		now = rankObj
	case kindLog:
		now = rankLog
	case kindIndex: // that of the section it stands in
		now = max(before, rankRef) | 1
	}
	if now < before {
		v.block(finding.ReftableBlockOrder, off, off, 1, "block of kind %q stands behind a later section", kind)
		return before
	}
	return now
}

// padding looks at what stands between a block and the next, and tells where that begins.
func (v *verifier) padding(b leaf) int64 {
	next := min(b.next, v.t.end)
	for off := b.end; off < next && v.err == nil; {
		raw, bad := v.w.at(off, int(min(next-off, 64<<10)))
		if bad != nil {
			v.corrupt(bad)
			return next
		}
		for i, c := range raw {
			if c != 0 {
				v.block(finding.ReftableBlockOrder, b.off, off+int64(i), 1, "padding holds %#02x", c)
				return next
			}
		}
		off += int64(len(raw))
	}
	return next
}

// stray reports bytes between blocks that belong to none that was read.
func (v *verifier) stray(off, next int64) {
	kind, _, _ := v.t.blockAt(&v.w, off)
	if kind == kindIndex {
		if _, was := v.visited[off]; !was {
			v.block(finding.ReftableIndexMismatch, off, off, next-off, "no index leads to this index block")
		}
		return
	}
	if v.ref.lost || v.log.lost || v.obj.lost {
		return
	}
	v.block(finding.ReftableBlockOrder, off, off, next-off, "%d bytes of kind %q belong to no section", next-off, kind)
}

// begins holds the first block of a section against the footer's word.
func (v *verifier) begins(sec *section, claim int64, name string) {
	if len(sec.leaves) > 0 && sec.leaves[0].off != claim && !sec.lost {
		v.block(finding.ReftableIndexMismatch, sec.leaves[0].off, sec.leaves[0].off, 0, "first %s block stands here, and the footer says %d", name, claim)
	}
}
