package usage

import (
	"bytes"
	"encoding/binary"
	"slices"

	"refaudit/oid"
)

// merged finds objects by id among several packs and loose files, as one index over all of them: the
// first eight bytes of each id in order, with the object's number, and where those begin whose
// first bits are the same. An id that lies in several places stands there that often.
type merged struct {
	keys    []uint64
	numbers []uint32
	fan     []uint32 // by the highest bits of a key
	shift   uint
}

// fanBits is how many bits of an id tell the place in fan, for n objects: a few objects share each.
func fanBits(n int) uint {
	bits := uint(8)
	for bits < 20 && n>>bits > 8 {
		bits++
	}
	return bits
}

// newMerged sorts n objects, which each calls its argument for.
func newMerged(n int, each func(fn func(id *oid.ID, v uint32)), id func(v uint32) oid.ID) *merged {
	bits := fanBits(n)
	m := &merged{keys: make([]uint64, n), numbers: make([]uint32, n), fan: make([]uint32, 1<<bits+1), shift: 64 - bits}
	each(func(id *oid.ID, _ uint32) { m.fan[keyOf(id)>>m.shift+1]++ })
	for i := range len(m.fan) - 1 {
		m.fan[i+1] += m.fan[i]
	}
	next := slices.Clone(m.fan)
	each(func(id *oid.ID, v uint32) {
		key := keyOf(id)
		at := next[key>>m.shift]
		next[key>>m.shift]++
		m.keys[at], m.numbers[at] = key, v
	})
	for i := range len(m.fan) - 1 {
		m.sortPart(int(m.fan[i]), int(m.fan[i+1]), id)
	}
	return m
}

func keyOf(id *oid.ID) uint64 { return binary.BigEndian.Uint64(id.Bytes()) }

// sortPart sorts a few objects by id, and those of one id by number.
func (m *merged) sortPart(from, to int, id func(v uint32) oid.ID) {
	keys, numbers := m.keys[from:to], m.numbers[from:to]
	if len(keys) > 64 {
		sortByKey(keys, numbers)
	} else {
		for i := 1; i < len(keys); i++ {
			for j := i; j > 0 && keys[j] < keys[j-1]; j-- {
				keys[j], keys[j-1] = keys[j-1], keys[j]
				numbers[j], numbers[j-1] = numbers[j-1], numbers[j]
			}
		}
	}
	for i := 0; i < len(keys); {
		j := i + 1
		for j < len(keys) && keys[j] == keys[i] {
			j++
		}
		if j > i+1 {
			slices.SortFunc(numbers[i:j], func(a, b uint32) int {
				x, y := id(a), id(b)
				if c := bytes.Compare(x.Bytes(), y.Bytes()); c != 0 {
					return c
				}
				return int(int64(a) - int64(b))
			})
		}
		i = j
	}
}

// find gives the first number of an id.
func (m *merged) find(want *oid.ID, id func(v uint32) oid.ID) (uint32, bool) {
	key := keyOf(want)
	lo, hi := m.fan[key>>m.shift], m.fan[key>>m.shift+1]
	for lo < hi {
		mid := lo + (hi-lo)/2
		if m.keys[mid] < key {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	for ; int(lo) < len(m.keys) && m.keys[lo] == key; lo++ {
		if v := m.numbers[lo]; id(v) == *want {
			return v, true
		}
	}
	return 0, false
}

// touch reads what find will read first.
func (m *merged) touch(id []byte) byte {
	key := binary.BigEndian.Uint64(id) >> m.shift
	lo, hi := m.fan[key], m.fan[key+1]
	if lo == hi {
		return 0
	}
	return byte(m.keys[lo+(hi-lo)/2])
}

// twins calls fn with the numbers of each id that has several.
func (m *merged) twins(id func(v uint32) oid.ID, fn func(numbers []uint32)) {
	for i := 0; i < len(m.keys); {
		j := i + 1
		for j < len(m.keys) && m.keys[j] == m.keys[i] && id(m.numbers[j]) == id(m.numbers[i]) {
			j++
		}
		if j > i+1 {
			fn(m.numbers[i:j])
		}
		i = j
	}
}
