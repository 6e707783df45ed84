// Package refstore reads every reference of a repository, whichever format holds it: loose
// files over packed-refs, or a stack of reftables, of the main store and of each worktree.
//
// A store that can't be read is told as such and makes the visit incomplete; it never looks
// like a store without references.
package refstore

import (
	"refaudit/finding"
	"refaudit/peel"
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
	Peel    []byte // the cached peel, raw; nil: none
	Promise peel.Promise
	Source  Source
	Pos     finding.Pos // of the record
	PeelPos finding.Pos // of the cached peel, if it has a line of its own, else Pos
	Hidden  bool        // served to nobody: a loose ref or a newer table stands before it
}

// Summary says what a visit has seen.
type Summary struct {
	Refs int64 // records that are served
	// Unread are the stores, or parts of them, that could not be read: the visit is incomplete.
	Unread []string
}

func (s *Summary) unread(reason string) { s.Unread = append(s.Unread, reason) }

// Options of a visit.
type Options struct {
	// Hidden: also visit records that are served to nobody.
	Hidden bool
	// Heads: also visit HEAD of each worktree, as a Ref of that name.
	Heads bool
}
