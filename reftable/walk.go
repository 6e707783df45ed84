package reftable

import (
	"fmt"
	"slices"

	"refaudit/finding"
)

// A walk goes through the blocks of one section of a table, and past those that can't be
// read. Of the blocks around its section it reads nothing but the first byte.
type walk struct {
	// Damage is the table's; it may be replaced before the first step.
	Damage func(*finding.Corrupt) error

	t     *Table
	w     window
	kind  byte
	start int64 // the section's first block; the table's end if there is none
	limit int64 // a place that the section does not reach: what the footer places next
	index int64 // root of the section's index; 0: it has none

	blk     block
	recs    []byte // the records of blk
	p       int    // the next one
	next    int64  // the next block
	key     []byte // of the last record
	fresh   bool   // the next record has no record before it in its block, or none that could be read
	ordered bool   // key is that of the record before, so the next one must be above it
	held    bool   // the record at hand is to be given by the next step: a seek found it

	told   bool // the table's own faults have been told
	listed bool // leaves is made
	leaves []int64
	inf    *inflater
	loaded func()             // told of each block that was read
	passed func(from, to int) // and of what in it could not be
	cut    map[int64]bool     // blocks of which records could not be read, and whether the last was among them
	lost   int64
	err    error
}

// walk makes a walk whose reads take at least step bytes.
func (t *Table) walk(kind byte, step int) walk {
	s := walk{Damage: t.Damage, t: t, w: t.window(t.end, step), kind: kind, start: t.end, limit: t.end}
	switch kind {
	case kindRef:
		if t.hasBlocks() && !t.logOnly {
			s.start = 0
		}
		s.limit, s.index = t.refEnd(), t.RefIndex
	case kindObj:
		if t.Obj != 0 {
			s.start = t.Obj
		}
		s.index = t.ObjIndex
		for _, pos := range []int64{t.ObjIndex, t.Log, t.LogIndex} {
			if pos > t.Obj {
				s.limit = min(s.limit, pos)
			}
		}
	case kindLog:
		if t.logOnly || t.logs && t.Log == 0 {
			s.start = 0
		} else if t.Log != 0 {
			s.start = t.Log
		}
		if s.index = t.LogIndex; s.index != 0 {
			s.limit = s.index
		}
		s.inf = new(inflater)
	}
	s.next = s.start
	return s
}

// Lost is how many bytes were stepped over so far, because they could not be read.
func (s *walk) Lost() int64 { return s.lost }

// Err tells why the steps ended: nil at the end of the section, ErrDamaged if on the way
// records were stepped over, or what stopped them.
func (s *walk) Err() error {
	if s.err == nil && s.lost > 0 {
		return fmt.Errorf("%s: %w", s.t.file, ErrDamaged)
	}
	return s.err
}

// seek leads to the block that holds key, if the section has an index; without, or if that
// is damaged, to the first block. It tells false if no key is as high, or an error stops the walk.
func (s *walk) seek(key []byte) bool {
	s.blk, s.recs, s.p, s.next = block{}, nil, 0, s.start
	s.ordered, s.held, s.err = false, false, nil
	s.w.least = s.t.seekStep()
	s.w.step = s.w.least
	if !s.begin() {
		return false
	}
	if s.index == 0 || s.start == s.t.end {
		return true
	}
	off, ok, bad := s.t.descend(&s.w, s.index, s.kind, key)
	if bad != nil { // the blocks themselves know
		return s.fault(bad)
	}
	s.next = off
	return ok
}

// searchBlock goes to where in the block at hand a search for key begins.
func (s *walk) searchBlock(key []byte) bool {
	p, ok := s.blk.searchRestarts(key)
	if !ok && !s.fault(s.t.corrupt(finding.ReftableRestart, s.blk.off, s.blk.place(s.blk.recs), int64(3*s.blk.restarts), "a restart leads to no whole key")) {
		return false
	}
	s.p, s.ordered = p, false
	return true
}

// skipRecord steps over the record at hand, which can't be read, to the next one that is stored whole.
func (s *walk) skipRecord() {
	at := s.blk.restartAfter(s.p)
	if at == 0 {
		at = len(s.recs)
	}
	if s.cut == nil {
		s.cut = map[int64]bool{}
	}
	s.cut[s.blk.off] = at == len(s.recs)
	if s.passed != nil {
		s.passed(s.p, at)
	}
	s.lost += int64(at - s.p)
	s.p, s.fresh = at, true
}

