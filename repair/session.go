package repair

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"refaudit/finding"
	"refaudit/internal/lockfile"
	"refaudit/internal/vfs"
	"refaudit/oid"
	"refaudit/repo"
	"refaudit/scan"
)

// Options are how a repository is to be repaired.
type Options struct {
	FS      vfs.FS
	Journal Journal
	Scan    scan.Options

	Selection
	DryRun      bool           // plan only
	Compact     bool           // rewrite tables instead of adding one
	DropCorrupt bool           // delete the refs of corrupt tags
	Rebuild     bool           // put a lost tables.list together again
	StaleLocks  bool           // remove locks that are older than OlderThan
	OlderThan   time.Duration  //
	MaxChanges  int            // allow so many changes, whatever they look like; 0: the brake decides
	Replicated  bool           // go on where something else keeps account of the files
	LockTimeout *time.Duration // instead of what the configuration says; nil: that
	// LongestWait bounds what the configuration says, which may be to wait for ever; 0: nothing does.
	LongestWait time.Duration
	// Confirm is asked before anything is changed; nil: go on.
	Confirm func([]Done) (bool, error)
}

// Done is one change that was made, or would be.
type Done struct {
	Change
	File    string // the store, as findings call it
	Applied bool
	Journal string
	Diff    string // of a text file that would be changed, with its first change
}

// Result is how the repair of a repository ended.
type Result struct {
	Scan scan.Result // what an audit would say now
	Left []finding.Finding
	Done []Done

	// Held, Refused and Failed are the stores that could not be repaired, and why.
	Held, Refused, Failed []error
	// Blocked counts the findings that are left only because of a store that was Held or Refused.
	Blocked  map[finding.Severity]int64
	Notices  []string
	Kept     []string // of an undo: what stands no more as the repair left it
	Declined bool     // Confirm said no
}

// Changed tells whether anything was written.
func (r *Result) Changed() bool {
	for i := range r.Done {
		if r.Done[i].Applied {
			return true
		}
	}
	return false
}

// session is the repair of one repository.
type session struct {
	target *scan.Target
	policy *scan.Policy
	o      Options
	repo   *Repo
	stores []*store
	found  []finding.Finding
	audit  scan.Result
	res    *Result
}

// store is one ref store of the repository, and what is to be done to it.
type store struct {
	label   string
	prefix  string // before the names of refs in findings: "worktrees/<id>/"
	packed  *Packed
	stack   *Stack
	refs    refStore // where refs are deleted
	wanted  []Wanted
	doomed  []Wanted // refs of corrupt tags that are to be deleted
	causes  map[finding.RefName]finding.Cause
	whole   bool   // faults of the file as a whole are among the findings
	damage  string // why it is not touched
	pending bool   // there is something that an earlier repair has left
	out     *Outcome
	dropped *Outcome
	blocked blockage
	moved   bool // some of what was wanted has changed meanwhile
}

// blockage is why a store could not be repaired.
type blockage uint8

const (
	free    blockage = iota
	held             // its lock was not obtained
	refused          // for safety
	failed           // something could not be read or written
)

// Fix audits a repository, repairs what is a cache or a header, and tells what an audit would say then.
func Fix(ctx context.Context, target *scan.Target, policy *scan.Policy, o Options) (*Result, error) {
	s := &session{target: target, policy: policy, o: o, res: &Result{Blocked: map[finding.Severity]int64{}}}
	if q, set := target.Repo.Quarantine(); set {
		return s.res, errQuarantine(q)
	}
	if err := s.open(); err != nil {
		return s.res, err
	}
	if o.StaleLocks && !o.DryRun {
		s.removeStale(ctx)
	}
	if o.Rebuild {
		return s.res, s.rebuild(ctx)
	}
	if err := s.scan(ctx); err != nil {
		return s.res, err
	}
	if err := s.plan(); err != nil {
		return s.res, err
	}
	err := s.run(ctx)
	s.tellTableLocks()
	return s.res, err
}

func errQuarantine(path string) error {
	return &Refused{Reason: "objects are in a quarantine (" + path + "): what is written now may name objects that are thrown away. Run it when the push is over"}
}

// open learns what the repository is.
func (s *session) open() (err error) {
	if s.repo, err = newRepo(s.target, s.o); err != nil {
		return err
	}
	r := s.target.Repo
	trees, err := r.Worktrees()
	if err != nil {
		return err
	}
	for i := range trees {
		st := &store{causes: map[finding.RefName]finding.Cause{}}
		if !trees[i].Main() {
			st.prefix = "worktrees/" + trees[i].ID + "/"
		}
		if r.Refs.Backend == "reftable" {
			s.openStack(st, &trees[i])
		} else {
			s.openFiles(st, &trees[i])
		}
		if st.refs != nil {
			s.stores = append(s.stores, st)
		}
	}
	return nil
}

