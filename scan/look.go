package scan

import (
	"context"
	"encoding/binary"
	"errors"
	"hash/maphash"
	"runtime"
	"slices"
	"strings"
	"time"

	"refaudit/finding"
	"refaudit/internal/refstore"
	"refaudit/oid"
	"refaudit/packed"
	"refaudit/peel"
)

// look is one look at a repository, under state that was read for it afresh.
type look struct {
	target  *Target
	format  oid.Format
	level   Level
	policy  *Policy
	objects *objects
	judge   *peel.Judge
	sure    *peel.Judge   // see confirmed; nil until there is a doubt
	info    *serverInfo   // nil: there is none
	handles []peel.Handle // scratch of judgeBatch
	emit    func(*finding.Finding) error
	now     func() time.Time
	workers int

	before *look           // the look before this one: only what it saw is reported, only its refs are judged
	seen   map[uint64]bool // the keys of findings
	named  map[string]bool // refs with findings

	replacements peel.Replacements
	tagNames     bool // tagNameMismatch is wanted

	certain     []finding.Finding // that need no second look, which few repositories would be spared else
	refs, peels int64
	notRead     []string
	// troubled: files of the object database were found damaged as they were used; the next look is
	// to use them too.
	troubled bool
	// lostBytes: packed-refs has lost refs, and no repair touches it.
	lostBytes bool
}

// lookOnce looks at the whole repository, or again at what the look before has seen. Findings
// that survive the policy go to emit; in a second look, those that the first has seen too.
func lookOnce(ctx context.Context, t *Target, policy *Policy, o Options, before *look, emit func(*finding.Finding) error) (*look, error) {
	l := &look{target: t, format: t.Repo.Format, level: o.Level, policy: policy, emit: emit, before: before, now: o.Now, workers: o.Workers,
		seen: map[uint64]bool{}, named: map[string]bool{}, replacements: peel.Replacements{}, tagNames: policy.Wanted(finding.TagNameMismatch)}
	if l.workers == 0 {
		l.workers = runtime.GOMAXPROCS(0)
	}
	if before != nil {
		l.replacements = before.replacements
	}
	if err := l.refusedSettings(); err != nil {
		return nil, err
	}
	if o.Level == Quick {
		return l, l.stores(ctx, func(f finding.Finding) error { return l.report(&f) }, nil)
	}
	db, found, err := t.openObjects(l.workers)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	for i := range found {
		if err := l.report(&found[i]); err != nil {
			return nil, err
		}
	}
	l.objects, l.judge = db, peel.NewJudge(db)
	if before != nil && !before.troubled {
		l.judge = before.judge.Again(db)
	}
	info, closeInfo, err := l.openServerInfo()
	if err != nil {
		return nil, err
	}
	defer closeInfo()
	l.info = info
	err = pipe(ctx, l.format, func(report func(finding.Finding) error, each func(*refstore.Ref, int) error) error {
		return l.stores(ctx, report, func(r *refstore.Ref) error {
			l.noteReplacement(r)
			line := info.note(r)
			if r.OID == nil || before != nil && !before.troubled && !before.named[string(r.Name)] {
				return nil
			}
			return each(r, line)
		})
	}, func(b *batch) error {
		if o.Pace != nil {
			if err := o.Pace(ctx); err != nil {
				return err
			}
		}
		if o.Seen != nil && before == nil {
			o.Seen.Add(int64(len(b.recs)))
		}
		return l.judgeBatch(ctx, b)
	})
	if err != nil {
		return nil, err
	}
	if err := info.compare(ctx); err != nil {
		return nil, err
	}
	if err := l.noRefs(); err != nil {
		return nil, err
	}
	return l, l.problems()
}

