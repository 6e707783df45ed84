package usage

import (
	"bytes"
	"errors"
)

// A tree is a row of entries, sorted by name:
//
//	+----------------+---+-------+-----+-----------+
//	| mode in octal  |   | name  | NUL | raw id    |
//	+----------------+---+-------+-----+-----------+

var errTree = errors.New("a malformed tree")

// The bits of a mode that say what an entry is.
const (
	modeKind    = 0o170000
	modeTree    = 0o040000
	modeGitlink = 0o160000
)

// entry is the first entry of a tree: its mode, and where its name and its id begin. The entry ends
// behind the id, of size bytes.
func entry(tree []byte, size int) (mode uint32, name, id int, err error) {
	i := 0
	for ; i < len(tree) && tree[i] != ' '; i++ {
		c := tree[i] - '0'
		if c > 7 || i > 7 {
			return 0, 0, 0, errTree
		}
		mode = mode<<3 | uint32(c)
	}
	if i == 0 {
		return 0, 0, 0, errTree
	}
	name = i + 1
	i = name
	for i < len(tree) && tree[i] != 0 {
		i++
	}
	if i == name || len(tree)-i-1 < size {
		return 0, 0, 0, errTree
	}
	return mode, name, i + 1, nil
}

// newEntries calls fn for the entries of tree which base has not; of a tree without a base, for all.
// Both are sorted; where one isn't, more entries are new than need be. To starts it appends where
// each entry of the tree begins, counted from at.
func newEntries(tree, base []byte, size int, starts []uint32, at int, fn func(mode uint32, id []byte)) ([]uint32, error) {
	for len(tree) > 0 {
		mode, name, id, err := entry(tree, size)
		if err != nil {
			return starts, err
		}
		starts = append(starts, uint32(at))
		end := id + size
		at += end
		if len(base) >= end && bytes.Equal(base[:end], tree[:end]) {
			tree, base = tree[end:], base[end:]
			continue
		}
		known := false
		for len(base) > 0 {
			_, baseName, baseID, err := entry(base, size)
			if err != nil {
				base = nil // it is reported when it is read for itself
				break
			}
			order := bytes.Compare(base[baseName:baseID], tree[name:id])
			if order > 0 {
				break
			}
			known = order == 0 && bytes.Equal(base[:baseID+size], tree[:end])
			base = base[baseID+size:]
			if order == 0 {
				break
			}
		}
		if !known {
			fn(mode, tree[id:end])
		}
		tree = tree[end:]
	}
	return starts, nil
}

// newOfDelta is newEntries for a delta of a base whose entries begin at marks. What both have at the
// beginning and at the end is not looked at again. It is false if the ends of entries don't meet, and
// then what fn was called for is in the tree all the same.
func newOfDelta(o *object, marks []uint32, size int, starts []uint32, fn func(mode uint32, id []byte)) ([]uint32, bool) {
	if len(marks) == 0 {
		return starts, false
	}
	first := upTo(marks, o.prefix)
	from := int(marks[first])
	rest, endBase := len(marks), len(o.baseData)
	if tail := len(o.baseData) - o.suffix; o.suffix > 0 {
		if i := upTo(marks, tail-1) + 1; i < len(marks) {
			rest, endBase = i, int(marks[i])
		}
	}
	shift := len(o.data) - len(o.baseData)
	end := endBase + shift
	if endBase < from || end < from {
		return starts, false
	}
	starts = append(starts, marks[:first]...)
	starts, err := newEntries(o.data[from:end], o.baseData[from:endBase], size, starts, from, fn)
	if err != nil {
		return starts, false
	}
	for _, m := range marks[rest:] {
		starts = append(starts, uint32(int(m)+shift))
	}
	return starts, true
}

// upTo is the last of the marks that is not behind a place; the first one is at 0.
func upTo(marks []uint32, place int) int {
	lo, hi := 0, len(marks)
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; int(marks[mid]) <= place {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}