func (s *session) openFiles(st *store, w *repo.Worktree) {
	st.refs = &Loose{Repo: s.repo, Dir: w.RefDir}
	if st.label = st.prefix + "refs"; !w.Main() {
		return
	}
	st.label = "packed-refs"
	path := filepath.Join(w.RefDir, st.label)
	if s.target.Repo.Refs.Payload {
		st.label = path
	}
	for _, name := range []string{path, path + ".new"} {
		if _, err := s.o.FS.Lstat(name); !vfs.Missing(err) {
			st.packed = &Packed{Repo: s.repo, Path: path, Label: st.label}
		}
	}
}

func (s *session) openStack(st *store, w *repo.Worktree) {
	dir := filepath.Join(w.RefDir, "reftable")
	if st.label = st.prefix + "reftable"; s.target.Repo.Refs.Payload {
		st.label = dir
	}
	if _, err := s.o.FS.Lstat(dir); vfs.Missing(err) && !w.Main() {
		return // a worktree without refs of its own
	}
	st.stack = &Stack{Repo: s.repo, Dir: dir, Label: st.label}
	st.refs = st.stack
}

// scan audits the repository.
func (s *session) scan(ctx context.Context) (err error) {
	s.found = nil
	s.audit, err = scan.Repository(ctx, s.target, s.policy, s.o.Scan, func(f *finding.Finding) error {
		s.found = append(s.found, *f)
		return nil
	})
	s.res.Scan, s.res.Left = s.audit, s.found
	return err
}

// damaging are the findings after which a stack is not touched.
var damaging = map[finding.ID]bool{
	finding.ReftableUnreadable: true, finding.ReftableCrc: true, finding.ReftableMissingTable: true, finding.ReftableListBad: true,
	finding.ReftableBlockOrder: true, finding.ReftableRestart: true, finding.ReftableIndexMismatch: true, finding.ReftableUpdateIndex: true,
	finding.ReftableHashMismatch: true, finding.ReftableRecord: true, finding.ReftableLog: true, finding.ReftableDuplicate: true,
}

// mendable are the findings about a packed-refs file as a whole that a repair can answer.
var mendable = map[finding.ID]bool{
	finding.PeelOrphan: true, finding.BadPackedRefEntry: true, finding.PackedRefUnsorted: true, finding.HeaderTraitFalse: true,
	finding.PackedRefDuplicate: true, finding.PackedRefEntryNotTerminated: true, finding.BadPackedRefHeader: true, finding.HeaderMissing: true,
}

// plan sorts the findings by store.
func (s *session) plan() error {
	unknowable := ""
	for i := range s.found {
		f := &s.found[i]
		switch f.ID {
		case finding.AlternateMissing:
			unknowable = "an alternate is missing, so what its objects are can't be known: mount or restore it, then run fix again"
		case finding.RefsDirShared:
			unknowable = "its refs lie outside the repository, where others may use them too"
		}
		if st := s.dropFrom(f); st != nil {
			st.doom(f)
		}
		st := s.storeOf(f)
		if st == nil {
			continue
		}
		switch {
		case st.stack != nil && damaging[f.ID]:
			st.damage = "the stack is damaged (" + string(f.ID) + "), and git may take it for empty: do not run gc here"
		case s.wants(f):
			st.want(f)
		case st.packed != nil && mendable[f.ID] && s.o.Ref == nil && s.o.id(f.ID):
			st.whole = true
		}
	}
	for _, st := range s.stores {
		st.spare()
		if unknowable != "" {
			st.damage = unknowable
		}
		var err error
		if st.pending, err = s.pending(st); err != nil {
			return err
		}
	}
	return nil
}

// wants tells whether a finding is a cached peel that a repair mends.
func (s *session) wants(f *finding.Finding) bool {
	return f.Fixable && f.Ref != "" && strings.HasPrefix(string(f.ID), "peel") && s.o.id(f.ID) && s.o.ref([]byte(f.Ref))
}

// storeOf finds the store that a finding is about.
func (s *session) storeOf(f *finding.Finding) *store {
	for _, st := range s.stores {
		if f.File == st.label || st.stack != nil && path.Dir(filepath.ToSlash(f.File)) == filepath.ToSlash(st.label) {
			return st
		}
	}
	return nil
}

func (st *store) want(f *finding.Finding) {
	name := finding.RefName(strings.TrimPrefix(string(f.Ref), st.prefix))
	st.wanted = append(st.wanted, Wanted{Ref: name, ID: f.ID, OID: f.OID, Cached: f.Cached})
	st.causes[name] = f.Cause
}

// pending tells whether an earlier repair, or a git that died, has left something in a store.
func (s *session) pending(st *store) (bool, error) {
	dir := ""
	switch r := st.refs.(type) {
	case *Stack:
		dir = r.Dir
	case *Loose:
		dir = r.Dir
	}
	open, err := s.repo.openEntries(dir)
	if len(open) > 0 || err != nil {
		return len(open) > 0, err
	}
	if st.packed == nil {
		names, err := s.o.FS.ReadDir(dir)
		return err == nil && st.stack != nil && slices.ContainsFunc(names, func(n string) bool { return strings.Contains(n, tempMark) }), nil
	}
	where, err := lockfile.Resolve(s.o.FS, st.packed.Path)
	if err != nil {
		return false, fmt.Errorf("%s: %w", st.label, err)
	}
	if _, err := s.o.FS.Lstat(where + ".new"); err == nil {
		return true, nil
	}
	open, err = s.repo.openEntries(where)
	return len(open) > 0, err
}

