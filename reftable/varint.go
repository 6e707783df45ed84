package reftable

// Variable-length numbers are those of OFS_DELTA offsets in packs: seven bits a byte, the
// highest first, and each continued group is worth one more than its bits say.

// maxVarint is the length of the longest number: ten groups of seven bits.
const maxVarint = 10

// varint reads the number at b[p:] and the place behind it, which is -1 if the number does
// not end in b or needs more than 64 bits.
func varint(b []byte, p int) (uint64, int) {
	if uint(p) >= uint(len(b)) {
		return 0, -1
	}
	c := b[p]
	p++
	v := uint64(c & 0x7f)
	for c&0x80 != 0 {
		v++
		if v>>57 != 0 || p >= len(b) {
			return 0, -1
		}
		c = b[p]
		p++
		v = v<<7 | uint64(c&0x7f)
	}
	return v, p
}

// appendVarint appends v in its shortest form, which is the only one that writers use.
func appendVarint(b []byte, v uint64) []byte {
	var tmp [maxVarint]byte
	i := len(tmp) - 1
	tmp[i] = byte(v & 0x7f)
	for v >>= 7; v != 0; v >>= 7 {
		v--
		i--
		tmp[i] = 0x80 | byte(v&0x7f)
	}
	return append(b, tmp[i:]...)
}
