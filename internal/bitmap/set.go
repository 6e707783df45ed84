package bitmap

import (
	"math/bits"
	"sync/atomic"
)

// Set is a plain bit set: bit i is bit i%64 of word i/64. Its length is fixed when it is made;
// the bits after the last position are zero. The operations on two sets want the same length.
type Set []uint64

// NewSet makes an empty set of positions 0 to n-1.
//
// Each page of it is written to at once. A page of new memory that is read first, as adding to a set does,
// becomes the kernel's common page of zeros; the write after it has to take that page from all
// processors that run the program, which interrupts each of them.
func NewSet(n int) Set {
	s := make(Set, words(n))
	for i := 0; i < len(s); i += pageWords {
		s[i] = 0
	}
	return s
}

// pageWords is the size of a page of memory, 4 KiB, the smallest there is.
const pageWords = 4096 / 8

func words(n int) int { return (n + 63) >> 6 }

// Has tells whether i is in the set.
func (s Set) Has(i uint32) bool { return s[i>>6]>>(i&63)&1 != 0 }

// Add puts i into the set.
func (s Set) Add(i uint32) { s[i>>6] |= 1 << (i & 63) }

// Remove takes i out of the set.
func (s Set) Remove(i uint32) { s[i>>6] &^= 1 << (i & 63) }

// AddRange puts the positions from start up to, not including, end into the set.
func (s Set) AddRange(start, end uint32) {
	if start >= end {
		return
	}
	first, last := start>>6, (end-1)>>6
	head, tail := ^uint64(0)<<(start&63), ^uint64(0)>>(63-(end-1)&63)
	if first == last {
		s[first] |= head & tail
		return
	}
	s[first] |= head
	for i := first + 1; i < last; i++ {
		s[i] = ^uint64(0)
	}
	s[last] |= tail
}

// Or adds the members of b.
func (s Set) Or(b Set) {
	b = b[:len(s)]
	for i := range s {
		s[i] |= b[i]
	}
}

// And keeps the members that are in b too.
func (s Set) And(b Set) {
	b = b[:len(s)]
	for i := range s {
		s[i] &= b[i]
	}
}

// AndNot takes out the members of b.
func (s Set) AndNot(b Set) {
	b = b[:len(s)]
	for i := range s {
		s[i] &^= b[i]
	}
}

// Xor takes out the members that b has too, and adds the others of b.
func (s Set) Xor(b Set) {
	b = b[:len(s)]
	for i := range s {
		s[i] ^= b[i]
	}
}

// Count is how many members there are.
func (s Set) Count() int {
	n := 0
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}

// CountCommon is how many members s and b share.
func (s Set) CountCommon(b Set) int {
	b = b[:len(s)]
	n := 0
	for i := range s {
		n += bits.OnesCount64(s[i] & b[i])
	}
	return n
}

// Within tells whether each member is in b.
func (s Set) Within(b Set) bool {
	b = b[:len(s)]
	for i := range s {
		if s[i]&^b[i] != 0 {
			return false
		}
	}
	return true
}

// Empty tells whether there is no member.
func (s Set) Empty() bool {
	for _, w := range s {
		if w != 0 {
			return false
		}
	}
	return true
}

// Clone is a copy.
func (s Set) Clone() Set { return append(Set(nil), s...) }

// Clear takes every member out.
func (s Set) Clear() { clear(s) }

// Next is the first member at or after i, or -1.
func (s Set) Next(i int) int {
	w := i >> 6
	if w >= len(s) {
		return -1
	}
	if word := s[w] >> (i & 63); word != 0 {
		return i + bits.TrailingZeros64(word)
	}
	for w++; w < len(s); w++ {
		if s[w] != 0 {
			return w<<6 + bits.TrailingZeros64(s[w])
		}
	}
	return -1
}

// NextGap is the first position at or after i that is not in the set; it may lie behind the last
// position, then it is a multiple of 64 or that last position plus one.
func (s Set) NextGap(i int) int {
	w := i >> 6
	if w >= len(s) {
		return i
	}
	if word := ^s[w] >> (i & 63); word != 0 {
		return i + bits.TrailingZeros64(word)
	}
	for w++; w < len(s); w++ {
		if s[w] != ^uint64(0) {
			return w<<6 + bits.TrailingZeros64(^s[w])
		}
	}
	return len(s) << 6
}

// Runs calls fn for each longest run of members, from start up to, not including, end.
func (s Set) Runs(fn func(start, end int)) {
	for i := s.Next(0); i >= 0; {
		end := s.NextGap(i)
		fn(i, end)
		i = s.Next(end)
	}
}

// Each calls fn for every member, in order.
func (s Set) Each(fn func(i uint32)) {
	for w, word := range s {
		for ; word != 0; word &= word - 1 {
			fn(uint32(w<<6 + bits.TrailingZeros64(word)))
		}
	}
}

// HasShared is Has while others use AddShared.
func (s Set) HasShared(i uint32) bool { return atomic.LoadUint64(&s[i>>6])>>(i&63)&1 != 0 }

// AddShared is Add from several goroutines at once; it tells whether i was not in the set before.
func (s Set) AddShared(i uint32) bool {
	bit := uint64(1) << (i & 63)
	return atomic.LoadUint64(&s[i>>6])&bit == 0 && atomic.OrUint64(&s[i>>6], bit)&bit == 0
}

// OrAt adds the n members that src has from position from on, moved to position to on.
func (s Set) OrAt(to int, src Set, from, n int) {
	if to&63 == 0 && from&63 == 0 {
		for ; n >= 64; n, to, from = n-64, to+64, from+64 {
			s[to>>6] |= src[from>>6]
		}
	}
	for n > 0 {
		width := min(n, 64-to&63, 64-from&63)
		word := src[from>>6] >> (from & 63) & (^uint64(0) >> (64 - width))
		s[to>>6] |= word << (to & 63)
		n, to, from = n-width, to+width, from+width
	}
}

// Join adds the members of b, and calls fn for each that was not in s before, in order.
func (s Set) Join(b Set, fn func(i uint32)) {
	b = b[:len(s)]
	for w := range s {
		for fresh := b[w] &^ s[w]; fresh != 0; fresh &= fresh - 1 {
			fn(uint32(w<<6 + bits.TrailingZeros64(fresh)))
		}
		s[w] |= b[w]
	}
}
