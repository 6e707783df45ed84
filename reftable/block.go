package reftable

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"refaudit/finding"
)

// The kinds of block, as their first byte has them.
const (
	kindRef   = 'r'
	kindIndex = 'i'
	kindObj   = 'o'
	kindLog   = 'g'
)

func isKind(b byte) bool { return b == kindRef || b == kindIndex || b == kindObj || b == kindLog }

// A block. Specification: Documentation/technical/reftable.adoc in git.
//
//	+------+-----------------+---------+-----------------------+-------------------+---------+
//	| kind | u24 block_len   | records | u24 restart_offset... | u16 restart_count | padding |
//	+------+-----------------+---------+-----------------------+-------------------+---------+
//
// block_len counts from the kind to the restart count; of the first block of a file, from
// the file's header. Offsets of restarts count from the same place. What follows the length
// of a log block is deflated, without padding, and its length is the inflated one.
type block struct {
	kind     byte
	off      int64  // where it begins in the file; the first block begins at 0, with the header
	head     int    // how many bytes of file header precede its kind
	data     []byte // from off to the restart count; of a log block the inflated bytes
	recs     int    // where in data the restart table begins, and so the records end
	restarts int    // how many there are
	tried    int    // how many of them restartAfter has used up
	next     int64  // where in the file the next block begins
}

// first is where in data the records begin.
func (b *block) first() int { return b.head + 4 }

// restart is the offset in data that the i-th restart claims.
func (b *block) restart(i int) int {
	p := b.recs + 3*i
	return int(b.data[p])<<16 | int(b.data[p+1])<<8 | int(b.data[p+2])
}

// minBlock is how long the shortest block is: kind, length and restart count.
const minBlock = 4 + 2

// blockAt tells the kind of the block at off and the length it claims, 0 and 0 behind the end.
// Nothing more of the block is looked at.
func (t *Table) blockAt(w *window, off int64) (kind byte, length int, bad *finding.Corrupt) {
	head := t.head(off)
	b, bad := w.at(off, head+4)
	if bad != nil || len(b) <= head {
		return 0, 0, bad
	}
	if len(b) < head+4 {
		return b[head], 0, nil
	}
	return b[head], int(b[head+1])<<16 | int(b[head+2])<<8 | int(b[head+3]), nil
}

// head is how many bytes of file header a block at off begins with.
func (t *Table) head(off int64) int {
	if off == 0 {
		return headerLen(t.Version)
	}
	return 0
}

// corrupt makes a Corrupt for a place in a block.
func (t *Table) corrupt(id finding.ID, blk, off, length int64, format string, args ...any) *finding.Corrupt {
	return &finding.Corrupt{
		ID:  id,
		Pos: finding.Pos{File: t.file, Offset: off, Length: length, Placed: true, Block: blk, Blocked: true},
		Err: fmt.Errorf(format, args...),
	}
}

// readBlock reads the block at off, which is none of log records, into *blk. The block's
// bytes are valid until the window moves.
func (t *Table) readBlock(w *window, off int64, blk *block) *finding.Corrupt {
	kind, length, bad := t.blockAt(w, off)
	if bad != nil {
		return bad
	}
	head := t.head(off)
	if left := w.end - off; length < head+minBlock || int64(length) > left {
		return t.corrupt(finding.ReftableBlockOrder, off, off, min(left, int64(head)+4), "block of kind %q claims %d bytes; it needs %d, and %d are left",
			kind, length, head+minBlock, left)
	}
	b, bad := w.at(off, length+1)
	if bad != nil {
		return bad
	}
	*blk = block{kind: kind, off: off, head: head, data: b[:length:length], next: t.next(off, length, b)}
	return t.findRestarts(blk)
}

// next is where the block after the one at off begins. An aligned block is followed by NULs
// up to the block size (of JGit's single index block, which may be longer, up to the next
// multiple of it); where another byte follows, the next block begins at once.
func (t *Table) next(off int64, length int, withNext []byte) int64 {
	size, end := int64(t.BlockSize), off+int64(length)
	switch {
	case length == t.BlockSize || size == 0 || len(withNext) > length && withNext[length] != 0:
		return end
	case length > t.BlockSize:
		return (end + size - 1) / size * size
	}
	return off + size
}

