// Package oid holds object ids: SHA-1 and SHA-256, side by side in one program.
package oid

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
)

// Format is an object format: which hash names the objects of a repository.
type Format uint8

// The object formats git knows. The zero Format is none of them.
const (
	SHA1   Format = 1
	SHA256 Format = 2
)

// MaxSize is the size in bytes of the longest id.
const MaxSize = sha256.Size

// ParseFormat reads a name as it stands in extensions.objectFormat.
func ParseFormat(name string) (Format, bool) {
	switch name {
	case "sha1":
		return SHA1, true
	case "sha256":
		return SHA256, true
	}
	return 0, false
}

// FormatOfHexLen tells the format from the number of hex digits of an id.
func FormatOfHexLen(n int) (Format, bool) {
	switch n {
	case 2 * sha1.Size:
		return SHA1, true
	case 2 * sha256.Size:
		return SHA256, true
	}
	return 0, false
}

// Size is the number of bytes of a raw id.
func (f Format) Size() int {
	switch f {
	case SHA1:
		return sha1.Size
	case SHA256:
		return sha256.Size
	}
	return 0
}

// HexLen is the number of hex digits of an id.
func (f Format) HexLen() int { return 2 * f.Size() }

func (f Format) String() string {
	switch f {
	case SHA1:
		return "sha1"
	case SHA256:
		return "sha256"
	}
	return fmt.Sprintf("format(%d)", uint8(f))
}

// New starts a hash of this format.
func (f Format) New() hash.Hash {
	if f == SHA256 {
		return inPieces{sha256.New()}
	}
	return inPieces{sha1.New()}
}

// inPieces is a hash that takes what is written to it piece by piece. The code that does the hashing can't be
// interrupted, and while it is at work on the whole of a large file, all other goroutines may have to stand still:
// the garbage collector stops them, and then waits for this one.
type inPieces struct{ hash.Hash }

const pieceLen = 64 << 10

func (h inPieces) Write(p []byte) (n int, err error) {
	for len(p)-n > pieceLen {
		h.Hash.Write(p[n : n+pieceLen]) // which never fails
		n += pieceLen
	}
	h.Hash.Write(p[n:])
	return len(p), nil
}

// Object computes the id of an object from its type name and content.
func (f Format) Object(kind string, content []byte) ID {
	h := f.New()
	fmt.Fprintf(h, "%s %d\x00", kind, len(content))
	h.Write(content)
	var sum [MaxSize]byte
	return FromBytes(f, h.Sum(sum[:0]))
}

// Zero is the id of no object: all digits 0.
func (f Format) Zero() ID { return ID{f: f} }

// ID is one object id. It is comparable and its zero value names no object in no format.
type ID struct {
	sum [MaxSize]byte
	f   Format
}

// FromBytes takes the first f.Size() bytes of raw, which must have as many.
func FromBytes(f Format, raw []byte) ID {
	id := ID{f: f}
	copy(id.sum[:], raw[:f.Size()])
	return id
}

// Parse reads a whole id in hex, of either format; upper-case digits are read too, as git does.
func Parse(text string) (ID, error) {
	f, ok := FormatOfHexLen(len(text))
	if !ok {
		return ID{}, fmt.Errorf("object id %q has %d digits, not 40 or 64", text, len(text))
	}
	id := ID{f: f}
	if _, err := hex.Decode(id.sum[:], []byte(text)); err != nil {
		return ID{}, fmt.Errorf("object id %q: %w", text, err)
	}
	return id, nil
}

// MustParse is Parse for ids that stand in the program; it panics on a bad one.
func MustParse(text string) ID {
	id, err := Parse(text)
	if err != nil {
		panic(err)
	}
	return id
}

// unhex maps a hex digit to its value, and every other byte to 0xff.
var unhex = func() (t [256]byte) {
	for i := range t {
		t[i] = 0xff
	}
	for i := byte(0); i < 10; i++ {
		t['0'+i] = i
	}
	for i := byte(0); i < 6; i++ {
		t['a'+i], t['A'+i] = 10+i, 10+i
	}
	return t
}()

// DecodeHex decodes len(dst) bytes from the first 2*len(dst) digits of src and tells
// whether all of them were hex digits (of either case). src must be long enough.
func DecodeHex(dst, src []byte) bool {
	src = src[: 2*len(dst) : 2*len(dst)]
	var bad byte
	for i := range dst {
		hi, lo := unhex[src[2*i]], unhex[src[2*i+1]]
		bad |= hi | lo
		dst[i] = hi<<4 | lo
	}
	return bad < 0x10
}

// HexPrefix counts the hex digits that b begins with, upper-case ones included, at most limit.
func HexPrefix(b []byte, limit int) int {
	n := 0
	for n < len(b) && n < limit && unhex[b[n]] != 0xff {
		n++
	}
	return n
}

// Format tells the object format of the id; 0 for the zero ID.
func (id ID) Format() Format { return id.f }

// IsZero tells whether id names no object: the zero ID, or all digits 0.
func (id ID) IsZero() bool { return id.sum == [MaxSize]byte{} }

// Bytes is the raw id. It aliases *id.
func (id *ID) Bytes() []byte { return id.sum[:id.f.Size()] }

// AppendTo appends the raw id to b.
func (id ID) AppendTo(b []byte) []byte { return append(b, id.sum[:id.f.Size()]...) }

// AppendHex appends the id in lower-case hex to b.
func (id ID) AppendHex(b []byte) []byte { return hex.AppendEncode(b, id.sum[:id.f.Size()]) }

// String is the id in lower-case hex, "" for the zero ID.
func (id ID) String() string { return hex.EncodeToString(id.sum[:id.f.Size()]) }

// MarshalText makes an id a hex string in JSON.
func (id ID) MarshalText() ([]byte, error) { return id.AppendHex(nil), nil }

// UnmarshalText is the way back from MarshalText; "" gives the zero ID.
func (id *ID) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*id = ID{}
		return nil
	}
	p, err := Parse(string(text))
	if err == nil {
		*id = p
	}
	return err
}

// Compare orders ids of one format by their bytes, as packs and tables do.
func (id ID) Compare(other ID) int {
	if c := bytes.Compare(id.sum[:], other.sum[:]); c != 0 {
		return c
	}
	return int(id.f) - int(other.f)
}

// HexDistance counts the digits in which two ids of one format differ; -1 for different formats.
func (id ID) HexDistance(other ID) int {
	if id.f != other.f {
		return -1
	}
	n := 0
	for i, b := range id.sum {
		d := b ^ other.sum[i]
		if d&0xf0 != 0 {
			n++
		}
		if d&0x0f != 0 {
			n++
		}
	}
	return n
}
