package usage

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"refaudit/finding"
	"refaudit/internal/bitmap"
	"refaudit/internal/vfs"
	"refaudit/oid"
	"refaudit/repo"
)

// poolReach is what the refs of a pool reach.
type poolReach struct {
	sets     map[*store]bitmap.Set // of the pool's store, and of those that it borrows from itself
	tips     *roots                // what its refs lead to, by numbers in its own space; nil if it is not known
	stores   []*store              // of that space
	first    []uint32
	used     map[string]int // bitmaps that helped
	unknown  string         // why it is not known; "" if it is
	findings []finding.Finding
	again    bool // another look at the folders may help
	// cut: it is only what the pool itself sees, where history is cut by decree, or objects are absent, promised or not.
	// Who borrows from it may have what is beyond.
	cut bool
}

// poolReach computes what a pool's refs reach, once for all who borrow from it.
func (s *Session) poolReach(ctx context.Context, p *folder, refs *poolRefs, bitmaps bool, o repo.Options) (*poolReach, error) {
	key := fmt.Sprintf("%s %v", refs.key(), bitmaps)
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.reached[key]; r != nil {
		return r, nil
	}
	r, err := s.walkPool(ctx, p, refs, bitmaps, o)
	if err != nil {
		return nil, err
	}
	if p.reached == nil {
		p.reached = map[string]*poolReach{}
	}
	p.reached[key] = r
	return r, nil
}

func (s *Session) walkPool(ctx context.Context, p *folder, refs *poolRefs, bitmaps bool, o repo.Options) (*poolReach, error) {
	return s.walkPoolIn(ctx, p, refs, o, func(owner *repo.Repo) (*view, bool, error) {
		v, err := s.poolView(p, owner)
		return v, bitmaps, err
	})
}

// walkPoolIn walks from the refs of a pool, in the view that look gives for the pool's repository,
// which may not be known; look also tells whether bitmaps may be used.
func (s *Session) walkPoolIn(ctx context.Context, p *folder, refs *poolRefs, o repo.Options, look func(owner *repo.Repo) (*view, bool, error)) (*poolReach, error) {
	out := &poolReach{}
	ids, owner, bad, err := refs.tips(ctx, p.path, p.store.format, o)
	if err != nil {
		return nil, err
	}
	if bad != nil {
		out.findings, out.unknown = []finding.Finding{*bad}, fmt.Sprintf("%s: %s", p.path, bad.Message)
		return out, nil
	}
	v, bitmaps, err := look(owner)
	if err != nil {
		return nil, err
	}
	roots, err := v.resolve(ids)
	if err != nil {
		return nil, err
	}
	out.tips, out.stores, out.first = roots, v.stores, v.first
	w, err := v.all(ctx, roots, bitmaps)
	if err != nil {
		return nil, err
	}
	defer w.end()
	if w.cover != nil {
		out.used = w.cover.used
	}
	lost, promised, err := w.lost()
	if err != nil {
		return nil, err
	}
	out.cut = promised > 0 || lost != "" || v.parents != nil
	if lost != "" {
		out.unknown, out.again = fmt.Sprintf("what the refs of %s reach can't be known: %s", p.path, lost), true
		return out, nil
	}
	out.sets = map[*store]bitmap.Set{}
	for i, st := range v.stores {
		out.sets[st] = v.part(w.seen, i)
	}
	return out, nil
}

