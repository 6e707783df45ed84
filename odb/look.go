package odb

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"refaudit/internal/vfs"
	"refaudit/oid"
)

// Look answers for every ids[i] in out[i], which has as many places. It is meant for batches: the
// ids are found first, sorted by where they lie, and then read in that order by all workers. An
// object is Absent only if it was also looked for after a refresh. The error is ctx's, or says
// that nothing could be looked at.
func (db *DB) Look(ctx context.Context, ids []oid.ID, out []oid.Fact) error {
	if len(out) < len(ids) {
		return fmt.Errorf("look at %d objects: room for %d answers", len(ids), len(out))
	}
	l := &look{db: db, view: db.view.Load(), ids: ids, out: out}
	return l.run(ctx)
}

// look is one batch.
type look struct {
	db   *DB
	view *view
	ids  []oid.ID
	out  []oid.Fact
}

// batchLen is how many objects a worker takes at a time.
const batchLen = 512

func (l *look) run(ctx context.Context) error {
	workers := make([]*worker, max(1, min(l.db.options.Workers, len(l.ids)/batchLen+1)))
	for i := range workers {
		workers[i] = &worker{look: l, tags: tagReader{format: l.db.format}}
	}
	err := parallel(ctx, len(workers), len(l.ids), func(n, from, to int) {
		w := workers[n]
		w.guard(from, to, w.find)
	})
	if err != nil {
		return err
	}
	var hits []hit
	for _, w := range workers {
		hits = append(hits, w.hits...)
	}
	hits = sortHits(hits)
	err = parallel(ctx, len(workers), len(hits), func(n, from, to int) {
		workers[n].read(hits[from:to])
	})
	if err != nil {
		return err
	}
	for _, w := range workers {
		for _, i := range w.missing {
			l.out[i] = oid.Fact{State: oid.Absent}
		}
	}
	return nil
}

// parallel calls fn for the parts of [0, count), from up to n goroutines.
func parallel(ctx context.Context, n, count int, fn func(n, from, to int)) error {
	var next atomic.Int64
	var wg sync.WaitGroup
	run := func(n int) {
		for ctx.Err() == nil {
			from := int(next.Add(batchLen)) - batchLen
			if from >= count {
				return
			}
			fn(n, from, min(from+batchLen, count))
		}
	}
	for i := 1; i < n; i++ {
		wg.Add(1)
		go func() { defer wg.Done(); run(i) }()
	}
	run(0)
	wg.Wait()
	return ctx.Err()
}

// worker is one goroutine's part of a batch.
type worker struct {
	*look
	tags    tagReader
	chains  chains
	hits    []hit
	missing []int32
	failed  []int32
}

// guard runs fn on each of [from, to); those that a fault on a mapped file keeps it from become failed.
func (w *worker) guard(from, to int, fn func(i int)) {
	i := from
	for i < to {
		err := vfs.Guard(func() error {
			for ; i < to; i++ {
				fn(i)
			}
			return nil
		})
		if err != nil {
			w.failed = append(w.failed, int32(i))
			i++
		}
	}
}

// find notes where the i-th object lies.
func (w *worker) find(i int) {
	id := &w.ids[i]
	for n, s := range w.view.stores {
		if at, off, ok := s.findPacked(id); ok {
			w.hits = append(w.hits, hit{key: uint64(w.view.first[n]+at)<<offsetBits | off, i: int32(i)})
			return
		}
		if ok, _ := s.loose.has(id); ok {
			w.hits = append(w.hits, hit{key: looseKey | uint64(n), i: int32(i)})
			return
		}
	}
	w.missing = append(w.missing, int32(i))
}

// findPacked is the place in Packs of the pack that has the object, and the offset in it.
func (s *Store) findPacked(id *oid.ID) (at int, off uint64, ok bool) {
	for m := s.midx; m != nil; m = m.base {
		if i, ok := m.Find(id); ok {
			pack, off, ok := m.Place(i)
			if !ok || m.local[pack] < 0 {
				break
			}
			at := int(m.local[pack])
			if _, err := s.packs[at].Body(); err == nil && off < maxPackSize {
				return at, off, true
			}
			break
		}
	}
	for at, p := range s.packs {
		if s.covered[at] {
			continue
		}
		x, err := p.Index()
		if err != nil {
			continue
		}
		if i, ok := x.Find(id); ok {
			off, ok := x.Offset(i)
			if _, err := p.Body(); ok && err == nil && off < maxPackSize {
				return at, off, true
			}
		}
	}
	return 0, 0, false
}

// read learns the kinds of objects that have been found, and reads the tags among them.
func (w *worker) read(hits []hit) {
	w.guard(0, len(hits), func(n int) {
		h := hits[n]
		id, fact := &w.ids[h.i], &w.out[h.i]
		if h.key >= looseKey {
			*fact = w.tags.loose(w.view.stores[h.key&^looseKey], id)
			return
		}
		p, off := w.view.packs[h.key>>offsetBits], h.key&(1<<offsetBits-1)
		kind, entry, _, err := w.chains.kind(p, off)
		switch {
		case err != nil:
			*fact = oid.Fact{State: oid.Unreadable, Err: err}
		case kind == oid.Tag:
			*fact = w.tags.packed(p, off, &entry, id)
		default:
			*fact = oid.Fact{State: oid.Present, Kind: kind}
		}
	})
}
