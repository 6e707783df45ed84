package usage

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"refaudit/finding"
	"refaudit/internal/bitmap"
	"refaudit/internal/commitgraph"
	"refaudit/internal/vfs"
	"refaudit/odb"
	"refaudit/oid"
)

// A store is one object folder, its objects numbered: those of each pack in pack order, from a
// multiple of 64 on, then the loose ones by id. An object that lies there more than once has more
// numbers: that of the smallest copy is the object's own, the others are aliases of it.
//
// A store is built once and shared by all who borrow from it. It is safe for concurrent use.
type store struct {
	src      *odb.Store
	format   oid.Format
	label    string // before file names in messages
	packs    []*pack
	loose    []looseFile
	looseAt  uint32     // number of the first loose object
	size     uint32     // numbers in all, a multiple of 64
	owner    []uint16   // of each 64 numbers the pack; len(packs): loose
	merged   *merged    // nil where all objects are in one pack, or all are loose
	same     []uint32   // of each number the object's own; nil where nothing lies here twice
	aliases  bitmap.Set // numbers that are not an object's own; nil like same
	problems []finding.Finding
	unseen   error // why an object may be here and not be seen; nil if it can't
	half     error // a file of a pack whose other half is not there, so that git sees none of its objects; nil if there is none
	vanished bool  // something has vanished since the folder was listed, or is about to come

	mu           sync.Mutex // guards what may turn out to be wrong: graph and bitmaps, and their problems
	graphFile    graphFileOnce
	graphOnce    sync.Once
	graph        *commitgraph.Graph // nil: none, or none that is believed
	graphProblem error

	maps mappings // to be closed with the store

	bitmapsOnce    sync.Once
	bitmaps        []*storeBitmap
	bitmapProblems []finding.Finding
	verified       map[*odb.Midx]error // multi-pack-indexes that were compared with their checksums
}

type looseFile struct {
	id   oid.ID
	size int64
}

const maxNumber = math.MaxUint32 - 128

// openStore numbers the objects of a folder; loose are its loose ones, by id. With ahead it also reads,
// at the same time, what else a walk from refs with bitmaps will want. What it returns is to be closed
// with an error, too.
func openStore(src *odb.Store, format oid.Format, label string, loose []looseFile, unseen error, workers int, ahead bool) (*store, error) {
	s := &store{src: src, format: format, label: label, loose: loose, unseen: unseen}
	all := src.Packs()
	packs := make([]*pack, len(all))
	errs := make([]error, len(all))
	bitmaps := make([]*packBitmap, len(all))
	sums := make([]error, len(all))
	var tasks []func()
	for i, p := range all {
		tasks = append(tasks, func() { sums[i] = verifyIndex(p, label) })
	}
	for i, p := range all {
		tasks = append(tasks, func() { packs[i], errs[i] = openPack(p, format, label) })
	}
	if ahead {
		for i, p := range all {
			if p.Has("bitmap") {
				tasks = append(tasks, func() { bitmaps[i] = s.readBitmap(p) })
			}
		}
		tasks = append(tasks, s.readGraph)
	}
	inParallel(workers, len(tasks), func(i int) { tasks[i]() })
	if err := src.Unlisted(); err != nil {
		s.unseen = cmp.Or(s.unseen, err)
		s.problems = append(s.problems, problem(finding.AuditSkipped, label+"pack", err))
	}
	if file := src.Half(); file != "" {
		s.half, s.vanished = halfOf(label+file), true
	}
	for i, err := range errs {
		if err = cmp.Or(sums[i], err); err != nil {
			s.vanished = s.vanished || isGone(err)
			s.unseen = errors.Join(s.unseen, err)
			s.problems = append(s.problems, problem(finding.AuditSkipped, label+all[i].File("pack"), err))
			continue
		}
		if err := packs[i].badRev; err != nil {
			s.problems = append(s.problems, problem(finding.BitmapUnusable, label+all[i].File("rev"), err))
		}
		packs[i].bitmap = bitmaps[i]
		s.packs = append(s.packs, packs[i])
	}
	if err := s.leaveOutCut(workers); err != nil {
		return s, err
	}
	if err := s.number(); err != nil {
		return s, err
	}
	return s, vfs.Guard(s.merge)
}

// halfOf says what a file is without the other.
func halfOf(file string) error {
	if name, ok := strings.CutSuffix(file, ".pack"); ok {
		return fmt.Errorf("%s has no index beside it: git sees none of its objects", name+".pack")
	}
	return fmt.Errorf("%s has no pack beside it: git sees none of its objects", file)
}

// number gives each pack its first number.
func (s *store) number() error {
	n := uint64(0)
	for i, p := range s.packs {
		p.first = uint32(n)
		if n = align(n + uint64(p.x.Count())); n > maxNumber || i == math.MaxUint16-1 {
			return fmt.Errorf("%v: more objects or packs than can be numbered", s.src)
		}
		for len(s.owner) < int(n/64) {
			s.owner = append(s.owner, uint16(i))
		}
	}
	s.looseAt = uint32(n)
	if n = align(n + uint64(len(s.loose))); n > maxNumber {
		return fmt.Errorf("%v: more objects than can be numbered", s.src)
	}
	for len(s.owner) < int(n/64) {
		s.owner = append(s.owner, uint16(len(s.packs)))
	}
	s.size = uint32(n)
	return nil
}