// asWeSee is what a pool's refs reach in our view: git walks from them with our objects, our shallow boundary and our
// grafts, and so do we. What lies beyond the pool's own shallow boundary is left out where nobody has it.
func (m *measuring) asWeSee(ctx context.Context, p *folder, refs *poolRefs) (*poolReach, error) {
	return m.s.walkPoolIn(ctx, p, refs, m.o.Repo, func(owner *repo.Repo) (*view, bool, error) {
		v := &view{space: m.view.space, parents: maps.Clone(m.view.parents), workers: m.view.workers, promisors: m.view.promisors}
		if owner == nil {
			return v, false, nil
		}
		ids, _, err := owner.Shallow()
		if err != nil {
			return nil, false, err
		}
		ends := 0
		for _, id := range ids {
			if _, ours := v.parents[id]; ours || !v.endsAt(&id) {
				continue
			}
			ends++
			if v.parents == nil {
				v.parents = map[oid.ID][]oid.ID{}
			}
			v.parents[id] = nil
		}
		if ends > 0 {
			m.u.notice("the parents of %s of %s are left out", finding.Count(ends, "shallow commit", "shallow commits"), p.path)
		}
		return v, false, nil
	})
}

// endsAt tells whether a commit has a parent that is nowhere. What can't be read is told of by the walk.
func (v *view) endsAt(id *oid.ID) (ends bool) {
	vfs.Guard(func() error {
		n, ok := v.find(id)
		if !ok {
			return nil
		}
		rd := takeReader(v.space)
		defer readers.Put(rd)
		o, err := rd.read(n)
		var c commit
		if err == nil {
			_, err = c.parse(o.data, v.format)
		}
		ends = err == nil && slices.ContainsFunc(c.parents, func(p oid.ID) bool {
			_, here := v.find(&p)
			return !here
		})
		return nil
	})
	return ends
}

// poolView is how a pool sees objects itself. Its repository may not be known.
func (s *Session) poolView(p *folder, owner *repo.Repo) (*view, error) {
	stores, shared := []*store{p.store}, map[*store]bool{p.store: true}
	for _, a := range p.db.Alternates().Stores[1:] {
		if a.Path == p.path {
			continue
		}
		q, err := s.pool(a.Path, p.store.format, false)
		if err != nil {
			continue // what can't be seen for it is absent
		}
		s.mu.Lock()
		p.nested = append(p.nested, q)
		s.mu.Unlock()
		stores = append(stores, q.store)
		shared[q.store] = true
	}
	sp, err := newSpace(p.store.format, stores, 0, s.meet(shared))
	if err != nil {
		return nil, err
	}
	v := &view{space: sp, workers: s.workers, promisors: len(stores)}
	if owner != nil {
		v.parents, _, err = decreedParents(owner)
	}
	return v, err
}

// all walks all that some roots reach, with all bitmaps of the view if they may be used.
func (v *view) all(ctx context.Context, r *roots, bitmaps bool) (*walk, error) {
	for {
		var cover *coverage
		if bitmaps && v.parents == nil {
			cover = newCoverage(v.space, 0, len(v.stores))
		}
		w := v.newWalk(nil, cover, false)
		err := w.from(ctx, r)
		if err == nil {
			return w, nil
		}
		w.end()
		if !v.retry(err) {
			return nil, err
		}
	}
}

// lost says what a walk could not find or read, "" if nothing; promised counts what is not here
// since a remote has promised it.
func (w *walk) lost() (why string, promised int, err error) {
	if len(w.broken) > 0 {
		return more(w.broken[0].Error(), len(w.broken)-1, "damaged objects"), 0, nil
	}
	absent := unique(w.absent)
	if len(absent) > 0 {
		n := len(absent)
		if absent, err = w.notPromised(absent); err != nil {
			return "", 0, err
		}
		promised = n - len(absent)
	}
	if len(absent) > 0 {
		why = more(fmt.Sprintf("object %v is absent", absent[0].id), len(absent)-1, "others")
	}
	return why, promised, nil
}

func more(first string, n int, what string) string {
	if n == 0 {
		return first
	}
	return fmt.Sprintf("%s, and %d %s", first, n, what)
}

// unique leaves each missing object once.
func unique(all []missing) []missing {
	seen := make(map[oid.ID]struct{}, len(all))
	var out []missing
	for _, m := range all {
		if _, twice := seen[m.id]; !twice {
			seen[m.id] = struct{}{}
			out = append(out, m)
		}
	}
	return out
}
