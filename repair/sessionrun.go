package repair

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"refaudit/finding"
	"refaudit/internal/lockfile"
	"refaudit/repo"
	"refaudit/scan"
)

// replicated refuses, unless told to go on, where something else keeps account of the files.
func (o *Options) replicated(r *repo.Repo) error {
	if o.Replicated {
		return nil
	}
	signs := r.Replicated()
	hooks, err := r.Hooks("reference-transaction")
	if err != nil {
		return err
	}
	for _, h := range hooks {
		signs = append(signs, "the hook "+h+" is told of every change of a ref that git makes, and not of this one")
	}
	if len(signs) == 0 {
		return nil
	}
	return &Refused{Reason: "something else keeps account of this repository's files, and may take a repair for drift: " +
		strings.Join(signs, "; ") + ". --yes-replicated goes on"}
}

// apply repairs one store.
func (s *session) apply(ctx context.Context, st *store) {
	if st.blocked != free || st.damage != "" || !s.todo(st) && !st.pending {
		return
	}
	if l, ok := st.refs.(*Loose); ok && st.pending {
		notices, err := l.settle(ctx)
		s.res.Notices = append(s.res.Notices, notices...)
		s.failed(st, err)
	}
	if len(st.doomed) > 0 && st.blocked == free {
		out, err := st.refs.Drop(ctx, st.doomed, s.brake())
		st.dropped = out
		s.note(st, out)
		s.failed(st, err)
	}
	if st.blocked == free {
		out, err := s.mend(ctx, st)
		st.out = out
		s.note(st, out)
		s.failed(st, err)
	}
}

// mend gives the store's records their right peels.
func (s *session) mend(ctx context.Context, st *store) (*Outcome, error) {
	peels := len(st.wanted) > 0 || st.whole
	switch {
	case st.packed != nil && peels:
		return st.packed.Fix(ctx, st.wanted, s.o.structure(), s.brake())
	case st.packed != nil && st.pending:
		return st.packed.Clear(ctx)
	case st.stack != nil && s.o.Compact:
		return st.stack.Compact(ctx, s.o.Selection, s.brake())
	case st.stack != nil && (peels || st.pending):
		return st.stack.Fix(ctx, st.wanted, s.brake())
	}
	return &Outcome{}, nil
}

// note passes on what was done to a store.
func (s *session) note(st *store, out *Outcome) {
	s.res.Notices = append(s.res.Notices, out.notices(st.label)...)
	for _, c := range out.Changes {
		s.res.Done = append(s.res.Done, Done{Change: st.outward(c), File: st.label, Applied: true, Journal: out.undo()})
		s.warnOfCause(st, c)
	}
	for _, l := range out.Left {
		s.res.Notices = append(s.res.Notices, fmt.Sprintf("%s: %s%s is left: %s", st.label, st.prefix, l.Ref, l.Reason))
	}
	st.moved = st.moved || len(out.Left) > 0
}

// undo is the id that undo takes; "": nothing was written, or it is not taken back.
func (out *Outcome) undo() string {
	if out.Final != "" {
		return ""
	}
	return out.Journal
}

// notices is what else was done to a store, and why none of it can be taken back.
func (out *Outcome) notices(label string) []string {
	if out.Final == "" || len(out.Changes) == 0 {
		return out.Notices
	}
	return append(slices.Clone(out.Notices), fmt.Sprintf("%s: there is no undo of this, repair %s: %s", label, out.Journal, out.Final))
}

// failed notes an error. What only an earlier repair has left is worth no more than a notice where the lock is held.
func (s *session) failed(st *store, err error) {
	switch {
	case err == nil:
	case errors.Is(err, lockfile.ErrHeld) && !s.todo(st):
		s.res.Notices = append(s.res.Notices, fmt.Sprintf("%s: what an earlier repair has left is not cleared: %v", st.label, err))
	default:
		s.block(st, err)
	}
}

// warnOfCause says that a wrong peel will come back, where what made it is still there.
func (s *session) warnOfCause(st *store, c Change) {
	if c.Ref == "" || st.causes[c.Ref] != finding.CauseReplaceRefs {
		return
	}
	if use, err := s.target.Repo.UseReplaceRefs(); err == nil && !use {
		return
	}
	next := "the next git pack-refs"
	if st.stack != nil {
		next = "the next update of the ref"
	}
	s.res.Notices = append(s.res.Notices, fmt.Sprintf("%s%s: its tag %v is still replaced under refs/replace/, so %s brings the wrong peel back; remove the replacement, or set core.useReplaceRefs to false",
		st.prefix, c.Ref, c.OID, next))
}

// account finds out what an audit would say now: from what is known, where only cached peels were
// changed, else by another audit.
func (s *session) account(ctx context.Context) error {
	again := false
	for _, st := range s.stores {
		again = again || st.dropped != nil || st.moved || st.out != nil && (st.out.Structure || st.blocked != free && len(st.out.Changes) > 0)
	}
	if again && ctx.Err() == nil {
		if err := s.scan(ctx); err != nil {
			return err
		}
	} else {
		s.subtract()
	}
	for i := range s.res.Left {
		f := &s.res.Left[i]
		if st := s.storeOf(f); st != nil && s.blocks(st, f) {
			s.res.Blocked[f.Severity]++
		}
	}
	return nil
}

// blocks tells whether a finding is left only because its store could not be repaired.
func (s *session) blocks(st *store, f *finding.Finding) bool {
	if !s.wants(f) && !(st.packed != nil && mendable[f.ID] && (f.Fixable || s.strayLine(f))) {
		return false
	}
	if st.blocked == free && st.moved && st.out != nil && st.out.Journal == "" {
		s.block(st, &Refused{Store: st.label, Reason: "what was to be mended has changed meanwhile; run fix again"})
	}
	return st.blocked == held || st.blocked == refused
}

// strayLine tells whether git's finding about a line is one about a ^ line that belongs to no ref.
func (s *session) strayLine(f *finding.Finding) bool {
	if f.ID != finding.BadPackedRefEntry {
		return false
	}
	for i := range s.res.Left {
		if o := &s.res.Left[i]; o.ID == finding.PeelOrphan && o.Fixable && o.File == f.File && o.Offset == f.Offset {
			return true
		}
	}
	return false
}

// subtract takes the findings away that were answered.
func (s *session) subtract() {
	mended := map[string]bool{}
	for _, st := range s.stores {
		if st.out == nil {
			continue
		}
		for _, c := range st.out.Changes {
			mended[st.label+"\x00"+st.prefix+string(c.Ref)] = true
		}
	}
	if len(mended) == 0 {
		return
	}
	var left []finding.Finding
	for _, f := range s.found {
		if st := s.storeOf(&f); st != nil && s.wants(&f) && mended[st.label+"\x00"+string(f.Ref)] {
			s.res.Scan.Severities[f.Severity]--
			s.res.Scan.IDs[f.ID]--
			if s.res.Scan.IDs[f.ID] == 0 {
				delete(s.res.Scan.IDs, f.ID)
			}
			continue
		}
		left = append(left, f)
	}
	s.res.Left = left
	if s.res.Scan.State == scan.Found && s.res.Scan.Count(finding.Warn) == 0 {
		s.res.Scan.State = scan.Clean
	}
}
