package repair

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"refaudit/internal/journal"
	"refaudit/internal/lockfile"
)

// settle explains repairs of this stack that were cut short, and clears what they left.
func (h *holding) settle(open []*journal.Entry) error {
	for _, e := range open {
		state, err := h.Repo.state(e.ID)
		if err != nil {
			return err
		}
		if state != journal.Open {
			continue // its writer was alive
		}
		happened, err := h.happened(e)
		if err != nil {
			return h.broken(err)
		}
		to := journal.Void
		if happened {
			to = journal.Done
		}
		cleared, err := h.clear(e)
		if err != nil {
			return err
		}
		if err := h.Repo.close(e, to); err != nil {
			return err
		}
		h.notice("%s: %s", h.Label, explained(e, to, cleared))
		if to == journal.Void {
			h.tellLocks(e)
		}
	}
	return nil
}

// listedAll tells whether the list has all tables that an entry put there.
func (h *holding) listedAll(e *journal.Entry) bool {
	return len(e.Listed) > 0 && !slices.ContainsFunc(e.Listed, func(n string) bool { return !slices.Contains(h.names, n) })
}

// happened tells whether a repair of this stack was published: its tables are listed or, should
// they have been compacted since, its records read as it meant them to.
func (h *holding) happened(e *journal.Entry) (bool, error) {
	if h.listedAll(e) {
		return true, nil
	}
	for _, rec := range e.Records {
		r, found, err := h.stack.newest(h.Repo.Format, []byte(rec.Ref))
		if err != nil {
			return false, err
		}
		there := found && r.value == rec.OID
		switch {
		case e.Kind == journal.Refs && !rec.Deleted: // it was to be brought back
			if !there {
				return false, nil
			}
		case there && r.peel == rec.Before && (rec.Before != rec.After || rec.Deleted):
			return false, nil
		}
	}
	return len(e.Records) > 0, nil
}

// tellLocks names the locks that a repair had taken of tables that it did not get to replace. They may
// have been taken anew since, so they stay.
func (h *holding) tellLocks(e *journal.Entry) {
	for _, name := range e.Gone {
		if _, err := h.Repo.FS.Lstat(filepath.Join(h.Dir, name+lockfile.Suffix)); err == nil {
			h.notice("%s: it has left the lock %s, which keeps git from compacting that table; if no git runs here, refaudit fix --stale-locks --older-than=AGE removes it", h.Label, name+lockfile.Suffix)
		}
	}
}

// clear removes the files that a repair has made and that are listed nowhere, and the tables
// that it took from the list and had no time to remove. Their locks go too: nobody locks a table
// that is not listed, so these are from before the exchange.
func (h *holding) clear(e *journal.Entry) (n int, err error) {
	var left []string
	files := slices.Clone(e.Made)
	if h.listedAll(e) {
		for _, name := range e.Gone {
			if !slices.Contains(h.names, name) {
				files = append(files, name, name+lockfile.Suffix, lockfile.PIDFile(name))
			}
		}
	}
	for _, name := range files {
		if name != filepath.Base(name) || slices.Contains(h.names, name) {
			continue
		}
		if _, err := h.Repo.FS.Lstat(filepath.Join(h.Dir, name)); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		left = append(left, name)
	}
	if err := h.remove(left); err != nil {
		return 0, fmt.Errorf("%s: clear what repair %s has left: %w", h.Label, e.ID, err)
	}
	return len(left), nil
}
