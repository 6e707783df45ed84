// Package bitmap reads reachability bitmaps (.bitmap) and reverse indexes (.rev) of packs and
// multi-pack-indexes.
//
// Nothing in these files is believed before the checksum at their end fits and the checksum that
// they carry is that of the pack or multi-pack-index they are read for. Whatever is wrong is a
// *finding.Corrupt with the id bitmapUnusable: the caller walks instead.
package bitmap

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"refaudit/finding"
	"refaudit/internal/binread"
	"refaudit/oid"
)

// The options in the header of a .bitmap.
const (
	optFullDAG      = 0x1 // every object's parents and contents are in the pack: always set
	optHashCache    = 0x4
	optLookupTable  = 0x10
	optPseudoMerges = 0x20
)

// maxXOR is how far back an entry's base may lie.
const maxXOR = 160

// Owner is what a .bitmap or .rev file belongs to: a pack, or one layer of a multi-pack-index.
type Owner struct {
	Format   oid.Format
	Objects  uint32 // in the pack or layer
	Base     uint32 // objects in the layers below; 0 for a pack
	Checksum []byte // the trailer of the pack, or of the multi-pack-index
}

func (o Owner) total() uint64 { return uint64(o.Base) + uint64(o.Objects) }

// Type is a kind of object, as an index into Types.
type Type int

// The types, in the order of their bitmaps in the file.
const (
	Commits Type = iota
	Trees
	Blobs
	Tags
)

var typeNames = [...]string{"commits", "trees", "blobs", "tags"}

// File is one .bitmap. Bit i stands for the i-th object in pack order, or in the order of the
// multi-pack-index (package odb). It keeps pointing into the bytes it was read from, and is safe
// for concurrent use. Specification: Documentation/technical/bitmap-format.adoc in git.
//
//	0      4             6             8                 12
//	+------+-------------+-------------+-----------------+-----------------------+
//	| BITM | u16 version | u16 options | u32 entry count | checksum of the owner |
//	+------+-------------+-------------+-----------------+-----------------------+
//	| 4 EWAH bitmaps: commits, trees, blobs, tags                                |
//	+----------------------------------------------------------------------------+
//	| entries, one a commit                                                      |
//	+----------------------------------------------------------------------------+
//	| pseudo-merges, if option 0x20                                              |
//	+----------------------------------------------------------------------------+
//	| lookup table, if option 0x10: entry count times 16 bytes                   |
//	+----------------------------------------------------------------------------+
//	| name-hash cache, if option 0x4: u32 for each object of the owner           |
//	+----------------------------------------------------------------------------+
//	| checksum of all of the above                                               |
//	+----------------------------------------------------------------------------+
type File struct {
	name    string
	owner   Owner
	types   [4]EWAH
	entries []entry
	byPos   []uint32 // entries, in the order of their positions
	merges  []pseudoMerge
}

// entry is the bitmap of one commit.
//
//	0                     4              5          6
//	+---------------------+--------------+----------+------+
//	| u32 index position  | u8 XOR offset | u8 flags | EWAH |
//	+---------------------+--------------+----------+------+
type entry struct {
	pos    uint32 // in the index of the pack or, counting the layers below, of the multi-pack-index
	base   int32  // entry that the bitmap is XORed with; -1: none
	offset int64  // in the file
	bits   EWAH
}

// Parse reads a .bitmap; name is what messages call it.
func Parse(name string, data []byte, owner Owner) (*File, error) {
	if err := Verify(name, data, owner.Format); err != nil {
		return nil, err
	}
	return ParseUnverified(name, data, owner)
}