// findRestarts reads the end of a block, which tells where its records end.
func (t *Table) findRestarts(b *block) *finding.Corrupt {
	end := len(b.data) - 2
	b.restarts = int(binary.BigEndian.Uint16(b.data[end:]))
	b.recs = end - 3*b.restarts
	if b.recs < b.first() {
		return t.corrupt(finding.ReftableRestart, b.off, b.place(end), 2, "%d restarts need %d bytes, and the block has %d", b.restarts, 3*b.restarts, end-b.first())
	}
	return nil
}

// checkFirst looks at what every writer does: the first record is the first restart. Where it
// is not, the count of restarts is wrong, and records may end earlier than it says.
func (t *Table) checkFirst(b *block) *finding.Corrupt {
	switch {
	case b.restarts == 0:
		return t.corrupt(finding.ReftableRestart, b.off, b.place(b.recs), 2, "block has no restart")
	case b.restart(0) != b.first():
		return t.corrupt(finding.ReftableRestart, b.off, b.place(b.recs), 3, "first of %d restarts leads to %d, not to the first record at %d: records may be missing", b.restarts, b.restart(0), b.first())
	}
	return nil
}

// place is where in the file a place in data lies; of a log block, whose bytes are deflated, it is the block.
func (b *block) place(p int) int64 {
	if b.kind == kindLog {
		return b.off
	}
	return b.off + int64(p)
}

// decodeKey decodes the key of the record at p in recs over the key of the record before it, and
// tells the record's three extra bits and where its value begins; that is -1 if the key is damaged.
//
//	varint( prefix_length )  varint( suffix_length << 3 | extra )  suffix
func decodeKey(recs []byte, p int, last []byte) (key []byte, extra byte, next int) {
	prefix, p := varint(recs, p)
	if p < 0 {
		return last, 0, -1
	}
	suffix, p := varint(recs, p)
	if p < 0 {
		return last, 0, -1
	}
	extra = byte(suffix & 7)
	suffix >>= 3
	if prefix > uint64(len(last)) || suffix > uint64(len(recs)-p) {
		return last, extra, -1
	}
	next = p + int(suffix)
	return append(last[:prefix], recs[p:next]...), extra, next
}

// searchRestarts finds where in the block a search for key may begin: the last restart whose
// record's key is not above it, or the first record. ok is false if a restart leads nowhere.
func (b *block) searchRestarts(key []byte) (p int, ok bool) {
	lo, hi := 0, b.restarts // keys before lo are <= key, keys from hi on are above it
	for lo < hi {
		mid := (lo + hi) / 2
		at := b.restart(mid)
		full, good := b.fullKey(at)
		if !good {
			return b.first(), false
		}
		if bytes.Compare(full, key) <= 0 {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == 0 {
		return b.first(), true
	}
	return b.restart(lo - 1), true
}

// fullKey is the key of the record at p, which must be stored whole.
func (b *block) fullKey(p int) ([]byte, bool) {
	if p < b.first() || p >= b.recs {
		return nil, false
	}
	recs := b.data[:b.recs]
	prefix, p := varint(recs, p)
	if p < 0 || prefix != 0 {
		return nil, false
	}
	suffix, p := varint(recs, p)
	if p < 0 || suffix>>3 > uint64(len(recs)-p) {
		return nil, false
	}
	return recs[p : p+int(suffix>>3)], true
}

// restartAfter is the next restart behind p at which a record is stored whole; 0: there is
// none. Each restart is looked at once in a block's life, so p must not shrink.
func (b *block) restartAfter(p int) int {
	for b.tried < b.restarts {
		at := b.restart(b.tried)
		b.tried++
		if at <= p {
			continue
		}
		if _, ok := b.fullKey(at); ok {
			return at
		}
	}
	return 0
}