func align(n uint64) uint64 { return (n + 63) &^ 63 }

// packOf is the pack of a number and the position in it; nil for a loose object, with its place among those.
func (s *store) packOf(v uint32) (*pack, uint32) {
	if o := int(s.owner[v>>6]); o < len(s.packs) {
		return s.packs[o], v - s.packs[o].first
	}
	return nil, v - s.looseAt
}

// id is the id of a number.
func (s *store) id(v uint32) oid.ID {
	p, i := s.packOf(v)
	if p == nil {
		return s.loose[i].id
	}
	return p.x.ID(int(p.index[i]))
}

// bytes is how much a number takes on disk.
func (s *store) bytes(v uint32) uint64 {
	p, i := s.packOf(v)
	if p == nil {
		return uint64(s.loose[i].size)
	}
	return p.sizeAt(i)
}

// find is the number of an object.
func (s *store) find(id *oid.ID) (uint32, bool) {
	switch {
	case s.merged != nil:
		v, ok := s.merged.find(id, s.id)
		if ok && s.same != nil {
			v = s.same[v]
		}
		return v, ok
	case len(s.packs) == 1:
		pos, ok := s.packs[0].find(id)
		return s.packs[0].first + pos, ok
	}
	return s.findLoose(id)
}

// findAll puts the numbers of some raw ids into found, none for those that are not here.
func (s *store) findAll(ids [][]byte, found []uint32) (touched byte) {
	if s.merged == nil && len(s.packs) == 1 {
		touched = s.packs[0].findAll(ids, found)
		for i, pos := range found[:len(ids)] {
			if pos != none {
				found[i] = s.packs[0].first + pos
			}
		}
		return touched
	}
	for _, id := range ids {
		if s.merged != nil {
			touched ^= s.merged.touch(id)
		}
	}
	for i, raw := range ids {
		id := oid.FromBytes(s.format, raw)
		found[i] = none
		if v, ok := s.find(&id); ok {
			found[i] = v
		}
	}
	return touched
}

// expect prepares for n more finds, inside a guard.
func (s *store) expect(n int) {
	if s.merged == nil && len(s.packs) == 1 {
		s.packs[0].expect(n)
	}
}

func (s *store) findLoose(id *oid.ID) (uint32, bool) {
	i, ok := slices.BinarySearchFunc(s.loose, *id, func(f looseFile, id oid.ID) int { return f.id.Compare(id) })
	return s.looseAt + uint32(i), ok
}

// merge puts the indexes of a store together whose objects are in several places, and finds what
// lies there twice: the smallest copy counts.
func (s *store) merge() error {
	if len(s.packs) == 0 || len(s.packs) == 1 && len(s.loose) == 0 {
		return nil
	}
	n := len(s.loose)
	for _, p := range s.packs {
		n += p.x.Count()
	}
	s.merged = newMerged(n, s.each, s.id)
	s.merged.twins(s.id, func(numbers []uint32) {
		if s.same == nil {
			s.same, s.aliases = make([]uint32, s.size), bitmap.NewSet(int(s.size))
			for v := range s.same {
				s.same[v] = uint32(v)
			}
		}
		least := numbers[0]
		for _, v := range numbers[1:] {
			if s.bytes(v) < s.bytes(least) {
				least = v
			}
		}
		for _, v := range numbers {
			if s.same[v] = least; v != least {
				s.aliases.Add(v)
			}
		}
	})
	return nil
}

// each calls fn for all objects, in the order of ids within each place.
func (s *store) each(fn func(id *oid.ID, v uint32)) {
	for _, p := range s.packs {
		for i := range p.x.Count() {
			id := p.x.ID(i)
			fn(&id, p.first+p.pos[i])
		}
	}
	for i := range s.loose {
		fn(&s.loose[i].id, s.looseAt+uint32(i))
	}
}

// all is the set of all numbers that there are.
func (s *store) all() bitmap.Set {
	set := bitmap.NewSet(int(s.size))
	for _, p := range s.packs {
		set.AddRange(p.first, p.end())
	}
	set.AddRange(s.looseAt, s.looseAt+uint32(len(s.loose)))
	return set
}

// sum adds up what the members of a set take on disk; from is the position of number 0 in the set.
func (s *store) sum(set bitmap.Set) uint64 {
	total := uint64(0)
	set.Runs(func(start, end int) {
		for start < end {
			p, i := s.packOf(uint32(start))
			if p == nil {
				for ; start < end; start++ {
					total += uint64(s.loose[uint32(start)-s.looseAt].size)
				}
				return
			}
			stop := min(end, int(p.end()))
			total += p.offset(uint32(stop)-p.first) - p.offset(i)
			start = int(align(uint64(stop)))
		}
	})
	return total
}

// stem is the name of a pack's file without its extension.
func stem(file string) string {
	file, _ = strings.CutSuffix(file, ".idx")
	file, _ = strings.CutSuffix(file, ".pack")
	return file
}

// mappings are files that stay mapped.
type mappings struct {
	mu  sync.Mutex
	all []*vfs.Mapping
}

func (m *mappings) add(f *vfs.Mapping) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = append(m.all, f)
}

// close unmaps all. Nobody may be reading any more.
func (m *mappings) close() error {
	var errs []error
	for _, f := range m.all {
		errs = append(errs, f.Close())
	}
	m.all = nil
	return errors.Join(errs...)
}
