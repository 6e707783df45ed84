package odb

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"refaudit/finding"
	"refaudit/internal/vfs"
	"refaudit/oid"
)

// A Midx is one multi-pack-index file, or one layer of a chain of them: which objects its packs
// have, each once. It reads the mapped file in place, so using it belongs inside vfs.Guard. It is
// safe for concurrent use.
//
// Specification: Documentation/gitformat-pack.adoc and gitformat-chunk.adoc in git.
//
//	0      4         5      6            7        8           12                        -h
//	+------+---------+------+------------+--------+-----------+-----------------+------+------+
//	| MIDX | u8 1|2  | hash | u8 chunks  | u8 0   | u32 packs | chunk table     | ...  | hash |
//	+------+---------+------+------------+--------+-----------+-----------------+------+------+
//
// The chunk table has a row of a u32 id and a u64 offset for each chunk, and a last one with id 0
// and the offset where the last chunk ends. The chunks that must be there:
//
//	PNAM  names of the packs, each ended by NUL; padded with NULs
//	OIDF  256 x u32 fanout
//	OIDL  n x id, rising
//	OOFF  n x (u32 number of the pack, u32 offset or number of a far offset)
//
// and LOFF, m x u64 far offsets, if one is needed. RIDX and BTMP belong to bitmaps.
type Midx struct {
	file   string // relative to Store.Dir
	data   []byte
	ids    sortedIDs
	names  []string // of the packs, ".idx" or ".pack"
	places []byte   // OOFF
	far    []byte   // LOFF
	chunks map[string][]byte

	base  *Midx   // the layer below; nil at the bottom
	local []int32 // of each pack: its place in Store.Packs, -1 if it is not there

	mapping *vfs.Mapping
	stamp   fileStamp
	sound   *lazy[struct{}] // it matches its checksum
}

const midxHeaderLen, midxRowLen = 12, 12

// ParseMidx checks a multi-pack-index: its frame, its fanout, the lengths of its chunks and the
// pack numbers of none of its rows: those are checked when they are used.
func ParseMidx(data []byte, f oid.Format, file string) (*Midx, error) {
	h := f.Size()
	bad := func(format string, args ...any) error { return corrupt(file, finding.BitmapUnusable, format, args...) }
	if len(data) < midxHeaderLen+h {
		return nil, bad("%d bytes are too few for a multi-pack-index", len(data))
	}
	if string(data[:4]) != "MIDX" {
		return nil, bad("is no multi-pack-index: it begins with %q", data[:4])
	}
	version := data[4]
	if version != 1 && version != 2 {
		return nil, bad("multi-pack-index of version %d", version)
	}
	if data[5] != byte(f) { // 1: SHA-1, 2: SHA-256
		return nil, bad("multi-pack-index of hash version %d in a %v repository", data[5], f)
	}
	chunks, err := readChunks(data, int(data[6]), h)
	if err != nil {
		return nil, bad("%v", err)
	}
	for _, id := range []string{"PNAM", "OIDF", "OIDL", "OOFF"} {
		if chunks[id] == nil {
			return nil, bad("chunk %s is missing", id)
		}
	}
	m := &Midx{data: data, places: chunks["OOFF"], far: chunks["LOFF"], chunks: chunks}
	fanout := chunks["OIDF"]
	if len(fanout) != fanoutLen {
		return nil, bad("chunk OIDF has %d bytes", len(fanout))
	}
	n, _, err := checkFanout(fanout)
	if err != nil {
		return nil, bad("%v", err)
	}
	if uint64(len(chunks["OIDL"])) != uint64(n)*uint64(h) || uint64(len(m.places)) != uint64(n)*8 {
		return nil, bad("chunks of %d and %d bytes for %d objects", len(chunks["OIDL"]), len(m.places), n)
	}
	m.ids = sortedIDs{fanout: fanout, table: chunks["OIDL"], count: int(n), stride: h, size: h, format: f}
	if m.names, err = packNames(chunks["PNAM"], binary.BigEndian.Uint32(data[8:]), version); err != nil {
		return nil, bad("%v", err)
	}
	return m, nil
}

