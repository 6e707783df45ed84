// Package inflate inflates small zlib streams whose size is known beforehand, as git's objects
// are stored. A tag is some 150 bytes in one block of dynamic Huffman codes: there the time goes
// into the tables, not into copying. So only the codes that occur are visited, a table is no wider
// than its longest code, and nothing is allocated. Formats: RFC 1950 and 1951.
package inflate

import (
	"encoding/binary"
	"errors"
	"hash/adler32"
	"io"
)

// The ways in which a stream can be bad. A stream that ends early is io.ErrUnexpectedEOF.
var (
	ErrHeader   = errors.New("not a zlib stream")
	ErrCorrupt  = errors.New("corrupt zlib stream")
	ErrChecksum = errors.New("zlib checksum does not match")
	ErrLonger   = errors.New("zlib stream is longer than its declared size")
	ErrShorter  = errors.New("zlib stream is shorter than its declared size")
)

// An Inflater holds the tables of one stream at a time. The zero value is ready for use. It is
// not safe for concurrent use.
type Inflater struct {
	src []byte
	pos int    // in src, of the next byte to go into buf
	buf uint64 // bits read and not used yet, the next one lowest
	n   uint   // how many of them count
	pad uint   // bytes of zeros that were read past the end of src

	lit, dist           table
	litTable            [litSpace]entry
	distTable           [distSpace]entry
	lengthTable         [1 << maxLengthBits]entry
	litCodes, distCodes codes // what the tables are built from
}

// InflateChecked fills dst with what the stream at the start of src holds, which must be exactly
// len(dst) bytes and match the stream's checksum. It returns how many bytes of src the stream
// takes, its checksum included.
func (z *Inflater) InflateChecked(dst, src []byte) (int, error) {
	n, err := z.run(dst, src)
	z.src = nil
	switch {
	case err != nil:
		return 0, err
	case n < len(dst):
		return 0, ErrShorter
	case len(src)-z.pos < 4:
		return 0, io.ErrUnexpectedEOF
	case binary.BigEndian.Uint32(src[z.pos:]) != adler32.Checksum(dst):
		return 0, ErrChecksum
	}
	return z.pos + 4, nil
}

// Prefix fills dst with the first bytes of the stream and stops when it is full. It returns how
// many there are; fewer than len(dst) if the stream is that short. Of what follows nothing is known.
func (z *Inflater) Prefix(dst, src []byte) (int, error) {
	n, err := z.run(dst, src)
	if err == ErrLonger {
		err = nil
	}
	z.src = nil
	return n, err
}

// run inflates the blocks into dst and leaves pos behind the last one. It gives ErrLonger when
// dst is full and more comes.
func (z *Inflater) run(dst, src []byte) (int, error) {
	if len(src) < 2 {
		return 0, io.ErrUnexpectedEOF
	}
	// | CM 4 bits | CINFO 4 bits | FCHECK 5 bits | FDICT | FLEVEL 2 bits |
	if src[0]&0x0f != 8 || src[0]>>4 > 7 || binary.BigEndian.Uint16(src)%31 != 0 || src[1]&0x20 != 0 {
		return 0, ErrHeader
	}
	z.src, z.pos, z.buf, z.n, z.pad = src, 2, 0, 0, 0
	out := 0
	for {
		z.refill()
		last, kind := z.take(1), z.take(2)
		var err error
		switch kind {
		case 0:
			out, err = z.stored(dst, out)
		case 1:
			z.lit, z.dist = fixedLit, fixedDist
			out, err = z.block(dst, out)
		case 2:
			if err = z.readTables(); err == nil {
				out, err = z.block(dst, out)
			}
		default:
			err = ErrCorrupt
		}
		if err == nil || err == ErrLonger {
			if short := z.unread(); short {
				return out, io.ErrUnexpectedEOF
			}
		} else if z.pad > z.n/8 {
			err = io.ErrUnexpectedEOF // it was the padding that made no sense
		}
		if err != nil || last == 1 {
			return out, err
		}
	}
}

// refill makes at least 56 bits ready, zeros where src has ended.
func (z *Inflater) refill() {
	if z.pos+8 <= len(z.src) {
		z.buf |= binary.LittleEndian.Uint64(z.src[z.pos:]) << (z.n & 63)
		z.pos += int((63 - z.n) >> 3)
		z.n |= 56
		return
	}
	for z.n <= 56 {
		if z.pos < len(z.src) {
			z.buf |= uint64(z.src[z.pos]) << (z.n & 63)
			z.pos++
		} else {
			z.pad++
		}
		z.n += 8
	}
}

// take uses up n bits, which must be ready.
func (z *Inflater) take(n uint) uint64 {
	v := z.buf & (1<<n - 1)
	z.buf >>= n
	z.n -= n
	return v
}

// unread gives whole bytes of buf back to src, keeping the bits of a byte that is begun, and
// tells whether bits behind the end of src have been used.
func (z *Inflater) unread() (short bool) {
	whole := z.n / 8
	if z.pad > whole {
		return true
	}
	z.pos -= int(whole - z.pad)
	z.pad = 0
	z.n -= whole * 8
	z.buf &= 1<<z.n - 1
	return false
}

// stored copies a block that was not compressed:
//
//	to the next byte   16       32
//	+----------------+--------+--------+-----------+
//	| not used       | LEN    | ~LEN   | LEN bytes |
//	+----------------+--------+--------+-----------+
func (z *Inflater) stored(dst []byte, out int) (int, error) {
	if z.unread() {
		return out, io.ErrUnexpectedEOF
	}
	z.buf, z.n = 0, 0
	src := z.src[z.pos:]
	if len(src) < 4 {
		return out, io.ErrUnexpectedEOF
	}
	size := int(binary.LittleEndian.Uint16(src))
	if uint16(size) != ^binary.LittleEndian.Uint16(src[2:]) {
		return out, ErrCorrupt
	}
	src = src[4:]
	have := min(size, len(src))
	copied := copy(dst[out:], src[:have])
	z.pos += 4 + copied
	out += copied
	switch {
	case copied < have:
		return out, ErrLonger
	case have < size:
		return out, io.ErrUnexpectedEOF
	}
	return out, nil
}
