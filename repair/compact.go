package repair

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"refaudit/finding"
	"refaudit/internal/journal"
	"refaudit/internal/lockfile"
	"refaudit/internal/vfs"
	"refaudit/oid"
	"refaudit/reftable"
)

// Compact gives wrong records their right peels by rewriting the tables that hold them, each to
// a table of its own under a new name, so that no wrong value stays behind, hidden ones and
// the object index included. Every record keeps its update index, and the logs stay as they are.
func (s *Stack) Compact(ctx context.Context, sel Selection, brake Brake) (*Outcome, error) {
	return s.rewrite(ctx, rewriting{
		find:    func(t *tables) ([]exchange, error) { return s.wrongRecords(ctx, t, sel, brake) },
		confirm: func(found []exchange) ([]exchange, error) { return s.stillWrong(ctx, found) },
	})
}

// rewriting says what of a stack is to be rewritten.
type rewriting struct {
	find    func(*tables) ([]exchange, error)    // asked without a lock
	confirm func([]exchange) ([]exchange, error) // asked again when the tables are locked
	undoes  string                               // the entry that is taken back
}

// exchange is a table that is to be rewritten: the records that get another peel, by name.
type exchange struct {
	name    string
	records map[string]journal.Record
	lock    *lockfile.Lock
	temp    *lockfile.Temp
	made    string // the name of the new table
}

// maxTries is how often a plan is made again because others changed the stack.
const maxTries = 5

var errMoved = errors.New("the stack changes faster than it can be planned for")

// rewrite exchanges tables as git compacts them: the list is locked for as long as it takes to
// lock the tables one by one, is free for others while the new tables are written, and locked
// again for the exchange.
func (s *Stack) rewrite(ctx context.Context, r rewriting) (out *Outcome, err error) {
	var found []exchange
	defer func() { release(found) }()
	var notices []string
	for try := 1; ; try++ {
		if found, err = s.findTables(r); err != nil {
			return &Outcome{}, (&holding{Stack: s}).broken(err)
		}
		out, err = s.hold(ctx, func(h *holding) error {
			if r.undoes != "" {
				if err := h.Repo.settled(&journal.Entry{ID: r.undoes, Store: h.Dir}); err != nil {
					return err
				}
			}
			return h.lockTables(ctx, found)
		})
		notices = append(notices, out.Notices...)
		if !errors.Is(err, errMoved) || try == maxTries {
			break
		}
		release(found)
	}
	out.Notices = notices
	if err != nil || len(found) == 0 {
		return out, err
	}
	found, err = s.writeAnew(r, found)
	if err != nil || len(found) == 0 {
		return out, err
	}
	out, err = s.verified(ctx, func(h *holding) error { return h.exchange(ctx, found, r.undoes) })
	out.Notices = append(notices, out.Notices...)
	return out, err
}

// findTables plans on the stack as it is, without a lock.
func (s *Stack) findTables(r rewriting) (found []exchange, err error) {
	err = vfs.Guard(func() error {
		t, err := s.load()
		if err != nil {
			return err
		}
		defer t.close()
		found, err = r.find(t)
		return err
	})
	return found, err
}

// writeAnew writes the new tables. The ones with nothing to change any more are released.
func (s *Stack) writeAnew(r rewriting, found []exchange) (still []exchange, err error) {
	if still, err = r.confirm(found); err != nil {
		return found, err
	}
	err = vfs.Guard(func() error {
		for i := range still {
			if err := s.exchangeTable(&still[i]); err != nil {
				return err
			}
		}
		return nil
	})
	return still, err
}

func release(found []exchange) {
	for _, x := range found {
		if x.lock != nil {
			x.lock.Rollback()
		}
	}
}

// planCompact says what Compact would change.
func (s *Stack) planCompact(ctx context.Context, sel Selection, brake Brake) (changes []Change, err error) {
	found, err := s.findTables(rewriting{find: func(t *tables) ([]exchange, error) { return s.wrongRecords(ctx, t, sel, brake) }})
	if err != nil {
		return nil, (&holding{Stack: s}).broken(err)
	}
	for _, x := range found {
		for _, rec := range sortedRecords(x.records) {
			changes = append(changes, x.change(rec))
		}
	}
	return changes, nil
}

func (x *exchange) change(r journal.Record) Change {
	return Change{Ref: r.Ref, ID: r.ID, OID: r.OID, Before: r.Before, After: r.After, Action: action(r.Before, r.After) + ", in " + x.name}
}

