package reftable

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"refaudit/finding"
	"refaudit/internal/binread"
	"refaudit/oid"
)

// Table header. Specification: Documentation/technical/reftable.adoc in git.
//
//	0      4         5                8                      16                     24           28
//	+------+---------+----------------+----------------------+----------------------+------------+
//	| REFT | version | u24 block size | u64 min update index | u64 max update index | hash id, v2|
//	+------+---------+----------------+----------------------+----------------------+------------+
//
// Version 1 ends at 24 and means SHA-1. A block size of 0 says that blocks are not aligned.
//
// The footer repeats the header and goes on:
//
//	+-----------+---------------------------------+-----------+-----+-----------+-------+
//	| ref index | object blocks << 5 | id length  | obj index | log | log index | crc32 |
//	+-----------+---------------------------------+-----------+-----+-----------+-------+
//	  u64         u64                               u64         u64   u64         u32
//
// Positions count from the start of the file, and 0 says that there is no such section. The
// checksum covers the footer up to itself, so also the header, which must be equal.
const (
	magic       = "REFT"
	headerLenV1 = 24
	headerLenV2 = 28
	footerRest  = 5*8 + 4

	hashIDSHA1   = 0x73686131 // "sha1"
	hashIDSHA256 = 0x73323536 // "s256"

	// MaxBlockSize is the longest block that a 24-bit length can describe.
	MaxBlockSize = 1<<24 - 1
	// DefaultBlockSize is what git writes with, and reads with where a table names no block size.
	DefaultBlockSize = 4096
)

// Header is what a table says of itself.
type Header struct {
	Version   int
	BlockSize int    // blocks are aligned to it; 0: they are not
	Min, Max  uint64 // the range of its records' update indexes
	Format    oid.Format
}

// Footer is where the sections of a table begin; 0 means that there is none.
type Footer struct {
	Header
	RefIndex int64 // first block of the root of the ref index
	Obj      int64 // first object block
	ObjIDLen int   // how many bytes of an id the object blocks keep
	ObjIndex int64 // first block of the root of the object index
	Log      int64 // first log block; 0 too where it follows the header
	LogIndex int64 // first block of the root of the log index
}

func headerLen(version int) int {
	if version == 1 {
		return headerLenV1
	}
	return headerLenV2
}

func footerLen(version int) int { return headerLen(version) + footerRest }

// append appends the header as it stands in a file, at its start and in the footer.
func (h *Header) append(b []byte) []byte {
	b = append(b, magic...)
	b = append(b, byte(h.Version), byte(h.BlockSize>>16), byte(h.BlockSize>>8), byte(h.BlockSize))
	b = binary.BigEndian.AppendUint64(b, h.Min)
	b = binary.BigEndian.AppendUint64(b, h.Max)
	if h.Version != 1 {
		id := uint32(hashIDSHA1)
		if h.Format == oid.SHA256 {
			id = hashIDSHA256
		}
		b = binary.BigEndian.AppendUint32(b, id)
	}
	return b
}

// append appends the footer with its checksum.
func (f *Footer) append(b []byte) []byte {
	start := len(b)
	b = f.Header.append(b)
	for _, v := range []uint64{uint64(f.RefIndex), uint64(f.Obj)<<5 | uint64(f.ObjIDLen), uint64(f.ObjIndex), uint64(f.Log), uint64(f.LogIndex)} {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[start:]))
}

var errNoMagic = errors.New(`does not begin with "REFT", so it is no reftable`)

// parseVersion reads the magic and the version, on which the length of all else depends.
func parseVersion(b []byte, file string, base int64) (int, *finding.Corrupt) {
	at := func(off int64, err error) *finding.Corrupt {
		return &finding.Corrupt{ID: finding.ReftableUnreadable, Pos: finding.Pos{File: file, Offset: base + off, Placed: true}, Err: err}
	}
	switch {
	case len(b) < headerLenV1:
		return 0, at(0, fmt.Errorf("header needs %d bytes, %d left", headerLenV1, len(b)))
	case string(b[:4]) != magic:
		return 0, at(0, errNoMagic)
	case b[4] != 1 && b[4] != 2:
		return 0, at(4, fmt.Errorf("version %d is neither 1 nor 2", b[4]))
	}
	return int(b[4]), nil
}

// parseHeader reads a header, which stands in file at offset base.
func parseHeader(b []byte, file string, base int64) (h Header, err error) {
	version, bad := parseVersion(b, file, base)
	if bad != nil {
		return h, bad
	}
	h.Version = version
	c := binread.New(b, file, base, finding.ReftableUnreadable)
	c.Skip(5, "magic and version")
	h.BlockSize = int(c.U24("block size"))
	h.Min = c.U64("min update index")
	h.Max = c.U64("max update index")
	h.Format = oid.SHA1
	if version != 1 {
		at := c.Offset()
		switch id := c.U32("hash id"); id {
		case hashIDSHA1:
		case hashIDSHA256:
			h.Format = oid.SHA256
		default:
			if c.Err() == nil {
				return h, &finding.Corrupt{ID: finding.ReftableHashMismatch, Pos: finding.Pos{File: file, Offset: at, Length: 4, Placed: true},
					Err: fmt.Errorf("hash id %q is neither sha1 nor s256", binary.BigEndian.AppendUint32(nil, id))}
			}
		}
	}
	return h, c.Err()
}

// parseFooter reads a footer of the version that the file's first bytes tell. Its positions
// are as they stand there: whether they lie in the file is for the caller to see.
func parseFooter(b []byte, version int, file string, base int64) (f Footer, err error) {
	n := footerLen(version)
	pos := finding.Pos{File: file, Offset: base, Length: int64(n), Placed: true}
	if len(b) != n {
		return f, &finding.Corrupt{ID: finding.ReftableUnreadable, Pos: pos, Err: fmt.Errorf("footer needs %d bytes, %d left", n, len(b))}
	}
	sum, want := crc32.ChecksumIEEE(b[:n-4]), binary.BigEndian.Uint32(b[n-4:])
	if sum != want {
		if !bytes.HasPrefix(b, []byte(magic)) {
			return f, &finding.Corrupt{ID: finding.ReftableUnreadable, Pos: pos, Err: errors.New("has no footer where it ends: it was cut, or something was appended")}
		}
		return f, &finding.Corrupt{ID: finding.ReftableCrc, Pos: pos, Err: fmt.Errorf("checksum of the footer is %08x, its bytes give %08x", want, sum)}
	}
	if f.Header, err = parseHeader(b, file, base); err != nil {
		return f, err
	}
	c := binread.New(b, file, base, finding.ReftableUnreadable)
	c.Skip(uint64(headerLen(version)), "header")
	f.RefIndex = position(c.U64("ref index position"))
	obj := c.U64("object position")
	f.Obj, f.ObjIDLen = position(obj>>5), int(obj&31)
	f.ObjIndex = position(c.U64("object index position"))
	f.Log = position(c.U64("log position"))
	f.LogIndex = position(c.U64("log index position"))
	return f, c.Err()
}

// position keeps a claim that no file can hold recognisable as such: it becomes the largest one.
func position(v uint64) int64 {
	if v > 1<<63-1 {
		return 1<<63 - 1
	}
	return int64(v)
}
