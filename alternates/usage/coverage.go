package usage

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sync"

	"refaudit/finding"
	"refaudit/internal/bitmap"
	"refaudit/internal/vfs"
	"refaudit/odb"
	"refaudit/oid"
)

// storeBitmap is one .bitmap of a store that is believed.
type storeBitmap struct {
	file    *bitmap.File
	name    string
	spans   []span
	commits []uint32 // of each entry the number of its commit in the store
	types   [4]bitmap.Set
	bit     func(id *oid.ID) (uint32, bool)

	// Of a layer of a multi-pack-index that lies on others: the numbers of their objects, whose bits
	// come first and whose types the file doesn't tell.
	below     []uint32
	belowOnce sync.Once
	belowErr  error
}

// span tells that n bits of a bitmap, from bit on, are the numbers from v on.
type span struct{ bit, v, n uint32 }

// loadBitmaps reads the bitmaps of a store: those of the multi-pack-index, or its chain, first.
// What can't be believed is a problem, and left out.
func (s *store) loadBitmaps() {
	s.bitmapsOnce.Do(func() {
		for m := s.src.Midx(); m != nil; m = m.Base() {
			s.loadBitmap(s.midxFile(m, "bitmap"), func(name string, data []byte) (*storeBitmap, error) { return s.midxBitmap(m, name, data) })
		}
		for _, p := range s.packs {
			if p.src.Has("bitmap") && p.badRev == nil {
				s.placeBitmap(p)
			}
		}
	})
}

// usableBitmaps are those that were loaded and are still believed.
func (s *store) usableBitmaps() []*storeBitmap {
	s.loadBitmaps()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bitmaps
}

// badBitmaps tells whether there are bitmaps that can't be believed.
func (s *store) badBitmaps() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	bad := len(s.bitmapProblems) > 0
	for _, p := range s.packs {
		bad = bad || p.badRev != nil && p.src.Has("bitmap")
	}
	return bad
}

// midxFile is the name of a file that belongs to a layer.
func (s *store) midxFile(m *odb.Midx, ext string) string {
	return fmt.Sprintf("%s/multi-pack-index-%x.%s", path.Dir(m.File()), m.Checksum(), ext)
}

func (s *store) loadBitmap(file string, parse func(name string, data []byte) (*storeBitmap, error)) {
	m, err := s.src.Dir().Map(file)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var b *storeBitmap
	if err == nil {
		err = vfs.Guard(func() (err error) {
			b, err = parse(s.label+file, m.Bytes())
			return err
		})
	}
	if err != nil {
		s.bitmapProblems = append(s.bitmapProblems, problem(finding.BitmapUnusable, s.label+file, err))
		if m != nil {
			m.Close()
		}
		return
	}
	s.maps.add(m)
	b.name = s.label + file
	s.bitmaps = append(s.bitmaps, b)
}

// distrustBitmap stops using a bitmap that turned out to be wrong.
func (s *store) distrustBitmap(bad *badBitmap) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, b := range s.bitmaps {
		if b == bad.b {
			s.bitmaps = append(s.bitmaps[:i:i], s.bitmaps[i+1:]...)
			s.bitmapProblems = append(s.bitmapProblems, problem(finding.BitmapUnusable, b.name, bad.err))
			return
		}
	}
}

// packBitmap is the .bitmap of a pack, verified, while it need not be known yet in which order the
// pack's objects are. file is nil where there is none.
type packBitmap struct {
	file  *bitmap.File
	types [4]bitmap.Set
	err   error
}

// readBitmap reads the bitmap of a pack.
func (s *store) readBitmap(src *odb.Pack) *packBitmap {
	b := &packBitmap{}
	x, err := src.Index()
	if err != nil {
		return b // the pack is of no use either
	}
	m, err := s.src.Dir().Map(src.File("bitmap"))
	if errors.Is(err, fs.ErrNotExist) {
		return b
	}
	if err == nil {
		s.maps.add(m)
		err = vfs.Guard(func() (err error) {
			owner := bitmap.Owner{Format: s.format, Objects: uint32(x.Count()), Checksum: x.PackHash()}
			if b.file, err = bitmap.Parse(s.label+src.File("bitmap"), m.Bytes(), owner); err == nil {
				b.types, err = b.file.Types()
			}
			return err
		})
	}
	b.err = err
	return b
}

// placeBitmap puts the bitmap of a pack to use. Its bits are the pack's positions.
func (s *store) placeBitmap(p *pack) {
	read, name := p.bitmap, s.label+p.src.File("bitmap")
	if read == nil {
		read = s.readBitmap(p.src)
	}
	switch {
	case read.err != nil:
		s.bitmapProblems = append(s.bitmapProblems, problem(finding.BitmapUnusable, name, read.err))
		return
	case read.file == nil:
		return
	}
	b := &storeBitmap{file: read.file, name: name, types: read.types, spans: []span{{0, p.first, uint32(p.x.Count())}}}
	b.commits = make([]uint32, read.file.Entries())
	for e := range b.commits {
		b.commits[e] = p.first + p.pos[read.file.Position(e)]
	}
	b.bit = func(id *oid.ID) (uint32, bool) {
		i, ok := p.x.Find(id)
		if !ok {
			return 0, false
		}
		return p.pos[i], true
	}
	s.bitmaps = append(s.bitmaps, b)
}

