package usage

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"refaudit/finding"
	"refaudit/internal/bitmap"
	"refaudit/oid"
)

// bytesOf adds up a set of objects: each is measured where our own store has it, else where its number is.
func (sp *space) bytesOf(set bitmap.Set) uint64 {
	total := uint64(0)
	for i, s := range sp.stores {
		total += s.sum(sp.part(set, i))
	}
	for _, t := range sp.copies {
		if set.Has(t.other) {
			total += sp.bytes(t.own) - sp.bytes(t.other)
		}
	}
	return total
}

// elsewhere adds up the objects of a set that none of our own stores has.
func (sp *space) elsewhere(set bitmap.Set) uint64 {
	total := uint64(0)
	for i := sp.own; i < len(sp.stores); i++ {
		total += sp.stores[i].sum(sp.part(set, i))
	}
	for _, t := range sp.copies {
		if set.Has(t.other) {
			total -= sp.bytes(t.other)
		}
	}
	return total
}

// unreached adds up the objects of our own stores that are not in a set.
func (sp *space) unreached(set bitmap.Set) uint64 {
	total := uint64(0)
	for i := range sp.own {
		s := sp.stores[i]
		left := s.all()
		if sp.aliases != nil {
			left.AndNot(sp.part(sp.aliases, i))
		}
		left.AndNot(sp.part(set, i))
		total += s.sum(left)
	}
	for _, t := range sp.copies {
		if !set.Has(t.other) {
			total += sp.bytes(t.own)
		}
	}
	return total
}

// unmeasured says why it can't be known what the objects of a set take, though all were found: where a store can't be seen in
// whole, it may have a copy that counts before the one that was found. It is "" if that can be known.
func (sp *space) unmeasured(set bitmap.Set) string {
	for i, s := range sp.stores {
		if s.unseen == nil || i >= sp.own && sp.elsewhere(set) == 0 || sp.bytesOf(set) == 0 {
			continue
		}
		return fmt.Sprintf("which copies of objects count can't be told: %v", s.unseen)
	}
	return ""
}

// share bills to a namespace what it reaches and none before it has.
func (m *measuring) share(r *reached, name string) {
	s := Share{Name: name, Reachable: int64(m.view.bytesOf(r.all))}
	if r.own != nil {
		s.Own = int64(m.view.bytesOf(r.own))
	}
	for _, before := range r.shares {
		s.Reachable -= before.Reachable
		s.Own -= before.Own
	}
	r.shares = append(r.shares, s)
}

// byType splits what is reached by the types of objects.
func (m *measuring) byType(r *reached) []Share {
	var shares []Share
	blobs, ownBlobs := int64(m.view.bytesOf(r.all)), int64(0)
	if r.own != nil {
		ownBlobs = int64(m.view.bytesOf(r.own))
	}
	for _, kind := range []oid.Kind{oid.Commit, oid.Tree, oid.Tag} {
		set := r.kinds[kind].Clone()
		s := Share{Name: kind.String(), Reachable: int64(m.view.bytesOf(set))}
		if r.own != nil {
			set.And(r.own)
			s.Own = int64(m.view.bytesOf(set))
		}
		blobs, ownBlobs = blobs-s.Reachable, ownBlobs-s.Own
		shares = append(shares, s)
	}
	return slices.Insert(shares, 2, Share{Name: oid.Blob.String(), Reachable: blobs, Own: ownBlobs})
}

// figures turns what was reached into numbers.
func (m *measuring) figures(u *Usage, r *reached) {
	sp := m.view.space
	unread := ""
	if len(m.tips.unread) > 0 {
		unread = "refs can't be read: " + m.tips.unread[0]
	}
	why := unread
	if why == "" && r.lost != "" {
		var from []*roots
		for _, name := range m.names {
			from = append(from, m.roots[name])
		}
		why = m.blame(r.lost, m.tips.all, from...)
	}
	if why == "" {
		why = sp.unmeasured(r.all)
	}
	if why == "" {
		u.know(Reachable, sp.bytesOf(r.all))
		m.unreachable(u, r)
	} else {
		u.unknown(why, Reachable, Own, Borrowed, Unreachable, OwnStoredElsewhere)
	}
	switch {
	case why != "":
	case r.own == nil:
		u.unknown(m.noStop, Own, Borrowed, OwnStoredElsewhere)
	default:
		own := sp.bytesOf(r.own)
		u.know(Own, own)
		u.know(Borrowed, uint64(u.Bytes[Reachable])-own)
		u.know(OwnStoredElsewhere, sp.elsewhere(r.own))
	}
	m.stored(u)
	if why == "" {
		switch m.o.By {
		case ByType:
			u.Shares = m.byType(r)
		case ByNamespace:
			u.Shares = r.shares
		}
	}
}

