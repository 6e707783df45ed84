package scan

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"refaudit/finding"
	"refaudit/internal/refstore"
	"refaudit/internal/tagtext"
	"refaudit/oid"
	"refaudit/peel"
)

var (
	headsPrefix   = []byte("refs/heads/")
	tagsPrefix    = []byte("refs/tags/")
	replacePrefix = []byte("refs/replace/")
)

// judge compares every record of a batch with the truth.
func (l *look) judgeBatch(ctx context.Context, b *batch) error {
	for i := range b.found {
		if err := l.report(&b.found[i]); err != nil {
			return err
		}
	}
	handles, err := l.judge.Learn(ctx, b.ids, l.handles[:0])
	if err != nil {
		return err
	}
	l.handles = handles
	for i := range b.recs {
		r, h := &b.recs[i], handles[i]
		cached := b.peelOf(r)
		if !r.hidden && r.source != refstore.Loose && l.judge.IsTag(h) {
			l.peels++
		}
		name := b.nameOf(r)
		kind := l.judge.Kind(h)
		branch := kind != oid.Commit && bytes.HasPrefix(name, headsPrefix)
		right := l.judge.Right(h, cached)
		if !right && r.info > 0 {
			l.info.doubt(int(r.info), cached != nil)
		}
		if right && !branch && !(kind == oid.Tag && (l.tagNames || l.level == Deep)) {
			continue
		}
		if err := l.judgeRecord(ctx, b, r, h); err != nil {
			return err
		}
	}
	return nil
}

// judgeRecord says all that is wrong with one record.
func (l *look) judgeRecord(ctx context.Context, b *batch, r *record, h peel.Handle) error {
	judge, h, v, err := l.confirmed(ctx, h)
	if err != nil {
		return err
	}
	base := finding.Finding{Ref: finding.RefName(b.nameOf(r)), OID: judge.ID(h), Pos: b.posOf(r)}
	if raw := b.peelOf(r); raw != nil {
		base.Cached = oid.FromBytes(l.format, raw)
	}
	if err := l.judgeObject(&base, r, &v); err != nil {
		return err
	}
	if v.Kind == oid.Tag && (l.tagNames || l.level == Deep) {
		if err := l.judgeText(&base, r); err != nil {
			return err
		}
	}
	w := judge.Cached(h, &v, base.Cached, r.promise)
	if w.ID == "" || v.State == peel.Unknown {
		return nil
	}
	f := base
	f.ID, f.Severity, f.Expected, f.Cause, f.Message = w.ID, w.Severity, w.Expected, w.Cause, w.Message
	f.Fixable = w.Mend && !r.hidden
	if f.Cached != (oid.ID{}) {
		f.Pos = b.peelPosOf(r)
		if f.Cause == "" || f.Cause == finding.CauseHexFlip {
			if err := l.findCause(ctx, &f, r, &v); err != nil {
				return err
			}
		}
	}
	return l.add(&f, r)
}

// confirmed is a verdict that rests on hashed objects alone: on that of the judge if it is in no doubt, else on that of
// a judge who doesn't believe the headers. It comes with its judge and its handle.
func (l *look) confirmed(ctx context.Context, h peel.Handle) (*peel.Judge, peel.Handle, peel.Verdict, error) {
	v := l.judge.Verdict(h)
	if !v.InDoubt() {
		return l.judge, h, v, nil
	}
	if l.sure == nil {
		l.sure = peel.NewJudge(peel.Confirmed{From: l.objects, Hashes: l.hashes})
	}
	h, v, err := l.sure.Ask(ctx, l.judge.ID(h))
	return l.sure, h, v, err
}

// hashes tells whether a tag that can't be parsed hashes to its name.
func (l *look) hashes(id oid.ID) bool {
	kind, _, err := l.objects.Read(id, maxTagText)
	return err == nil && kind == oid.Tag
}

// judgeObject tells of a ref's object that is absent, damaged, a corrupt tag or of a kind that the ref may not have.
func (l *look) judgeObject(base *finding.Finding, r *record, v *peel.Verdict) error {
	f := *base
	f.Cached = oid.ID{}
	switch v.State {
	case peel.Absent:
		if id, ok := worktreeOf(f.Ref); ok {
			f.ID, f.Severity = finding.WorktreeHeadMissing, finding.Default(finding.WorktreeHeadMissing)
			f.Message = fmt.Sprintf("the HEAD of worktree %q names object %v, which is missing%s", id, f.OID, l.prunable(id))
			return l.add(&f, r)
		}
		f.ID, f.Message = finding.RefTargetMissing, fmt.Sprintf("names object %v, which is missing", f.OID)
		if base.Cached != (oid.ID{}) {
			f.Message += fmt.Sprintf("; its cached peel %v can't be judged and is left alone", base.Cached)
		}
	case peel.Unknown:
		if absence := l.objects.absence(); errors.Is(absence, errAlternate) && l.policy.Severity(finding.AlternateMissing) < finding.Warn {
			l.unread(absence.Error()) // nobody is told of it otherwise
		}
		f.Cached = base.Cached
		f.ID, f.Message = finding.PeelUnverifiable, l.unverifiable(base, v)
		if v.Fault.Why == peel.NotLooked {
			l.unread(fmt.Sprintf("object %v: %v", v.Fault.Tag, v.Fault.Err))
			f.ID, f.Message = finding.AuditSkipped, "could not be judged: "+v.Fault.String()
		}
	case peel.Damaged:
		f.ID, f.Message = finding.TagUnreadable, fmt.Sprintf("names object %v, which can't be read, so that not even its type is known: %v", f.OID, v.Fault.Err)
	case peel.Corrupt:
		f.ID, f.Message = v.CorruptTag(), "is a corrupt tag: "+v.Fault.String()
	}
	if f.ID != "" {
		f.Severity = finding.Default(f.ID)
		if err := l.add(&f, r); err != nil || r.hidden {
			return err
		}
	}
	return l.judgeBranch(base, r, v)
}

