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
// Both are sorted; where one isn't, more entries are new than need be.
func newEntries(tree, base []byte, size int, fn func(mode uint32, id []byte)) error {
	for len(tree) > 0 {
		mode, name, id, err := entry(tree, size)
		if err != nil {
			return err
		}
		end := id + size
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
	return nil
}
