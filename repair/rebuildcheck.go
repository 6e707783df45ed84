package repair

import (
	"bytes"
	"cmp"
	"fmt"

	"refaudit/reftable"
)

// standIn is a table that is to be listed, and those that are left out for it: their ranges lie within its own.
type standIn struct {
	table candidate
	out   []candidate
	// bottom: no table is listed below it. A compaction that begins there keeps no deletions, for there is nothing to delete.
	bottom bool
}

// check refuses to leave out a table of which a record would be lost: each must be in the table that stands for it, or
// hidden by a newer record there or in another that is left out. A peel may differ, which a repair may have changed.
func (s *Stack) check(in *standIn) error {
	if len(in.out) == 0 {
		return nil
	}
	lost, err := in.lostRef()
	if lost == nil && err == nil {
		lost, err = in.lostLog()
	}
	switch {
	case err != nil:
		return &Refused{Store: s.Label, Reason: "the tables are damaged inside", Err: err}
	case lost != nil:
		return &Refused{Store: s.Label, Reason: fmt.Sprintf("the update indexes of %s lie within those of %s, which doesn't have its record of %s, so that nobody can say which was listed; "+
			"`refaudit dump` shows both: copy the folder away, move the one that was not listed out of it, then run this again", lost.from, in.table.name, lost.what)}
	}
	return nil
}

// lostRecord is a record that would be in no listed table.
type lostRecord struct{ from, what string }

// lostRef finds a ref record that is not stood for.
func (in *standIn) lostRef() (*lostRecord, error) {
	tables := []*reftable.Table{in.table.table}
	for _, c := range in.out {
		tables = append(tables, c.table)
	}
	m := reftable.Merge(tables)
	for m.Next() {
		var stands *reftable.Ref
		newest := uint64(0) // of the records that are left out
		for _, e := range m.Entries() {
			if e.Table == 0 {
				stands = e.Ref
			} else {
				newest = max(newest, e.UpdateIndex)
			}
		}
		for _, e := range m.Entries() {
			if e.Table > 0 && e.UpdateIndex == newest && !in.standsForRef(stands, e.Ref) {
				return &lostRecord{in.out[e.Table-1].name, fmt.Sprintf("%q", e.Name)}, nil
			}
		}
	}
	return nil, m.Err()
}

// standsForRef tells whether a record, nil for none, makes up for the newest one of its name that is left out.
func (in *standIn) standsForRef(stands, r *reftable.Ref) bool {
	switch {
	case stands == nil:
		return in.bottom && r.Type == reftable.Deletion
	case stands.UpdateIndex != r.UpdateIndex:
		return stands.UpdateIndex > r.UpdateIndex
	}
	return bytes.Equal(stands.Value, r.Value) && bytes.Equal(stands.Target, r.Target) &&
		(stands.Type == reftable.Deletion) == (r.Type == reftable.Deletion)
}

// logKey is what a log record is found by.
type logKey struct {
	name  string
	index uint64
}

// lostLog finds a log record that is not stood for.
func (in *standIn) lostLog() (*lostRecord, error) {
	deleted := map[logKey]bool{}
	for _, c := range in.out {
		if err := c.table.Logs(func(l *reftable.Log) error {
			if l.Type == reftable.LogDeletion {
				deleted[logKey{string(l.Name), l.UpdateIndex}] = true
			}
			return nil
		}); err != nil {
			return nil, err
		}
	}
	for _, c := range in.out {
		stands := in.table.table.LogIter()
		more := stands.Next()
		logs := c.table.LogIter()
		for logs.Next() {
			l := logs.Log()
			for more && orderOfLogs(stands.Log(), l) < 0 {
				more = stands.Next()
			}
			var same *reftable.Log
			if more && orderOfLogs(stands.Log(), l) == 0 {
				same = stands.Log()
			}
			if !in.standsForLog(same, l, deleted) {
				return &lostRecord{c.name, fmt.Sprintf("the log of %q at update index %d", l.Name, l.UpdateIndex)}, nil
			}
		}
		if err := cmp.Or(logs.Err(), stands.Err()); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// standsForLog tells whether a log record of the same key, nil for none, makes up for one that is left out.
func (in *standIn) standsForLog(stands, l *reftable.Log, deleted map[logKey]bool) bool {
	gone := l.Type == reftable.LogDeletion || deleted[logKey{string(l.Name), l.UpdateIndex}]
	switch {
	case stands == nil:
		return in.bottom && gone
	case stands.Type == reftable.LogDeletion:
		return true
	}
	return !gone && bytes.Equal(stands.Value, l.Value)
}

// orderOfLogs is the order of log records in a table: by name, and the newest first.
func orderOfLogs(a, b *reftable.Log) int {
	return cmp.Or(bytes.Compare(a.Name, b.Name), cmp.Compare(b.UpdateIndex, a.UpdateIndex))
}
