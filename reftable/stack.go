package reftable

import (
	"bytes"
	"fmt"

	"refaudit/finding"
	"refaudit/oid"
)

// Entry is one record of a ref, and the table that has it.
type Entry struct {
	*Ref
	Table int // counted from the oldest, 0
}

// Merged goes through the refs of a stack of tables.
type Merged struct {
	merge
	iters    []*RefIter
	entries  []Entry
	searches []*search
}

// Merge begins at the first ref of a stack, whose tables come the oldest first.
func Merge(tables []*Table) *Merged {
	m := &Merged{}
	for _, t := range tables {
		it := t.Iter()
		m.iters = append(m.iters, it)
		m.add(it, &it.walk)
	}
	return m
}

// Next goes to the next name; false at the end, or where Err says so.
func (m *Merged) Next() bool {
	if len(m.iters) == 1 && len(m.group) == 1 && len(m.entries) == 1 && m.iters[0].Next() { // nothing to merge: the entry stays what it is
		return true
	}
	m.entries = m.entries[:0]
	if !m.step() {
		return false
	}
	for _, i := range m.group {
		m.entries = append(m.entries, Entry{&m.iters[i].ref, i})
	}
	return true
}

// Entries are the records of the name at hand, the newest table first: the first is what git
// serves (nothing, if it is a deletion), and it hides the others. They hold until the next step.
func (m *Merged) Entries() []Entry { return m.entries }

// JGit is the record that JGit serves: that with the highest update index, and of equal ones
// the newest table's. same tells whether git serves the same value; the record is the first
// entry then.
func (m *Merged) JGit() (e Entry, same bool) {
	e = m.entries[0]
	for _, other := range m.entries[1:] {
		if other.UpdateIndex > e.UpdateIndex {
			e = other
		}
	}
	if e.Says(m.entries[0].Ref) {
		return m.entries[0], true
	}
	return e, false
}

// Says tells whether two records say the same of their ref.
func (r *Ref) Says(other *Ref) bool {
	return r.Type == other.Type && bytes.Equal(r.Value, other.Value) && bytes.Equal(r.Peel, other.Peel) && bytes.Equal(r.Target, other.Target)
}

// MergedLogs goes through the log records of a stack of tables.
type MergedLogs struct {
	merge
	iters []*LogIter
}

// MergeLogs begins at the first log record of a stack, whose tables come the oldest first.
func MergeLogs(tables []*Table) *MergedLogs {
	m := &MergedLogs{}
	for _, t := range tables {
		it := t.LogIter()
		m.iters = append(m.iters, it)
		m.add(it, &it.walk)
	}
	return m
}

// Next goes to the next record that no newer table hides; false at the end, or where Err says so.
func (m *MergedLogs) Next() bool { return m.step() }

// Log is the record at hand, which holds until the next step. It may be a deletion, that
// took back a record of an older table.
func (m *MergedLogs) Log() *Log { return &m.iters[m.group[0]].log }

// CheckStack judges what only a stack as a whole can show, from headers and names alone: that the ranges of
// update indexes rise, that each table is named after its own, and that all are of one hash.
// Each finding is about one table; want is the repository's format, 0 for that of the first table.
func CheckStack(tables []*Table, want oid.Format, report func(finding.Finding) error) error {
	for i, t := range tables {
		if want == 0 {
			want = t.Format
		}
		say := func(id finding.ID, format string, args ...any) error {
			return report(finding.New(id, finding.Pos{File: t.file, Offset: 0, Length: int64(headerLen(t.Version)), Placed: true}, format, args...))
		}
		if t.Format != want {
			if err := say(finding.ReftableHashMismatch, "table is of %v, the repository of %v", t.Format, want); err != nil {
				return err
			}
		}
		if i > 0 && t.Min <= tables[i-1].Max {
			if err := say(finding.ReftableUpdateIndex, "update indexes begin at %d, and those of %s before it in the stack end at %d", t.Min, base(tables[i-1].file), tables[i-1].Max); err != nil {
				return err
			}
		}
		n, err := ParseTableName(base(t.file))
		if err == nil && (n.Min != t.Min || n.Max != t.Max) {
			if err := say(finding.ReftableUpdateIndex, "table is named after update indexes %d to %d, and its header says %d to %d", n.Min, n.Max, t.Min, t.Max); err != nil {
				return err
			}
		}
	}
	return nil
}

// base is the last part of a path with slashes.
func base(file string) string {
	for i := len(file) - 1; i >= 0; i-- {
		if file[i] == '/' {
			return file[i+1:]
		}
	}
	return file
}

// String shows a record for messages.
func (r *Ref) String() string {
	switch r.Type {
	case Direct:
		return fmt.Sprintf("%q %x", r.Name, r.Value)
	case Peeled:
		return fmt.Sprintf("%q %x, peeled %x", r.Name, r.Value, r.Peel)
	case Symref:
		return fmt.Sprintf("%q -> %q", r.Name, r.Target)
	}
	return fmt.Sprintf("%q %v", r.Name, r.Type)
}
