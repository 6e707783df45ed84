package odb

import (
	"errors"

	"refaudit/oid"
)

var (
	errBrokenChain = errors.New("a base further down the chain of deltas is damaged")
	errCircle      = errors.New("delta is, in the end, its own base")
)

// chains learns the kinds of a pack's objects from entry headers alone, following deltas to the
// object that is stored whole. It is not safe for concurrent use.
//
// A chain through OfsDeltas ends, as each base stands before its delta, but it may be a million
// long; so on long chains every markEvery-th entry is remembered, and no part is walked twice. A
// chain through RefDeltas may come back to itself.
type chains struct {
	pack *Pack
	memo map[uint64]oid.Kind // by offset; 0: broken
	way  []uint64
}

const markEvery = 64

// kind is the kind of the object at off in p, and the header of its entry. On an error the header
// is still good if its Data is not 0, and broken is the offset of the entry at fault.
func (c *chains) kind(p *Pack, off uint64) (kind oid.Kind, head Entry, broken uint64, err error) {
	body, size := p.body.value, p.store.format.Size()
	head, err = parseEntry(body, off, size)
	if err != nil {
		return 0, head, off, p.fault(off, err)
	}
	if !head.Kind.IsDelta() {
		return head.Kind.Kind(), head, 0, nil
	}
	if c.pack != p {
		c.pack = p
		clear(c.memo)
	}
	c.way = c.way[:0]
	kind, broken, err = c.follow(p, body, size, off, head)
	for _, at := range c.way {
		if c.memo == nil {
			c.memo = map[uint64]oid.Kind{}
		}
		c.memo[at] = kind
	}
	return kind, head, broken, err
}

func (c *chains) follow(p *Pack, body []byte, size int, off uint64, e Entry) (oid.Kind, uint64, error) {
	at, seen, turn := off, off, 1
	for hops := 1; ; hops++ {
		next, err := p.base(&e)
		if err != nil {
			return 0, at, p.fault(at, err)
		}
		at = next
		if e, err = parseEntry(body, at, size); err != nil {
			return 0, at, p.fault(at, err)
		}
		if !e.Kind.IsDelta() {
			return e.Kind.Kind(), 0, nil
		}
		if len(c.memo) > 0 {
			if kind, ok := c.memo[at]; ok && kind == 0 {
				return 0, at, p.fault(off, errBrokenChain)
			} else if ok {
				return kind, 0, nil
			}
		}
		if hops%markEvery == 0 {
			c.way = append(c.way, at)
		}
		if at == seen { // seen moves on by doubling steps, so a circle of any length catches it
			return 0, at, p.fault(at, errCircle)
		}
		if hops == turn {
			seen, turn = at, 2*turn
		}
	}
}

// trail is the entries from the object at off down its chain, the object stored whole last. It
// stops early at an entry for which cached is true.
func trail(p *Pack, off uint64, way []link, cached func(uint64) bool) ([]link, error) {
	seen, turn := uint64(0), 1
	for at := off; ; {
		if cached(at) {
			return append(way, link{off: at, cached: true}), nil
		}
		e, err := parseEntry(p.body.value, at, p.store.format.Size())
		if err != nil {
			return append(way, link{off: at}), p.fault(at, err)
		}
		way = append(way, link{off: at, entry: e})
		if !e.Kind.IsDelta() {
			return way, nil
		}
		if at == seen {
			return way, p.fault(at, errCircle)
		}
		if len(way) == turn {
			seen, turn = at, 2*turn
		}
		if at, err = p.base(&e); err != nil {
			return way, p.fault(way[len(way)-1].off, err)
		}
	}
}

// link is one entry of a chain.
type link struct {
	off    uint64
	entry  Entry
	cached bool
}
