// Package odb reads the objects of a repository: which kind an object is of and, of a tag, what
// it points at. Objects lie in loose files, in packs (with an index each, of version 1 or 2, or
// with one multi-pack-index or a chain of them), and in the object folders of other repositories.
//
// It reads the files itself and writes nothing. Kinds come from headers alone, through chains of
// deltas; only tags are inflated, and each is hashed before anything is said of it. Every number
// in a file is a claim that is checked first, so that a damaged file gives an error, never a crash,
// a wrong answer or an endless loop. An object that is damaged in one place is read in another.
package odb

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"refaudit/alternates"
	"refaudit/finding"
	"refaudit/oid"
)

var (
	// ErrNotLooked is why an object is Unreadable of which nothing was found, but which may lie
	// where nobody could look: behind an index that is damaged, in a folder that can't be listed.
	ErrNotLooked = errors.New("not every place where it may be could be looked at")
	// ErrAbsent is an object that is in no place.
	ErrAbsent = errors.New("object is absent")
	// ErrTooLarge is an object, or a delta base on the way to it, over the limit that its reader set.
	ErrTooLarge = errors.New("is larger than the limit")
)

// Options are the settings of a DB.
type Options struct {
	// Alternates is the value of GIT_ALTERNATE_OBJECT_DIRECTORIES.
	Alternates string
	// Workers is how many goroutines look in parallel; 0 means one for each processor.
	Workers int
	// Alone leaves the folders that it borrows from to others: Alternates tells of them, and Stores has the first one only.
	Alone bool
	// Label stands before the names of the first folder's files in messages; "" is "objects/".
	Label string
}

// A DB is the object folders of a repository, as they were found at one time. It is safe for
// concurrent use, except for Close. It is meant for one audit: the files that it has once mapped
// stay mapped until Close, also when a repack has removed them.
type DB struct {
	dir     string
	format  oid.Format
	options Options

	view    atomic.Pointer[view]
	refresh sync.Mutex
	retired []*view
	workers sync.Pool
	hits    sync.Pool // of *[2][]hit: room for a batch's, and for sorting them
}

// Open finds the packs of an object folder, and of the folders that it borrows from. The findings
// are about how it borrows.
func Open(objectDir string, f oid.Format, opts Options) (*DB, []finding.Finding, error) {
	if f.Size() == 0 {
		return nil, nil, fmt.Errorf("object folder %s: unknown object format", objectDir)
	}
	if opts.Workers <= 0 {
		opts.Workers = runtime.GOMAXPROCS(0)
	}
	db := &DB{dir: objectDir, format: f, options: opts}
	db.workers.New = func() any { return newWorker(f) }
	db.hits.New = func() any { return new([2][]hit) }
	v, err := db.load(nil)
	if err != nil {
		return nil, nil, err
	}
	db.view.Store(v)
	return db, v.chain.Findings, nil
}

// Format is the object format.
func (db *DB) Format() oid.Format { return db.format }

// Stores are the object folders, the repository's own first, then, unless it is to be alone, those that it borrows
// from in the order in which git searches them. They are as they were found when the DB was opened or
// last refreshed.
func (db *DB) Stores() []*Store { return db.view.Load().stores }

// Alternates is how the repository borrows, as it was found when the DB was opened or last refreshed.
func (db *DB) Alternates() *alternates.Chain { return db.view.Load().chain }

// Incomplete says why an object that is Absent may exist all the same: a folder that the
// repository borrows from is missing, or can't be opened. It is nil if absent means gone.
func (db *DB) Incomplete() error { return db.view.Load().incomplete() }

// Refresh reads the pack folders, multi-pack-indexes and alternates afresh. What is being read
// by others stays valid.
func (db *DB) Refresh() error {
	_, err := db.reload()
	return err
}

// reload makes the view that is up to date the current one, and returns it. If nothing has
// changed it is the one before.
func (db *DB) reload() (*view, error) {
	db.refresh.Lock()
	defer db.refresh.Unlock()
	old := db.view.Load()
	v, err := db.load(old)
	if err != nil {
		return nil, fmt.Errorf("read the object folders afresh: %w", err)
	}
	if v.same(old) {
		return old, nil
	}
	db.retired = append(db.retired, old)
	db.view.Store(v)
	return v, nil
}

// Close unmaps everything. Nobody may be reading any more.
func (db *DB) Close() error {
	db.refresh.Lock()
	defer db.refresh.Unlock()
	var errs []error
	closed := map[any]bool{}
	for _, v := range append(db.retired, db.view.Load()) {
		for _, p := range v.packs {
			if !closed[p] {
				closed[p] = true
				errs = append(errs, p.close())
			}
		}
		for _, s := range v.stores {
			for m := s.midx; m != nil; m = m.base {
				if !closed[m.mapping] {
					closed[m.mapping] = true
					errs = append(errs, m.mapping.Close())
				}
			}
		}
	}
	db.retired = nil
	return errors.Join(errs...)
}
