package usage

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"refaudit/internal/bitmap"
	"refaudit/internal/vfs"
	"refaudit/oid"
)

// A walk finds what some objects reach in a space. Trees are read in rounds: those that one round
// has found are sorted by where they lie, so that packs are read from front to back and a delta finds
// its base just made. Of a tree whose base was or will be walked, only the entries that the base has
// not are looked up: the others are reached through the base.
type walk struct {
	sp    *space
	seen  bitmap.Set    // what is reached
	done  bitmap.Set    // of these, trees that were or will be walked, and all whose own objects are in seen anyway
	stop  bitmap.Set    // not to be entered: what these reach is known; nil: none
	hit   [5]bitmap.Set // members of stop that were met, by oid.Kind; of what a tree calls them
	kinds [5]bitmap.Set // by oid.Kind: commits, trees and tags among seen; nil if nobody asks

	graphs    []*graph
	parents   map[oid.ID][]oid.ID // of commits whose parents are decreed: shallow ones and grafts
	cover     *coverage           // bitmaps that may be used; nil: none
	workers   int
	promisors int // as in view
	readers   []*reader
	absent    []missing
	broken    []error
}

// missing is an object that is nowhere.
type missing struct {
	id   oid.ID
	from uint32 // number of what names it; none for what a ref names
}

const none = ^uint32(0)

// mostTrouble bounds how much of what is missing or broken is remembered.
const mostTrouble = 1 << 20

// trees walks trees, given by number and marked already, to the end.
func (w *walk) trees(ctx context.Context, todo []uint32) error {
	for len(todo) > 0 {
		todo = sortNumbers(todo)
		found, err := w.round(ctx, todo)
		if err != nil {
			return err
		}
		todo = found
	}
	return nil
}

// portion is how many trees a worker takes at a time: enough to find bases among them.
const portion = 2048

// round reads trees and gives the trees that they lead to.
func (w *walk) round(ctx context.Context, todo []uint32) ([]uint32, error) {
	n := max(1, min(w.workers, (len(todo)+portion/8-1)/(portion/8)))
	w.reader(n - 1)
	size := min(portion, (len(todo)+n-1)/n)
	var next atomic.Int64
	workers := make([]*worker, n)
	run := func(i int) {
		k := w.newWorker(w.readers[i])
		defer k.release()
		workers[i] = k
		k.err = vfs.Guard(func() error {
			for ctx.Err() == nil {
				from := int(next.Add(int64(size))) - size
				if from >= len(todo) {
					break
				}
				for _, v := range todo[from:min(from+size, len(todo))] {
					k.tree(v)
				}
			}
			k.lookUp()
			return nil
		})
	}
	var wg sync.WaitGroup
	for i := 1; i < n; i++ {
		wg.Go(func() { run(i) })
	}
	run(0)
	wg.Wait()
	var found []uint32
	for _, k := range workers {
		if k.err != nil {
			return nil, k.err
		}
		found = append(found, k.found...)
		w.trouble(k.absent, k.broken)
	}
	return found, ctx.Err()
}

func (w *walk) trouble(absent []missing, broken []error) {
	w.absent = append(w.absent, absent[:min(len(absent), mostTrouble-len(w.absent))]...)
	w.broken = append(w.broken, broken[:min(len(broken), mostTrouble-len(w.broken))]...)
}

// worker is what one goroutine has of a round.
type worker struct {
	*walk
	*scratch
	rd     *reader
	found  []uint32
	absent []missing
	broken []error
	err    error
}

// scratch is memory that a worker works in, and the next one then.
type scratch struct {
	batch              batch
	starts, baseStarts []uint32
}

var scratches = sync.Pool{New: func() any { return &scratch{} }}

// newWorker starts a worker, which ends with release. rd may be nil where nothing is read.
func (w *walk) newWorker(rd *reader) *worker {
	return &worker{walk: w, rd: rd, scratch: scratches.Get().(*scratch)}
}

// release gives the worker's memory back, once its batch is looked up.
func (k *worker) release() {
	k.batch.empty()
	scratches.Put(k.scratch)
	k.scratch = nil
}

// tree reads one tree and marks what it leads to.
func (k *worker) tree(v uint32) {
	o, err := k.rd.read(v)
	if err == nil && o.kind != oid.Tree {
		err = fmt.Errorf("object %v is a %v, not a tree", k.sp.id(v), o.kind)
	}
	if err == nil {
		err = k.entries(v, &o)
	}
	if err != nil {
		k.broken = append(k.broken, err)
	}
}

// read tells whether a tree is read from this copy of it. Only a base that is can be left to its own walk: that of
// another copy may be a delta of the very tree at hand, in another pack, and each would be left to the other.
func (k *worker) read(v uint32) bool { return k.sp.canon(v) == v }

// entries notes what a tree leads to, but for what its base does if that is walked.
func (k *worker) entries(v uint32, o *object) error {
	size := k.sp.format.Size()
	note := func(mode uint32, id []byte) {
		if mode&modeKind != modeGitlink {
			k.note(id, mode&modeKind == modeTree, v)
		}
	}
	starts, err := k.starts[:0], error(nil)
	if o.isDelta && k.read(o.base) && k.done.HasShared(o.base) {
		marks := k.rd.marksOf(o.base)
		if marks == nil {
			marks = k.markBase(o, size)
		}
		starts, err = newEntries(o, marks, size, starts, note)
	} else {
		starts, err = entries(o.data, size, starts, note)
	}
	if err != nil {
		return fmt.Errorf("object %v: %w", k.sp.id(v), err)
	}
	k.starts = starts
	k.rd.mark(v, starts)
	return nil
}

// markBase finds where the entries of a base begin, which others may be deltas of too; none if it is
// malformed, which is told of when it is read for itself.
func (k *worker) markBase(o *object, size int) []uint32 {
	starts, err := entries(o.baseData, size, k.baseStarts[:0], func(uint32, []byte) {})
	k.baseStarts = starts
	if err != nil {
		return nil
	}
	k.rd.mark(o.base, starts)
	return starts
}

// mark notes that a tree or blob is reached.
func (k *worker) mark(v uint32, kind oid.Kind) {
	switch {
	case k.stop != nil && k.stop.Has(v):
		k.hit[kind].AddShared(v)
	case kind == oid.Blob:
		if k.seen.AddShared(v) && k.kinds[kind] != nil {
			k.kinds[kind].AddShared(v)
		}
	case k.done.AddShared(v):
		k.seen.AddShared(v)
		if k.kinds[kind] != nil {
			k.kinds[kind].AddShared(v)
		}
		k.found = append(k.found, v)
	}
}

// reader is the one of a goroutine.
func (w *walk) reader(i int) *reader {
	for len(w.readers) <= i {
		w.readers = append(w.readers, takeReader(w.sp))
	}
	return w.readers[i]
}

// end gives back what the walk has borrowed.
func (w *walk) end() {
	for _, r := range w.readers {
		readers.Put(r)
	}
	w.readers = nil
}
