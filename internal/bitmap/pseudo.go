package bitmap

import (
	"encoding/binary"

	"refaudit/finding"
	"refaudit/internal/binread"
)

// pseudoMerge is a bitmap for many commits at once: whoever reaches all of commits reaches objects.
type pseudoMerge struct{ commits, objects EWAH }

// mergesTail is the fixed end of the section, which is read from its end forward.
//
//	0           4                 8                       16                    24
//	+-----------+-----------------+-----------------------+---------------------+
//	| u32 count | u32 commits     | u64 from the start of | u64 size of the     |
//	|           | in the table    | section to the table  | section, all told   |
//	+-----------+-----------------+-----------------------+---------------------+
//
// Before it lie, in this order: the pseudo-merges (two EWAH bitmaps each), a table that leads from a
// commit to them (12 bytes a row), its extension, and the offset of each pseudo-merge (u64). The
// tables spare git the decoding of all; we decode all, and check that the offsets are the true ones.
const mergesTail = 24

// HasMerges tells whether there are pseudo-merges.
func (f *File) HasMerges() bool { return len(f.merges) > 0 }

// mergesSize is the size of the section that region ends in; region begins at offset base.
func (f *File) mergesSize(region []byte, base int64) (uint64, error) {
	if len(region) < mergesTail {
		return 0, f.corrupt(base, "no room for pseudo-merges")
	}
	n := binary.BigEndian.Uint64(region[len(region)-8:])
	if n < mergesTail || n > uint64(len(region)) {
		return 0, f.corrupt(base+int64(len(region))-8, "pseudo-merges of %d bytes, %d are left", n, len(region))
	}
	return n, nil
}

// readMerges reads the section that begins at start and ends where body does.
func (f *File) readMerges(body []byte, start int) error {
	tail := len(body) - mergesTail
	count := binary.BigEndian.Uint32(body[tail:])
	inTable := binary.BigEndian.Uint32(body[tail+4:])
	table := binary.BigEndian.Uint64(body[tail+8:])
	room := uint64(tail - start)
	if 8*uint64(count) > room || table > room-8*uint64(count) || 12*uint64(inTable) > room-8*uint64(count)-table {
		return f.corrupt(int64(tail), "%d pseudo-merges of %d commits don't fit into %d bytes", count, inTable, room)
	}
	offsets := body[tail-8*int(count) : tail]
	c := binread.New(body[start:start+int(table)], f.name, int64(start), finding.BitmapUnusable)
	f.merges = make([]pseudoMerge, 0, count)
	for i := range int(count) {
		if want, at := binary.BigEndian.Uint64(offsets[8*i:]), c.Offset(); want != uint64(at) {
			return f.corrupt(int64(tail-8*int(count)+8*i), "pseudo-merge %d is said to be at %d, it is at %d", i, want, at)
		}
		m := pseudoMerge{commits: readEWAH(&c, "pseudo-merge: commits")}
		m.objects = readEWAH(&c, "pseudo-merge: objects")
		f.merges = append(f.merges, m)
	}
	if c.Err() == nil && c.Len() > 0 {
		c.Failf("%d bytes are left behind the last pseudo-merge", c.Len())
	}
	return c.Err()
}
