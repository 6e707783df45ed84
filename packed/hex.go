package packed

import "encoding/binary"

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
