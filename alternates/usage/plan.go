package usage

import (
	"fmt"
	"strings"
)

// plan says which bitmaps a measurement may use, and why.
type plan struct {
	bitmaps  bool     // there are some, and they may be used
	why      string   // not; "" if so
	own      []string // bitmaps of our own
	pools    []string // of those that we borrow from
	excluded bool     // what the pools' refs reach is known and is to be left out
	asked    Method
}

// plan looks at what there is.
func (m *measuring) plan() *plan {
	p := &plan{asked: m.o.Method, excluded: m.stop != nil && m.o.ExcludeAlternates}
	switch {
	case m.o.Method == Walk:
		p.why = "walking was asked for"
		return p
	case m.view.parents != nil:
		p.why = "parents of commits are cut or grafted here, of which bitmaps know nothing"
		return p
	}
	bad := false
	for i, s := range m.view.stores {
		for _, b := range s.usableBitmaps() {
			if i < m.view.own {
				p.own = append(p.own, b.name)
			} else if !m.cut { // of a history that is cut they know no more than the pool does
				p.pools = append(p.pools, b.name)
			}
		}
		bad = bad || s.badBitmaps()
	}
	switch {
	case len(p.own)+len(p.pools) > 0:
		p.bitmaps = true
	case bad:
		p.why = "the bitmap there is can't be believed"
	default:
		p.why = "there is no bitmap"
	}
	return p
}

// cover are the bitmaps for the walk from our refs: our own; all of them, if it goes through what the
// alternates reach too. What only a pool's bitmap holds is just what the walk stops at.
func (p *plan) cover(v *view, through bool) *coverage {
	switch {
	case !p.bitmaps:
		return nil
	case through:
		return newCoverage(v.space, 0, len(v.stores))
	}
	return newCoverage(v.space, 0, v.own)
}

// poolCover are the bitmaps for what we reach of what the alternates reach.
func (p *plan) poolCover(v *view) *coverage {
	if !p.bitmaps {
		return nil
	}
	return newCoverage(v.space, v.own, len(v.stores))
}

// told is the method that was used in the end, and the reason.
func (p *plan) told(r *reached) (Method, string) {
	if !p.bitmaps {
		return Walk, p.why
	}
	own, pools := 0, 0
	for _, b := range p.own {
		own += r.used[b]
	}
	for _, b := range p.pools {
		pools += r.used[b]
	}
	method := Walk
	var parts []string
	switch {
	case own > 0 && r.covered == r.tips:
		method = Bitmap
		parts = append(parts, coverAll(p.own...))
	case own > 0:
		method = Bitmap
		parts = append(parts, fmt.Sprintf("%s %d of %d tips, the others are walked down to it", covers(p.own), r.covered, r.tips))
	case len(p.own) > 0 && r.tips == 0:
		parts = append(parts, "no ref or HEAD that counts names a commit")
	case len(p.own) > 0:
		parts = append(parts, covers(p.own)+" nothing that the tips lead to")
	}
	if len(p.pools) > 0 {
		switch {
		case len(p.own) == 0 && p.excluded && p.asked != Bitmap:
			parts = append(parts, fmt.Sprintf("the only %s of a pool and can hold only what is left out: it subtracts, and our own objects are walked",
				plural(p.pools, "bitmap, %s, is", "bitmaps, %s, are")))
		case pools > 0:
			method = Bitmap
			parts = append(parts, plural(p.pools, "%s tells what is borrowed", "%s tell what is borrowed"))
		default:
			parts = append(parts, plural(p.pools, "%s, of a pool, covers nothing that was met", "%s, of pools, cover nothing that was met"))
		}
	}
	return method, strings.Join(parts, "; ")
}

func coverAll(names ...string) string { return covers(names) + " every tip" }

func covers(names []string) string { return plural(names, "%s covers", "%s cover") }

// plural puts names into the sentence that fits their number.
func plural(names []string, one, many string) string {
	if len(names) > 1 {
		one = many
	}
	return fmt.Sprintf(one, strings.Join(names, ", "))
}
