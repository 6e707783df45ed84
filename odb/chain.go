package odb

import (
	"errors"
	"fmt"

	"refaudit/oid"
)

var (
	errBrokenChain = errors.New("a base further down the chain of deltas is damaged")
	errCircle      = errors.New("delta is, in the end, its own base")
)

// chains learns the kinds of objects in packs from entry headers alone, following deltas to the
// object that is stored whole. It is not safe for concurrent use.
//
// A chain through OfsDeltas ends, as each base stands before its delta, but it may be a million
// long; so on long chains every markEvery-th entry is remembered, and where it is walked from, and
// no part is walked often. A chain through RefDeltas may come back to itself.
type chains struct {
	memos map[*Pack]map[uint64]oid.Kind // by offset; 0: broken
	pack  *Pack
	memo  map[uint64]oid.Kind // of pack
	way   []uint64
}

const (
	markEvery = 64
	// markFrom is how far a walk must lead, where chains are known to be long, to be remembered itself.
	markFrom = 8
)

// kind is the kind of the object at off in p, and the header of its entry.
func (c *chains) kind(p *Pack, off uint64) (kind oid.Kind, head Entry, err error) {
	body, size := p.body.value, p.store.format.Size()
	head, err = parseEntry(body, off, size)
	if err != nil {
		return 0, head, p.fault(off, err)
	}
	if !head.Kind.IsDelta() {
		return head.Kind.Kind(), head, nil
	}
	if c.pack != p {
		c.pack, c.memo = p, c.memos[p]
	}
	c.way = c.way[:0]
	kind, hops, err := c.follow(p, body, size, off, head)
	if hops >= markEvery || hops >= markFrom && len(c.memo) > 0 {
		c.remember(off, kind)
	}
	return kind, head, err
}

// remember notes the kind of the entry at off and of the marked ones on the way from it.
func (c *chains) remember(off uint64, kind oid.Kind) {
	if c.memo == nil {
		if c.memos == nil {
			c.memos = map[*Pack]map[uint64]oid.Kind{}
		}
		c.memo = map[uint64]oid.Kind{}
		c.memos[c.pack] = c.memo
	}
	c.memo[off] = kind
	for _, at := range c.way {
		c.memo[at] = kind
	}
}

func (c *chains) follow(p *Pack, body []byte, size int, off uint64, e Entry) (kind oid.Kind, hops int, err error) {
	at, seen, turn := off, off, 1
	for hops = 1; ; hops++ {
		next, err := p.base(&e)
		if err != nil {
			return 0, hops, p.fault(at, err)
		}
		at = next
		if e, err = parseEntry(body, at, size); err != nil {
			return 0, hops, p.fault(at, err)
		}
		if !e.Kind.IsDelta() {
			return e.Kind.Kind(), hops, nil
		}
		if len(c.memo) > 0 {
			if kind, ok := c.memo[at]; ok && kind == 0 {
				return 0, hops, p.fault(off, errBrokenChain)
			} else if ok {
				return kind, hops, nil
			}
		}
		if hops%markEvery == 0 {
			c.way = append(c.way, at)
		}
		if at == seen { // seen moves on by doubling steps, so a circle of any length catches it
			return 0, hops, p.fault(at, errCircle)
		}
		if hops == turn {
			seen, turn = at, 2*turn
		}
	}
}

// trail appends to way the offsets of the entries from the object at off down its chain, at most
// limit of them. The last one is stored whole or, as end says, in the cache; with an error, it is
// the one at fault.
func trail(p *Pack, off uint64, way []uint64, limit int, cached func(uint64) bool) (_ []uint64, end bool, err error) {
	seen, turn := uint64(0), 1
	for at := off; ; {
		way = append(way, at)
		if cached(at) {
			return way, true, nil
		}
		e, err := parseEntry(p.body.value, at, p.store.format.Size())
		if err != nil {
			return way, false, p.fault(at, err)
		}
		if !e.Kind.IsDelta() {
			return way, false, nil
		}
		switch {
		case at == seen:
			return way, false, p.fault(at, errCircle)
		case len(way) == limit:
			return way, false, p.fault(at, fmt.Errorf("chain of deltas %w of %d", ErrTooLarge, limit))
		case len(way) == turn:
			seen, turn = at, 2*turn
		}
		if at, err = p.base(&e); err != nil {
			return way, false, p.fault(way[len(way)-1], err)
		}
	}
}
