package usage

import (
	"context"
	"slices"

	"refaudit/internal/bitmap"
	"refaudit/oid"
)

// reached is what the refs of a repository reach.
type reached struct {
	all        bitmap.Set
	own        bitmap.Set    // what the refs of the alternates don't reach; nil if that is not known
	kinds      [5]bitmap.Set // of all; nil unless asked for
	shares     []Share       // by namespace
	lost       string        // what could not be found or read; "" if nothing
	beyond     bitmap.Set    // what only refs that are excluded reach; nil: none are
	lostBeyond string        // what of that could not be found or read; "" if nothing
	promised   int
	cut        int // shallow commits that were met
	used       map[string]int
	tips       int // commits that refs lead to
	covered    int // of these, the ones that a bitmap of our own covers
}

// reach walks from our refs. A commit-graph or bitmap that turns out to be wrong on the way is left
// aside, and the walk made again.
func (m *measuring) reach(ctx context.Context) (*reached, *plan, error) {
	for {
		p := m.plan()
		r, err := m.reachBy(ctx, p)
		if err == nil || !m.view.retry(err) {
			return r, p, err
		}
	}
}

// reachBy walks our own objects up to what the alternates' refs reach; what we reach of that is a
// second walk, whose result other forks can share. Where parents are decreed, or we see more than an alternate does, nobody
// can share it, and one walk goes all the way.
func (m *measuring) reachBy(ctx context.Context, p *plan) (*reached, error) {
	v, kinds := m.view, m.o.By == ByType
	stop := m.stop
	if v.parents != nil || m.cut {
		stop = nil
	}
	w := v.newWalk(stop, p.cover(v, stop == nil && !m.cut), kinds)
	defer w.end()
	var b *borrowing
	if stop != nil {
		b = &borrowing{m: m, plan: p, wantKinds: kinds, walk: v.newWalk(nil, nil, kinds), total: v.set()}
		defer b.end()
	}
	r := &reached{used: map[string]int{}}
	if len(m.names) == 0 { // no ref counts, so there is no namespace: nothing is reached, which is known
		r.take(m, w, b)
	}
	for _, name := range m.names {
		if err := w.from(ctx, m.roots[name]); err != nil {
			return nil, err
		}
		if b != nil {
			if err := b.follow(ctx, w); err != nil {
				return nil, err
			}
		}
		r.take(m, w, b)
		if m.o.By == ByNamespace {
			m.share(r, name)
		}
	}
	if b != nil {
		w.trouble(b.absent, b.broken)
		r.count(b.used)
		for _, pool := range m.reaches {
			r.count(pool.used)
		}
	}
	if w.cover != nil {
		r.count(w.cover.used)
	}
	for _, name := range m.names {
		for _, v := range m.roots[name].numbers[oid.Commit] {
			r.tips++
			if w.cover != nil && w.cover.covered.Has(v) {
				r.covered++
			}
		}
	}
	var err error
	r.lost, r.promised, err = w.lost()
	r.cut = w.shallow()
	if err == nil && r.lost == "" && m.beyond != nil {
		err = m.reachBeyond(ctx, r)
	}
	return r, err
}

// reachBeyond walks from the refs that are excluded up to what the others reach.
func (m *measuring) reachBeyond(ctx context.Context, r *reached) (err error) {
	w := m.view.newWalk(r.all, nil, false)
	defer w.end()
	if err := w.from(ctx, m.beyond); err != nil {
		return err
	}
	r.beyond = w.seen
	r.lostBeyond, _, err = w.lost()
	return err
}

// take puts together what the walks have found so far.
func (r *reached) take(m *measuring, w *walk, b *borrowing) {
	r.kinds = w.kinds
	if b == nil {
		r.all = w.seen
	} else {
		if r.all == nil {
			r.all = m.view.set()
		}
		r.all.Or(w.seen)
		r.all.Or(b.seen)
		for k := oid.Commit; k <= oid.Tag && w.kinds[k] != nil; k++ {
			r.kinds[k] = w.kinds[k].Clone()
			r.kinds[k].Or(b.walk.kinds[k])
		}
	}
	switch {
	case m.noStop != "":
		r.own = nil
	case m.stop == nil:
		r.own = r.all
	default:
		if r.own == nil {
			r.own = m.view.set()
		}
		r.own.Or(w.seen)
		r.own.AndNot(m.stop)
	}
}

