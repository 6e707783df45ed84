package usage

import (
	"context"
	"errors"
	"fmt"

	"refaudit/internal/bitmap"
	"refaudit/odb"
	"refaudit/oid"
)

// roots are the objects that refs lead to, by kind; tags are followed, so that what each tag points
// at is among them.
type roots struct {
	ids    [5][]oid.ID // by oid.Kind
	absent []oid.ID
	broken []error
}

// resolve looks at ids, each once, and at what the tags among them point at.
func resolve(ctx context.Context, db *odb.DB, ids []oid.ID) (*roots, error) {
	r := &roots{}
	known := make(map[oid.ID]struct{}, len(ids))
	var todo []oid.ID
	add := func(id oid.ID) {
		if _, ok := known[id]; !ok {
			known[id] = struct{}{}
			todo = append(todo, id)
		}
	}
	for _, id := range ids {
		add(id)
	}
	for len(todo) > 0 {
		now := todo
		todo = nil
		facts := make([]oid.Fact, len(now))
		if err := db.Look(ctx, now, facts); err != nil {
			return nil, err
		}
		for i, f := range facts {
			switch f.State {
			case oid.Present:
				r.ids[f.Kind] = append(r.ids[f.Kind], now[i])
				if f.Kind == oid.Tag {
					add(f.Target)
				}
			case oid.Absent:
				r.absent = append(r.absent, now[i])
			default:
				r.broken = append(r.broken, fmt.Errorf("object %v: %w", now[i], f.Err))
			}
		}
	}
	return r, nil
}

// view is how one repository sees objects: where it looks for them, and what it holds to be the
// parents of commits.
type view struct {
	*space
	parents map[oid.ID][]oid.ID // of shallow commits (none) and grafts; nil: as the commits say
	workers int
}

// newWalk starts a walk; stop is the set that it doesn't enter, kinds asks for sets by kind.
func (v *view) newWalk(stop bitmap.Set, cover *coverage, kinds bool) *walk {
	w := &walk{sp: v.space, seen: bitmap.NewSet(int(v.size)), done: bitmap.NewSet(int(v.size)), stop: stop,
		parents: v.parents, cover: cover, workers: v.workers}
	if len(v.parents) == 0 { // graphs know nothing of decreed parents
		w.graphs = graphsOf(v.stores)
	}
	if kinds {
		for k := oid.Commit; k <= oid.Tag; k++ {
			w.kinds[k] = bitmap.NewSet(int(v.size))
		}
	}
	if stop != nil {
		for k := range w.hit {
			w.hit[k] = bitmap.NewSet(int(v.size))
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
	var numbers [5][]uint32
	for kind, ids := range r.ids {
		for i := range ids {
			if v, ok := w.sp.find(&ids[i]); ok {
				numbers[kind] = append(numbers[kind], v)
			} else if ids[i] != w.sp.emptyTree {
				w.trouble([]missing{{ids[i], none}}, nil)
			}
		}
	}
	return w.fromNumbers(ctx, &numbers)
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
	k := &worker{walk: w}
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
