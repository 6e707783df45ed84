package repair

import (
	"errors"
	"fmt"

	"refaudit/finding"
	"refaudit/internal/journal"
)

// openEntries are the journal's open entries about one store. Whoever holds the store's lock
// knows that the repairs they describe are not under way: they were cut short.
func (r *Repo) openEntries(store string) (entries []*journal.Entry, err error) {
	ids, err := r.Journal.List(journal.Open)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		e, _, err := r.Journal.Load(id)
		switch {
		case errors.Is(err, journal.ErrDamaged), errors.Is(err, journal.ErrUnknown):
			// It says nothing of any store; Tidy tells of it.
		case err != nil:
			return nil, err
		case e.Store == store:
			entries = append(entries, e)
		}
	}
	return entries, nil
}

// damaged lists the open entries of a journal that can't be read.
func damaged(j Journal) (errs []error) {
	ids, err := j.List(journal.Open)
	if err != nil {
		return []error{err}
	}
	for _, id := range ids {
		if _, _, err := j.Load(id); err != nil && !errors.Is(err, journal.ErrUnknown) {
			errs = append(errs, err)
		}
	}
	return errs
}

// state is how an entry stands now.
func (r *Repo) state(id string) (journal.State, error) {
	_, s, err := r.Journal.Load(id)
	return s, err
}

// close settles an open entry, and before it the one that it has taken back.
func (r *Repo) close(e *journal.Entry, to journal.State) error {
	if to == journal.Done && e.Undoes != "" {
		if err := errors.Join(r.markUndone(e.Undoes), r.Journal.Sync()); err != nil {
			return err
		}
	}
	return r.Journal.Settle(e.ID, journal.Open, to)
}

// markUndone closes an entry that another has taken back.
func (r *Repo) markUndone(id string) error {
	state, err := r.state(id)
	if err != nil || state == journal.Undone {
		return err
	}
	return r.Journal.Settle(id, state, journal.Undone)
}

// explained says what became of a repair that was cut short.
func explained(e *journal.Entry, to journal.State, cleared int) string {
	s := fmt.Sprintf("repair %s of %s was cut short; ", e.ID, e.Time.Format("2006-01-02 15:04:05"))
	if to == journal.Done {
		s += "it was done all the same"
	} else {
		s += "it had not happened"
	}
	if cleared > 0 {
		s += fmt.Sprintf(", and %s removed", finding.Count(cleared, "file that it left is", "files that it left are"))
	}
	return s
}