// judgeBranch tells of a branch that is no commit, whatever else is wrong with its object.
func (l *look) judgeBranch(base *finding.Finding, r *record, v *peel.Verdict) error {
	itself := v.Fault.Why == peel.TagUnreadable && v.Fault.Tag == base.OID // then its kind isn't certain
	if v.Kind == 0 || v.Kind == oid.Commit || itself || !bytes.HasPrefix([]byte(base.Ref), headsPrefix) {
		return nil
	}
	f := *base
	f.Cached = oid.ID{}
	f.ID, f.Severity = finding.RefTypeNotAllowed, finding.Default(finding.RefTypeNotAllowed)
	f.Message = fmt.Sprintf("is a branch, and its object %v is a %v, not a commit", f.OID, v.Kind)
	return l.add(&f, r)
}

// worktreeOf tells the id of the worktree whose HEAD this is.
func worktreeOf(ref finding.RefName) (id string, ok bool) {
	rest, ok := strings.CutPrefix(string(ref), "worktrees/")
	id, name, _ := strings.Cut(rest, "/")
	return id, ok && name == "HEAD"
}

// prunable says whether git would remove a worktree, and how.
func (l *look) prunable(id string) string {
	trees, err := l.target.Repo.Worktrees()
	if err != nil {
		return ""
	}
	for i := range trees {
		if w := &trees[i]; w.ID == id && w.Prunable != "" {
			return fmt.Sprintf("; the worktree is prunable (%s): `git worktree prune` removes it", w.Prunable)
		}
	}
	return ""
}

func (l *look) unverifiable(base *finding.Finding, v *peel.Verdict) string {
	what := fmt.Sprintf("names object %v, which is not here", base.OID)
	if v.Fault.Why != 0 {
		what = v.Fault.String()
	}
	if base.Cached != (oid.ID{}) {
		what += fmt.Sprintf("; its cached peel %v is left as it is", base.Cached)
	}
	return what + " (" + v.Reason + ")"
}

// judgeText judges what a tag says beside its first two lines: its own name, which below refs/tags/ is to
// be the ref's, and, looking deep, everything that git fsck judges.
func (l *look) judgeText(base *finding.Finding, r *record) error {
	kind, text, err := l.objects.Read(base.OID, maxTagText)
	if err != nil || kind != oid.Tag {
		return nil // a tag that can't be read is told of
	}
	f := *base
	f.Cached = oid.ID{}
	if l.level == Deep {
		for _, p := range tagtext.Check(l.format, text, l.policy.Severity) {
			f.ID, f.Severity, f.Message = p.ID, finding.Default(p.ID), fmt.Sprintf("tag %v: %s", f.OID, p.Text)
			if err := l.add(&f, r); err != nil {
				return err
			}
		}
	}
	short, ok := bytes.CutPrefix([]byte(base.Ref), tagsPrefix)
	name, named := tagtext.Name(text)
	if !ok || !named || bytes.Equal(name, short) {
		return nil
	}
	f.ID, f.Severity = finding.TagNameMismatch, finding.Default(finding.TagNameMismatch)
	f.Message = fmt.Sprintf("is tag %v, whose own name is %q", f.OID, name)
	return l.add(&f, r)
}

// findCause tells how a wrong peel came about, where more can be told than the value shows.
func (l *look) findCause(ctx context.Context, f *finding.Finding, r *record, v *peel.Verdict) error {
	replaced, err := l.judge.ThroughReplacements(ctx, f.OID, f.Cached, l.replacements)
	if err != nil {
		return err
	}
	switch {
	case replaced:
		f.Cause = finding.CauseReplaceRefs
	case v.State == peel.NotTag && r.source == refstore.Packed:
		f.Cause = finding.CauseOrphanPeelLine
	}
	return nil
}

// add passes a finding on. What is served to nobody is never worse than a note.
func (l *look) add(f *finding.Finding, r *record) error {
	if r.hidden {
		if of := *f; !l.policy.Apply(&of) { // what is not told of a record that is served isn't told of this one
			return nil
		}
		f.Message = string(f.ID) + " in a record that is served to nobody: " + f.Message
		f.ID, f.Severity, f.Fixable = finding.PackedRefShadowed, finding.Info, false
	}
	return l.report(f)
}

// noteReplacement remembers what refs/replace puts in an object's place.
func (l *look) noteReplacement(r *refstore.Ref) {
	hex, ok := bytes.CutPrefix(r.Name, replacePrefix)
	if !ok || r.OID == nil || r.Hidden {
		return
	}
	if id, err := oid.Parse(string(hex)); err == nil && id.Format() == l.format {
		l.replacements[id] = oid.FromBytes(l.format, r.OID)
	}
}
