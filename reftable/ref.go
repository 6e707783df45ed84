package reftable

import (
	"bytes"

	"refaudit/finding"
)

// Type is what a ref record says of its ref.
type Type uint8

// The types of ref record; 4 to 7 are reserved.
const (
	Deletion Type = 0 // the ref is gone, whatever older tables say
	Direct   Type = 1 // Value is the ref's object
	Peeled   Type = 2 // Value is the ref's object, a tag, and Peel what the tag leads to
	Symref   Type = 3 // Target is the name of another ref
)

func (t Type) String() string {
	switch t {
	case Deletion:
		return "deletion"
	case Direct:
		return "value"
	case Peeled:
		return "peeled value"
	case Symref:
		return "symref"
	}
	return "reserved type"
}

// Ref is one ref record. What a read gives aliases the read's buffers, and holds until its next step.
type Ref struct {
	Name        []byte // as it stands there; not checked but for being there
	UpdateIndex uint64
	Type        Type
	Value       []byte // raw id: types Direct and Peeled
	Peel        []byte // raw id: type Peeled
	Target      []byte // name of a ref: type Symref
	Block       int64  // where its block begins in the file
	Offset      int64  // where the record begins in the file
	Length      int64  // how long it is; Value and Peel stand in its bytes as they are
}

// A ref record. Specification: Documentation/technical/reftable.adoc in git.
//
//	varint( prefix_length )  varint( suffix_length << 3 | type )  suffix
//	varint( update_index - min_update_index )
//	type 0: nothing;  1: id;  2: id, peeled id;  3: varint( length ), name
//
// decode decodes the record at it.p over the one before it. It tells false for a record that
// can't be; then nothing is changed but the ref.
func (it *RefIter) decode() bool {
	b, start, ref := it.recs, it.p, &it.ref
	p := start
	prefix := uint64(b[p])
	if p++; prefix >= 0x80 {
		if prefix, p = varint(b, start); p < 0 {
			return it.bad(start, "prefix length is damaged")
		}
	}
	var suffix, delta uint64
	if p < len(b) && b[p] < 0x80 {
		suffix = uint64(b[p])
		p++
	} else if suffix, p = varint(b, p); p < 0 {
		return it.bad(start, "suffix length is damaged")
	}
	kind := Type(suffix & 7)
	if suffix >>= 3; suffix > uint64(len(b)-p) {
		return it.bad(start, "suffix needs %d bytes, %d left", suffix, len(b)-p)
	}
	tail := b[p : p+int(suffix)]
	p += int(suffix)
	if prefix > uint64(len(it.key)) || it.fresh && prefix != 0 {
		return it.bad(start, "prefix of %d bytes, and the name before it has none such", prefix)
	}
	if prefix+suffix == 0 {
		return it.bad(start, "name is empty")
	}
	if p < len(b) && b[p] < 0x80 {
		delta = uint64(b[p])
		p++
	} else if delta, p = varint(b, p); p < 0 {
		return it.bad(start, "update index is damaged")
	}

	ref.Value, ref.Peel, ref.Target = nil, nil, nil
	switch n := it.idLen; kind {
	case Deletion:
	case Direct:
		if n > len(b)-p {
			return it.bad(start, "id needs %d bytes, %d left", n, len(b)-p)
		}
		ref.Value = b[p : p+n : p+n]
		p += n
	case Peeled:
		if 2*n > len(b)-p {
			return it.bad(start, "two ids need %d bytes, %d left", 2*n, len(b)-p)
		}
		ref.Value, ref.Peel = b[p:p+n:p+n], b[p+n:p+2*n:p+2*n]
		p += 2 * n
	case Symref:
		var n uint64
		if n, p = varint(b, p); p < 0 {
			return it.bad(start, "length of a symref's target is damaged")
		}
		if n > uint64(len(b)-p) {
			return it.bad(start, "target of a symref needs %d bytes, %d left", n, len(b)-p)
		}
		ref.Target = b[p : p+int(n) : p+int(n)]
		p += int(n)
	default:
		return it.bad(start, "value type %d does not exist", kind)
	}

	order := 1
	if it.ordered { // the suffix decides: the prefix is equal
		last := it.key[prefix:]
		if len(last) == 0 || suffix == 0 || tail[0] <= last[0] {
			order = bytes.Compare(tail, last)
		}
	}
	it.key = append(it.key[:prefix], tail...)
	it.ordered, it.fresh, it.p = true, false, p
	ref.Name, ref.UpdateIndex, ref.Type = it.key, it.t.Min+delta, kind
	ref.Block, ref.Offset, ref.Length = it.blk.off, it.blk.off+int64(start), int64(p-start)
	if order <= 0 {
		it.disorder(order)
	}
	return true
}

// bad reports that the record at start can't be, and what was found. It is always false.
func (it *RefIter) bad(start int, format string, args ...any) bool {
	return it.badRecord(finding.ReftableRecord, start, "ref record: "+format, args...)
}

// disorder reports that the record just decoded does not sort behind the one before it.
func (it *RefIter) disorder(order int) {
	id, what := finding.ReftableBlockOrder, "does not sort behind the name before it"
	if order == 0 {
		id, what = finding.ReftableDuplicate, "stands twice in one table"
	}
	it.fault(it.t.corrupt(id, it.ref.Block, it.ref.Offset, it.ref.Length, "%q %s", it.ref.Name, what))
}
