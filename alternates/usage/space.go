package usage

import (
	"fmt"
	"sync"
	"sync/atomic"

	"refaudit/internal/bitmap"
	"refaudit/internal/vfs"
	"refaudit/oid"
)

// A space is the stores that a repository reads from, its own first, numbered one after another. An
// object that lies in several has one number that stands for it: in a store that we borrow from,
// the first one that has it, else in our own. So a set that was made for a pool holds in every
// space that the pool is part of.
type space struct {
	format    oid.Format
	emptyTree oid.ID // which nobody needs to have
	stores    []*store
	own       int // of the stores, so many are our own
	first     []uint32
	size      uint32
	same      []map[uint32]uint32 // by store: numbers that are aliases, and of what number of the space
	aliases   bitmap.Set          // numbers that stand for no object; nil: none
	copies    []twin              // objects of other stores that our own have too
	likely    atomic.Int32        // the store that most objects are found in, which are looked for just now
}

// twin is two numbers of one object.
type twin struct{ own, other uint32 }

// meeting gives the objects that two stores share, by their numbers in these stores.
type meeting func(a, b *store) ([]twin, error)

// newSpace puts stores together, of which the first own are our own.
func newSpace(format oid.Format, stores []*store, own int, meet meeting) (*space, error) {
	sp := &space{format: format, emptyTree: format.Object("tree", nil), stores: stores, own: own, same: make([]map[uint32]uint32, len(stores))}
	n := uint64(0)
	for _, s := range stores {
		sp.first = append(sp.first, uint32(n))
		if n += uint64(s.size); n > maxNumber {
			return nil, fmt.Errorf("%v: more objects than can be numbered", s.src)
		}
	}
	sp.size = uint32(n)
	for i, s := range stores {
		if s.aliases != nil {
			sp.alias()
			sp.aliases.OrAt(int(sp.first[i]), s.aliases, 0, int(s.size))
		}
	}
	type pair struct{ later, earlier int }
	var pairs []pair
	for i := 1; i < own; i++ {
		for j := range i {
			pairs = append(pairs, pair{i, j})
		}
	}
	for i := own + 1; i < len(stores); i++ {
		for j := own; j < i; j++ {
			pairs = append(pairs, pair{i, j})
		}
	}
	for i := range own { // last: then it is settled which of the others counts
		for j := own; j < len(stores); j++ {
			pairs = append(pairs, pair{i, j})
		}
	}
	for _, p := range pairs {
		twins, err := meet(stores[p.later], stores[p.earlier])
		if err != nil {
			return nil, err
		}
		for _, t := range twins {
			sp.join(p.later, p.earlier, sp.first[p.later]+t.own, sp.first[p.earlier]+t.other)
		}
	}
	return sp, nil
}

func (sp *space) alias() {
	if sp.aliases == nil {
		sp.aliases = bitmap.NewSet(int(sp.size))
	}
}

// join makes one number an alias of another: of two copies of our own, that of the larger.
func (sp *space) join(i, j int, v, other uint32) {
	v, other = sp.canon(v), sp.canon(other)
	if v == other {
		return
	}
	switch {
	case i < sp.own && j < sp.own && sp.bytes(v) < sp.bytes(other):
		v, other = other, v
	case i < sp.own && j >= sp.own: // a store before j that has it too would have made them the same
		sp.copies = append(sp.copies, twin{own: v, other: other})
	}
	i = sp.storeOf(v)
	sp.alias()
	if sp.same[i] == nil {
		sp.same[i] = map[uint32]uint32{}
	}
	sp.same[i][v] = other
	sp.aliases.Add(v)
}

// storeOf is the store of a number.
func (sp *space) storeOf(v uint32) int {
	i := len(sp.first) - 1
	for v < sp.first[i] {
		i--
	}
	return i
}

// canon is the number that stands for the object of v.
func (sp *space) canon(v uint32) uint32 {
	for sp.aliases != nil && sp.aliases.Has(v) {
		i := sp.storeOf(v)
		if other, ok := sp.same[i][v]; ok {
			v = other
			continue
		}
		v = sp.first[i] + sp.stores[i].same[v-sp.first[i]]
	}
	return v
}

// find is the number that stands for an object.
func (sp *space) find(id *oid.ID) (uint32, bool) {
	for i, s := range sp.stores {
		if v, ok := s.find(id); ok {
			return sp.canon(sp.first[i] + v), true
		}
	}
	return 0, false
}

// together is how many ids are looked up side by side: enough to wait for memory but once.
const together = 32

