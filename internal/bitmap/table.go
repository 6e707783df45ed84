package bitmap

import "encoding/binary"

// rowSize is the size of one row of the lookup table. Rows are sorted by position.
//
//	0                    4              12                                      16
//	+--------------------+--------------+----------------------------------------+
//	| u32 index position | u64 offset   | u32 row it is XORed with; 0xffffffff: - |
//	+--------------------+--------------+----------------------------------------+
const rowSize = 16

// checkTable compares the lookup table, from which git reads, with the entries, from which we do:
// two readers must not see two bitmaps.
func (f *File) checkTable(table []byte, at int64) error {
	row := make([]uint32, len(f.entries)) // of each entry
	for i, e := range f.byPos {
		row[e] = uint32(i)
	}
	for i, e := range f.byPos {
		r := table[i*rowSize:]
		want := f.entries[e]
		base := uint32(0xffffffff)
		if want.base >= 0 {
			base = row[want.base]
		}
		pos, offset, xor := binary.BigEndian.Uint32(r), binary.BigEndian.Uint64(r[4:]), binary.BigEndian.Uint32(r[12:])
		if pos != want.pos || offset != uint64(want.offset) || xor != base {
			return f.corrupt(at+int64(i)*rowSize, "row %d of the lookup table says object %d, offset %d, row %d; the entries say %d, %d, %d",
				i, pos, offset, xor, want.pos, want.offset, base)
		}
	}
	return nil
}
