// Package refstore reads every reference of a repository, whichever format holds it: loose
// files over packed-refs, or a stack of reftables, of the main store and of each worktree.
//
// A store that can't be read is told as such and makes the visit incomplete; it never looks
// like a store without references.
package refstore

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"time"

	"refaudit/finding"
	"refaudit/internal/vfs"
	"refaudit/packed"
	"refaudit/peel"
	"refaudit/repo"
)

// Source says where a record stands.
type Source uint8

// The places of a record.
const (
	Loose Source = iota + 1
	Packed
	Table
)

// Ref is one record. Its slices are valid until the visitor returns.
type Ref struct {
	Name    []byte // in full; of a worktree's own store with "worktrees/<id>/" before it
	OID     []byte // raw; nil where Target is set
	Target  []byte // of a symref
	Aim     Aim    // of a symref to a name outside refs/
	Peel    []byte // the cached peel, raw; nil: none
	Promise peel.Promise
	Source  Source
	Pos     finding.Pos // of the record
	PeelPos finding.Pos // of the cached peel, if it has a line of its own, else Pos
	Hidden  bool        // served to nobody: a loose ref or a newer table stands before it
	Root    bool        // HEAD of a worktree, which is no ref below refs/
	Broken  string      // why git can take no object from it, though it knows of it; "" if it can. See Options.Broken
}

// Summary says what a visit has seen.
type Summary struct {
	Refs int64 // records below refs/ that are served
	// Unread are the stores, or parts of them, that could not be read: the visit is incomplete.
	Unread []string
	// Refused are the stores that git dies of. The visit may be complete all the same: what git serves can't be said.
	Refused []string
	// UpdateIndex is the highest of the tables of the main stack: it never falls. 0 where refs are files.
	UpdateIndex uint64
	// Packed is what is true of packed-refs as a whole; nil where there is none, or it can't be read.
	Packed *packed.Summary
}

func (s *Summary) unread(reason string) { s.Unread = append(s.Unread, reason) }

func (s *Summary) refused(reason string) { s.Refused = append(s.Refused, reason) }

// Options of a visit.
type Options struct {
	Hidden  bool             // also visit records that are served to nobody
	Broken  bool             // also visit refs that git knows of and can take no object from
	Objects bool             // objects are looked at: tell of ids that can be none
	Deep    bool             // also judge the whole inside of tables, and what lies beside the refs
	Workers int              // goroutines that may be busy; 0 or 1: this one
	Now     func() time.Time // by which the age of leftovers is told; nil: the clock
	// Severity is what is configured for git's ids; nil: the defaults.
	Severity func(finding.ID) finding.Severity
}

// Stores are the ref stores of a repository: the main one, and those of its linked worktrees.
type Stores struct {
	repo  *repo.Repo
	trees []repo.Worktree
	all   []*place
}

// place is where one store lies.
type place struct {
	dir    string // "" for the main store's, whose root is open
	root   *vfs.Dir
	prefix string // of names of refs and of files: "" or "worktrees/<id>/"
	base   string // of files outside the repository: their folder
	main   bool
	fresh  bool // git is making the worktree
}

// Open finds the stores. It reads none of them.
func Open(r *repo.Repo) (*Stores, error) {
	s := &Stores{repo: r}
	main := &place{root: r.Refs.Root, main: true}
	if r.Refs.Dir != r.CommonDir {
		main.base = r.Refs.Dir
	}
	s.all = append(s.all, main)
	var err error
	if s.trees, err = r.Worktrees(); err != nil {
		return nil, fmt.Errorf("list the worktrees: %w", err)
	}
	for i := range s.trees {
		w := &s.trees[i]
		if w.Main() || w.Stray {
			continue
		}
		p := &place{dir: w.RefDir, prefix: "worktrees/" + w.ID + "/", fresh: w.LockReason == "initializing"}
		if r.Refs.Payload {
			p.base = w.RefDir
		}
		s.all = append(s.all, p)
	}
	return s, nil
}

// Worktrees are those of the repository, as they were when the stores were found.
func (s *Stores) Worktrees() []repo.Worktree { return s.trees }

// label names a file of the store in findings: below the git dir, or absolute where a payload keeps the store elsewhere.
func (p *place) label(name string) string {
	if p.base != "" {
		return filepath.Join(p.base, name)
	}
	return p.prefix + name
}

// open opens the folder of the store; false where it isn't there, as of a worktree without refs of its own.
func (p *place) open() (bool, error) {
	if p.root != nil {
		return true, nil
	}
	root, err := vfs.Open(p.dir)
	if vfs.Missing(err) {
		return false, nil
	}
	p.root = root
	return err == nil, err
}

// Visit reads all stores, the main one first. It gives each record to each, in the order of the
// store (nil: nobody wants them), and everything that is wrong with the stores to report; both may be called from this
// goroutine only. An error from one of them ends the visit and is returned as it is.
func (s *Stores) Visit(ctx context.Context, o Options, report func(finding.Finding) error, each func(*Ref) error) (Summary, error) {
	var sum Summary
	for _, p := range s.all {
		v := &visit{ctx: ctx, repo: s.repo, place: p, all: s.all, o: o, sum: &sum, report: report, each: each}
		if err := v.run(); err != nil {
			return sum, err
		}
	}
	return sum, nil
}

// visit is the reading of one store.
type visit struct {
	ctx    context.Context
	repo   *repo.Repo
	place  *place
	all    []*place
	aims   map[string]Aim // by target
	o      Options
	sum    *Summary
	report func(finding.Finding) error
	each   func(*Ref) error

	head     finding.RefName // what HEAD leads to, of files
	headSeen bool
}

// give passes a record on.
func (v *visit) give(r *Ref) error {
	if v.each == nil {
		return nil
	}
	r.Aim = Aim{}
	if r.Target != nil && !r.Hidden && !bytes.HasPrefix(r.Target, refsPrefix) {
		aim, known := v.aims[string(r.Target)]
		if !known {
			var err error
			if aim, err = v.aim(r.Target); err != nil {
				return err
			}
			if v.aims == nil {
				v.aims = map[string]Aim{}
			}
			v.aims[string(r.Target)] = aim
		}
		r.Aim = aim
	}
	return v.each(r)
}

func (v *visit) run() error {
	there, err := v.place.open()
	if err != nil {
		return v.cantRead("", err)
	}
	if !there {
		return nil
	}
	if v.repo.Refs.Backend == "reftable" {
		return v.tables()
	}
	return v.files()
}

// cantRead tells of a file that could not be looked at, which is not damage. What refs it holds is not known.
func (v *visit) cantRead(name string, err error) error {
	label := v.place.label(name)
	v.sum.unread(fmt.Sprintf("%s: %v", label, err))
	f := finding.New(finding.AuditSkipped, finding.Pos{File: label}, "can't be read, and what refs it holds is not known: %v", err)
	f.Severity = finding.Error
	return v.report(f)
}
