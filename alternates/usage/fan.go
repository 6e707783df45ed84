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

// find is the place of a raw id in the index.
func (f *fan) find(x *odb.Index, id []byte) (int, bool) {
	key := binary.BigEndian.Uint64(id)
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
			switch c := bytes.Compare(raw[8:], id[8:]); {
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
		i, ok := f.find(p.x, id.Bytes())
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

// expect prepares for n more finds. A fan takes as long as one for every two hundred objects or three hundred.
func (p *pack) expect(n int) {
	if p.fan.Load() != nil || int(p.finds.Add(int64(n)))*256 < p.x.Count() {
		return
	}
	p.fanOnce.Do(func() { p.fan.Store(newFan(p.x)) })
}

// touch reads what find will read of an index first. It waits for memory, but of many touches in a row
// the processor waits for several at a time.
func (f *fan) touch(x *odb.Index, id []byte) byte {
	at := binary.BigEndian.Uint64(id) >> f.shift
	lo, hi := int(f.starts[at]), int(f.starts[at+1])
	if lo == hi {
		return 0
	}
	return x.RawID(int(uint(lo+hi) / 2))[0]
}

// findAll puts the positions of some raw ids into found, none for those that are not in the pack.
func (p *pack) findAll(ids [][]byte, found []uint32) (touched byte) {
	f := p.fan.Load()
	if f == nil {
		for i, raw := range ids {
			id := oid.FromBytes(p.format, raw)
			found[i] = none
			if at, ok := p.x.Find(&id); ok {
				found[i] = p.pos[at]
			}
		}
		return 0
	}
	for _, id := range ids {
		touched ^= f.touch(p.x, id)
	}
	for i, id := range ids {
		found[i] = none
		if at, ok := f.find(p.x, id); ok {
			found[i] = uint32(at)
		}
	}
	for i, at := range found[:len(ids)] {
		if at != none {
			found[i] = p.pos[at]
		}
	}
	return touched
}