// noRefs tells of a repository that has objects and no refs at all: so look one whose packed-refs is gone, or whose
// refs lie elsewhere. To git it is empty.
func (l *look) noRefs() error {
	if l.refs > 0 || len(l.notRead) > 0 {
		return nil
	}
	any, err := l.objects.any()
	if err != nil || !any {
		return err
	}
	l.unread("there are objects, and no ref at all")
	f := finding.New(finding.AuditSkipped, finding.Pos{}, "there are objects, and no ref at all: whether refs were lost can't be told; do not run gc, `git gc --prune=now` would delete every object")
	return l.report(&f)
}

// refusedSettings tells of includes that were not followed: what they set, severities perhaps, does not hold.
func (l *look) refusedSettings() error {
	for _, err := range l.target.Repo.Config.Refused {
		f := finding.New(finding.AuditSkipped, finding.Pos{File: "config"}, "%v", err)
		if err := l.report(&f); err != nil {
			return err
		}
	}
	return nil
}

// settle takes a finding that a second look could not make any surer.
func (l *look) settle(f *finding.Finding) {
	if l.policy.Apply(f) {
		l.certain = append(l.certain, *f)
	}
}

func (l *look) time() time.Time {
	if l.now == nil {
		return time.Now()
	}
	return l.now()
}

// stores visits the ref stores.
func (l *look) stores(ctx context.Context, report func(finding.Finding) error, each func(*refstore.Ref) error) error {
	o := refstore.Options{Hidden: l.level == Deep, Deep: l.level == Deep, Objects: l.level > Quick, Severity: l.policy.Severity, Workers: l.workers, Now: l.now}
	sum, err := l.target.Refs.Visit(ctx, o, report, each)
	l.refs = sum.Refs
	l.lostBytes = sum.Packed != nil && sum.Packed.LostBytes
	l.notRead = append(l.notRead, sum.Unread...)
	return err
}

// problems tells what kept the object database from being read whole.
func (l *look) problems() error {
	var errs []error
	found := l.objects.Problems()
	l.troubled = len(found) > 0
	for _, f := range append(found, l.objects.Alternates().Findings...) { // which may be others than when it was opened
		if f.ID == finding.AuditSkipped {
			l.unread(f.Pos.String() + ": " + f.Message)
		}
		errs = append(errs, l.report(&f))
	}
	return errors.Join(errs...)
}

func (l *look) unread(reason string) {
	if !slices.Contains(l.notRead, reason) {
		l.notRead = append(l.notRead, reason)
	}
}

// report takes a finding that a look has made.
func (l *look) report(f *finding.Finding) error {
	if l.before != nil && l.before.lostBytes && strings.HasSuffix(f.File, packed.FileName) {
		f.Fixable = false
	}
	if !l.policy.Apply(f) {
		return nil
	}
	key := keyOf(f)
	if l.before != nil && !l.before.seen[key] || l.seen[key] {
		return nil
	}
	l.seen[key] = true
	if f.Ref != "" {
		l.named[string(f.Ref)] = true
	}
	return l.emit(f)
}

var keySeed = maphash.MakeSeed()

// keyOf tells the findings of two looks apart, as their fingerprints do, and faster.
func keyOf(f *finding.Finding) uint64 {
	var h maphash.Hash
	h.SetSeed(keySeed)
	file := f.File
	if f.Ref != "" { // between two looks its record may have moved to another table
		file = file[:strings.LastIndexByte(file, '/')+1]
	}
	for _, part := range [...]string{string(f.ID), string(f.Ref), file} {
		h.WriteString(part)
		h.WriteByte(0)
	}
	h.Write(f.OID.Bytes())
	h.WriteByte(0)
	h.Write(f.Cached.Bytes())
	if f.Ref == "" || f.OID == (oid.ID{}) {
		var place [24]byte
		binary.LittleEndian.PutUint64(place[:], uint64(f.Line))
		binary.LittleEndian.PutUint64(place[8:], uint64(f.Offset))
		binary.LittleEndian.PutUint64(place[16:], uint64(f.Block))
		h.Write(place[:])
		h.WriteString(f.Message)
	}
	return h.Sum64()
}
