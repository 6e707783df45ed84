package refstore

import (
	"bytes"
	"errors"
	"fmt"
	"path"

	"refaudit/finding"
	"refaudit/internal/refname"
	"refaudit/loose"
	"refaudit/oid"
	"refaudit/peel"
	"refaudit/reftable"
)

// tables reads a stack of reftables. HEAD and the other root refs of the store are in it. Of a
// stack that is not whole nothing is read: what a lost table says of a ref can't be known.
func (v *visit) tables() error {
	s, whole, err := v.openStack()
	if s != nil {
		defer s.close()
	}
	if err != nil {
		return err
	}
	if err := v.readByGit(s.tables); err != nil {
		return err
	}
	if whole {
		if err := v.inOrder(s.tables); err != nil {
			return err
		}
		if err := v.records(s.tables); err != nil {
			return err
		}
	}
	switch {
	case v.o.Deep:
		return v.deep(s, whole)
	case !whole:
		return v.searches(s.tables)
	}
	return nil // the reading of all records has judged these too
}

// searches judges what git finds refs by, in every table that could be opened: where that is wrong, git sees less than we.
func (v *visit) searches(tables []*reftable.Table) error {
	for _, t := range tables {
		if err := v.ctx.Err(); err != nil {
			return err
		}
		if err := reftable.VerifySearch(t, v.report); err != nil {
			return err
		}
	}
	return nil
}

// readByGit tells of tables that are as the format allows, and that git can't read.
func (v *visit) readByGit(tables []*reftable.Table) error {
	for _, t := range tables {
		if err := reftable.VerifyForGit(t, v.o.Deep, v.report); err != nil {
			return err
		}
	}
	return nil
}

// inOrder judges the tables of a stack by their headers: in another order they serve other values.
func (v *visit) inOrder(tables []*reftable.Table) error {
	return reftable.CheckStack(tables, v.repo.Format, v.report)
}

func (v *visit) records(tables []*reftable.Table) error {
	for _, t := range tables {
		if err := v.tableName(t); err != nil {
			return err
		}
	}
	for _, t := range tables {
		if v.place.main {
			v.sum.UpdateIndex = max(v.sum.UpdateIndex, t.Max)
		}
	}
	w := &tableVisit{visit: v, tables: tables, names: newConflicts()}
	told := len(v.sum.Unread)
	var err error
	if !w.sound() {
		err = w.read()
	}
	if errors.Is(err, reftable.ErrDamaged) { // each fault has been told
		if len(v.sum.Unread) == told {
			v.sum.unread(err.Error())
		}
		return nil
	}
	if err == nil && len(tables) > 0 && !w.head {
		if w.stray != nil {
			err = v.report(*w.stray)
		}
		v.sum.unread(v.place.label("reftable/tables.list") + " leads to no HEAD, which every stack begins with: a table has fallen out of it")
	}
	return err
}

// deep judges the inside of every table that could be opened, the stack as a whole, and what lies beside it.
func (v *visit) deep(s *stack, whole bool) error {
	for _, t := range s.tables {
		if err := v.ctx.Err(); err != nil {
			return err
		}
		if err := reftable.Verify(t, reftable.VerifyOptions{RefName: badName}, v.report); err != nil {
			return err
		}
	}
	var listed []string
	if whole {
		listed = s.names
	} else if err := v.inOrder(s.tables); err != nil {
		return err
	}
	return v.leftovers(listed)
}

// tableName judges the name of a table's file as git does.
func (v *visit) tableName(t *reftable.Table) error {
	name := path.Base(t.File())
	if reftable.GoodTableName(name) {
		return nil
	}
	f := finding.New(finding.BadReftableTableName, finding.Pos{File: t.File()}, "is not named as git names a table")
	f.GitText = finding.GitLine(name, f.ID, reftable.BadTableName)
	return v.report(f)
}

