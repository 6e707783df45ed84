package usage

import "errors"

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

// entry is the first entry of a tree: its mode, and where its id begins. The entry ends behind the
// id, of size bytes.
func entry(tree []byte, size int) (mode uint32, id int, err error) {
	i := 0
	for ; i < len(tree) && tree[i] != ' '; i++ {
		c := tree[i] - '0'
		if c > 7 || i > 7 {
			return 0, 0, errTree
		}
		mode = mode<<3 | uint32(c)
	}
	if i == 0 {
		return 0, 0, errTree
	}
	name := i + 1
	i = name
	for i < len(tree) && tree[i] != 0 {
		i++
	}
	if i == name || len(tree)-i-1 < size {
		return 0, 0, errTree
	}
	return mode, i + 1, nil
}

// entries calls fn for each entry of a tree, and appends to starts where each begins.
func entries(tree []byte, size int, starts []uint32, fn func(mode uint32, id []byte)) ([]uint32, error) {
	for at := 0; at < len(tree); {
		mode, id, err := entry(tree[at:], size)
		if err != nil {
			return starts, err
		}
		starts = append(starts, uint32(at))
		fn(mode, tree[at+id:at+id+size])
		at += id + size
	}
	return starts, nil
}

// newEntries is entries for a delta of a base whose entries begin at marks: fn is called for those that
// are not copied whole from the base. Nothing that was copied is looked at again.
func newEntries(o *object, marks []uint32, size int, starts []uint32, fn func(mode uint32, id []byte)) ([]uint32, error) {
	copies := o.copies
	for at := 0; at < len(o.data); {
		for len(copies) > 0 && copies[0].At+copies[0].N <= at {
			copies = copies[1:]
		}
		if len(marks) > 0 && len(copies) > 0 && copies[0].At <= at {
			c := copies[0]
			shift := c.At - c.From
			first, last := upTo(marks, at-shift), len(marks)
			end := len(o.baseData)
			if limit := c.From + c.N; limit < end {
				last = upTo(marks, limit)
				end = int(marks[last])
			}
			if last > first && int(marks[first]) == at-shift {
				starts = appendShifted(starts, marks[first:last], shift)
				at = end + shift
				continue
			}
		}
		mode, id, err := entry(o.data[at:], size)
		if err != nil {
			return starts, err
		}
		starts = append(starts, uint32(at))
		fn(mode, o.data[at+id:at+id+size])
		at += id + size
	}
	return starts, nil
}

func appendShifted(dst, src []uint32, shift int) []uint32 {
	if shift == 0 {
		return append(dst, src...)
	}
	for _, m := range src {
		dst = append(dst, uint32(int(m)+shift))
	}
	return dst
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
