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

// copied tells that n bytes of a result, from at on, are those of its base from from on.
type copied struct{ at, from, n int }

// applyDelta makes dst from base. It appends to copies what comes from the base, in order.
// Specification: gitformat-pack in git.
func applyDelta(dst, base, code []byte, copies []copied) ([]copied, error) {
	out := 0
	for len(code) > 0 {
		op := code[0]
		code = code[1:]
		if op&0x80 == 0 {
			n := int(op)
			switch {
			case n == 0:
				return copies, errDeltaOp
			case n > len(code):
				return copies, errDeltaShort
			case n > len(dst)-out:
				return copies, errDeltaSize
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
					return copies, errDeltaShort
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
			return copies, errDeltaCopy
		}
		if n > uint64(len(dst)-out) {
			return copies, errDeltaSize
		}
		copies = append(copies, copied{out, int(from), int(n)})
		out += copy(dst[out:], base[from:from+n])
	}
	if out < len(dst) {
		return copies, errDeltaSize
	}
	return copies, nil
}
