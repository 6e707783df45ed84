package reftable

import (
	"bytes"
	"slices"

	"refaudit/finding"
)

// Split gives names that cut the refs into n parts of about the same size, in order: n-1 of them, each of the first
// record of a block. nil where that can't be told: the blocks are not aligned, or too few, or damaged.
func (t *Table) Split(n int) [][]byte {
	if t.BlockSize == 0 {
		return nil
	}
	size := int64(t.BlockSize)
	w := t.window(t.end, t.seekStep())
	var names [][]byte
	for i := range n - 1 {
		off := t.refEnd() / int64(n) * int64(i+1) / size * size
		kind, _, bad := t.blockAt(&w, off)
		var b block
		if off == 0 || bad != nil || kind != kindRef || t.readBlock(&w, off, &b) != nil {
			return nil
		}
		name, whole := b.fullKey(b.first())
		if !whole || i > 0 && bytes.Compare(name, names[i-1]) <= 0 {
			return nil
		}
		names = append(names, bytes.Clone(name))
	}
	return names
}

// Stretch is the refs of a stack from a name on, up to another. Each stretch has its own place in every table,
// so that several can be read at the same time; JudgeStretches puts together what they have seen.
type Stretch struct {
	*Merged
	to     []byte
	begins []int64 // where in each table's file its first record is, of whatever name; -1: there is none
	ends   []int64 // and the first one behind it
}

// MergeStretch begins before the first ref that is not below from (nil: the first of all). It ends before the first that is
// not below to (nil: at the end).
func MergeStretch(tables []*Table, from, to []byte) *Stretch {
	p := &Stretch{Merged: Merge(tables), to: to}
	p.Searches()
	if from != nil {
		p.Seek(from)
		p.begins = p.places()
	}
	return p
}

// Next goes to the next name; false at the end, or where Err says so.
func (p *Stretch) Next() bool {
	if p.Merged.Next() && (p.to == nil || bytes.Compare(p.entries[0].Name, p.to) < 0) {
		return true
	}
	p.ends = p.places()
	return false
}

// places are where in their files the records at hand begin, and those of the tables whose turn will come.
func (p *Stretch) places() []int64 {
	all := slices.Repeat([]int64{-1}, len(p.iters))
	for _, i := range slices.Concat(p.heap, p.group) {
		all[i] = p.iters[i].ref.Offset
	}
	return all
}

// JudgeStretches tells, of the stretches of a stack that were all read to their ends, whether each begins in every table where the
// one before it ended: false if anything lies between two of them, or in both. Then it reports what JudgeSearches
// would, had the stack been read as one.
func JudgeStretches(all []*Stretch, report func(finding.Finding) error) (whole bool, err error) {
	for i, p := range all[1:] {
		if !slices.Equal(all[i].ends, p.begins) {
			return false, nil
		}
	}
	for i, first := range all[0].searches {
		for k, p := range all {
			s := p.searches[i]
			if p.ends[i] < 0 { // its last block was read to the end
				s.end()
			}
			s.sound = false
			if k > 0 {
				first.join(s)
			}
		}
		if err := first.judge(report); err != nil {
			return true, err
		}
	}
	return true, nil
}

// join adds what was seen of the blocks further on. The one where the stretches meet was seen by both.
func (s *search) join(next *search) {
	known := &s.v.ref.leaves
	for _, l := range next.v.ref.leaves {
		switch last := len(*known) - 1; {
		case last < 0 || l.off > (*known)[last].off:
			*known = append(*known, l)
		case l.off == (*known)[last].off && l.last != nil:
			(*known)[last].last = l.last
		}
	}
	s.found = append(s.found, next.found...)
	s.it.lost += next.it.lost
}