// findAll is find for at most that many raw ids: it puts their numbers into found, none for those that
// are nowhere. Of ids it leaves nothing. Whichever store an object is found in, one number stands for it, so they
// are asked in any order: that first which had more than half of the last ids.
func (sp *space) findAll(ids [][]byte, found []uint32) (touched byte) {
	var part [together]uint32
	var which [together]uint8 // of ids that are still to be found, their place in found
	for i := range ids {
		which[i], found[i] = uint8(i), none
	}
	all, likely := len(ids), int(sp.likely.Load())
	for n := range sp.stores {
		i := n
		switch {
		case n == 0:
			i = likely
		case n <= likely:
			i = n - 1
		}
		s := sp.stores[i]
		touched ^= s.findAll(ids, part[:])
		left := 0
		for k, v := range part[:len(ids)] {
			if v != none {
				found[which[k]] = sp.canon(sp.first[i] + v)
				continue
			}
			ids[left], which[left] = ids[k], which[k]
			left++
		}
		if i != likely && 2*(len(ids)-left) > all {
			sp.likely.Store(int32(i))
		}
		if ids = ids[:left]; left == 0 {
			break
		}
	}
	return touched
}

// bytes is how much a number takes on disk.
func (sp *space) bytes(v uint32) uint64 {
	i := sp.storeOf(v)
	return sp.stores[i].bytes(v - sp.first[i])
}

// id is the id of a number.
func (sp *space) id(v uint32) oid.ID {
	i := sp.storeOf(v)
	return sp.stores[i].id(v - sp.first[i])
}

// copiesOf are all numbers of the object of v, but for v.
func (sp *space) copiesOf(v uint32) []uint32 {
	id := sp.id(v)
	var all []uint32
	add := func(i int, local uint32) {
		if n := sp.first[i] + local; n != v {
			all = append(all, n)
		}
	}
	for i, s := range sp.stores {
		for _, p := range s.packs {
			if at, ok := p.x.Find(&id); ok {
				add(i, p.first+p.pos[at])
			}
		}
		if at, ok := s.findLoose(&id); ok {
			add(i, at)
		}
	}
	return all
}

// settle moves members of a set from aliases to what they are aliases of.
func (sp *space) settle(set bitmap.Set) {
	if sp.aliases == nil {
		return
	}
	for w := range set {
		if set[w]&sp.aliases[w] == 0 {
			continue
		}
		moved := bitmap.Set{set[w] & sp.aliases[w]}
		set[w] &^= moved[0]
		moved.Each(func(i uint32) { set.Add(sp.canon(uint32(w)<<6 + i)) })
	}
}

// part is what a set says of one store.
func (sp *space) part(set bitmap.Set, i int) bitmap.Set {
	return set[sp.first[i]>>6 : (sp.first[i]+sp.stores[i].size)>>6]
}

// meet finds the objects that two stores share. It goes through the smaller one.
func meet(a, b *store, workers int) ([]twin, error) {
	if a.size > b.size {
		twins, err := meet(b, a, workers)
		for i, t := range twins {
			twins[i] = twin{t.other, t.own}
		}
		return twins, err
	}
	if err := vfs.Guard(func() error { b.expect(int(a.size)); return nil }); err != nil {
		return nil, err
	}
	var parts []func(found *[]twin)
	const step = 1 << 14
	for _, p := range a.packs {
		for from := 0; from < p.x.Count(); from += step {
			parts = append(parts, func(found *[]twin) {
				b.findTwins(from, min(from+step, p.x.Count()), p.x.RawID, func(i int) uint32 { return p.first + p.pos[i] }, found)
			})
		}
	}
	for from := 0; from < len(a.loose); from += step {
		parts = append(parts, func(found *[]twin) {
			raw := func(i int) []byte { return a.loose[i].id.Bytes() }
			b.findTwins(from, min(from+step, len(a.loose)), raw, func(i int) uint32 { return a.looseAt + uint32(i) }, found)
		})
	}
	found := make([][]twin, len(parts))
	var once sync.Mutex
	var failed error
	inParallel(workers, len(parts), func(i int) {
		err := vfs.Guard(func() error { parts[i](&found[i]); return nil })
		if err != nil {
			once.Lock()
			failed = err
			once.Unlock()
		}
	})
	var all []twin
	for _, f := range found {
		for _, t := range f {
			if a.aliases == nil || !a.aliases.Has(t.own) {
				all = append(all, t)
			}
		}
	}
	return all, failed
}

// findTwins looks up some ids of another store, by raw, and appends those that are here, with their
// numbers there, by number.
func (s *store) findTwins(from, to int, raw func(i int) []byte, number func(i int) uint32, found *[]twin) (touched byte) {
	var ids [together][]byte
	var here [together]uint32
	for from < to {
		n := min(together, to-from)
		for k := range n {
			ids[k] = raw(from + k)
		}
		touched ^= s.findAll(ids[:n], here[:])
		for k, v := range here[:n] {
			if v != none {
				*found = append(*found, twin{number(from + k), v})
			}
		}
		from += n
	}
	return touched
}
