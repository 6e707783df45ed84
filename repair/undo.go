package repair

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"refaudit/internal/journal"
	"refaudit/internal/vfs"
	"refaudit/oid"
)

// Undo takes a repair back, as far as what it left still stands: the whole file where that is
// the one that the repair left, else record by record. What has moved on is left; if that is all
// of it, the undo is refused. An undo goes forward: it is a change of its own, with its own entry.
func (r *Repo) Undo(ctx context.Context, e *journal.Entry) (*Outcome, error) {
	state, err := r.state(e.ID)
	if err != nil {
		return &Outcome{}, err
	}
	store := r.label(e.Store)
	switch state {
	case journal.Undone:
		return &Outcome{}, &Refused{Store: store, Reason: fmt.Sprintf("repair %s has been taken back already", e.ID)}
	case journal.Void:
		return &Outcome{}, &Refused{Store: store, Reason: fmt.Sprintf("repair %s was cut short and never happened", e.ID)}
	}
	if why := final(e); why != "" {
		return &Outcome{}, &Refused{Store: store, Reason: fmt.Sprintf("repair %s is not taken back: %s", e.ID, why)}
	}
	var out *Outcome
	switch e.Kind {
	case journal.PackedRefs:
		out, err = (&Packed{Repo: r, Path: e.Store, Label: store}).undo(ctx, e)
	case journal.Reftable:
		out, err = (&Stack{Repo: r, Dir: e.Store, Label: store}).undo(ctx, e)
	case journal.Refs:
		out, err = r.refStore(e).bringBack(ctx, e)
	}
	if out == nil {
		out = &Outcome{}
	}
	if err != nil {
		return out, err
	}
	if out.Journal == "" {
		return out, &Refused{Store: store, Reason: fmt.Sprintf("what repair %s left stands no more", e.ID)}
	}
	return out, nil
}

// final says why an entry can't be taken back; "": it can.
func final(e *journal.Entry) string {
	switch {
	case e.Kind == journal.TablesList:
		return finalList
	case e.Kind == journal.Refs && e.Undoes != "":
		return finalRefs
	}
	return ""
}

// label is how findings call a store.
func (r *Repo) label(store string) string {
	if store == r.GitDir {
		return "refs"
	}
	if rel, err := filepath.Rel(r.GitDir, store); err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return filepath.ToSlash(rel)
	}
	return store
}

// reversed is what an undo wants: each record from its after-state to its before-state.
func reversed(e *journal.Entry) (wanted []Wanted, decide decider) {
	before := map[string]oid.ID{}
	for _, r := range e.Records {
		if r.Before != r.After && !r.Deleted {
			wanted = append(wanted, Wanted{Ref: r.Ref, ID: r.ID, OID: r.OID, Cached: r.After})
			before[string(r.Ref)] = r.Before
		}
	}
	return wanted, func(_ context.Context, refs []subject) ([]decision, error) {
		out := make([]decision, len(refs))
		for i, ref := range refs {
			out[i] = decision{known: true, peel: before[ref.name]}
		}
		return out, nil
	}
}

// settled tells that an entry which was open has turned out, under the lock, not to have happened.
func (r *Repo) settled(e *journal.Entry) error {
	state, err := r.state(e.ID)
	if err == nil && state == journal.Void {
		err = &Refused{Store: r.label(e.Store), Reason: fmt.Sprintf("repair %s was cut short and never happened", e.ID)}
	}
	return err
}

func (s *Stack) undo(ctx context.Context, e *journal.Entry) (*Outcome, error) {
	if len(e.Gone) > 0 {
		return s.rewriteBack(ctx, e)
	}
	wanted, decide := reversed(e)
	return s.verified(ctx, func(h *holding) error {
		if err := h.Repo.settled(e); err != nil {
			return err
		}
		return h.set(ctx, wanted, decide, Brake{}, e.ID)
	})
}

func (p *Packed) undo(ctx context.Context, e *journal.Entry) (*Outcome, error) {
	if _, err := p.Repo.FS.Stat(p.Path); vfs.Missing(err) {
		return &Outcome{}, &Refused{Reason: "the file that was repaired is gone: what the repair left stands no more", Err: err}
	}
	return p.hold(ctx, func(h *packedHold) error {
		if err := h.Repo.settled(e); err != nil {
			return err
		}
		return h.withSource(func(src *source) error {
			same, err := sameFile(src, e.After)
			switch {
			case err != nil:
				return err
			case same:
				return h.bringBack(ctx, src, e)
			}
			wanted, decide := reversed(e)
			return h.mend(ctx, src, wanted, Structure{}, decide, Brake{}, e.ID)
		})
	})
}

func sameFile(src *source, w journal.Whole) (bool, error) {
	if src.info.Size != w.Size {
		return false, nil
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, src.stream()); err != nil {
		return false, err
	}
	return bytes.Equal(sum.Sum(nil), w.SHA256[:]), nil
}

// bringBack puts the file there as it was, byte for byte.
func (h *packedHold) bringBack(ctx context.Context, src *source, e *journal.Entry) error {
	now, err := io.ReadAll(src.stream())
	if err != nil {
		return err
	}
	before, err := e.Rebuild(now)
	if err != nil {
		return fmt.Errorf("journal entry %s: %w", e.ID, err)
	}
	var changes []Change
	for _, r := range e.Records {
		changes = append(changes, Change{Ref: r.Ref, ID: r.ID, OID: r.OID, Before: r.After, After: r.Before, Action: action(r.After, r.Before)})
	}
	if len(changes) == 0 {
		changes = []Change{{Action: "bring the file back as it was"}}
	}
	h.out.Structure = true
	return h.replace(ctx, src, changes, e.ID, func(w io.Writer) error {
		_, err := w.Write(before)
		return err
	})
}
