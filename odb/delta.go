package odb

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// A delta says how to make an object from its base. Specification: Documentation/gitformat-pack.adoc in git.
//
//	+-------------------+---------------------+--------------------------------+
//	| size of the base  | size of the result  | instructions                   |
//	| 7 bits a byte, the lowest first, C says | 1oooosss copy, 0nnnnnnn insert |
//	| that another byte follows               |                                |
//	+-------------------+---------------------+--------------------------------+
//
// A copy is followed by those bytes of its u32 offset and its u24 size whose bits are set, the
// lowest first; size 0 is 65536. An insert is followed by n bytes; n 0 is reserved.

var errDeltaEnd = errors.New("delta ends too early")

// deltaSizes reads the two sizes at the start of a delta.
func deltaSizes(delta []byte) (base, result uint64, rest []byte, err error) {
	base, n := binary.Uvarint(delta)
	if n <= 0 {
		return 0, 0, nil, errDeltaEnd
	}
	result, m := binary.Uvarint(delta[n:])
	if m <= 0 {
		return 0, 0, nil, errDeltaEnd
	}
	return base, result, delta[n+m:], nil
}

// applyDelta fills dst, whose length is the result's size, by the instructions.
func applyDelta(dst, base, code []byte) error {
	out := 0
	for len(code) > 0 {
		op := code[0]
		code = code[1:]
		if op&0x80 == 0 {
			n := int(op)
			if n == 0 {
				return errors.New("delta has an instruction 0, which is reserved")
			}
			if n > len(code) {
				return errDeltaEnd
			}
			if n > len(dst)-out {
				return fmt.Errorf("delta makes more than the %d bytes that it promises", len(dst))
			}
			out += copy(dst[out:], code[:n])
			code = code[n:]
			continue
		}
		var args [7]byte
		for i := range args {
			if op>>i&1 != 0 {
				if len(code) == 0 {
					return errDeltaEnd
				}
				args[i] = code[0]
				code = code[1:]
			}
		}
		from := uint64(binary.LittleEndian.Uint32(args[:4]))
		n := uint64(args[4]) | uint64(args[5])<<8 | uint64(args[6])<<16
		if n == 0 {
			n = 1 << 16
		}
		if from+n > uint64(len(base)) {
			return fmt.Errorf("delta copies bytes %d to %d of a base of %d", from, from+n, len(base))
		}
		if n > uint64(len(dst)-out) {
			return fmt.Errorf("delta makes more than the %d bytes that it promises", len(dst))
		}
		out += copy(dst[out:], base[from:from+n])
	}
	if out < len(dst) {
		return fmt.Errorf("delta makes %d of the %d bytes that it promises", out, len(dst))
	}
	return nil
}
