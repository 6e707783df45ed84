package odb

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"refaudit/finding"
	"refaudit/oid"
)

// An Index is a pack's .idx file: which objects the pack has, and where. It reads the mapped file
// in place, so using it belongs inside vfs.Guard. It is safe for concurrent use.
//
// Specification: Documentation/gitformat-pack.adoc in git. Version 1:
//
//	0             1024                                        -2h    -h
//	+------------+------------------------------------------+-------+-------+
//	| 256 x u32  | n x (u32 offset, id), by id              | pack  | index |
//	| fanout     |                                          | hash  | hash  |
//	+------------+------------------------------------------+-------+-------+
//
// Version 2 begins with "\377tOc" and a u32 2, where version 1 has an impossible fanout:
//
//	0       8          1032                                               -2h    -h
//	+------+----------+--------+-----------+---------------+-------------+------+-------+
//	| head | fanout   | n x id | n x CRC32 | n x u32 offset| m x u64 far | pack | index |
//	|      | 256 x u32| by id  |           | or far number | offset      | hash | hash  |
//	+------+----------+--------+-----------+---------------+-------------+------+-------+
//
// A u32 offset of version 2 whose highest bit is set is the number of a far offset.
type Index struct {
	ids     sortedIDs
	version int
	data    []byte
	offsets []byte // version 2
	far     []byte // version 2
}

const (
	fanoutLen  = 256 * 4
	indexMagic = "\xfftOc"
)

// ParseIndex checks the frame of an .idx file: magic, version, a fanout that never falls, and
// whether the counts fit the size. The checksum is a matter of Verify.
func ParseIndex(data []byte, f oid.Format, file string) (*Index, error) {
	h := uint64(f.Size())
	bad := func(format string, args ...any) error { return corrupt(file, finding.AuditSkipped, format, args...) }
	x := &Index{version: 1, data: data}
	head := uint64(0)
	if bytes.HasPrefix(data, []byte(indexMagic)) {
		if len(data) < 8 {
			return nil, bad("%d bytes are too few for an index", len(data))
		}
		if v := binary.BigEndian.Uint32(data[4:]); v != 2 {
			return nil, bad("index of version %d", v)
		}
		x.version, head = 2, 8
	}
	size := uint64(len(data))
	if size < head+fanoutLen+2*h {
		return nil, bad("%d bytes are too few for an index", size)
	}
	fanout := data[head : head+fanoutLen]
	n, at, err := checkFanout(fanout)
	if err != nil {
		return nil, &finding.Corrupt{ID: finding.AuditSkipped, Pos: finding.Pos{File: file, Offset: int64(head) + int64(at), Length: 4, Placed: true}, Err: err}
	}
	body := data[head+fanoutLen : size-2*h]
	count := uint64(n)
	if x.version == 1 {
		if uint64(len(body)) != count*(4+h) {
			return nil, bad("index of %d objects has %d bytes", n, size)
		}
		x.ids = sortedIDs{fanout: fanout, table: body, count: int(n), stride: int(4 + h), at: 4, size: int(h), format: f}
		return x, nil
	}
	rest := uint64(len(body))
	if least := count * (h + 4 + 4); rest < least || rest-least > count*8 || (rest-least)%8 != 0 {
		return nil, bad("index of %d objects has %d bytes", n, size)
	}
	x.ids = sortedIDs{fanout: fanout, table: body[:count*h], count: int(n), stride: int(h), size: int(h), format: f}
	x.offsets = body[count*(h+4) : count*(h+8)]
	x.far = body[count*(h+8):]
	return x, nil
}

// Count is how many objects the pack has.
func (x *Index) Count() int { return x.ids.count }

// ID is the i-th id in the order of ids.
func (x *Index) ID(i int) oid.ID { return oid.FromBytes(x.ids.format, x.ids.raw(i)) }

// Find tells which one of the ids id is.
func (x *Index) Find(id *oid.ID) (int, bool) { return x.ids.find(id.Bytes()) }

// Offset is where in the pack the i-th object begins; false if its far offset doesn't exist.
func (x *Index) Offset(i int) (uint64, bool) {
	if x.version == 1 {
		return uint64(binary.BigEndian.Uint32(x.ids.table[i*x.ids.stride:])), true
	}
	v := binary.BigEndian.Uint32(x.offsets[4*i:])
	if v&(1<<31) == 0 {
		return uint64(v), true
	}
	at := uint64(v&^(1<<31)) * 8
	if at+8 > uint64(len(x.far)) {
		return 0, false
	}
	return binary.BigEndian.Uint64(x.far[at:]), true
}

// PackHash is the checksum of the pack that this index was made for.
func (x *Index) PackHash() []byte {
	end := len(x.data) - x.ids.size
	return x.data[end-x.ids.size : end]
}

// Verify compares the file with its checksum, and checks that the ids rise.
func (x *Index) Verify() error {
	if !trailerMatches(x.data, x.ids.format) {
		return fmt.Errorf("does not match its checksum")
	}
	return x.ids.checkOrder()
}

// trailerMatches tells whether the last bytes of data are the hash of those before.
func trailerMatches(data []byte, f oid.Format) bool {
	if len(data) < f.Size() {
		return false
	}
	body := data[:len(data)-f.Size()]
	h := f.New()
	h.Write(body)
	var sum [oid.MaxSize]byte
	return bytes.Equal(h.Sum(sum[:0]), data[len(body):])
}

// corrupt is a Corrupt of a whole file.
func corrupt(file string, id finding.ID, format string, args ...any) error {
	return &finding.Corrupt{ID: id, Pos: finding.Pos{File: file}, Err: fmt.Errorf(format, args...)}
}