// readChunks slices the file by its chunk table. A chunk ends where the next one begins.
func readChunks(data []byte, count, hashSize int) (map[string][]byte, error) {
	end := uint64(len(data) - hashSize)
	table := data[midxHeaderLen : len(data)-hashSize]
	if len(table) < (count+1)*midxRowLen {
		return nil, fmt.Errorf("table of %d chunks does not fit into %d bytes", count, len(data))
	}
	chunks := make(map[string][]byte, count)
	for i := range count {
		row := table[i*midxRowLen:]
		id := string(row[:4])
		from, to := binary.BigEndian.Uint64(row[4:]), binary.BigEndian.Uint64(row[4+midxRowLen:])
		switch {
		case id == "\x00\x00\x00\x00":
			return nil, fmt.Errorf("chunk table ends after %d of %d chunks", i, count)
		case from%4 != 0:
			return nil, fmt.Errorf("chunk %q begins at %d, which 4 does not divide", id, from)
		case to < from || to > end:
			return nil, fmt.Errorf("chunk %q from %d to %d does not lie in the file", id, from, to)
		case chunks[id] != nil:
			return nil, fmt.Errorf("chunk %q stands twice", id)
		}
		chunks[id] = data[from:to:to]
	}
	if id := table[count*midxRowLen:][:4]; string(id) != "\x00\x00\x00\x00" {
		return nil, fmt.Errorf("chunk table goes on after %d chunks with %q", count, id)
	}
	return chunks, nil
}

func packNames(chunk []byte, count uint32, version byte) ([]string, error) {
	if uint64(count) > uint64(len(chunk)) {
		return nil, fmt.Errorf("%d pack names do not fit into %d bytes", count, len(chunk))
	}
	names := make([]string, count)
	for i := range names {
		end := bytes.IndexByte(chunk, 0)
		if end < 0 {
			return nil, fmt.Errorf("pack name %d of %d has no end", i+1, count)
		}
		names[i] = string(chunk[:end])
		chunk = chunk[end+1:]
		if version == 1 && i > 0 && names[i] <= names[i-1] {
			return nil, fmt.Errorf("pack name %q stands behind %q", names[i], names[i-1])
		}
	}
	return names, nil
}

// Count is how many objects this layer has.
func (m *Midx) Count() int { return m.ids.count }

// ID is the i-th id of this layer in the order of ids.
func (m *Midx) ID(i int) oid.ID { return oid.FromBytes(m.ids.format, m.ids.raw(i)) }

// Find tells which one of this layer's ids id is.
func (m *Midx) Find(id *oid.ID) (int, bool) { return m.ids.find(id.Bytes()) }

// Place is where the i-th object of this layer lies: the number of its pack among this layer's
// packs, and the offset in it. It is false if the file names a pack or a far offset that doesn't exist.
func (m *Midx) Place(i int) (pack int, off uint64, ok bool) {
	row := m.places[8*i:]
	n, v := binary.BigEndian.Uint32(row), binary.BigEndian.Uint32(row[4:])
	if uint64(n) >= uint64(len(m.names)) {
		return 0, 0, false
	}
	if m.far != nil && v&(1<<31) != 0 {
		at := uint64(v&^(1<<31)) * 8
		if at+8 > uint64(len(m.far)) {
			return 0, 0, false
		}
		return int(n), binary.BigEndian.Uint64(m.far[at:]), true
	}
	return int(n), uint64(v), true
}

// PackNames are the file names of this layer's packs, by number.
func (m *Midx) PackNames() []string { return m.names }

// Base is the layer below this one; nil at the bottom.
func (m *Midx) Base() *Midx { return m.base }

// File is the name of the file, relative to Store.Dir.
func (m *Midx) File() string { return m.file }

// Chunk is the content of a chunk by its four letters, mapped; nil if there is none.
func (m *Midx) Chunk(id string) []byte { return m.chunks[id] }

// Checksum is the hash at the file's end, which names its bitmap.
func (m *Midx) Checksum() []byte { return m.data[len(m.data)-m.ids.size:] }

// Verify compares the file with its checksum, and checks that the ids rise.
func (m *Midx) Verify() error {
	if !trailerMatches(m.data, m.ids.format) {
		return fmt.Errorf("does not match its checksum")
	}
	return m.ids.checkOrder()
}