// unreachable is what no ref reaches, the excluded ones neither.
func (m *measuring) unreachable(u *Usage, r *reached) {
	switch {
	case r.beyond == nil:
		u.know(Unreachable, m.view.unreached(r.all))
	case r.lostBeyond != "":
		u.unknown("behind refs that are excluded: "+m.blame(r.lostBeyond, m.tips.excluded, m.beyond), Unreachable)
	default:
		r.beyond.Or(r.all)
		u.know(Unreachable, m.view.unreached(r.beyond))
	}
}

// stored gives the figures that refs have no part in.
func (m *measuring) stored(u *Usage) {
	sp := m.view.space
	duplicate := uint64(0)
	for _, t := range sp.copies {
		duplicate += sp.bytes(t.own)
	}
	u.know(Duplicate, duplicate)
	if m.missing != nil {
		u.unknown(m.missing.Error(), Duplicate)
	}
	for i, s := range sp.stores {
		why := cmp.Or(s.unseen, s.half)
		if why == nil {
			continue
		}
		if i < sp.own {
			u.unknown(why.Error(), Unreachable)
		}
		if s.unseen != nil || sp.own < len(sp.stores) {
			u.unknown(why.Error(), Duplicate)
		}
	}
	files := m.own.files
	if m.mine > 0 {
		files = scanLoose(m.pools[0].store.src.Dir(), m.repo.Format, true, nil)
	}
	u.know(Files, uint64(files.bytes))
	if files.err != nil {
		u.unknown(files.err.Error(), Files)
	}
}

// blame says what stands behind an object that could not be found or read.
func (m *measuring) blame(lost string, tips []tip, from ...*roots) string {
	for _, s := range m.view.stores {
		if why := cmp.Or(s.unseen, s.half); why != nil {
			return fmt.Sprintf("%s; %v", lost, why)
		}
	}
	if m.missing != nil {
		return fmt.Sprintf("%s; %v", lost, m.missing)
	}
	for _, r := range from {
		for _, id := range r.absent {
			for _, t := range tips {
				if t.id != id {
					continue
				}
				if prefix := deadWorktree(m.tips.dead, []byte(t.name)); prefix != "" {
					return fmt.Sprintf("%s names %v, which is absent, and %s; --ignore-dead-worktrees leaves it out", t.name, id, m.tips.dead[prefix])
				}
				return fmt.Sprintf("%q names %v, which is absent", t.name, id)
			}
		}
	}
	return lost
}

// verify measures again by walking, and compares. What only one of the ways knows is no difference: a bitmap
// doesn't see that an object is damaged, so what walking can't know isn't known.
func (m *measuring) verify(ctx context.Context, r *reached) error {
	other := &measuring{s: m.s, repo: m.repo, o: m.o, last: true, own: m.own, pools: m.pools, mine: m.mine, missing: m.missing,
		tips: m.tips, roots: m.roots, names: m.names, beyond: m.beyond, view: m.view, u: &Usage{Bytes: map[Figure]int64{}, Unknown: map[Figure]string{}}}
	other.o.Method = Walk
	if err := other.exclude(ctx); err != nil {
		return err
	}
	w, _, err := other.reach(ctx)
	if err != nil {
		return err
	}
	if w.lost != "" && !m.last {
		m.expire()
		return errAgain
	}
	other.figures(other.u, w)
	u, walked := m.u, other.u
	var differ []string
	alike, why := true, "walking knows what bitmaps leave open"
	for _, f := range Figures {
		a, known := u.Bytes[f]
		b, walkKnows := walked.Bytes[f]
		alike = alike && known == walkKnows
		if known && !walkKnows {
			why = "walking can't be done to the end, which bitmaps don't see: " + walked.Unknown[f]
		}
		if known && walkKnows && a != b {
			differ = append(differ, fmt.Sprintf("%s %d, not %d", f, a, b))
		}
	}
	if alike && !slices.Equal(u.Shares, walked.Shares) {
		differ = append(differ, "the split")
	}
	switch {
	case len(differ) > 0:
		const what = "bitmaps give other numbers than walking"
		f := finding.New(finding.BitmapUnusable, finding.Pos{File: m.repo.ObjectDir}, what+", which are given here: %s", strings.Join(differ, ", "))
		u.Findings = append(u.Findings, f)
		u.Method, u.Reason = Walk, what
	case !alike:
		u.Method, u.Reason = Walk, why
	case len(u.Unknown) > 0:
		u.notice("the figures that are known are the same by walking")
	case u.Method == Walk:
		u.notice("nothing to compare: no bitmap was used")
	default:
		u.notice("verified: walking gives the same numbers")
	}
	u.Bytes, u.Unknown, u.Shares = walked.Bytes, walked.Unknown, walked.Shares
	return nil
}
