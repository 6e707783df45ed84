package odb

import (
	"bytes"
	"errors"
	"fmt"

	"refaudit/oid"
)

// tagHeadLen is as much of a tag as its first two lines, and what is looked at behind them, can take.
const tagHeadLen = len("object ") + 2*oid.MaxSize + len("\ntype ") + tagTypeMax + len("\ntag x")

// tagTypeMax is how long git lets the word on the type line be.
const tagTypeMax = 19

// parseTag reads the lines of a tag that a peel needs, and wants of it what git wants to peel it:
//
//	object <hex id>\n
//	type <kind>\n
//	tag <anything, with a newline somewhere in it or behind it>
//
// head is the tag's beginning, tagHeadLen bytes of it or all that there are; size and newline
// are the length of the whole text and where in it the last newline stands, -1 if it has none.
func parseTag(f oid.Format, head []byte, size, newline int64) (target oid.ID, claims oid.Kind, err error) {
	hexLen := f.HexLen()
	if size < int64(hexLen)+24 {
		return target, 0, fmt.Errorf("tag of %d bytes is too short", size)
	}
	line, ok := bytes.CutPrefix(head, []byte("object "))
	var raw [oid.MaxSize]byte
	if !ok || len(line) <= hexLen || !oid.DecodeHex(raw[:f.Size()], line) || line[hexLen] != '\n' {
		return target, 0, errors.New("tag does not begin with an object line")
	}
	line, ok = bytes.CutPrefix(line[hexLen+1:], []byte("type "))
	end := bytes.IndexByte(line, '\n')
	if !ok || end < 0 || end > tagTypeMax {
		return target, 0, errors.New("tag has no type line behind its object line")
	}
	word, _, _ := bytes.Cut(line[:end], []byte{0}) // git compares a C string
	claims, ok = oid.ParseKind(word)
	if !ok {
		return target, 0, fmt.Errorf("tag is of an unknown type %q", line[:end])
	}
	line = line[end+1:]
	name := int64(len(head)-len(line)) + int64(len("tag "))
	if !bytes.HasPrefix(line, []byte("tag ")) || name >= size || newline < name {
		return target, 0, errors.New("tag has no tag line behind its type line")
	}
	return oid.FromBytes(f, raw[:]), claims, nil
}
