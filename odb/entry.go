package odb

import (
	"errors"
	"fmt"

	"refaudit/oid"
)

// EntryKind is how an object is stored in a pack: whole, with the numbers of oid.Kind, or as a delta.
type EntryKind uint8

// The two kinds of delta.
const (
	OfsDelta EntryKind = 6 // its base stands earlier in the pack, at a distance
	RefDelta EntryKind = 7 // its base is an object of the same pack, by id
)

// IsDelta tells whether the entry is a delta.
func (k EntryKind) IsDelta() bool { return k >= OfsDelta }

// Kind is the kind of an object that is stored whole; 0 of a delta.
func (k EntryKind) Kind() oid.Kind {
	if k.IsDelta() {
		return 0
	}
	return oid.Kind(k)
}

// Entry is the header of one object in a pack. Specification: Documentation/gitformat-pack.adoc in git.
//
//	+---+------+--------+   +---+---------+      +------------------+-------------+
//	| C | kind | size   |   | C | size    |  ... | base: distance   | zlib stream |
//	|   | 3    | 4 bits |   |   | 7 bits  |      | or id, of deltas |             |
//	+---+------+--------+   +---+---------+      +------------------+-------------+
//
// C says that another byte follows; the size begins with its lowest bits.
type Entry struct {
	Kind EntryKind
	Size uint64 // of what the zlib stream holds: the object, or the delta
	Base uint64 // offset of the base of an OfsDelta, always below the entry's own
	Ref  uint64 // offset in the pack of the id of the base of a RefDelta
	Data uint64 // offset in the pack of the zlib stream
}

// packHeaderLen is the length of a pack's own header, before the first entry.
const packHeaderLen = 12

var errEntryEnd = errors.New("entry goes on behind the end of the pack")

// parseEntry reads the header of the entry at off. body is the pack without its trailer.
func parseEntry(body []byte, off uint64, hashSize int) (Entry, error) {
	var e Entry
	size := uint64(len(body))
	if off < packHeaderLen || off >= size {
		return e, fmt.Errorf("entry is not inside the pack, which ends at %d", size)
	}
	at := off
	c := body[at]
	at++
	e.Kind = EntryKind(c >> 4 & 7)
	e.Size = uint64(c & 15)
	for shift := uint(4); c&0x80 != 0; shift += 7 {
		if at >= size {
			return e, errEntryEnd
		}
		c = body[at]
		at++
		more := uint64(c & 0x7f)
		if shift > 63 || more<<shift>>shift != more {
			return e, errors.New("entry claims a size of more than 64 bits")
		}
		e.Size |= more << shift
	}
	switch e.Kind {
	case OfsDelta:
		if at >= size {
			return e, errEntryEnd
		}
		c = body[at]
		at++
		back := uint64(c & 0x7f)
		for c&0x80 != 0 {
			if at >= size {
				return e, errEntryEnd
			}
			if back+1 > (1<<64-1)>>7 {
				return e, errors.New("delta has its base more than 64 bits away")
			}
			c = body[at]
			at++
			back = (back+1)<<7 | uint64(c&0x7f)
		}
		if back == 0 || back > off-packHeaderLen {
			return e, fmt.Errorf("delta has its base %d bytes before it, which is not in the pack", back)
		}
		e.Base = off - back
	case RefDelta:
		e.Ref = at
		at += uint64(hashSize)
	case 0, 5:
		return e, fmt.Errorf("entry is of kind %d, which does not exist", e.Kind)
	}
	if at >= size {
		return e, errEntryEnd
	}
	e.Data = at
	return e, nil
}
