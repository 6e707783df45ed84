package repair

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"refaudit/finding"
	"refaudit/internal/journal"
	"refaudit/internal/vfs"
	"refaudit/reftable"
)

// sound refuses a stack with damage that an audit finds at the deep level alone: look-ups in it may miss records.
func (s *Stack) sound() error {
	var bad *finding.Finding
	err := vfs.Guard(func() error {
		t, err := s.load()
		if err != nil {
			return err
		}
		defer t.close()
		for _, table := range t.open {
			err := reftable.Verify(table, reftable.VerifyOptions{}, func(f finding.Finding) error {
				if f.Severity < finding.Error {
					return nil // an object index that repairs have left behind
				}
				bad = &f
				return errStop
			})
			if bad != nil {
				return nil
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	switch {
	case err != nil && !structural(err):
		return fmt.Errorf("%s: %w", s.Label, err)
	case err != nil:
		return &Refused{Store: s.Label, Reason: "the stack is damaged, and git may take it for empty: do not run gc here", Err: err}
	case bad != nil:
		return &Refused{Store: s.Label, Reason: fmt.Sprintf("the stack is damaged (%s at %v: %s); refaudit scan --level=deep shows all of it", bad.ID, bad.Pos, bad.Message)}
	}
	return nil
}

var errStop = errors.New("enough was seen")

// verify reads the stack again, as any reader would, and mends it forward should it not hold what
// was written.
func (s *Stack) verify(ctx context.Context, out *Outcome) error {
	e := out.entry
	if e == nil {
		return nil
	}
	wrong := s.readBack(e)
	switch {
	case wrong == nil:
		return nil
	case !structural(wrong) && !errors.Is(wrong, errOther):
		return fmt.Errorf("%s: repair %s is done, and could not be read again: %w", s.Label, e.ID, wrong)
	}
	out.Notices = append(out.Notices, fmt.Sprintf("%s: read again after repair %s, it is not what was written: %v", s.Label, e.ID, wrong))
	if err := s.mendForward(ctx, e); err != nil {
		return fmt.Errorf("%s: repair %s: %w; and it could not be mended: %w", s.Label, e.ID, wrong, err)
	}
	out.Notices = append(out.Notices, fmt.Sprintf("%s: mended forward from the journal", s.Label))
	return nil
}

// readBack compares the tables of an entry, as far as they are still listed, with its records.
func (s *Stack) readBack(e *journal.Entry) error {
	return vfs.Guard(func() error {
		t, err := s.load()
		if err != nil {
			return err
		}
		defer t.close()
		for i, name := range t.names {
			if !slices.Contains(e.Listed, name) {
				continue
			}
			if err := holds(t.open[i], e); err != nil {
				return err
			}
		}
		return nil
	})
}

// errOther is a table that is sound and holds other records than it should.
var errOther = errors.New("holds another record than was written")

// holds tells whether a table has all of the entry's records that fall into its range, as they should be.
func holds(t *reftable.Table, e *journal.Entry) error {
	for _, rec := range e.Records {
		if rec.Index < t.Min || rec.Index > t.Max {
			continue
		}
		r, found, err := lookUp(t, e.Format, []byte(rec.Ref))
		switch {
		case err != nil:
			return err
		case !found, rec.Deleted && r.typ != reftable.Deletion, !rec.Deleted && (r.value != rec.OID || r.peel != rec.After):
			return fmt.Errorf("%s: %w, of %q", t.File(), errOther, rec.Ref)
		}
	}
	return nil
}

// mendForward puts a table written anew in the place of one that can't be read, or holds other
// records than it should. What was there before is not brought back: names never return to the list.
func (s *Stack) mendForward(ctx context.Context, e *journal.Entry) error {
	if e.Kind == journal.TablesList || len(e.Listed) != 1 || len(e.Gone) > 0 {
		return fmt.Errorf("the journal's entry %s has what is needed to mend it by hand", e.ID)
	}
	h := &holding{Stack: s, out: &Outcome{}}
	return vfs.Guard(func() error { return h.replaceTable(ctx, e) })
}

func (h *holding) replaceTable(ctx context.Context, e *journal.Entry) error {
	like, err := h.like(listName)
	if err != nil {
		return err
	}
	if err := h.acquire(ctx, like); err != nil {
		return err
	}
	defer h.lock.Rollback()
	if h.names, err = h.readList(); err != nil {
		return err
	}
	at := slices.Index(h.names, e.Listed[0])
	if at < 0 {
		return nil // somebody has compacted it
	}
	index := e.Records[0].Index
	name := tableName(index, index)
	temp, err := h.writeTable(name, like, recordsOf(e.Records), reftable.Options{Min: index, Max: index})
	if err != nil {
		return err
	}
	list := slices.Clone(h.names)
	list[at] = name
	again := h.entry(e.Kind, e.Undoes)
	again.Made, again.Listed, again.Gone = []string{filepath.Base(temp.Path()), name}, []string{name}, e.Listed
	again.Records = e.Records
	if err := h.commit(ctx, again, []publication{{temp, name}}, list, nil); err != nil {
		return err
	}
	return h.readBack(again)
}

// recordsOf writes an entry's records into a table.
func recordsOf(records []journal.Record) func(*reftable.Writer) error {
	return func(w *reftable.Writer) error {
		for _, r := range records {
			ref := reftable.Ref{Name: []byte(r.Ref), UpdateIndex: r.Index, Type: reftable.Direct}
			switch {
			case r.Deleted:
				ref.Type = reftable.Deletion
			case r.After != none:
				ref.Type, ref.Peel = reftable.Peeled, r.After.AppendTo(nil)
			}
			if !r.Deleted {
				ref.Value = r.OID.AppendTo(nil)
			}
			if err := w.AddRef(&ref); err != nil {
				return err
			}
		}
		return writeLogs(w, records)
	}
}

// writeLogs deletes the logs of refs that go, and brings back those of refs that return, each under its own key.
func writeLogs(w *reftable.Writer, records []journal.Record) error {
	for _, r := range records {
		for _, one := range r.Logs {
			l := reftable.Log{Name: []byte(r.Ref), UpdateIndex: one.Index, Type: reftable.LogUpdate, Value: one.Value}
			if r.Deleted {
				l.Type, l.Value = reftable.LogDeletion, nil
			}
			if err := w.AddLog(&l); err != nil {
				return err
			}
		}
	}
	return nil
}