// count adds up which bitmaps have helped.
func (r *reached) count(used map[string]int) {
	for name, n := range used {
		r.used[name] += n
	}
}

// shallow counts the commits without parents, by decree, that were met.
func (w *walk) shallow() int {
	n := 0
	for id, parents := range w.parents {
		if v, ok := w.sp.find(&id); ok && parents == nil && w.seen.Has(v) {
			n++
		}
	}
	return n
}

// borrowing finds what we reach of what the alternates' refs reach.
type borrowing struct {
	*walk
	m         *measuring
	plan      *plan
	wantKinds bool
	total     bitmap.Set // what was followed
	used      map[string]int
}

// follow goes on from where a walk was stopped.
func (b *borrowing) follow(ctx context.Context, w *walk) error {
	if !b.wantKinds && b.m.allTips(w) {
		b.take(b.m.stop, nil) // which is closed: all that was met is in it, and what that reaches
		return nil
	}
	var numbers [5][]uint32
	any := false
	for kind, set := range w.hit {
		if set == nil {
			continue
		}
		b.total.Join(set, func(v uint32) { numbers[kind] = append(numbers[kind], v) })
		any = any || len(numbers[kind]) > 0
	}
	if !any {
		return nil
	}
	commits := slices.DeleteFunc(numbers[oid.Commit], b.seen.Has)
	if len(commits) > 0 {
		if err := b.commits(ctx, commits); err != nil {
			return err
		}
	}
	numbers[oid.Commit] = nil
	return b.fromNumbers(ctx, &numbers)
}

// take adds a set of objects that is closed: whatever they reach is in it.
func (b *borrowing) take(seen bitmap.Set, kinds *[5]bitmap.Set) {
	b.seen.Or(seen)
	b.done.Or(seen)
	for k := oid.Commit; k <= oid.Tag && kinds != nil && b.walk.kinds[k] != nil; k++ {
		b.walk.kinds[k].Or(kinds[k])
	}
}

// commits adds what some commits reach, if it can be from what was found for another fork.
func (b *borrowing) commits(ctx context.Context, commits []uint32) error {
	v := b.m.view
	first := v.first[v.own]
	pools := v.stores[v.own:]
	key := closureKey(commits, first, b.wantKinds, b.plan.bitmaps)
	one := b.m.s.closures.get(pools, key)
	if one == nil {
		kept := *v
		kept.loan = nil
		w := kept.newWalk(nil, b.plan.poolCover(v), b.wantKinds)
		defer w.end()
		if err := w.fromNumbers(ctx, &[5][]uint32{oid.Commit: commits}); err != nil {
			return err
		}
		one = &closure{stores: pools, key: key, seen: w.seen[first>>6:]}
		for k := range w.kinds {
			if w.kinds[k] != nil {
				one.kinds[k] = w.kinds[k][first>>6:]
			}
		}
		if w.cover != nil {
			one.used = w.cover.used
		}
		if len(w.absent)+len(w.broken) > 0 {
			b.trouble(w.absent, w.broken)
		} else {
			b.m.s.closures.put(one)
		}
	}
	b.used = one.used
	b.seen[first>>6:].Or(one.seen)
	b.done[first>>6:].Or(one.seen)
	for k := range one.kinds {
		if one.kinds[k] != nil && b.walk.kinds[k] != nil {
			b.walk.kinds[k][first>>6:].Or(one.kinds[k])
		}
	}
	return nil
}

// allTips tells whether a walk has met every tip of the alternates: then it reaches all that they do.
func (m *measuring) allTips(w *walk) bool {
	for _, p := range m.reaches {
		for kind, numbers := range p.tips.numbers {
			for _, n := range numbers {
				i := len(p.first) - 1
				for n < p.first[i] {
					i--
				}
				at := slices.Index(m.view.stores, p.stores[i])
				if at < 0 || !w.hit[kind].Has(m.view.canon(m.view.first[at]+n-p.first[i])) {
					return false
				}
			}
		}
	}
	return true
}
