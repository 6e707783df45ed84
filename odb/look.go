package odb

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"

	"refaudit/internal/vfs"
	"refaudit/oid"
)

// Look answers for every ids[i] in out[i], which has as many places. It is meant for batches: the
// ids are found first, sorted by where they lie, and then read in that order by all workers. An
// object is Absent only if it was also looked for after a refresh; Unreadable only if every copy
// of it is damaged, or with ErrNotLooked. The error is ctx's, or says that nothing could be looked at.
func (db *DB) Look(ctx context.Context, ids []oid.ID, out []oid.Fact) error {
	if len(out) < len(ids) {
		return fmt.Errorf("look at %d objects: room for %d answers", len(ids), len(out))
	}
	clear(out[:len(ids)])
	l := &look{db: db, view: db.view.Load(), ids: ids, out: out}
	l.workers = make([]*worker, max(1, min(db.options.Workers, len(ids)/batchLen+1)))
	for i := range l.workers {
		w := db.workers.Get().(*worker)
		w.look = l
		l.workers[i] = w
	}
	err := l.run(ctx)
	for _, w := range l.workers {
		w.reset()
		db.workers.Put(w)
	}
	return err
}

// look is one batch.
type look struct {
	db      *DB
	view    *view
	ids     []oid.ID
	out     []oid.Fact
	workers []*worker
}

// batchLen is how many objects a worker takes at a time.
const batchLen = 512

func (l *look) run(ctx context.Context) error {
	all := func(k int) int32 { return int32(k) }
	if err := l.pass(ctx, len(l.ids), all); err != nil {
		return err
	}
	missing, failed := l.leftover()
	if len(missing)+len(failed) == 0 {
		return nil
	}
	v, err := l.db.reload()
	if err != nil {
		return err
	}
	l.view = v
	var folders [256]bool
	for _, i := range append(failed, missing...) {
		folders[l.ids[i].Bytes()[0]] = true
	}
	for _, s := range v.stores {
		s.loose.forget(&folders)
	}
	if err := l.pass(ctx, len(missing), func(k int) int32 { return missing[k] }); err != nil {
		return err
	}
	missing, more := l.leftover()
	return l.mendAll(ctx, missing, append(failed, more...))
}

// pass finds and reads the objects that index names, as far as they can be found and are sound.
func (l *look) pass(ctx context.Context, count int, index func(int) int32) error {
	err := parallel(ctx, len(l.workers), count, func(n, from, to int) {
		w := l.workers[n]
		w.warm(from, to, index)
		w.each(from, to, index, func(k int) { w.find(index(k)) })
	})
	if err != nil {
		return err
	}
	room := l.db.hits.Get().(*[2][]hit)
	defer l.db.hits.Put(room)
	hits := room[0][:0]
	for _, w := range l.workers {
		hits = append(hits, w.hits...)
		w.hits = w.hits[:0]
	}
	room[0] = hits
	hits = sortHits(hits, &room[1])
	return parallel(ctx, len(l.workers), len(hits), func(n, from, to int) {
		w := l.workers[n]
		w.each(from, to, func(k int) int32 { return hits[k].i }, func(k int) { w.read(hits[k]) })
	})
}

// leftover takes from the workers what they could not find, and what they could not read.
func (l *look) leftover() (missing, failed []int32) {
	for _, w := range l.workers {
		missing, failed = append(missing, w.missing...), append(failed, w.failed...)
		w.missing, w.failed = w.missing[:0], w.failed[:0]
	}
	return missing, failed
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
	objects *objectReader
	chains  chains
	hits    []hit
	missing []int32
	failed  []int32
	part    []int32 // scratch of warm
	met     byte    // of what warm has touched, or no code would be made for that
}

func newWorker(f oid.Format) *worker { return &worker{objects: &objectReader{format: f}} }

// reset forgets the batch.
func (w *worker) reset() {
	w.look = nil
	w.chains = chains{}
	w.objects.reset()
	w.hits, w.missing, w.failed = w.hits[:0], w.missing[:0], w.failed[:0]
}

// each runs fn for each k in [from, to), which is about the object index(k). Those at which a
// mapped file can't be read are failed.
func (w *worker) each(from, to int, index func(k int) int32, fn func(k int)) {
	for k := from; k < to; {
		err := vfs.Guard(func() error {
			for ; k < to; k++ {
				fn(k)
			}
			return nil
		})
		if err != nil {
			w.failed = append(w.failed, index(k))
			k++
		}
	}
}

