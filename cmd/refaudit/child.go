package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"refaudit/finding"
	"refaudit/internal/vfs"
	"refaudit/repair"
	"refaudit/scan"
)

// As root, the work on a repository of somebody else is done by a child with the owner's id, which
// can do no more than the owner. The child asks its parent, over a socket, for the journal and
// for what the person at the terminal wants, and at the end tells what was done.

// childFD is the socket in the child.
const childFD = 3

// order is what the parent tells the child to do.
type order struct {
	Path    []byte
	How     scan.How
	Strict  bool
	Undo    string // the entry to take back; "": fix
	Confirm bool   // ask before anything is changed
	Refs    []string
	Only    []finding.ID
	Options orderOptions
}

type orderOptions struct {
	DryRun, Compact, DropCorrupt, Rebuild, StaleLocks, Replicated bool
	OlderThan                                                     time.Duration
	MaxChanges                                                    int
	LockTimeout                                                   *time.Duration
	LongestWait                                                   time.Duration
}

// question is what the child asks, or its last word.
type question struct {
	Journal *repair.JournalRequest `json:",omitempty"`
	Confirm []wireDone             `json:",omitempty"`
	Result  *wireResult            `json:",omitempty"`
}

type answer struct {
	Journal *repair.JournalReply `json:",omitempty"`
	Yes     bool                 `json:",omitempty"`
}

// talk is one end of the socket.
type talk struct {
	in  *json.Decoder
	out *json.Encoder
}

func newTalk(rw io.ReadWriter) *talk { return &talk{json.NewDecoder(rw), json.NewEncoder(rw)} }

func (t *talk) ask(q question) (a answer, err error) {
	if err := t.out.Encode(q); err != nil {
		return a, err
	}
	return a, t.in.Decode(&a)
}

// serve answers a child's questions until its last word.
func (t *talk) serve(o order, j repair.Journal, gitDir string, confirm func([]repair.Done) (bool, error)) (*wireResult, error) {
	if err := t.out.Encode(o); err != nil {
		return nil, err
	}
	for {
		var q question
		if err := t.in.Decode(&q); err != nil {
			return nil, err
		}
		var a answer
		switch {
		case q.Result != nil:
			return q.Result, nil
		case q.Journal != nil:
			r := repair.AnswerJournal(j, *q.Journal, gitDir)
			a.Journal = &r
		default:
			yes, err := confirm(unpackDone(q.Confirm))
			if err != nil {
				return nil, err
			}
			a.Yes = yes
		}
		if err := t.out.Encode(a); err != nil {
			return nil, err
		}
	}
}

func childCommand(e env) *cli.Command {
	return &cli.Command{
		Name: "child", Hidden: true, Usage: "work for a parent that is root; not for people",
		Action: func(c *cli.Context) error {
			f := os.NewFile(childFD, "parent")
			if f == nil {
				return usagef("there is no parent to work for")
			}
			defer f.Close()
			return work(c.Context, e, newTalk(f))
		},
	}
}

// work does what the parent orders.
func work(ctx context.Context, e env, t *talk) error {
	var o order
	if err := t.in.Decode(&o); err != nil {
		return usagef("there is no parent to work for: %w", err)
	}
	res, err := o.carryOut(ctx, e, t)
	return t.out.Encode(question{Result: packResult(res, err)})
}

func (o *order) carryOut(ctx context.Context, e env, t *talk) (*repair.Result, error) {
	none := &repair.Result{}
	target, err := scan.Open(string(o.Path), o.How, e.fresh())
	if err != nil {
		return none, err
	}
	if err := target.Repo.CheckOwner(); err != nil {
		return none, &repair.Refused{Reason: "it belongs to somebody else", Err: err}
	}
	policy, err := scan.NewPolicy(target.Repo, o.Strict, e.now())
	if err != nil {
		return none, err
	}
	ro := o.options(e, t)
	if o.Undo == "" {
		return repair.Fix(ctx, target, policy, ro)
	}
	entry, err := repair.Entry(ro.Journal, o.Undo)
	if err != nil {
		return none, err
	}
	u, err := repair.Undo(ctx, target, entry, ro)
	return &repair.Result{Done: u.Done, Kept: u.Left, Notices: u.Notices}, err
}

func (o *order) options(e env, t *talk) repair.Options {
	w := o.Options
	r := repair.Options{FS: childFS(), Scan: scan.Options{Level: scan.Standard, Now: e.now},
		DryRun: w.DryRun, Compact: w.Compact, DropCorrupt: w.DropCorrupt, Rebuild: w.Rebuild, StaleLocks: w.StaleLocks, OlderThan: w.OlderThan,
		MaxChanges: w.MaxChanges, Replicated: w.Replicated, LockTimeout: w.LockTimeout, LongestWait: w.LongestWait}
	r.Ref = repair.Globs(o.Refs)
	for _, id := range o.Only {
		if r.Only == nil {
			r.Only = map[finding.ID]bool{}
		}
		r.Only[id] = true
	}
	r.Journal = repair.RemoteJournal(func(q repair.JournalRequest) (repair.JournalReply, error) {
		a, err := t.ask(question{Journal: &q})
		if err == nil && a.Journal == nil {
			err = errors.New("the parent gave no answer")
		}
		if err != nil {
			return repair.JournalReply{}, err
		}
		return *a.Journal, nil
	})
	if o.Confirm {
		r.Confirm = func(plan []repair.Done) (bool, error) {
			a, err := t.ask(question{Confirm: packDone(plan)})
			return a.Yes, err
		}
	}
	return r
}

// orderOf is the order for what the flags say.
func (o *fixOptions) orderOf(r repair.Options, t target, path string) order {
	out := order{Path: []byte(path), How: t.how, Strict: o.strict, Confirm: !r.DryRun && !o.yes, Refs: o.refs, Options: orderOptions{
		DryRun: r.DryRun, Compact: r.Compact, DropCorrupt: r.DropCorrupt, Rebuild: r.Rebuild, StaleLocks: r.StaleLocks, Replicated: r.Replicated,
		OlderThan: r.OlderThan, MaxChanges: r.MaxChanges, LockTimeout: r.LockTimeout, LongestWait: r.LongestWait}}
	for id := range r.Only {
		out.Only = append(out.Only, id)
	}
	return out
}

// asOwner has a child with the owner's id carry out an order.
func asOwner(ctx context.Context, e env, who vfs.Ident, o order, j repair.Journal, gitDir string, confirm func([]repair.Done) (bool, error)) (*repair.Result, error) {
	var w *wireResult
	err := startAs(ctx, e, who, gitDir, func(rw io.ReadWriter) (err error) {
		w, err = newTalk(rw).serve(o, j, gitDir, confirm)
		return err
	})
	if err != nil {
		return &repair.Result{}, fmt.Errorf("the child that works as user %d: %w", who.UID, err)
	}
	return w.unpack()
}
