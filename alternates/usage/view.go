package usage

import (
	"context"
	"errors"

	"refaudit/internal/bitmap"
	"refaudit/oid"
)

// view is how one repository sees objects: where it looks for them, and what it holds to be the
// parents of commits.
type view struct {
	*space
	parents map[oid.ID][]oid.ID // of shallow commits (none) and grafts; nil: as the commits say
	workers int
	// promisors is of how many of the stores, the first ones, the packs with a .promisor file tell what a remote has promised.
	promisors int
	loan      *loan // where sets come from that nobody keeps; nil: they may be kept
}

// set is an empty set of numbers.
func (v *view) set() bitmap.Set { return v.loan.set(int(v.size)) }

// newWalk starts a walk; stop is the set that it doesn't enter, kinds asks for sets by kind.
func (v *view) newWalk(stop bitmap.Set, cover *coverage, kinds bool) *walk {
	w := &walk{sp: v.space, seen: v.set(), done: v.set(), stop: stop,
		parents: v.parents, cover: cover, workers: v.workers, promisors: v.promisors}
	if len(v.parents) == 0 { // graphs know nothing of decreed parents
		w.graphs = graphsOf(v.stores, v.loan)
	}
	if kinds {
		for k := oid.Commit; k <= oid.Tag; k++ {
			w.kinds[k] = v.set()
		}
	}
	if stop != nil {
		for k := oid.Commit; k <= oid.Tag; k++ {
			w.hit[k] = v.set()
		}
	}
	return w
}

// from walks all that some roots reach.
func (w *walk) from(ctx context.Context, r *roots) error {
	for _, id := range r.absent {
		w.trouble([]missing{{id, none}}, nil)
	}
	w.trouble(nil, r.broken)
	return w.fromNumbers(ctx, &r.numbers)
}

// fromNumbers walks all that some objects, by kind, reach.
func (w *walk) fromNumbers(ctx context.Context, numbers *[5][]uint32) error {
	for _, kind := range []oid.Kind{oid.Tag, oid.Blob} {
		for _, v := range numbers[kind] {
			switch {
			case w.stop != nil && w.stop.Has(v):
				w.hit[kind].Add(v)
			default:
				w.seen.Add(v)
				if w.kinds[kind] != nil {
					w.kinds[kind].Add(v)
				}
			}
		}
	}
	trees, err := w.commitsFrom(ctx, numbers[oid.Commit])
	if err != nil {
		return err
	}
	k := w.newWorker(nil)
	defer k.release()
	for _, v := range numbers[oid.Tree] {
		k.mark(v, oid.Tree)
	}
	return w.trees(ctx, append(trees, k.found...))
}

// retry makes a walk again, without what turned out to be wrong: a commit-graph or a bitmap whose
// checksum fits and whose content does not.
func (v *view) retry(err error) (again bool) {
	var g *badGraph
	var b *badBitmap
	switch {
	case errors.As(err, &g):
		for _, s := range v.stores {
			s.distrustGraph(g.err)
		}
		return true
	case errors.As(err, &b):
		for _, s := range v.stores {
			s.distrustBitmap(b)
		}
		return true
	}
	return false
}