// ParseUnverified reads a .bitmap while somebody else is at Verify, which takes longer: what is read of it
// must not be believed before Verify is done.
func ParseUnverified(name string, data []byte, owner Owner) (*File, error) {
	size := owner.Format.Size()
	body, err := trim(name, data, owner.Format, 12+size)
	if err != nil {
		return nil, err
	}
	f := &File{name: name, owner: owner}
	c := binread.New(body, name, 0, finding.BitmapUnusable)
	if string(c.Bytes(4, "signature")) != "BITM" {
		return nil, f.corrupt(0, "is no bitmap file")
	}
	if v := c.U16("version"); v != 1 {
		return nil, f.corrupt(4, "version %d, not 1", v)
	}
	options := c.U16("options")
	if options&optFullDAG == 0 {
		return nil, f.corrupt(6, "options %#x: is not a bitmap with full closure", options)
	}
	if unknown := options &^ (optFullDAG | optHashCache | optLookupTable | optPseudoMerges); unknown != 0 {
		return nil, f.corrupt(6, "unknown options %#x", unknown)
	}
	count := c.U32("entry count")
	if sum := c.Bytes(uint64(size), "checksum of the pack"); !bytes.Equal(sum, owner.Checksum) {
		return nil, f.corrupt(12, "belongs to %x, not to %x", sum, owner.Checksum)
	}
	rest, err := f.sections(body, options, count)
	if err != nil {
		return nil, err
	}
	c = binread.New(body[c.Pos():rest.merges], name, int64(c.Pos()), finding.BitmapUnusable)
	for t := range f.types {
		f.types[t] = readEWAH(&c, "bitmap of "+typeNames[t])
	}
	if err := f.readEntries(&c, count); err != nil {
		return nil, err
	}
	if c.Len() > 0 {
		return nil, f.corrupt(c.Offset(), "%d bytes are left behind the last entry", c.Len())
	}
	if rest.merges < rest.table {
		if err := f.readMerges(body[:rest.table], rest.merges); err != nil {
			return nil, err
		}
	}
	if rest.table < rest.hashes {
		if err := f.checkTable(body[rest.table:rest.hashes], int64(rest.table)); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// Verify compares a file with the checksum that it ends in.
func Verify(name string, data []byte, format oid.Format) error {
	body, err := trim(name, data, format, 0)
	if err != nil {
		return err
	}
	h := format.New()
	h.Write(body)
	var got [oid.MaxSize]byte
	if !bytes.Equal(h.Sum(got[:0]), data[len(body):]) {
		return corrupt(name, int64(len(body)), "the checksum at its end does not fit")
	}
	return nil
}

// trim gives what is before the checksum, which has at least least bytes.
func trim(name string, data []byte, format oid.Format, least int) ([]byte, error) {
	size := format.Size()
	if size == 0 || len(data) < least+size {
		return nil, corrupt(name, 0, "is too short: %d bytes", len(data))
	}
	return data[:len(data)-size], nil
}

// sections is where the optional parts begin; each ends where the next begins.
type sections struct{ merges, table, hashes int }

// sections finds the optional parts, from the end of the file forward.
func (f *File) sections(body []byte, options uint16, count uint32) (sections, error) {
	least := uint64(12 + f.owner.Format.Size())
	end := uint64(len(body))
	take := func(n uint64, what string) error {
		if n > end-least {
			return f.corrupt(int64(least), "the %s needs %d bytes, %d are left", what, n, end-least)
		}
		end -= n
		return nil
	}
	var s sections
	if options&optHashCache != 0 {
		if err := take(4*uint64(f.owner.Objects), "name-hash cache"); err != nil {
			return s, err
		}
	}
	s.hashes = int(end)
	if options&optLookupTable != 0 {
		if err := take(rowSize*uint64(count), "lookup table"); err != nil {
			return s, err
		}
	}
	s.table = int(end)
	if options&optPseudoMerges != 0 {
		n, err := f.mergesSize(body[least:end], int64(least))
		if err != nil {
			return s, err
		}
		end -= n
	}
	s.merges = int(end)
	return s, nil
}

// readEntries reads the entries' heads and passes over their bitmaps.
func (f *File) readEntries(c *binread.Cursor, count uint32) error {
	const least = 6 + 12 // an entry with an empty bitmap
	if uint64(count) > uint64(c.Len())/least {
		return f.corrupt(8, "%d entries don't fit into %d bytes", count, c.Len())
	}
	f.entries = make([]entry, 0, count)
	for i := range int32(count) {
		e := entry{offset: c.Offset(), base: -1}
		e.pos = c.U32("entry: index position")
		xor := int32(c.U8("entry: XOR offset"))
		c.U8("entry: flags")
		e.bits = readEWAH(c, "entry")
		if err := c.Err(); err != nil {
			return err
		}
		if uint64(e.pos) >= f.owner.total() {
			return f.corrupt(e.offset, "entry %d is of object %d, and there are %d", i, e.pos, f.owner.total())
		}
		if xor > maxXOR || xor > i {
			return f.corrupt(e.offset, "entry %d is XORed with the one %d before it", i, xor)
		}
		if xor > 0 {
			e.base = i - xor
		}
		f.entries = append(f.entries, e)
	}
	f.byPos = make([]uint32, count)
	for i := range f.byPos {
		f.byPos[i] = uint32(i)
	}
	slices.SortFunc(f.byPos, func(a, b uint32) int { return compare(f.entries[a].pos, f.entries[b].pos) })
	for i := 1; i < len(f.byPos); i++ {
		if a, b := f.entries[f.byPos[i-1]], f.entries[f.byPos[i]]; a.pos == b.pos {
			return f.corrupt(max(a.offset, b.offset), "a second entry for object %d", a.pos)
		}
	}
	return nil
}

func compare(a, b uint32) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// Name is what messages call the file.
func (f *File) Name() string { return f.name }

// Bits is the number of positions of each bitmap: the owner's objects and those below it.
func (f *File) Bits() int { return int(f.owner.total()) }

// Entries is how many commits have a bitmap.
func (f *File) Entries() int { return len(f.entries) }

// Position is the place of an entry's commit in the index of the owner.
func (f *File) Position(entry int) uint32 { return f.entries[entry].pos }

// Find is the entry of the commit at this place in the index of the owner, or -1.
func (f *File) Find(pos uint32) int {
	i, ok := slices.BinarySearchFunc(f.byPos, pos, func(e, pos uint32) int { return compare(f.entries[e].pos, pos) })
	if !ok {
		return -1
	}
	return int(f.byPos[i])
}

// Types decodes the bitmaps that say which object is of which type. Each object of the owner is
// of one type; bits of the layers below are not set.
func (f *File) Types() ([4]Set, error) {
	var sets [4]Set
	all, twice := NewSet(f.Bits()), 0
	for t := range sets {
		sets[t] = NewSet(f.Bits())
		if err := f.within(f.types[t].or(sets[t]), sets[t], f.types[t].at); err != nil {
			return sets, err
		}
		twice += all.CountCommon(sets[t])
		all.Or(sets[t])
	}
	if twice > 0 {
		return sets, f.corrupt(f.types[0].at, "%d objects are of two types", twice)
	}
	if n := all.Count(); n != int(f.owner.Objects) || f.owner.Base > 0 && all.Next(0) >= 0 && all.Next(0) < int(f.owner.Base) {
		return sets, f.corrupt(f.types[0].at, "%d of %d objects have a type", n, f.owner.Objects)
	}
	return sets, nil
}

// within passes on what went wrong while a bitmap was decoded into s, or finds a bit behind the last position.
func (f *File) within(err error, s Set, at int64) error {
	var e *ewahError
	if errors.As(err, &e) {
		return f.corrupt(e.at, "%s", e.text)
	}
	if n := f.Bits() & 63; err == nil && n != 0 && s[len(s)-1]>>n != 0 {
		return f.corrupt(at, "a bit behind the last object is set")
	}
	return err
}

func (f *File) corrupt(at int64, format string, args ...any) error {
	return corrupt(f.name, at, format, args...)
}

func corrupt(name string, at int64, format string, args ...any) error {
	return &finding.Corrupt{
		ID:  finding.BitmapUnusable,
		Pos: finding.Pos{File: name, Offset: at, Placed: true},
		Err: fmt.Errorf(format, args...),
	}
}
