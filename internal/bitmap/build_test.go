package bitmap

import (
	"encoding/binary"
	"math/rand/v2"

	"refaudit/oid"
)

// compress writes a set as EWAH, with chunks as git makes them: longest run, then longest literals.
func compress(s Set) []byte {
	var out []uint64
	for i := 0; i < len(s); {
		head := uint64(0)
		if s[i] == 0 || s[i] == ^uint64(0) {
			fill := s[i]
			head = fill & 1
			run := 0
			for i < len(s) && s[i] == fill {
				run, i = run+1, i+1
			}
			head |= uint64(run) << 1
		}
		lits := i
		for lits < len(s) && s[lits] != 0 && s[lits] != ^uint64(0) {
			lits++
		}
		out = append(out, head|uint64(lits-i)<<33)
		out = append(out, s[i:lits]...)
		i = lits
	}
	return frame(uint32(len(s)*64), out, 0)
}

// frame puts words of one's choice between the numbers around them.
func frame(bits uint32, words []uint64, last uint32) []byte {
	b := binary.BigEndian.AppendUint32(nil, bits)
	b = binary.BigEndian.AppendUint32(b, uint32(len(words)))
	for _, w := range words {
		b = binary.BigEndian.AppendUint64(b, w)
	}
	return binary.BigEndian.AppendUint32(b, last)
}

// A sample is a .bitmap to be written, every field of it free.
type sample struct {
	owner   Owner
	magic   string
	version uint16
	options uint16
	count   int // of entries, as the header says; -1: the true one
	types   [4]Set
	entries []sampleEntry
	merges  [][2]Set
	table   []byte // instead of the true one
}

type sampleEntry struct {
	pos, xor int
	bits     Set // before it is XORed
	raw      []byte
}

func (s *sample) bytes() []byte {
	b := append([]byte(s.magic), 0, byte(s.version))
	b = binary.BigEndian.AppendUint16(b, s.options)
	count := s.count
	if count < 0 {
		count = len(s.entries)
	}
	b = binary.BigEndian.AppendUint32(b, uint32(count))
	b = append(b, s.owner.Checksum...)
	for _, t := range s.types {
		b = append(b, compress(t)...)
	}
	offsets := make([]int, len(s.entries))
	for i, e := range s.entries {
		offsets[i] = len(b)
		b = binary.BigEndian.AppendUint32(b, uint32(e.pos))
		b = append(b, byte(e.xor), 0)
		if e.raw != nil {
			b = append(b, e.raw...)
			continue
		}
		bits := e.bits.Clone()
		if e.xor > 0 && e.xor <= i {
			bits.Xor(s.entries[i-e.xor].bits)
		}
		b = append(b, compress(bits)...)
	}
	if s.options&optPseudoMerges != 0 {
		b = s.appendMerges(b)
	}
	if s.options&optLookupTable != 0 {
		if s.table != nil {
			b = append(b, s.table...)
		} else {
			b = s.appendTable(b, offsets)
		}
	}
	if s.options&optHashCache != 0 {
		b = append(b, make([]byte, 4*s.owner.Objects)...)
	}
	return seal(s.owner.Format, b)
}

func (s *sample) appendMerges(b []byte) []byte {
	start := len(b)
	var at []int
	for _, m := range s.merges {
		at = append(at, len(b))
		b = append(b, compress(m[0])...)
		b = append(b, compress(m[1])...)
	}
	table := len(b) - start
	b = append(b, make([]byte, 12)...) // one row
	for _, o := range at {
		b = binary.BigEndian.AppendUint64(b, uint64(o))
	}
	b = binary.BigEndian.AppendUint32(b, uint32(len(at)))
	b = binary.BigEndian.AppendUint32(b, 1)
	b = binary.BigEndian.AppendUint64(b, uint64(table))
	return binary.BigEndian.AppendUint64(b, uint64(len(b)+8-start))
}

func (s *sample) appendTable(b []byte, offsets []int) []byte {
	for pos := range int(s.owner.Base + s.owner.Objects) {
		for i, e := range s.entries {
			if e.pos != pos {
				continue
			}
			row := uint32(0xffffffff)
			if e.xor > 0 && e.xor <= i {
				row = 0
				for _, o := range s.entries {
					if o.pos < s.entries[i-e.xor].pos {
						row++
					}
				}
			}
			b = binary.BigEndian.AppendUint32(b, uint32(pos))
			b = binary.BigEndian.AppendUint64(b, uint64(offsets[i]))
			b = binary.BigEndian.AppendUint32(b, row)
		}
	}
	return b
}

// seal appends the checksum.
func seal(f oid.Format, b []byte) []byte {
	h := f.New()
	h.Write(b)
	return h.Sum(b)
}

// newSample is a sound file of n objects, of which every tenth is a commit that reaches random others.
func newSample(f oid.Format, n int, seed uint64) *sample {
	rnd := rand.New(rand.NewPCG(seed, 1))
	s := &sample{
		owner: Owner{Format: f, Objects: uint32(n), Checksum: make([]byte, f.Size())},
		magic: "BITM", version: 1, options: optFullDAG | optLookupTable | optHashCache, count: -1,
	}
	for i := range s.owner.Checksum {
		s.owner.Checksum[i] = byte(i)
	}
	for t := range s.types {
		s.types[t] = NewSet(n)
	}
	for i := range n {
		t := Commits
		if i%10 != 0 {
			t = Type(1 + i*3%3)
		}
		s.types[t].Add(uint32(i))
	}
	last := NewSet(n)
	for i := 0; i < n; i += 10 {
		last = last.Clone()
		last.AddRange(uint32(rnd.IntN(n)), uint32(rnd.IntN(n)))
		last.Add(uint32(i))
		xor := 0
		if k := len(s.entries); k > 0 && rnd.IntN(4) > 0 {
			xor = 1 + rnd.IntN(min(k, maxXOR))
		}
		s.entries = append(s.entries, sampleEntry{pos: i, xor: xor, bits: last})
	}
	rnd.Shuffle(len(s.entries), func(i, j int) { s.entries[i].pos, s.entries[j].pos = s.entries[j].pos, s.entries[i].pos })
	return s
}