// midxBitmap reads the bitmap of a layer of a multi-pack-index. Its bits are the objects of the
// layers below, then its own, in the order that its reverse index gives.
func (s *store) midxBitmap(m *odb.Midx, name string, data []byte) (*storeBitmap, error) {
	var layers []*odb.Midx // the lowest first
	for l := m; l != nil; l = l.Base() {
		layers = append([]*odb.Midx{l}, layers...)
	}
	b := &storeBitmap{}
	numbers := []uint32{} // of each bit
	places := []uint32{}  // of each place in the index, its bit
	for _, l := range layers {
		if err := s.verify(l); err != nil {
			return nil, err
		}
		rev, err := s.midxRev(l, uint32(len(numbers)))
		if err == nil {
			err = rev.Check()
		}
		if err != nil {
			return nil, err
		}
		packs := s.packsOf(l)
		base := len(places)
		places = append(places, make([]uint32, rev.Len())...)
		for i := range rev.Len() {
			at := int(rev.At(i))
			v, err := s.midxNumber(l, packs, at)
			if err != nil {
				return nil, err
			}
			places[base+at] = uint32(len(numbers))
			numbers = append(numbers, v)
		}
	}
	below := len(numbers) - m.Count()
	f, err := bitmap.Parse(name, data, bitmap.Owner{Format: s.format, Objects: uint32(m.Count()), Base: uint32(below), Checksum: m.Checksum()})
	if err != nil {
		return nil, err
	}
	b.file, b.below = f, numbers[:below]
	for bit, v := range numbers {
		if last := len(b.spans) - 1; last >= 0 && b.spans[last].v+b.spans[last].n == v {
			b.spans[last].n++
			continue
		}
		b.spans = append(b.spans, span{uint32(bit), v, 1})
	}
	for e := range f.Entries() {
		b.commits = append(b.commits, numbers[places[f.Position(e)]])
	}
	b.bit = func(id *oid.ID) (uint32, bool) {
		base := 0
		for _, l := range layers {
			if i, ok := l.Find(id); ok {
				return places[base+i], true
			}
			base += l.Count()
		}
		return 0, false
	}
	b.types, err = f.Types()
	return b, err
}

// typesBelow completes the types of a bitmap, from the packs themselves. It belongs inside vfs.Guard.
func (s *store) typesBelow(b *storeBitmap) error {
	b.belowOnce.Do(func() {
		known := map[*pack][]oid.Kind{}
		for bit, v := range b.below {
			p, pos := s.packOf(v)
			if known[p] == nil {
				if known[p], b.belowErr = p.kinds(s.format); b.belowErr != nil {
					return
				}
			}
			kind := known[p][pos]
			if kind == 0 {
				b.belowErr = fmt.Errorf("object %v, of a layer below: %w", s.id(v), errNoBase)
				return
			}
			b.types[typeOf[kind]].Add(uint32(bit))
		}
	})
	return b.belowErr
}

// typeOf is where the types of a bitmap have the objects of a kind.
var typeOf = [...]bitmap.Type{oid.Commit: bitmap.Commits, oid.Tree: bitmap.Trees, oid.Blob: bitmap.Blobs, oid.Tag: bitmap.Tags}

// verify compares a layer with its checksum, once.
func (s *store) verify(m *odb.Midx) error {
	err, done := s.verified[m]
	if !done {
		if err = m.Verify(); err != nil {
			err = fmt.Errorf("%s: %w", s.label+m.File(), err)
		}
		if s.verified == nil {
			s.verified = map[*odb.Midx]error{}
		}
		s.verified[m] = err
	}
	return err
}

// midxRev is the reverse index of a layer: its chunk RIDX, else a file.
func (s *store) midxRev(m *odb.Midx, below uint32) (bitmap.Rev, error) {
	owner := bitmap.Owner{Format: s.format, Objects: uint32(m.Count()), Base: below, Checksum: m.Checksum()}
	if chunk := m.Chunk("RIDX"); chunk != nil {
		return bitmap.RevOf(s.label+m.File(), 0, chunk, owner)
	}
	file := s.midxFile(m, "rev")
	data, err := s.src.Dir().ReadFile(file, 16+4*int64(m.Count())+1024)
	if err != nil {
		return bitmap.Rev{}, err
	}
	return bitmap.ParseRev(s.label+file, data, owner)
}

// packsOf are the packs that a layer names, by its numbers; nil where one is not there.
func (s *store) packsOf(m *odb.Midx) []*pack {
	byName := map[string]*pack{}
	for _, p := range s.packs {
		byName[p.src.Name()] = p
	}
	var packs []*pack
	for _, name := range m.PackNames() {
		packs = append(packs, byName[stem(name)])
	}
	return packs
}