// lockTables takes the tables' own locks, the newest first as git does. A table that is being
// compacted by another is not waited for.
func (h *holding) lockTables(ctx context.Context, found []exchange) error {
	for _, x := range found {
		if !slices.Contains(h.names, x.name) {
			return fmt.Errorf("%s: %w", h.Label, errMoved)
		}
	}
	for i := len(found) - 1; i >= 0; i-- {
		l, err := lockfile.Acquire(ctx, h.Repo.FS, filepath.Join(h.Dir, found[i].name), lockfile.Options{PIDFile: h.Repo.PIDFile})
		if err != nil {
			return fmt.Errorf("%s: %w", h.Label, err)
		}
		found[i].lock = l
	}
	return nil
}

// wrongRecords judges every record of every table, the hidden ones too.
func (s *Stack) wrongRecords(ctx context.Context, t *tables, sel Selection, brake Brake) ([]exchange, error) {
	var found []exchange
	absent, changes := 0, 0
	for i, table := range t.open {
		x := exchange{name: t.names[i], records: map[string]journal.Record{}}
		var refs []subject
		var cached []journal.Record
		err := table.Refs(func(r *reftable.Ref) error {
			if r.Value != nil && sel.ref(r.Name) {
				rec := recordOf(s.Repo.Format, r)
				refs = append(refs, subject{string(r.Name), rec.value, rec.peel})
				cached = append(cached, journal.Record{Ref: finding.RefName(r.Name), OID: rec.value, Before: rec.peel, Index: r.UpdateIndex})
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		decisions, err := s.Repo.judged(ctx, refs)
		if err != nil {
			return nil, err
		}
		for k, d := range decisions {
			rec := cached[k]
			if !d.known || d.peel == rec.Before {
				continue
			}
			rec.After = d.peel
			if rec.ID = whyWrong(rec); !sel.id(rec.ID) {
				continue
			}
			x.records[string(rec.Ref)] = rec
			changes++
			if d.absent {
				absent++
			}
		}
		if len(x.records) > 0 {
			found = append(found, x)
		}
	}
	return found, brake.check(absent, changes)
}

// stillWrong judges the records that were found again.
func (s *Stack) stillWrong(ctx context.Context, found []exchange) (still []exchange, err error) {
	for _, x := range found {
		records := sortedRecords(x.records)
		refs := make([]subject, len(records))
		for i, rec := range records {
			refs[i] = subject{string(rec.Ref), rec.OID, rec.Before}
		}
		decisions, err := s.Repo.judged(ctx, refs)
		if err != nil {
			return nil, err
		}
		for i, rec := range records {
			if d := decisions[i]; !d.known || d.peel != rec.After {
				delete(x.records, string(rec.Ref))
			}
		}
		if len(x.records) > 0 {
			still = append(still, x)
		} else if x.lock != nil {
			x.lock.Rollback()
		}
	}
	return still, nil
}

// whyWrong names what is wrong with a record, as far as its values tell.
func whyWrong(r journal.Record) finding.ID {
	switch {
	case r.Before == none:
		return finding.PeelMissing
	case r.After == none:
		return finding.PeelUnexpected
	}
	return finding.PeelMismatch
}

// exchangeTable writes the table anew, and proves that nothing but those peels is other than before.
func (s *Stack) exchangeTable(x *exchange) error {
	old, err := s.openTables([]string{x.name})
	if err != nil {
		return err
	}
	defer old.close()
	t := old.open[0]
	x.made = tableName(t.Min, t.Max)
	o := reftable.Options{Min: t.Min, Max: t.Max, Version: t.Version, BlockSize: t.BlockSize, Unpadded: t.BlockSize == 0}
	h := &holding{Stack: s, lock: x.lock}
	if x.temp, err = h.writeTable(x.made, old.infos[0], func(w *reftable.Writer) error { return copyTable(w, t, x.records) }, o); err != nil {
		return err
	}
	fresh := &tables{}
	defer fresh.close()
	if err := fresh.add(s, filepath.Base(x.temp.Path())); err != nil {
		return fmt.Errorf("%s: read the new table: %w", s.Label, err)
	}
	if err := sameButPeels(s.Repo.Format, t, fresh.open[0], x.records); err != nil {
		return fmt.Errorf("%s: the new table for %s: %w", s.Label, x.name, err)
	}
	return nil
}

// copyTable copies all records of a table, those of another peel with that.
func copyTable(w *reftable.Writer, t *reftable.Table, records map[string]journal.Record) error {
	err := t.Refs(func(r *reftable.Ref) error {
		if rec, ok := records[string(r.Name)]; ok {
			c := *r
			c.Type, c.Peel = reftable.Direct, nil
			if rec.After != none {
				c.Type, c.Peel = reftable.Peeled, rec.After.AppendTo(nil)
			}
			r = &c
		}
		return w.AddRef(r)
	})
	if err != nil {
		return err
	}
	return t.Logs(w.AddLog)
}

var errNotSame = errors.New("it differs from the old one in more than cached peels")

// sameButPeels compares two tables record by record.
func sameButPeels(f oid.Format, a, b *reftable.Table, records map[string]journal.Record) error {
	refs := b.Iter()
	err := a.Refs(func(r *reftable.Ref) error {
		if !refs.Next() {
			return errNotSame
		}
		old, now := recordOf(f, r), recordOf(f, refs.Ref())
		if rec, ok := records[string(r.Name)]; ok && now.peel == rec.After {
			old.peel, old.typ = now.peel, now.typ
		}
		if old != now || !bytes.Equal(r.Name, refs.Ref().Name) || !bytes.Equal(r.Target, refs.Ref().Target) {
			return errNotSame
		}
		return nil
	})
	if err != nil || refs.Next() || refs.Err() != nil {
		return errors.Join(err, refs.Err(), errNotSame)
	}
	logs := b.LogIter()
	err = a.Logs(func(l *reftable.Log) error {
		if !logs.Next() {
			return errNotSame
		}
		now := logs.Log()
		if !bytes.Equal(l.Name, now.Name) || l.UpdateIndex != now.UpdateIndex || l.Type != now.Type || !bytes.Equal(l.Value, now.Value) {
			return errNotSame
		}
		return nil
	})
	if err != nil || logs.Next() || logs.Err() != nil {
		return errors.Join(err, logs.Err(), errNotSame)
	}
	return nil
}

// exchange lists the new tables in the place of the old ones, which no one but us may have
// changed or taken away: they are locked.
func (h *holding) exchange(ctx context.Context, found []exchange, undoes string) error {
	e := h.entry(journal.Reftable, undoes)
	list := slices.Clone(h.names)
	var made []publication
	var changes []Change
	for _, x := range found {
		h.taken = append(h.taken, x.lock)
		at := slices.Index(list, x.name)
		if at < 0 {
			return fmt.Errorf("%s: %s has left the list though we hold its lock: %w", h.Label, x.name, lockfile.ErrLost)
		}
		list[at] = x.made
		made = append(made, publication{x.temp, x.made})
		e.Made = append(e.Made, filepath.Base(x.temp.Path()), x.made)
		e.Gone, e.Listed = append(e.Gone, x.name), append(e.Listed, x.made)
		for _, rec := range sortedRecords(x.records) {
			e.Records = append(e.Records, rec)
			changes = append(changes, x.change(rec))
		}
	}
	return h.commit(ctx, e, made, list, changes)
}

func sortedRecords(m map[string]journal.Record) []journal.Record {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	out := make([]journal.Record, 0, len(m))
	for _, name := range names {
		out = append(out, m[name])
	}
	return out
}

// rewriteBack takes a compaction back: the records that stand as it left them get their old peels again.
func (s *Stack) rewriteBack(ctx context.Context, e *journal.Entry) (*Outcome, error) {
	type key struct {
		ref   finding.RefName
		index uint64
	}
	left := map[key]journal.Record{}
	same := func(found []exchange) ([]exchange, error) { return found, nil }
	out, err := s.rewrite(ctx, rewriting{undoes: e.ID, confirm: same, find: func(t *tables) ([]exchange, error) {
		clear(left)
		for _, r := range e.Records {
			left[key{r.Ref, r.Index}] = r
		}
		var found []exchange
		for i, table := range t.open {
			x := exchange{name: t.names[i], records: map[string]journal.Record{}}
			err := table.Refs(func(r *reftable.Ref) error {
				k := key{finding.RefName(r.Name), r.UpdateIndex}
				rec, ok := left[k]
				if now := recordOf(s.Repo.Format, r); ok && now.value == rec.OID && now.peel == rec.After {
					rec.Before, rec.After = rec.After, rec.Before
					x.records[string(rec.Ref)] = rec
					delete(left, k)
				}
				return nil
			})
			if err != nil {
				return nil, err
			}
			if len(x.records) > 0 {
				found = append(found, x)
			}
		}
		return found, nil
	}})
	for k := range left {
		out.Left = append(out.Left, Left{k.ref, "it has changed since the repair"})
	}
	return out, err
}
