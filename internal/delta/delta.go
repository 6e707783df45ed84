// Package delta reads deltas: how to make an object from another one, its base. Specification:
// Documentation/gitformat-pack.adoc in git.
//
//	+-------------------+---------------------+--------------------------------+
//	| size of the base  | size of the result  | instructions                   |
//	| 7 bits a byte, the lowest first, C says | 1oooosss copy, 0nnnnnnn insert |
//	| that another byte follows               |                                |
//	+-------------------+---------------------+--------------------------------+
//
// A copy is followed by those bytes of its u32 offset and its u24 size whose bits are set, the
// lowest first; size 0 is 65536. An insert is followed by n bytes; n 0 is reserved.
package delta

import (
	"encoding/binary"
	"errors"
	"fmt"
)

var (
	errShort    = errors.New("delta ends too early")
	errReserved = errors.New("delta has an instruction 0, which is reserved")
)

// Sizes reads the two sizes at the start of a delta; code is the instructions. The sizes are claims.
func Sizes(delta []byte) (base, result uint64, code []byte, err error) {
	base, n := binary.Uvarint(delta)
	if n <= 0 {
		return 0, 0, nil, errShort
	}
	result, m := binary.Uvarint(delta[n:])
	if m <= 0 {
		return 0, 0, nil, errShort
	}
	return base, result, delta[n+m:], nil
}

// Copied tells that N bytes of a result, from At on, are those of its base from From on.
type Copied struct{ At, From, N int }

// Apply fills dst, whose length is the result's size, by the instructions. If copies is not nil, what
// comes from the base is appended to it, in order, also where an error follows.
func Apply(dst, base, code []byte, copies *[]Copied) error {
	out := 0
	for len(code) > 0 {
		op := code[0]
		code = code[1:]
		if op&0x80 == 0 {
			n := int(op)
			switch {
			case n == 0:
				return errReserved
			case n > len(code):
				return errShort
			case n > len(dst)-out:
				return errLonger(dst)
			}
			copy(dst[out:], code[:n])
			out, code = out+n, code[n:]
			continue
		}
		var from, n uint64
		var ok bool
		if from, n, code, ok = arguments(op, code); !ok {
			return errShort
		}
		if n == 0 {
			n = 1 << 16
		}
		if from+n > uint64(len(base)) {
			return fmt.Errorf("delta copies bytes %d to %d, from outside its base of %d", from, from+n, len(base))
		}
		if n > uint64(len(dst)-out) {
			return errLonger(dst)
		}
		if copies != nil {
			*copies = append(*copies, Copied{out, int(from), int(n)})
		}
		out += copy(dst[out:], base[from:from+n])
	}
	if out < len(dst) {
		return fmt.Errorf("delta makes %d of the %d bytes that it promises", out, len(dst))
	}
	return nil
}

// arguments reads offset and size of a copy; false if code ends before.
func arguments(op byte, code []byte) (from, n uint64, rest []byte, ok bool) {
	var args [7]byte
	if len(code) >= len(args) { // all of them are there: none needs a check of its own
		at := 0
		for i := uint(0); i < 4; i++ {
			if op>>i&1 != 0 {
				from |= uint64(code[at]) << (8 * i)
				at++
			}
		}
		for i := uint(0); i < 3; i++ {
			if op>>(4+i)&1 != 0 {
				n |= uint64(code[at]) << (8 * i)
				at++
			}
		}
		return from, n, code[at:], true
	}
	for i := range args {
		if op>>i&1 == 0 {
			continue
		}
		if len(code) == 0 {
			return 0, 0, nil, false
		}
		args[i], code = code[0], code[1:]
	}
	return uint64(binary.LittleEndian.Uint32(args[:4])), uint64(args[4]) | uint64(args[5])<<8 | uint64(args[6])<<16, code, true
}

func errLonger(dst []byte) error {
	return fmt.Errorf("delta makes more than the %d bytes that it promises", len(dst))
}
