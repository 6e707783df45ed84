package odb

import "slices"

// hit is where an object of a batch lies. Its key orders hits by pack, then by offset, loose
// objects last:
//
//	 63     62..40                  39..0
//	+------+-----------------------+--------+
//	| 0    | number of the pack    | offset |
//	| 1    | 0                     | store  |  loose
//	+------+-----------------------+--------+
type hit struct {
	key uint64
	i   int32 // in the batch
}

const (
	offsetBits = 40
	looseKey   = 1 << 63
)

// sortHits sorts by key, in hits or in room, which is made as long.
func sortHits(hits []hit, room *[]hit) []hit {
	if len(hits) < 1024 {
		slices.SortFunc(hits, func(a, b hit) int {
			switch {
			case a.key < b.key:
				return -1
			case a.key > b.key:
				return 1
			}
			return 0
		})
		return hits
	}
	if cap(*room) < len(hits) {
		*room = make([]hit, cap(hits))
	}
	return radixSort(hits, (*room)[:len(hits)])
}

// radixSort sorts by eleven bits of the key at a time, the lowest first, leaving out those in
// which all keys agree. What comes out lies in one of both.
func radixSort(hits, other []hit) []hit {
	const width = 11
	var differ uint64
	for _, h := range hits {
		differ |= h.key ^ hits[0].key
	}
	var count [1 << width]int32
	for shift := 0; shift < 64; shift += width {
		if differ>>shift&(1<<width-1) == 0 {
			continue
		}
		clear(count[:])
		for _, h := range hits {
			count[h.key>>shift&(1<<width-1)]++
		}
		at := int32(0)
		for i, n := range count {
			count[i] = at
			at += n
		}
		for _, h := range hits {
			digit := h.key >> shift & (1<<width - 1)
			other[count[digit]] = h
			count[digit]++
		}
		hits, other = other, hits
	}
	return hits
}