// tableVisit is the reading of the records of one stack.
type tableVisit struct {
	*visit
	tables []*reftable.Table
	names  *conflicts
	name   []byte // of the ref, in full
	full   []byte // room for that
	plain  bool   // the name that names knows as the one before is valid and lies in refs/
	ref    Ref
	n      int
	head   bool             // HEAD was met
	stray  *finding.Finding // of the first root ref that git would not list: without a HEAD, it may have been that
}

// read gives the records of all tables, merged: of those for one name, the newest table's is served.
func (w *tableVisit) read() error {
	for _, t := range w.tables {
		t.Damage = w.fault
	}
	m := reftable.Merge(w.tables)
	if !w.o.Deep {
		m.Searches()
	}
	for m.Next() {
		if w.n++; w.n&0xfff == 0 {
			if err := w.ctx.Err(); err != nil {
				return err
			}
		}
		if err := w.record(m); err != nil {
			return err
		}
	}
	err := m.Err()
	if err != nil && !errors.Is(err, reftable.ErrDamaged) || w.o.Deep {
		return err
	}
	if err := m.JudgeSearches(w.report); err != nil {
		return err
	}
	return err
}

// fault tells of what is wrong inside a table. The rest of the table is read all the same.
func (w *tableVisit) fault(c *finding.Corrupt) error {
	switch c.ID {
	case finding.ReftableBlockOrder, finding.ReftableDuplicate, finding.ReftableUpdateIndex, finding.ReftableIndexMismatch:
	default:
		w.sum.unread(c.Error())
	}
	return w.report(c.Finding())
}

var refsPrefix = []byte("refs/")

func (w *tableVisit) record(m *reftable.Merged) error {
	entries := m.Entries()
	first := &entries[0]
	if w.name = first.Name; w.place.prefix != "" {
		w.full = append(append(w.full[:0], w.place.prefix...), first.Name...)
		w.name = w.full
	}
	below := bytes.HasPrefix(first.Name, refsPrefix)
	if len(entries) > 1 {
		if err := w.order(m); err != nil {
			return err
		}
	}
	if first.Type != reftable.Deletion {
		w.head = w.head || string(first.Name) == "HEAD"
		if err := w.served(first, below); err != nil {
			return err
		}
	}
	if !w.o.Hidden || !below {
		return nil
	}
	for i := range entries[1:] {
		e := &entries[1+i]
		if e.Type != reftable.Direct && e.Type != reftable.Peeled {
			continue
		}
		w.fill(e, true)
		w.ref.Hidden = true
		if err := w.give(&w.ref); err != nil {
			return err
		}
	}
	return nil
}

// served judges and gives the record that readers get.
func (w *tableVisit) served(e *reftable.Entry, below bool) error {
	same := 0
	if below {
		w.sum.Refs++
		same = w.names.common(w.name)
		if w.each == nil && w.passes(e, same) {
			return nil
		}
	}
	w.fill(e, below)
	if !below {
		w.plain = false
		if err := w.judgeName(e, below); err != nil {
			return err
		}
	} else if err := w.below(e, same); err != nil {
		return err
	}
	if below && w.o.Broken && badName(e.Name) != "" {
		broken := w.ref
		return w.brokenRef(&broken, noName)
	}
	if e.Value != nil && !zero(e.Value) {
		if below || string(e.Name) == "HEAD" {
			return w.give(&w.ref)
		}
		return nil
	}
	return w.odd(e)
}

// passes tells whether there is nothing to say of a record below refs/; then it is done with.
func (w *tableVisit) passes(e *reftable.Entry, same int) bool {
	if !w.plain || e.Value == nil || zero(e.Value) || !refname.ValidAfter(w.name, same) || w.names.clash(same) {
		return false
	}
	w.names.add(w.name, same)
	return true
}

// below judges the name of a record below refs/. Of one that follows another only the part that differs is looked at.
func (w *tableVisit) below(e *reftable.Entry, same int) error {
	known := 0
	if w.plain {
		known = same
	}
	if err := w.names.report(w.name, same, &w.ref.Pos, w.report); err != nil {
		return err
	}
	if w.plain = refname.ValidAfter(w.name, known) && w.place.prefix == ""; w.plain {
		return nil
	}
	return w.judgeName(e, true)
}