// nextBlock goes to the next block that can be read; false after the last one.
func (s *walk) nextBlock() bool {
	t := s.t
	for s.err == nil && s.next < t.end {
		off := s.next
		kind, _, bad := t.blockAt(&s.w, off)
		if bad == nil && kind != s.kind {
			if bad = s.endsRightly(off, kind); bad == nil {
				s.next = t.end
				break
			}
		}
		if bad == nil && off >= s.limit && !s.fault(t.corrupt(finding.ReftableIndexMismatch, off, off, 1, "block of kind %q where the footer places another section", kind)) {
			break
		}
		if bad == nil {
			bad = s.read(off)
		}
		if bad == nil {
			s.next, s.recs, s.p, s.fresh = s.blk.next, s.blk.data[:s.blk.recs], s.blk.first(), true
			if s.loaded != nil {
				s.loaded()
			}
			if bad := t.checkFirst(&s.blk); bad != nil {
				s.lost++ // nobody can tell how many
				return s.fault(bad)
			}
			return true
		}
		s.skipBlock(off, bad)
	}
	return false
}

func (s *walk) read(off int64) *finding.Corrupt {
	if s.kind == kindLog {
		return s.inf.read(s.t, &s.w, off, &s.blk)
	}
	return s.t.readBlock(&s.w, off, &s.blk)
}

// endsRightly judges a block of another kind: nil if the section may end before it.
func (s *walk) endsRightly(off int64, kind byte) *finding.Corrupt {
	if off >= s.limit {
		return nil
	}
	if kind != kindIndex || s.index == 0 || off == s.start {
		return s.t.corrupt(finding.ReftableBlockOrder, off, off, 1, "block of kind %q among those of kind %q", kind, s.kind)
	}
	// lower levels of the index come before its root, to which the footer points
	if leaf := s.leafAfter(off); leaf != 0 {
		return s.t.corrupt(finding.ReftableBlockOrder, off, off, 1, "block of kind %q among those of kind %q: the index knows another at %d", kind, s.kind, leaf)
	}
	return nil
}

// skipBlock reports a block that can't be read and finds the next one that may be.
func (s *walk) skipBlock(off int64, bad *finding.Corrupt) {
	to := s.leafAfter(off)
	if to == 0 && s.kind == kindLog {
		to = s.inf.search(s.t, &s.w, max(off+1, int64(headerLen(s.t.Version))), s.limit)
	} else if to == 0 {
		to = s.alignedAfter(off)
	}
	where := fmt.Sprintf("reading goes on at %d", to)
	if to == 0 {
		to, where = s.t.end, "no block is known behind it"
	}
	s.lost += max(1, min(to, s.limit)-off)
	bad.Err = fmt.Errorf("%w; %s", bad.Err, where)
	s.recs, s.p, s.next = nil, 0, to
	s.fault(bad)
}

// alignedAfter is the next multiple of the block size at which a block of the section can be read; 0: none.
func (s *walk) alignedAfter(off int64) int64 {
	if s.t.BlockSize == 0 {
		return 0
	}
	var b block
	for at := off + int64(s.t.BlockSize); at < s.limit; at += int64(s.t.BlockSize) {
		if kind, _, _ := s.t.blockAt(&s.w, at); kind == s.kind && at >= int64(headerLen(s.t.Version)) && s.t.readBlock(&s.w, at, &b) == nil {
			return at
		}
	}
	return 0
}

// leafAfter is the next block behind off that the index knows of; 0: none.
func (s *walk) leafAfter(off int64) int64 {
	if !s.listed {
		s.listed = true
		if s.index != 0 {
			s.leaves = s.t.leaves(s.index, s.kind)
			slices.Sort(s.leaves)
			s.leaves = slices.Compact(s.leaves) // or the block behind one could be itself
		}
	}
	i, found := slices.BinarySearch(s.leaves, off)
	if found {
		i++
	}
	if i == len(s.leaves) {
		return 0
	}
	return s.leaves[i]
}

// begin reports once what is wrong with the table as a whole.
func (s *walk) begin() bool {
	for _, bad := range s.t.faults {
		if !s.told && !s.fault(bad) {
			return false
		}
	}
	s.told = true
	return s.err == nil
}

// fault reports damage; true if the walk may go on.
func (s *walk) fault(bad *finding.Corrupt) bool {
	if s.err != nil {
		return false
	}
	if s.Damage == nil {
		s.err = bad
	} else {
		s.err = s.Damage(bad)
	}
	return s.err == nil
}

// badRecord reports that the record at start can't be, and what was found. It is always false.
func (s *walk) badRecord(id finding.ID, start int, format string, args ...any) bool {
	s.fault(s.t.corrupt(id, s.blk.off, s.blk.place(start), 0, format, args...))
	return false
}
