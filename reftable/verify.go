package reftable

import (
	"bytes"

	"refaudit/finding"
)

// VerifyOptions say what the caller wants judged beside the table itself.
type VerifyOptions struct {
	// RefName judges the name of a ref or a log; "" for a good one, else what is wrong. nil: names are not judged.
	RefName func(name []byte) string
}

// Verify looks at the whole inner structure of a table: kinds, order, lengths and padding of
// blocks, restarts, keys, values, update indexes, every level of every index, object blocks
// against refs, log blocks. Each finding has its place in the file. The table's own Damage is
// not asked. The error is report's.
func Verify(t *Table, o VerifyOptions, report func(finding.Finding) error) error {
	v := newVerifier(t, o, report)
	for _, bad := range t.faults {
		v.corrupt(bad)
	}
	v.refs()
	v.logs()
	v.objects()
	for _, sec := range []*section{&v.ref, &v.obj, &v.log} {
		v.index(sec)
	}
	v.layout()
	return v.err
}

type verifier struct {
	t       *Table
	o       VerifyOptions
	report  func(finding.Finding) error
	err     error
	w       window
	told    map[place]bool  // what was said of blocks
	visited map[int64]int64 // where index blocks begin that an index leads to, and where the next block does
	indexed int64           // how long these are together
	ref     section
	log     section
	obj     section
	named   namedObjects
}

func newVerifier(t *Table, o VerifyOptions, report func(finding.Finding) error) *verifier {
	return &verifier{t: t, o: o, report: report, w: t.window(t.end, t.seekStep()), told: map[place]bool{}, visited: map[int64]int64{}}
}

// place is what is wrong with a block, and where that begins.
type place struct {
	id  finding.ID
	off int64
}

// say reports a finding, unless an earlier one stopped the verification.
func (v *verifier) say(f finding.Finding) {
	if v.err == nil {
		v.err = v.report(f)
	}
}

// corrupt reports what a read met; of the start of a block the same only once, for several reads meet it.
func (v *verifier) corrupt(bad *finding.Corrupt) {
	at := place{bad.ID, bad.Pos.Offset}
	if bad.Pos.Blocked && bad.Pos.Offset == bad.Pos.Block && bad.ID != finding.ReftableLog {
		if v.told[at] {
			return
		}
		v.told[at] = true
	}
	v.say(bad.Finding())
}

// block reports something about a block or a place in it.
func (v *verifier) block(id finding.ID, blk, off, length int64, format string, args ...any) {
	v.corrupt(v.t.corrupt(id, blk, off, length, format, args...))
}

// record reports something about the record of a ref.
func (v *verifier) record(id finding.ID, r *Ref, format string, args ...any) {
	f := v.t.corrupt(id, r.Block, r.Offset, r.Length, format, args...).Finding()
	f.Ref = finding.RefName(r.Name)
	v.say(f)
}

// A section is what was read of the blocks of one kind.
type section struct {
	kind   byte
	root   int64 // of its index
	leaves []leaf
	lost   bool // not all of it could be read
	// unsorted: its records are out of order, so what it lacks can't be told
	unsorted bool
	check    restartCheck
}

// A leaf is a block that was read.
type leaf struct {
	off  int64
	next int64  // where the next block begins
	end  int64  // behind its last byte
	last []byte // its last key; nil if that could not be read
}

// begin makes a walk report here and remember its blocks.
func (sec *section) begin(v *verifier, s *walk) {
	sec.kind, sec.root, sec.check = s.kind, s.index, restartCheck{v: v}
	s.told = true // the table's faults have been
	s.Damage = func(bad *finding.Corrupt) error {
		v.corrupt(bad)
		return v.err
	}
	s.loaded = func() {
		end := s.blk.off + int64(len(s.blk.data))
		if s.kind == kindLog {
			end = s.blk.next
			v.inflatable(&s.blk)
		}
		sec.leaves = append(sec.leaves, leaf{off: s.blk.off, next: s.blk.next, end: end})
		sec.check.begin(&s.blk)
	}
	s.passed = sec.check.pass
}

// step notes the record that the walk reached, which begins at start in its block.
func (sec *section) step(s *walk, start int) {
	l := &sec.leaves[len(sec.leaves)-1]
	l.last = append(l.last[:0], s.key...)
	sec.check.record(start, s.recs[start] == 0)
}

// end forgets what is not known for sure.
func (sec *section) end(s *walk) {
	sec.check.end()
	sec.lost = s.lost > 0
	for i := range sec.leaves {
		if s.cut[sec.leaves[i].off] {
			sec.leaves[i].last = nil
		}
	}
}

func (v *verifier) refs() {
	it := v.t.Iter()
	v.ref.begin(v, &it.walk)
	v.named.begin(v.t)
	for it.Next() {
		r := &it.ref
		v.ref.step(&it.walk, int(r.Offset-r.Block))
		switch {
		case r.UpdateIndex < v.t.Min || r.UpdateIndex > v.t.Max:
			v.record(finding.ReftableUpdateIndex, r, "update index %d is outside the table's range, %d to %d", r.UpdateIndex, v.t.Min, v.t.Max)
		case r.Type == Symref && len(r.Target) == 0:
			v.record(finding.ReftableRecord, r, "symref without a target")
		}
		if v.o.RefName != nil {
			if bad := v.o.RefName(r.Name); bad != "" {
				v.record(finding.BadRefName, r, "%s", bad)
			}
		}
		v.named.add(r)
	}
	v.ref.end(&it.walk)
	v.named.cut = it.cut
}

// maxZone is the largest zone there is, +1400 with room for odd minutes: git writes the digits
// of +hhmm into a log record, JGit minutes, which are fewer.
const maxZone = 1459

func (v *verifier) logs() {
	it := v.t.LogIter()
	v.log.begin(v, &it.walk)
	var name []byte
	for it.Next() {
		l := &it.log
		v.log.step(&it.walk, int(l.Offset))
		say := func(id finding.ID, format string, args ...any) {
			f := v.t.corrupt(id, l.Block, l.Block, 0, "log record %d bytes into its block: "+format, append([]any{l.Offset}, args...)...).Finding()
			f.Ref = finding.RefName(l.Name)
			v.say(f)
		}
		if l.UpdateIndex > v.t.Max {
			say(finding.ReftableUpdateIndex, "update index %d is above the table's largest, %d", l.UpdateIndex, v.t.Max)
		}
		if l.Type == LogUpdate && (l.Zone > maxZone || l.Zone < -maxZone) {
			say(finding.ReftableLog, "zone %+d does not exist", l.Zone)
		}
		if v.o.RefName != nil && !bytes.Equal(name, l.Name) {
			name = append(name[:0], l.Name...)
			if bad := v.o.RefName(l.Name); bad != "" {
				say(finding.BadRefName, "%s", bad)
			}
		}
	}
	v.log.end(&it.walk)
}
