package bitmap

import (
	"encoding/binary"
	"fmt"

	"refaudit/internal/binread"
)

// EWAH is one run-length compressed bitmap, as it lies in a file. Specification:
// Documentation/technical/bitmap-format.adoc in git, appendix A. All numbers are big-endian.
//
//	0                 4                   8                  8+8n             12+8n
//	+-----------------+-------------------+------------------+----------------+
//	| u32 bit count   | u32 word count n  | n words of u64   | u32 last RLW   |
//	+-----------------+-------------------+------------------+----------------+
//
// The words are chunks: a run-length word (RLW), then the literal words that it announces.
//
//	bit 63           33 32            1  0
//	+------------------+---------------+---+
//	| literal words    | run, in words | B |   run words of bit B come first, then the literals
//	+------------------+---------------+---+
//
// The bit count and the place of the last RLW serve writers; nothing here relies on them.
type EWAH struct {
	words []byte
	at    int64 // where the words begin in the file
}

// readEWAH passes over one bitmap and checks no more than that it is all there.
func readEWAH(c *binread.Cursor, what string) EWAH {
	c.U32(what + ": bit count")
	n := c.U32(what + ": word count")
	at := c.Offset()
	words := c.Bytes(8*uint64(n), what+": words")
	if last := c.U32(what + ": place of the last run-length word"); c.Err() == nil && last != 0 && last >= n {
		c.Failf("%s: the last run-length word is said to be word %d of %d", what, last, n)
	}
	return EWAH{words: words, at: at}
}

// ewahError is a bitmap that says more than the set it is read into can hold.
type ewahError struct {
	at   int64
	text string
}

func (e *ewahError) Error() string { return e.text }

// chunk is one step of decoding: a run, then literals.
type chunk struct {
	run      int // words of the run that lie inside the set
	ones     bool
	literals []byte // those inside the set
}

// each decodes the bitmap into words word, the number of which it never passes: fn gets each chunk
// and the place of its first word. Zero words behind the end say nothing and are let pass.
func (e EWAH) each(size int, fn func(at int, c chunk)) error {
	at := uint64(0)
	limit := uint64(size)
	for p := 0; p < len(e.words); {
		head := binary.BigEndian.Uint64(e.words[p:])
		here := e.at + int64(p)
		p += 8
		ones, run, lits := head&1 != 0, head>>1&(1<<32-1), head>>33
		if left := uint64(len(e.words)-p) / 8; lits > left {
			return &ewahError{here, fmt.Sprintf("a run-length word announces %d literal words, %d are left", lits, left)}
		}
		body := e.words[p : p+int(lits)*8]
		p += len(body)
		if ones && (at > limit || run > limit-at) {
			return &ewahError{here, fmt.Sprintf("a run of %d full words at word %d, and there are %d", run, at, size)}
		}
		inside := run
		if at >= limit {
			inside = 0
		} else if run > limit-at {
			inside = limit - at
		}
		first := at + run
		kept := body
		if first >= limit {
			kept = nil
		} else if lits > limit-first {
			kept = body[:(limit-first)*8]
		}
		for i := len(kept); i < len(body); i += 8 {
			if binary.BigEndian.Uint64(body[i:]) != 0 {
				return &ewahError{here, fmt.Sprintf("a literal word at word %d, and there are %d", first+uint64(i/8), size)}
			}
		}
		if inside > 0 || len(kept) > 0 {
			fn(int(at), chunk{run: int(inside), ones: ones, literals: kept})
		}
		at = min(first+lits, 1<<40) // behind the end is behind the end: no sum of claims wraps
	}
	return nil
}

// or adds the members of e to s.
func (e EWAH) or(s Set) error {
	return e.each(len(s), func(at int, c chunk) {
		if c.ones {
			for i := range s[at : at+c.run] {
				s[at+i] = ^uint64(0)
			}
		}
		dst := s[at+c.run:]
		for i := 0; i+8 <= len(c.literals); i += 8 {
			dst[i>>3] |= binary.BigEndian.Uint64(c.literals[i:])
		}
	})
}

// xor flips in s what is in e.
func (e EWAH) xor(s Set) error {
	return e.each(len(s), func(at int, c chunk) {
		if c.ones {
			for i := range s[at : at+c.run] {
				s[at+i] = ^s[at+i]
			}
		}
		dst := s[at+c.run:]
		for i := 0; i+8 <= len(c.literals); i += 8 {
			dst[i>>3] ^= binary.BigEndian.Uint64(c.literals[i:])
		}
	})
}