// verify is Verify, once.
func (m *Midx) verify() error {
	_, err := m.sound.get(func() (none struct{}, err error) { return none, vfs.Guard(m.Verify) })
	return err
}

const (
	midxFile  = "pack/multi-pack-index"
	midxChain = "pack/multi-pack-index.d/multi-pack-index-chain"
	// chainLimit bounds the chain file, which has a line of an id for each layer.
	chainLimit = 1 << 20
)

// openMidx opens the multi-pack-index, or else the chain, as git does. One that can't be used is
// a problem, but hides no object: the packs' own indexes are read then.
func (s *Store) openMidx(old *Store) {
	m, err := s.openLayer(midxFile, old)
	if err == nil {
		s.midx = m
	} else if err := s.openChain(old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.midxProblem(midxChain, err)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.midxProblem(midxFile, err)
	}
	s.bindMidx()
}

func (s *Store) midxProblem(file string, err error) {
	s.problems = append(s.problems, problem(finding.BitmapUnusable, s.label(file), err))
}

// openChain opens the layers that the chain file lists, the bottom one first. As in git the
// layers below a bad one are used.
func (s *Store) openChain(old *Store) error {
	if !s.mayHave(midxChain) {
		return fs.ErrNotExist
	}
	text, err := s.dir.ReadFile(midxChain, chainLimit)
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for line := range bytes.Lines(text) {
		line = bytes.TrimSuffix(line, []byte("\n"))
		var raw [oid.MaxSize]byte
		if len(line) != s.format.HexLen() || !oid.DecodeHex(raw[:s.format.Size()], line) {
			return corrupt(s.label(midxChain), finding.BitmapUnusable, "line %q is no hash", line)
		}
		if seen[string(line)] {
			return corrupt(s.label(midxChain), finding.BitmapUnusable, "layer %s stands twice", line)
		}
		seen[string(line)] = true
		m, err := s.openLayer("pack/multi-pack-index.d/multi-pack-index-"+string(line)+".midx", old)
		if err != nil {
			return err
		}
		m.base = s.midx
		s.midx = m
	}
	return nil
}

// openLayer maps one file, or takes it over from old if it has not changed.
func (s *Store) openLayer(file string, old *Store) (*Midx, error) {
	if !s.mayHave(file) {
		return nil, fs.ErrNotExist
	}
	st, err := s.dir.Stat(file)
	if err != nil {
		return nil, err
	}
	stamp := fileStamp{st.Size(), st.ModTime()}
	if old != nil {
		for m := old.midx; m != nil; m = m.base {
			if m.file == file && m.stamp == stamp {
				again := *m
				again.base, again.local = nil, nil
				return &again, nil
			}
		}
	}
	mapping, err := s.dir.Map(file)
	if err != nil {
		return nil, err
	}
	var m *Midx
	err = vfs.Guard(func() (err error) {
		m, err = ParseMidx(mapping.Bytes(), s.format, s.label(file))
		return err
	})
	if err != nil {
		return nil, errors.Join(err, mapping.Close())
	}
	m.file, m.mapping, m.stamp, m.sound = file, mapping, stamp, new(lazy[struct{}])
	return m, nil
}

// bindMidx finds the packs that each layer names.
func (s *Store) bindMidx() {
	byName := make(map[string]int32, len(s.packs))
	for i, p := range s.packs {
		byName[p.name] = int32(i)
	}
	for m := s.midx; m != nil; m = m.base {
		m.local = make([]int32, len(m.names))
		for i, name := range m.names {
			name, _ = strings.CutSuffix(name, ".idx")
			name, _ = strings.CutSuffix(name, ".pack")
			at, ok := byName[name]
			if !ok {
				at = -1
			}
			m.local[i] = at
		}
	}
	s.covered = make([]bool, len(s.packs))
	for m := s.midx; m != nil; m = m.base {
		for _, at := range m.local {
			if at >= 0 {
				s.covered[at] = true
			}
		}
	}
}

// sortPacks puts the youngest first, as objects that are asked for tend to be young.
func sortPacks(packs []*Pack) {
	slices.SortFunc(packs, func(a, b *Pack) int {
		if c := b.files["pack"].mtime.Compare(a.files["pack"].mtime); c != 0 {
			return c
		}
		return strings.Compare(a.name, b.name)
	})
}
