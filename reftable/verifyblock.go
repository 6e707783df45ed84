package reftable

import (
	"cmp"
	"slices"

	"refaudit/finding"
)

// A restartCheck holds the restarts of a block against its records: they must ascend, and each
// must be where a record begins whose key is stored whole. (That the first record is one, each read looks at.)
type restartCheck struct {
	v      *verifier
	blk    block // its bytes are gone by the end
	claims []claim
	next   int // of claims
}

// A claim is one restart: its number, and where it leads.
type claim struct{ n, at int }

// begin starts a block, and ends the one before.
func (c *restartCheck) begin(b *block) {
	c.end()
	c.blk, c.claims, c.next = *b, c.claims[:0], 0
	last := 0
	for i := range b.restarts {
		at := b.restart(i)
		c.claims = append(c.claims, claim{i, at})
		if at <= last {
			c.say(i, "restart to %d does not rise above the one before it, to %d", at, last)
		}
		last = at
	}
	slices.SortFunc(c.claims, func(a, b claim) int { return cmp.Compare(a.at, b.at) })
	c.claims = slices.CompactFunc(c.claims, func(a, b claim) bool { return a.at == b.at })
}

// record is told where each record begins, and whether its key is whole.
func (c *restartCheck) record(start int, whole bool) {
	for c.next < len(c.claims) && c.claims[c.next].at < start {
		c.nowhere()
	}
	if c.next == len(c.claims) || c.claims[c.next].at != start {
		return
	}
	if !whole {
		c.say(c.claims[c.next].n, "restart leads to %d, a record whose key is not whole", start)
	}
	c.next++
}

// pass is told of bytes in which records could not be read: restarts into them are not judged.
func (c *restartCheck) pass(from, to int) {
	for c.next < len(c.claims) && c.claims[c.next].at < to {
		if c.claims[c.next].at < from {
			c.nowhere()
		} else {
			c.next++
		}
	}
}

// end is told that the block has no more records.
func (c *restartCheck) end() {
	for c.next < len(c.claims) {
		c.nowhere()
	}
}

func (c *restartCheck) nowhere() {
	c.say(c.claims[c.next].n, "restart leads to %d, where no record begins", c.claims[c.next].at)
	c.next++
}

func (c *restartCheck) say(i int, format string, args ...any) {
	c.v.block(finding.ReftableRestart, c.blk.off, c.blk.place(c.blk.recs+3*i), 3, format, args...)
}
