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

	"refaudit/finding"
	"refaudit/oid"
)

// Options are the settings of a DB.
type Options struct {
	// Workers is how many goroutines look in parallel; 0 means one for each processor.
	Workers int
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
}

// maxPackSize bounds packs, so that a place fits into a key.
const maxPackSize = 1 << offsetBits

// view is the object folders at one time. It never changes.
type view struct {
	stores []*Store
	packs  []*Pack // of all stores
	first  []int   // of each store: where its packs begin
}

// Open finds the packs of an object folder. The findings are about the folders it borrows from.
func Open(objectDir string, f oid.Format, opts Options) (*DB, []finding.Finding, error) {
	if f.Size() == 0 {
		return nil, nil, fmt.Errorf("object folder %s: unknown object format", objectDir)
	}
	if opts.Workers <= 0 {
		opts.Workers = runtime.GOMAXPROCS(0)
	}
	db := &DB{dir: objectDir, format: f, options: opts}
	v, err := db.load(nil)
	if err != nil {
		return nil, nil, err
	}
	db.view.Store(v)
	return db, nil, nil
}

func (db *DB) load(old *view) (*view, error) {
	var before *Store
	if old != nil {
		before = old.stores[0]
	}
	own, err := openStore(db.dir, "objects/", db.format, before)
	if err != nil {
		return nil, fmt.Errorf("open object folder: %w", err)
	}
	v := &view{}
	v.add(own)
	return v, nil
}

func (v *view) add(s *Store) {
	v.first = append(v.first, len(v.packs))
	v.stores = append(v.stores, s)
	v.packs = append(v.packs, s.packs...)
}

// Stores are the object folders, the repository's own first, then those that it borrows from in
// the order in which git searches them. They are as they were found when the DB was opened or
// last refreshed.
func (db *DB) Stores() []*Store { return db.view.Load().stores }

// Refresh reads the pack folders, multi-pack-indexes and alternates afresh. What is being read
// by others stays valid.
func (db *DB) Refresh() error {
	db.refresh.Lock()
	defer db.refresh.Unlock()
	old := db.view.Load()
	v, err := db.load(old)
	if err != nil {
		return err
	}
	db.retired = append(db.retired, old)
	db.view.Store(v)
	return nil
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

// Problems are the files that could not be used, as far as anything needed them: a
// multi-pack-index, an index or a pack.
func (db *DB) Problems() []finding.Finding {
	var all []finding.Finding
	for _, s := range db.Stores() {
		all = append(all, s.problems...)
	}
	return all
}
