package repair

import (
	"bytes"
	"context"
	"path/filepath"
	"slices"

	"refaudit/internal/journal"
	"refaudit/reftable"
)

// Drop implements refStore: one table of deletions, of the refs and, as git does it, of their logs.
func (s *Stack) Drop(ctx context.Context, wanted []Wanted, brake Brake) (*Outcome, error) {
	return s.verified(ctx, func(h *holding) error {
		var still []Wanted
		for _, w := range wanted {
			r, found, err := h.stack.newest(h.Repo.Format, []byte(w.Ref))
			if err != nil {
				return h.broken(err)
			}
			if !found || r.value != w.OID {
				h.out.Left = append(h.out.Left, Left{w.Ref, "it has changed since it was looked at"})
				continue
			}
			w.Cached = r.peel
			still = append(still, w)
		}
		doomed, err := h.Repo.chooseCorrupt(ctx, still, brake, h.out)
		if err != nil || len(doomed) == 0 {
			return err
		}
		return h.drop(ctx, doomed)
	})
}

func (h *holding) drop(ctx context.Context, doomed []Wanted) error {
	content, err := h.Repo.contents(doomed)
	if err != nil {
		return err
	}
	index, err := h.nextIndex()
	if err != nil {
		return err
	}
	e := h.entry(journal.Refs, "")
	var changes []Change
	for _, w := range doomed {
		logs, err := h.logsOf([]byte(w.Ref))
		if err != nil {
			return h.broken(err)
		}
		e.Records = append(e.Records, journal.Record{Ref: w.Ref, ID: w.ID, OID: w.OID, Before: w.Cached, Deleted: true, Object: content[w.OID], Index: index, Logs: logs})
		changes = append(changes, Change{Ref: w.Ref, ID: w.ID, OID: w.OID, Before: w.Cached, Action: dropAction})
	}
	h.out.Structure = true
	return h.add(ctx, e, index, changes)
}

// logsOf is the reflog of one ref, the newest record first.
func (h *holding) logsOf(name []byte) (logs []journal.Log, err error) {
	m := reftable.MergeLogs(h.stack.open)
	m.Seek(name)
	for m.Next() {
		l := m.Log()
		if !bytes.Equal(l.Name, name) {
			break
		}
		if l.Type == reftable.LogUpdate {
			logs = append(logs, journal.Log{Index: l.UpdateIndex, Value: bytes.Clone(l.Value)})
		}
	}
	return logs, m.Err()
}

// add publishes one table with the records of an entry.
func (h *holding) add(ctx context.Context, e *journal.Entry, index uint64, changes []Change) error {
	name := tableName(index, index)
	temp, err := h.writeTable(name, h.stack.infos[len(h.stack.infos)-1], recordsOf(e.Records), reftable.Options{Min: index, Max: index})
	if err != nil {
		return err
	}
	e.Made, e.Listed = []string{filepath.Base(temp.Path()), name}, []string{name}
	return h.commit(ctx, e, []publication{{temp, name}}, append(slices.Clone(h.names), name), changes)
}

// bringBack implements refStore.
func (s *Stack) bringBack(ctx context.Context, old *journal.Entry) (*Outcome, error) {
	return s.verified(ctx, func(h *holding) error {
		if err := h.Repo.settled(old); err != nil {
			return err
		}
		index, err := h.nextIndex()
		if err != nil {
			return err
		}
		e := h.entry(journal.Refs, old.ID)
		var changes []Change
		for _, rec := range old.Records {
			r, found, err := h.stack.newest(h.Repo.Format, []byte(rec.Ref))
			if err != nil {
				return h.broken(err)
			}
			if found && r.typ != reftable.Deletion {
				h.out.Left = append(h.out.Left, Left{rec.Ref, "there is a ref of that name again"})
				continue
			}
			if err := h.Repo.restoreTag(&rec); err != nil {
				return err
			}
			rec.Deleted, rec.Before, rec.Index = false, none, index
			e.Records = append(e.Records, rec)
			changes = append(changes, Change{Ref: rec.Ref, ID: rec.ID, OID: rec.OID, Action: "bring the ref back"})
		}
		if len(e.Records) == 0 {
			return nil
		}
		h.out.Structure, h.out.Final = true, finalRefs
		return h.add(ctx, e, index, changes)
	})
}

var (
	_ refStore = (*Stack)(nil)
	_ refStore = (*Loose)(nil)
)
