package usage

import (
	"encoding/binary"
	"errors"
)

var (
	errDeltaShort = errors.New("delta ends too early")
	errDeltaCopy  = errors.New("delta copies from outside its base")
	errDeltaSize  = errors.New("delta does not make what it promises")
	errDeltaOp    = errors.New("delta has an instruction that does not exist")
)

// deltaSizes reads the sizes of base and result at the start of a delta.
func deltaSizes(delta []byte) (base, result uint64, code []byte, err error) {
	base, n := binary.Uvarint(delta)
	if n <= 0 {
		return 0, 0, nil, errDeltaShort
	}
	result, m := binary.Uvarint(delta[n:])
	if m <= 0 {
		return 0, 0, nil, errDeltaShort
	}
	return base, result, delta[n+m:], nil
}

// applyDelta makes dst from base. It tells how many bytes at the beginning and at the end are the base's,
// which don't overlap in either. Specification: gitformat-pack in git.
func applyDelta(dst, base, code []byte) (prefix, suffix int, err error) {
	out := 0
	for len(code) > 0 {
		suffix = 0
		op := code[0]
		code = code[1:]
		if op&0x80 == 0 {
			n := int(op)
			switch {
			case n == 0:
				return 0, 0, errDeltaOp
			case n > len(code):
				return 0, 0, errDeltaShort
			case n > len(dst)-out:
				return 0, 0, errDeltaSize
			}
			copy(dst[out:], code[:n])
			out, code = out+n, code[n:]
			continue
		}
		var from, n uint64
		if len(code) >= 7 {
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
			code = code[at:]
		} else {
			var args [7]byte
			for i := range args {
				if op>>i&1 == 0 {
					continue
				}
				if len(code) == 0 {
					return 0, 0, errDeltaShort
				}
				args[i], code = code[0], code[1:]
			}
			from = uint64(binary.LittleEndian.Uint32(args[:4]))
			n = uint64(args[4]) | uint64(args[5])<<8 | uint64(args[6])<<16
		}
		if n == 0 {
			n = 1 << 16
		}
		if from+n > uint64(len(base)) {
			return 0, 0, errDeltaCopy
		}
		if n > uint64(len(dst)-out) {
			return 0, 0, errDeltaSize
		}
		if out == 0 && from == 0 {
			prefix = int(n)
		}
		if from+n == uint64(len(base)) {
			suffix = int(n)
		}
		out += copy(dst[out:], base[from:from+n])
	}
	if out < len(dst) {
		return 0, 0, errDeltaSize
	}
	return prefix, min(suffix, len(dst)-prefix, len(base)-prefix), nil
}