// warmFrom is how many ids an index must have to be worth warming: smaller ones stay in the cache by themselves.
const warmFrom = 1 << 13

// warm prepares the search for a part of the batch in the indexes that are searched first.
func (w *worker) warm(from, to int, index func(k int) int32) {
	w.part = w.part[:0]
	for k := from; k < to; k++ {
		if i := index(k); w.ids[i].Format() == w.db.format {
			w.part = append(w.part, i)
		}
	}
	vfs.Guard(func() error { // what can't be read, find will meet
		for _, s := range w.view.stores {
			if m := s.midx; m != nil && m.ids.count >= warmFrom {
				w.met ^= m.ids.warm(w.ids, w.part)
				return nil
			}
			for at, p := range s.packs {
				if x, err := p.Index(); err == nil && !s.covered[at] && x.ids.count >= warmFrom {
					w.met ^= x.ids.warm(w.ids, w.part)
					return nil
				}
			}
		}
		return nil
	})
}

// find notes where an object lies.
func (w *worker) find(i int32) {
	id := &w.ids[i]
	switch {
	case id.IsZero():
		w.out[i] = oid.Fact{State: oid.Absent}
		return
	case id.Format() != w.db.format:
		w.out[i] = oid.Fact{State: oid.Unreadable, Err: fmt.Errorf("%v is no id of a %v repository", id, w.db.format)}
		return
	}
	odd := false
	for n, s := range w.view.stores {
		at, off, how := s.findPacked(id)
		if how == found {
			w.hits = append(w.hits, hit{key: uint64(w.view.first[n]+at)<<offsetBits | off, i: i})
			return
		}
		odd = odd || how == unusable
		if ok, _ := s.loose.has(id); ok {
			w.hits = append(w.hits, hit{key: looseKey | uint64(n), i: i})
			return
		}
	}
	if odd {
		w.failed = append(w.failed, i)
	} else {
		w.missing = append(w.missing, i)
	}
}

// search is how a search among packs ends.
type search uint8

const (
	nowhere  search = iota
	unusable        // in a pack that can't be opened, or at a place that it doesn't have
	found
)

// findPacked is the place in Packs of the pack that has the object, and the offset in it.
func (s *Store) findPacked(id *oid.ID) (at int, off uint64, how search) {
	for m := s.midx; m != nil; m = m.base {
		i, ok := m.Find(id)
		if !ok {
			continue
		}
		pack, off, ok := m.Place(i)
		if !ok {
			how = unusable
		} else if at := m.local[pack]; at >= 0 {
			if how = s.packs[at].holds(off); how == found {
				return int(at), off, found
			}
		}
		break
	}
	for at, p := range s.packs {
		if s.covered[at] {
			continue
		}
		x, err := p.Index()
		if err != nil {
			continue
		}
		i, ok := x.Find(id)
		if !ok {
			continue
		}
		off, ok := x.Offset(i)
		if !ok {
			how = unusable
		} else if h := p.holds(off); h == found {
			return at, off, found
		} else {
			how = max(how, h)
		}
	}
	return 0, 0, how
}

// holds tells whether the pack can be opened and, as far as its size goes, has an entry at off. A
// pack that is gone, as after a repack, holds nothing.
func (p *Pack) holds(off uint64) search {
	switch body, err := p.Body(); {
	case err == nil && off < uint64(len(body)):
		return found
	case errors.Is(err, fs.ErrNotExist):
		return nowhere
	}
	return unusable
}

// read learns the kind of an object that was found and, if it is a tag, reads it.
func (w *worker) read(h hit) {
	id, fact := &w.ids[h.i], &w.out[h.i]
	if h.key >= looseKey {
		*fact = w.objects.loose(w.view.stores[h.key&^looseKey], id, false)
	} else {
		*fact = w.readPacked(w.view.packs[h.key>>offsetBits], h.key&(1<<offsetBits-1), id, false)
	}
	if fact.State != oid.Present {
		w.failed = append(w.failed, h.i)
	}
}

// readPacked reads the object's kind and, of a tag or if all is set, the rest too.
func (w *worker) readPacked(p *Pack, off uint64, id *oid.ID, all bool) oid.Fact {
	kind, entry, err := w.chains.kind(p, off)
	switch {
	case err != nil:
		return oid.Fact{State: oid.Unreadable, Err: err}
	case kind == oid.Tag || all:
		return w.objects.packed(p, off, &entry, kind, id)
	}
	return oid.Fact{State: oid.Present, Kind: kind}
}
