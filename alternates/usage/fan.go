package usage

import (
	"bytes"
	"encoding/binary"

	"refaudit/odb"
	"refaudit/oid"
)

// fan tells where in an index the ids begin whose first bits are the same: so few that a search among
// them is a step or two. An index has one of 256 places itself, which leaves thousands to search.
type fan struct {
	starts []uint32
	shift  uint
}

func newFan(x *odb.Index) *fan {
	bits := fanBits(x.Count())
	f := &fan{starts: make([]uint32, 1<<bits+1), shift: 64 - bits}
	for i := range x.Count() {
		f.starts[binary.BigEndian.Uint64(x.RawID(i))>>f.shift+1]++
	}
	for i := range len(f.starts) - 1 {
		f.starts[i+1] += f.starts[i]
	}
	return f
}

// find is the place of an id in the index.
func (f *fan) find(x *odb.Index, id *oid.ID) (int, bool) {
	key := keyOf(id)
	lo, hi := int(f.starts[key>>f.shift]), int(f.starts[key>>f.shift+1])
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		raw := x.RawID(mid)
		switch have := binary.BigEndian.Uint64(raw); {
		case have < key:
			lo = mid + 1
		case have > key:
			hi = mid
		default:
			switch c := bytes.Compare(raw[8:], id.Bytes()[8:]); {
			case c == 0:
				return mid, true
			case c < 0:
				lo = mid + 1
			default:
				hi = mid
			}
		}
	}
	return 0, false
}

// find is the position of an object in the pack.
func (p *pack) find(id *oid.ID) (uint32, bool) {
	if f := p.fan.Load(); f != nil {
		i, ok := f.find(p.x, id)
		if !ok {
			return 0, false
		}
		return p.pos[i], true
	}
	i, ok := p.x.Find(id)
	if !ok {
		return 0, false
	}
	return p.pos[i], true
}

// expect prepares for n more finds. A fan takes as long as a few for every hundred objects.
func (p *pack) expect(n int) {
	if p.fan.Load() != nil || int(p.finds.Add(int64(n)))*16 < p.x.Count() {
		return
	}
	p.fanOnce.Do(func() { p.fan.Store(newFan(p.x)) })
}

// warm reads the part of an index in which the ids lie that begin with some bits, if n finds there
// are worth it: one after another lines come faster than one here and one there.
func (f *fan) warm(x *odb.Index, first int, bits uint, n int) (sum byte) {
	if f.shift > 64-bits {
		return 0
	}
	step := 64 - bits - f.shift
	lo, hi := int(f.starts[first<<step]), int(f.starts[(first+1)<<step])
	if hi-lo > 8*n {
		return 0
	}
	for i := lo; i < hi; i += 3 {
		sum += x.RawID(i)[0]
	}
	return sum
}

// warm is that of all indexes of a space.
func (sp *space) warm(first int, bits uint, n int) (sum byte) {
	for _, s := range sp.stores {
		if s.merged != nil {
			continue
		}
		for _, p := range s.packs {
			if f := p.fan.Load(); f != nil {
				sum += f.warm(p.x, first, bits, n)
			}
		}
	}
	return sum
}
