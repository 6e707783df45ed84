// Package repair plans and applies rewrites of the ref stores of a repository. It is the only
// package that changes one.
//
// A repair changes caches and headers, never the value of a ref. It is planned outside the lock
// from what a scan found; under git's own lock the store is read and every decision made again,
// the change goes to the journal and is synced there, and only then is it published, in an order
// that a crash at any point leaves the old state or the new.
package repair

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"refaudit/finding"
	"refaudit/internal/journal"
	"refaudit/internal/vfs"
	"refaudit/oid"
	"refaudit/peel"
)

// Repo is what a repair has to know of a repository.
type Repo struct {
	FS      vfs.FS
	Journal Journal
	GitDir  string // the common dir: what the journal calls the repository
	Loose   string // the folder of loose objects
	Format  oid.Format
	// Objects opens the object database as it is at the moment. It is asked anew for each store.
	Objects func() (Objects, error)

	// Shared and SharedDir give the mode that core.sharedRepository makes of that of a new file and a
	// new folder; nil: not set.
	Shared, SharedDir func(fs.FileMode) fs.FileMode

	Root          bool          // we may give files away: keep their owner
	PIDFile       bool          // core.lockfilePid
	PackedTimeout time.Duration // for packed-refs.lock; lockfile.Forever: no limit
	TableTimeout  time.Duration // for tables.list.lock
	RefTimeout    time.Duration // for the lock of a single ref
	LongestWait   time.Duration // what the settings of a repository can't make us exceed; 0: anything
	Tables        TableOptions

	// Step, if set, is called with a word before each step that others could see; tests stop there.
	Step func(string)
}

// TableOptions are git's settings for new tables; zero is git's default.
type TableOptions struct {
	BlockSize       int  // reftable.blockSize
	RestartInterval int  // reftable.restartInterval
	NoObjects       bool // reftable.indexObjects = false
}

// Objects is what a repair needs of an object database.
type Objects interface {
	peel.Objects
	// Confirm answers as Look does, and has hashed the object, of whatever kind.
	Confirm(ctx context.Context, id oid.ID) (oid.Fact, error)
	// Content reads a whole object, for the journal of refs that are deleted.
	Content(id oid.ID) (oid.Kind, []byte, error)
	Close() error
}

// Wanted is one record that a plan wants mended: what stood there when it was looked at.
type Wanted struct {
	Ref    finding.RefName // as the store names it
	ID     finding.ID      // why
	OID    oid.ID          // the value of the ref
	Cached oid.ID          // the cached peel; zero: none
}

// Change is one thing that a repair does.
type Change struct {
	Ref    finding.RefName // "": it concerns the file as a whole
	ID     finding.ID      // why
	OID    oid.ID          // the value of the ref
	Before oid.ID          // the cached peel; zero: none
	After  oid.ID
	Action string // in words
}

// Left is a record that was to be mended and was not.
type Left struct {
	Ref    finding.RefName
	Reason string
}

// Outcome is what became of one store.
type Outcome struct {
	Changes []Change
	Left    []Left
	Journal string   // the id of the journal's entry; "": nothing was written
	Notices []string // what else was done, or should be known
	// Structure tells that more than cached peels was changed, so that other findings may be gone too.
	Structure bool
	// Final says why this can't be taken back; "": it can.
	Final string
	entry *journal.Entry
}

// ErrRefused is a repair that is not made, for safety; nothing was written. The error is a *Refused.
var ErrRefused = errors.New("refused")

// Refused says why a repair is not made, and what to do.
type Refused struct {
	Store  string
	Reason string
	Err    error // nil, or what led to it
}

func (r *Refused) Error() string {
	s := "refused"
	if r.Store != "" {
		s = r.Store + ": refused"
	}
	if r.Err != nil {
		return fmt.Sprintf("%s: %s: %v", s, r.Reason, r.Err)
	}
	return s + ": " + r.Reason
}

// Is makes errors.Is(err, ErrRefused) true.
func (r *Refused) Is(target error) bool { return target == ErrRefused }

// Unwrap gives what led to the refusal.
func (r *Refused) Unwrap() error { return r.Err }

func (r *Repo) step(word string) {
	if r.Step != nil {
		r.Step(word)
	}
}

// decision is the right cached peel of one object.
type decision struct {
	known   bool   // false: it can't be told, so the cache is left as it is
	peel    oid.ID // zero: none
	absent  bool   // none because an object of the chain is absent
	corrupt bool   // none because the tag is corrupt
}

// subject is a ref of which the peel is to be decided.
type subject struct {
	name   string
	id     oid.ID
	cached oid.ID // zero: none
}

// decider decides for a batch of refs, in their order.
type decider func(ctx context.Context, refs []subject) ([]decision, error)

// judged looks at the objects afresh.
func (r *Repo) judged(ctx context.Context, refs []subject) (out []decision, err error) {
	db, err := r.Objects()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	j := peel.NewJudge(db)
	ids := make([]oid.ID, len(refs))
	for i := range refs {
		ids[i] = refs[i].id
	}
	handles, err := j.Learn(ctx, ids, nil)
	if err != nil {
		return nil, err
	}
	sure := peel.NewJudge(peel.Confirmed{From: db}) // kinds come from headers, which a flipped bit may have made
	for i, h := range handles {
		v := j.Verdict(h)
		if v.InDoubt() && (v.State != peel.NotTag || refs[i].cached != none) {
			if _, v, err = sure.Ask(ctx, ids[i]); err != nil {
				return nil, err
			}
		}
		d := decision{known: true}
		switch v.State {
		case peel.NotTag:
		case peel.Sound:
			d.peel = v.Peel
		case peel.Corrupt:
			d.corrupt, d.absent = true, v.Fault.Why == peel.TargetMissing
		default:
			d.known = false
		}
		out = append(out, d)
	}
	return out, nil
}

// action says in words what becomes of a cached peel.
func action(before, after oid.ID) string {
	switch {
	case before == oid.ID{}:
		return "add the missing peel " + after.String()
	case after == oid.ID{}:
		return "drop the cached peel " + before.String()
	}
	return fmt.Sprintf("set the cached peel to %v, not %v", after, before)
}

// none is the id of no object: no cached peel.
var none oid.ID
