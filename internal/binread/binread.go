// Package binread reads the fields of binary files whose every length is a claim to check.
package binread

import (
	"encoding/binary"
	"fmt"

	"refaudit/finding"
)

// A Cursor reads fields from one region of a file. The first failure sticks:
// later reads return zero, and Err says what was missing and where.
type Cursor struct {
	buf  []byte
	pos  int
	file string
	base int64
	id   finding.ID
	err  *finding.Corrupt
}

// New starts at the first byte of buf, which stands in file at offset base. A field
// that does not fit becomes a finding.Corrupt with this id.
func New(buf []byte, file string, base int64, id finding.ID) Cursor {
	return Cursor{buf: buf, file: file, base: base, id: id}
}

// Bytes is the next n bytes, aliasing the region.
func (c *Cursor) Bytes(n uint64, field string) []byte {
	if c.err != nil {
		return nil
	}
	if left := uint64(len(c.buf) - c.pos); n > left { // never int(n): it can wrap
		c.Failf("%s needs %d bytes, %d left", field, n, left)
		return nil
	}
	start := c.pos
	c.pos += int(n)
	return c.buf[start:c.pos:c.pos]
}

// Skip passes over n bytes.
func (c *Cursor) Skip(n uint64, field string) { c.Bytes(n, field) }

// U8 reads one byte.
func (c *Cursor) U8(field string) uint8 {
	if b := c.Bytes(1, field); b != nil {
		return b[0]
	}
	return 0
}

// U16 reads two bytes, the high one first, as all of these do.
func (c *Cursor) U16(field string) uint16 {
	if b := c.Bytes(2, field); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

// U24 reads three bytes.
func (c *Cursor) U24(field string) uint32 {
	if b := c.Bytes(3, field); b != nil {
		return uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2])
	}
	return 0
}

// U32 reads four bytes.
func (c *Cursor) U32(field string) uint32 {
	if b := c.Bytes(4, field); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

// U64 reads eight bytes.
func (c *Cursor) U64(field string) uint64 {
	if b := c.Bytes(8, field); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

// Varint reads the variable-length number of OFS_DELTA offsets and reftables: seven bits a
// byte, the highest first, each continued group one more than its bits say.
func (c *Cursor) Varint(field string) uint64 {
	b := c.U8(field)
	v := uint64(b & 0x7f)
	for b&0x80 != 0 && c.err == nil {
		if v+1 > (1<<64-1)>>7 {
			c.Failf("%s is larger than 64 bits", field)
			return 0
		}
		b = c.U8(field)
		v = (v+1)<<7 | uint64(b&0x7f)
	}
	if c.err != nil {
		return 0
	}
	return v
}

// Failf makes the cursor fail here, unless it has failed before.
func (c *Cursor) Failf(format string, args ...any) {
	if c.err == nil {
		c.err = &finding.Corrupt{
			ID:  c.id,
			Pos: finding.Pos{File: c.file, Offset: c.base + int64(c.pos), Placed: true},
			Err: fmt.Errorf(format, args...),
		}
	}
}

// Err is the first failure, a *finding.Corrupt, or nil.
func (c *Cursor) Err() error {
	if c.err == nil {
		return nil
	}
	return c.err
}

// Len is how many bytes are left.
func (c *Cursor) Len() int { return len(c.buf) - c.pos }

// Pos is how many bytes of the region have been read.
func (c *Cursor) Pos() int { return c.pos }

// Offset is the place in the file of the next byte.
func (c *Cursor) Offset() int64 { return c.base + int64(c.pos) }
