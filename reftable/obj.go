package reftable

import (
	"bytes"

	"refaudit/finding"
)

// Obj is one record of the object blocks: in which blocks refs name an object whose id begins so.
// What a read gives holds until its next step.
type Obj struct {
	Prefix []byte  // the first ObjIDLen bytes of the id
	Blocks []int64 // positions of blocks of refs, ascending; none: any block may hold it
	Block  int64   // where its own block begins in the file
	Offset int64   // where the record begins in the file
	Length int64
}

// ObjIter reads the object records of a table in order.
type ObjIter struct {
	walk
	obj Obj
}

// ObjIter begins at the first object record.
func (t *Table) ObjIter() *ObjIter { return &ObjIter{walk: t.walk(kindObj, scanWindow)} }

// Objs gives every object record in order to fn. The record holds until fn returns. The error
// is ErrDamaged if records were stepped over, else fn's or Damage's.
func (t *Table) Objs(fn func(*Obj) error) error {
	it := t.ObjIter()
	for it.Next() {
		if err := fn(&it.obj); err != nil {
			return err
		}
	}
	return it.Err()
}

// FindObj is the record for the object with this raw id; nil if the table has no object
// blocks, or no such record there. The record is the caller's.
func (t *Table) FindObj(id []byte) (*Obj, error) {
	if t.Obj == 0 || len(id) < t.ObjIDLen {
		return nil, nil
	}
	it := &ObjIter{walk: t.walk(kindObj, t.seekStep())}
	prefix := id[:t.ObjIDLen]
	if !it.seek(prefix) {
		return nil, it.Err()
	}
	for it.nextBlock() && it.searchBlock(prefix) {
		for it.nextInBlock() {
			if c := bytes.Compare(it.obj.Prefix, prefix); c == 0 {
				return &it.obj, nil
			} else if c > 0 {
				return nil, it.Err()
			}
		}
	}
	return nil, it.Err()
}

// Obj is the record that the last step reached. It holds until the next one.
func (it *ObjIter) Obj() *Obj { return &it.obj }

// Next goes to the next record; false at the end, or where Err says so.
func (it *ObjIter) Next() bool {
	if !it.begin() {
		return false
	}
	for !it.nextInBlock() {
		if !it.nextBlock() {
			return false
		}
	}
	return true
}

func (it *ObjIter) nextInBlock() bool {
	for it.p < len(it.recs) && it.err == nil {
		if it.decode() {
			return it.err == nil
		}
		it.skipRecord()
	}
	return false
}

// An object record. Specification: Documentation/technical/reftable.adoc in git.
//
//	varint( prefix_length )  varint( suffix_length << 3 | count )  suffix
//	count 0: varint( count )
//	varint( first position )  varint( distance to the next )...
//
// decode decodes the record at p over the one before it; false for a record that can't be.
func (it *ObjIter) decode() bool {
	start, last := it.p, it.key
	if it.fresh {
		last = last[:0]
	}
	key, extra, p := decodeKey(it.recs, start, last)
	if p < 0 {
		return it.bad(start, "key is damaged")
	}
	it.key = key
	if len(key) == 0 {
		return it.bad(start, "key is empty")
	}
	count := uint64(extra)
	if count == 0 {
		if count, p = varint(it.recs, p); p < 0 {
			return it.bad(start, "count of positions is damaged")
		}
	}
	if left := uint64(len(it.recs) - p); count > left { // a position takes at least a byte
		return it.bad(start, "%d positions need as many bytes, %d left", count, left)
	}
	blocks, pos := it.obj.Blocks[:0], uint64(0)
	for range count {
		delta, next := varint(it.recs, p)
		if next < 0 || delta > 1<<63-1-pos {
			return it.bad(start, "a position is damaged")
		}
		pos += delta
		p = next
		blocks = append(blocks, int64(pos))
	}
	it.obj = Obj{Prefix: key, Blocks: blocks, Block: it.blk.off, Offset: it.blk.place(start), Length: int64(p - start)}
	it.fresh, it.p = false, p
	return true
}

func (it *ObjIter) bad(start int, format string, args ...any) bool {
	return it.badRecord(finding.ReftableRecord, start, "object record: "+format, args...)
}
