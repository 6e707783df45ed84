package packed

import (
	"encoding/binary"

	"refaudit/oid"
)

const (
	ones  = 0x0101010101010101
	evens = 0x00ff00ff00ff00ff
)

// decodeHex decodes len(dst) bytes, a multiple of four, from twice as many digits, eight at a time.
// upper tells that there were upper-case digits among them.
func decodeHex(dst, src []byte) (ok, upper bool) {
	var wrong, capital uint64
	src = src[: 2*len(dst) : 2*len(dst)]
	for ; len(dst) >= 4 && len(src) >= 8; dst, src = dst[4:], src[8:] {
		x := binary.LittleEndian.Uint64(src)
		letter := x >> 6 & ones                       // letters have bit 6, digits have not
		v := x&(0x0f*ones) + 9*letter                 // the value, if it is a digit at all
		big := (v + 6*ones) >> 4 & ones               // ten or more
		diff := (v + '0'*ones + big*('a'-'0'-10)) ^ x // the digit it should be, against the one it is
		wrong |= v&(0x10*ones) | diff&^(letter<<5)
		capital |= diff
		v = (v<<4 | v>>8) & evens
		v = (v | v>>8) & 0x0000ffff0000ffff
		binary.LittleEndian.PutUint32(dst, uint32(v|v>>16))
	}
	return wrong == 0, capital != 0
}

// decodeLower is decodeHex for lower-case digits alone, of an id of 20 or 32 bytes: twice as fast.
func decodeLower(dst, src []byte) bool {
	if len(dst) == oid.MaxSize {
		wrong := lower16(dst, src) | lower16(dst[8:], src[16:]) | lower16(dst[16:], src[32:]) | lower16(dst[24:], src[48:])
		return wrong == 0
	}
	v, wrong := lower8(binary.LittleEndian.Uint64(src[32:40]))
	wrong |= lower16(dst, src) | lower16(dst[8:], src[16:])
	binary.LittleEndian.PutUint32(dst[16:], v)
	return wrong == 0
}

func lower16(dst, src []byte) uint64 {
	_ = src[15]
	a, wrongA := lower8(binary.LittleEndian.Uint64(src))
	b, wrongB := lower8(binary.LittleEndian.Uint64(src[8:]))
	binary.LittleEndian.PutUint64(dst, uint64(a)|uint64(b)<<32)
	return wrongA | wrongB
}

// lower8 decodes eight digits. No byte carries into its neighbour unless one is no digit, and then
// what comes out is not the ten to fifteen that a letter stands for, or the nine at most of a digit.
func lower8(x uint64) (v uint32, wrong uint64) {
	letter := x >> 6 & ones
	d := x - '0'*ones - letter*('a'-'0'-10)
	wrong = d&(0xf0*ones) | ((d+6*ones)>>4^letter)&ones
	d = (d<<4 | d>>8) & evens
	d = (d | d>>8) & 0x0000ffff0000ffff
	return uint32(d | d>>16), wrong
}
