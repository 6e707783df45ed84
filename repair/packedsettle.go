package repair

import (
	"context"
	"fmt"

	"refaudit/internal/journal"
	"refaudit/internal/vfs"
	"refaudit/packed"
)

// settle explains repairs of this file that were cut short.
func (h *packedHold) settle(open []*journal.Entry) error {
	for _, e := range open {
		state, err := h.Repo.state(e.ID)
		if err != nil {
			return err
		}
		if state != journal.Open {
			continue // its writer was alive
		}
		now, err := wholeOf(h.Repo.FS, h.path)
		gone := vfs.Missing(err)
		if err != nil && !gone {
			return fmt.Errorf("%s: %w", h.Label, err)
		}
		to := journal.Done
		switch {
		case now == e.After || gone:
		case now == e.Before:
			to = journal.Void
		default:
			if to, err = h.settledBy(e); err != nil {
				return err
			}
		}
		if err := h.Repo.close(e, to); err != nil {
			return err
		}
		h.notice("%s: %s", h.Label, explained(e, to, 0))
	}
	return nil
}

// settledBy tells from the records what became of a repair, where the file has changed since.
func (h *packedHold) settledBy(e *journal.Entry) (journal.State, error) {
	src, err := openSource(h.Repo.FS, h.path)
	if err != nil {
		return "", fmt.Errorf("%s: %w", h.Label, err)
	}
	defer src.Close()
	records := map[string]journal.Record{}
	for _, r := range e.Records {
		records[string(r.Ref)] = r
	}
	look, err := h.look(context.Background(), src, func(p *packed.Entry) bool { _, ok := records[string(p.Name)]; return ok })
	if err != nil {
		return "", fmt.Errorf("%s: %w", h.Label, err)
	}
	for _, p := range look.hit {
		if r := records[p.name]; p.oid == r.OID && p.peel == r.Before && r.Before != r.After {
			return journal.Void, nil
		}
	}
	return journal.Done, nil
}
