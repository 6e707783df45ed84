package odb

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"refaudit/oid"
)

// sortedIDs is a table of ids in rising order with its fanout: the i-th of 256 numbers says how
// many ids begin with a byte of at most i. Indexes of one pack and of many have the same.
type sortedIDs struct {
	fanout []byte
	table  []byte
	count  int
	stride int // from one id to the next
	at     int // of the id in its row
	size   int // of an id
	format oid.Format
}

// checkFanout checks that a fanout never falls, and returns its last number.
func checkFanout(fanout []byte) (count uint32, at int, err error) {
	n := uint32(0)
	for i := range 256 {
		next := binary.BigEndian.Uint32(fanout[4*i:])
		if next < n {
			return 0, 4 * i, fmt.Errorf("fanout falls from %d to %d at %#x", n, next, i)
		}
		n = next
	}
	return n, 0, nil
}

func (s *sortedIDs) raw(i int) []byte {
	from := i*s.stride + s.at
	return s.table[from : from+s.size : from+s.size]
}

// bucket is the range of ids that begin with this byte.
func (s *sortedIDs) bucket(first byte) (lo, hi int) {
	if first > 0 {
		lo = int(binary.BigEndian.Uint32(s.fanout[4*int(first)-4:]))
	}
	return lo, int(binary.BigEndian.Uint32(s.fanout[4*int(first):]))
}

// A guess is the range of rows in which an id must be, if it is there, and of the keys they begin with.
type guess struct {
	lo, hi      int
	want        uint64 // the key of the id: its first eight bytes
	least, most uint64 // of the keys in [lo, hi)
}

func (s *sortedIDs) guess(id []byte) guess {
	g := guess{want: binary.BigEndian.Uint64(id)}
	g.lo, g.hi = s.bucket(id[0])
	g.least, g.most = g.want&(0xff<<56), g.want|(1<<56-1)
	return g
}

// guesses is how often a place is guessed before the range is halved; nearly all ids are found by the fourth.
const guesses = 8

// next is the row to look at: where id must be if ids are spread evenly, as hashes are.
func (g *guess) next(step int) int {
	n := g.hi - g.lo
	if step >= guesses || n <= 8 {
		return g.lo + n/2
	}
	mid := g.lo + int(float64(n)*float64(g.want-g.least)/float64(g.most-g.least))
	return min(max(mid, g.lo), g.hi-1)
}

// narrow takes the key of the row at mid, which is not the one that is wanted.
func (g *guess) narrow(mid int, key uint64) {
	if key < g.want {
		g.lo, g.least = mid+1, key
	} else {
		g.hi, g.most = mid, key
	}
	if g.most <= g.least {
		g.most = g.least + 1
	}
}

// find tells which one of the ids id is.
func (s *sortedIDs) find(id []byte) (int, bool) {
	g := s.guess(id)
	for step := 0; g.lo < g.hi; step++ {
		mid := g.next(step)
		row := s.raw(mid)
		key := binary.BigEndian.Uint64(row)
		if key != g.want {
			g.narrow(mid, key)
			continue
		}
		switch c := bytes.Compare(row[8:], id[8:]); {
		case c == 0:
			return mid, true
		case c < 0:
			g.lo = mid + 1
		default:
			g.hi = mid
		}
		g.least, g.most = g.want, g.want+1 // nothing to guess by any more
	}
	return 0, false
}

// lanes is how many ids are looked for side by side.
const lanes = 16

// warm touches what find will touch for these ids of ids. Looked for side by side they wait for memory together,
// not one after another. What it gives back means nothing.
func (s *sortedIDs) warm(ids []oid.ID, which []int32) (met byte) {
	const rounds = 3 // behind them find is near enough
	var group [lanes]guess
	for len(which) > 0 {
		n := min(lanes, len(which))
		for k, i := range which[:n] {
			group[k] = s.guess(ids[i].Bytes())
		}
		for step := range rounds {
			for k := range n {
				if g := &group[k]; g.lo < g.hi {
					mid := g.next(step)
					key := binary.BigEndian.Uint64(s.raw(mid))
					met ^= byte(key)
					g.narrow(mid, key)
				}
			}
		}
		which = which[n:]
	}
	return met
}

// checkOrder checks that the ids rise and that the fanout counts them.
func (s *sortedIDs) checkOrder() error {
	var last []byte
	for first := range 256 {
		lo, hi := s.bucket(byte(first))
		for i := lo; i < hi; i++ {
			id := s.raw(i)
			if id[0] != byte(first) {
				return fmt.Errorf("the fanout puts id %x under %02x", id, first)
			}
			if last != nil && bytes.Compare(last, id) >= 0 {
				return fmt.Errorf("id %x stands behind %x", id, last)
			}
			last = id
		}
	}
	return nil
}