// midxNumber is the number of an object of a layer.
func (s *store) midxNumber(m *odb.Midx, packs []*pack, at int) (uint32, error) {
	n, off, ok := m.Place(at)
	if !ok || packs[n] == nil {
		return 0, fmt.Errorf("%s: object %v lies in a pack that is not there", s.label+m.File(), m.ID(at))
	}
	p := packs[n]
	pos, ok := p.findBelow(off, uint32(len(p.index)))
	if !ok {
		return 0, fmt.Errorf("%s: object %v is said to be at %d of %s", s.label+m.File(), m.ID(at), off, p.src.Name())
	}
	return p.first + pos, nil
}

// coverage is the bitmaps that a walk may use. It is for one goroutine.
type coverage struct {
	bitmaps []*coveringBitmap
	has     bitmap.Set // numbers of commits that have a bitmap
	entries map[uint32]coverEntry
	used    map[string]int // by name of a bitmap, how many of its entries served
	covered bitmap.Set     // what they say
}

type coveringBitmap struct {
	*storeBitmap
	store  *store
	reader *bitmap.Reader
	first  uint32     // of its store in the space
	have   bitmap.Set // what pseudo-merges may count on; nil where there are none
}

type coverEntry struct{ bitmap, entry int32 }

// newCoverage takes the bitmaps of the stores from one up to another, which is not among them; nil
// if there are none.
func newCoverage(sp *space, from, to int) *coverage {
	c := &coverage{entries: map[uint32]coverEntry{}, used: map[string]int{}}
	for i := from; i < to; i++ {
		for _, b := range sp.stores[i].usableBitmaps() {
			u := &coveringBitmap{storeBitmap: b, store: sp.stores[i], reader: bitmap.NewReader(b.file), first: sp.first[i]}
			if b.file.HasMerges() {
				u.have = bitmap.NewSet(b.file.Bits())
			}
			n := int32(len(c.bitmaps))
			c.bitmaps = append(c.bitmaps, u)
			if c.has == nil {
				c.has, c.covered = bitmap.NewSet(int(sp.size)), bitmap.NewSet(int(sp.size))
			}
			for e, local := range b.commits {
				v := sp.canon(u.first + local)
				if !c.has.Has(v) {
					c.has.Add(v)
					c.entries[v] = coverEntry{n, int32(e)}
				}
			}
		}
	}
	if len(c.bitmaps) == 0 {
		return nil
	}
	return c
}

// add adds to a walk what the bitmap of a commit says; it tells whether there is one.
func (c *coverage) add(w *walk, v uint32) (bool, error) {
	if !c.has.Has(v) {
		return false, nil
	}
	if w.seen.Has(v) {
		return true, nil
	}
	e := c.entries[v]
	b := c.bitmaps[e.bitmap]
	set, err := b.reader.Entry(int(e.entry))
	if err != nil {
		return false, &badBitmap{b.storeBitmap, err}
	}
	if err := c.spread(b, w, set); err != nil {
		return false, err
	}
	c.used[b.name]++
	if b.have != nil {
		b.have.Or(set)
	}
	return true, nil
}

// tips lets pseudo-merges say what all tips together reach.
func (c *coverage) tips(w *walk, tips []uint32) error {
	for _, b := range c.bitmaps {
		if b.have == nil {
			continue
		}
		for _, v := range tips {
			id := w.sp.id(v)
			if bit, ok := b.bit(&id); ok {
				b.have.Add(bit)
			}
		}
		into := bitmap.NewSet(b.file.Bits())
		added, err := b.reader.Merge(b.have, into)
		if err != nil {
			return &badBitmap{b.storeBitmap, err}
		}
		if added {
			if err := c.spread(b, w, into); err != nil {
				return err
			}
			c.used[b.name]++
		}
	}
	return nil
}

// spread adds a set of bits to what a walk has reached.
func (c *coverage) spread(b *coveringBitmap, w *walk, set bitmap.Set) error {
	if w.kinds[oid.Commit] != nil {
		if err := b.store.typesBelow(b.storeBitmap); err != nil {
			return &badBitmap{b.storeBitmap, err}
		}
	}
	for _, dst := range []bitmap.Set{w.seen, w.done, c.covered} {
		b.copyTo(dst, set)
		w.sp.settle(dst)
	}
	for t, kind := range []oid.Kind{oid.Commit, oid.Tree, oid.Blob, oid.Tag} {
		if w.kinds[kind] != nil {
			some := set.Clone()
			some.And(b.types[t])
			b.copyTo(w.kinds[kind], some)
			w.sp.settle(w.kinds[kind])
		}
	}
	return nil
}

func (b *coveringBitmap) copyTo(dst, set bitmap.Set) {
	for _, s := range b.spans {
		dst.OrAt(int(b.first+s.v), set, int(s.bit), int(s.n))
	}
}

// badBitmap is a bitmap that turned out to be wrong when it was used: without it the walk can be
// made again.
type badBitmap struct {
	b   *storeBitmap
	err error
}

func (e *badBitmap) Error() string { return e.err.Error() }
func (e *badBitmap) Unwrap() error { return e.err }
