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
func checkFanout(fanout []byte) (uint32, error) {
	n := uint32(0)
	for i := range 256 {
		next := binary.BigEndian.Uint32(fanout[4*i:])
		if next < n {
			return 0, fmt.Errorf("fanout falls from %d to %d at %#x", n, next, i)
		}
		n = next
	}
	return n, nil
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

// find looks where id must be if ids are spread evenly, as hashes are, and halves the range where
// they are not.
func (s *sortedIDs) find(id []byte) (int, bool) {
	const guesses = 8 // nearly all ids are found by the fourth
	lo, hi := s.bucket(id[0])
	want := binary.BigEndian.Uint64(id)
	least, most := want&(0xff<<56), want|(1<<56-1) // of the keys in [lo, hi)
	for step := 0; lo < hi; step++ {
		mid := lo + (hi-lo)/2
		if step < guesses && hi-lo > 8 {
			mid = lo + int(float64(hi-lo)*float64(want-least)/float64(most-least))
			mid = min(max(mid, lo), hi-1)
		}
		at := mid*s.stride + s.at
		row := s.table[at : at+s.size : at+s.size]
		key := binary.BigEndian.Uint64(row)
		switch {
		case key < want:
			lo, least = mid+1, min(key, want)
		case key > want:
			hi, most = mid, key
		default:
			switch c := bytes.Compare(row[8:], id[8:]); {
			case c == 0:
				return mid, true
			case c < 0:
				lo = mid + 1
			default:
				hi = mid
			}
			least, most = want, want|1 // nothing to guess by any more
		}
		if most <= least {
			most = least + 1
		}
	}
	return 0, false
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