// todo tells whether anything is to be done to a store, its pending things aside.
func (s *session) todo(st *store) bool {
	return len(st.wanted) > 0 || len(st.doomed) > 0 || st.whole || s.o.Compact && st.stack != nil
}

func (s *session) brake() Brake { return Brake{Tags: s.audit.Peels, Max: s.o.MaxChanges} }

// run shows the plan, asks, and applies.
func (s *session) run(ctx context.Context) error {
	var plan []Done
	for _, st := range s.stores {
		if !s.todo(st) {
			continue
		}
		if st.damage != "" {
			s.block(st, &Refused{Store: st.label, Reason: st.damage})
			continue
		}
		if st.stack != nil {
			if err := st.stack.sound(); err != nil {
				s.block(st, err)
				continue
			}
		}
		done, err := s.planOf(ctx, st)
		if err != nil {
			s.block(st, err)
			continue
		}
		plan = append(plan, done...)
	}
	if len(plan) > 0 {
		if err := s.o.replicated(s.target.Repo); err != nil {
			if !s.o.DryRun {
				s.refuseAll(err)
				return s.account(ctx)
			}
			s.res.Notices = append(s.res.Notices, err.Error())
		}
	}
	if s.o.DryRun {
		s.res.Done = plan
		return s.account(ctx)
	}
	if len(plan) > 0 && s.o.Confirm != nil {
		yes, err := s.o.Confirm(plan)
		if err != nil {
			return err
		}
		if !yes {
			s.res.Declined, s.res.Done = true, plan
			return s.account(ctx)
		}
	}
	for _, st := range s.stores {
		s.apply(ctx, st)
	}
	return s.account(ctx)
}

// block notes why a store is not repaired.
func (s *session) block(st *store, err error) {
	switch {
	case errors.Is(err, lockfile.ErrHeld):
		st.blocked, s.res.Held = held, append(s.res.Held, err)
	case errors.Is(err, ErrRefused), errors.Is(err, lockfile.ErrLost):
		st.blocked, s.res.Refused = refused, append(s.res.Refused, err)
	default:
		st.blocked, s.res.Failed = failed, append(s.res.Failed, err)
	}
}

// refuseAll notes one reason for all stores that something was to be done to.
func (s *session) refuseAll(err error) {
	s.res.Refused = append(s.res.Refused, err)
	for _, st := range s.stores {
		if s.todo(st) {
			st.blocked = refused
		}
	}
}

// planOf says what would be done to a store, without a lock.
func (s *session) planOf(ctx context.Context, st *store) ([]Done, error) {
	var done []Done
	for _, w := range st.doomed {
		done = append(done, Done{Change: st.outward(Change{Ref: w.Ref, ID: w.ID, OID: w.OID, Before: w.Cached, Action: dropAction}), File: st.label})
	}
	switch {
	case len(st.wanted) == 0 && !st.whole && !(s.o.Compact && st.stack != nil):
	case st.packed != nil && (s.o.DryRun || s.o.Confirm != nil || st.whole):
		p, err := st.packed.Plan(ctx, st.wanted, s.o.structure(), s.brake())
		if err != nil {
			return nil, err
		}
		for i, c := range p.Changes {
			d := Done{Change: c, File: st.label}
			if i == 0 {
				d.Diff = p.Diff
			}
			done = append(done, d)
		}
	case st.stack != nil && s.o.Compact:
		changes, err := st.stack.planCompact(ctx, s.o.Selection, s.brake())
		if err != nil {
			return nil, err
		}
		for _, c := range changes {
			done = append(done, Done{Change: st.outward(c), File: st.label})
		}
	default: // the audit has just said what is wrong
		var peels []Done
		for _, w := range st.wanted {
			peels = append(peels, Done{Change: st.outward(Change{Ref: w.Ref, ID: w.ID, OID: w.OID, Before: w.Cached}), File: st.label})
		}
		s.expect(st, peels)
		done = append(done, peels...)
	}
	return done, nil
}

// expect fills in what the audit holds for right.
func (s *session) expect(st *store, done []Done) {
	right := map[finding.RefName]oid.ID{}
	for i := range s.found {
		if f := &s.found[i]; s.storeOf(f) == st && s.wants(f) {
			right[f.Ref] = f.Expected
		}
	}
	for i := range done {
		c := &done[i].Change
		c.After = right[c.Ref]
		c.Action = action(c.Before, c.After)
	}
}

// outward gives a change the name of the ref that findings use.
func (st *store) outward(c Change) Change {
	if c.Ref != "" {
		c.Ref = finding.RefName(st.prefix) + c.Ref
	}
	return c
}