// odd judges and gives the record of a symref, or of a ref that names no object.
func (w *tableVisit) odd(e *reftable.Entry) error {
	value := loose.Value{Kind: loose.Symref, Target: finding.RefName(e.Target)}
	if e.Value != nil {
		value = loose.Value{Kind: loose.Object, OID: oid.FromBytes(w.repo.Format, e.Value)}
	}
	if err := loose.VerifyRecord(string(w.name), value, w.repo.Format, w.ref.Pos, loose.Options{Severity: w.o.Severity}, w.report); err != nil {
		return err
	}
	if w.ref.Root && string(e.Name) != "HEAD" {
		return nil
	}
	if e.Value == nil {
		return w.give(&w.ref)
	}
	broken := w.ref
	return w.brokenRef(&broken, zeroID)
}

// judgeName judges the name of a record. One that is neither below refs/ nor a root ref has lost
// bytes: no reader sees what it stands for, and the names behind it may have inherited its damage.
func (w *tableVisit) judgeName(e *reftable.Entry, below bool) error {
	what := badName(e.Name)
	if what == "" {
		if !below && w.stray == nil && !refname.IsRoot(e.Name) && !refname.IsPseudo(e.Name) {
			f := finding.New(finding.BadRefName, w.ref.Pos, "is no name that git lists, in a stack without HEAD: it may be what that was")
			f.Ref, w.stray = finding.RefName(bytes.Clone(w.name)), &f
		}
		return nil
	}
	f := finding.New(finding.BadRefName, w.ref.Pos, "%s", what)
	f.Ref = finding.RefName(w.name)
	if !below {
		w.sum.unread(fmt.Sprintf("%s: record %q %s", w.ref.Pos, e.Name, what))
	}
	return w.report(f)
}

// badName says what is wrong with the name of a record in a table; "" for a good one.
func badName(name []byte) string {
	switch {
	case refname.MayBeRoot(name):
		return ""
	case !bytes.HasPrefix(name, refsPrefix):
		return "is no name of a ref: its bytes are damaged, and the ref that it was is lost"
	case !refname.Valid(name, 0):
		return "is a name that git refuses: the ref can't be reached by it"
	}
	return ""
}

func zero(id []byte) bool {
	for _, b := range id {
		if b != 0 {
			return false
		}
	}
	return true
}

// fill makes w.ref the record of an entry. Readers take a tag without a peel for no tag: JGit does.
func (w *tableVisit) fill(e *reftable.Entry, below bool) {
	r := &w.ref
	r.Name, r.OID, r.Target, r.Peel, r.Hidden = w.name, e.Value, e.Target, e.Peel, false
	r.Promise, r.Source, r.Root = peel.AllReaders, Table, !below
	file := w.tables[e.Table].File()
	for _, p := range [...]*finding.Pos{&r.Pos, &r.PeelPos} {
		p.File, p.Offset, p.Length, p.Block, p.Placed, p.Blocked = file, e.Offset, e.Length, e.Block, true, true
	}
}

// order tells of a name for which git and JGit read different records.
func (w *tableVisit) order(m *reftable.Merged) error {
	other, same := m.JGit()
	if same {
		return nil
	}
	e := &m.Entries()[0]
	pos := finding.Pos{File: w.tables[e.Table].File(), Offset: e.Offset, Length: e.Length, Block: e.Block, Placed: true, Blocked: true}
	f := finding.New(finding.ReftableOrder, pos, "git reads %v, at update index %d; JGit reads %v, at %d, in %s",
		e.Ref, e.UpdateIndex, other.Ref, other.UpdateIndex, w.tables[other.Table].File())
	f.Ref = finding.RefName(w.name)
	return w.report(f)
}
