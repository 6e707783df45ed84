package bitmap

import (
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"

	"refaudit/finding"
	"refaudit/oid"
)

func TestSamplesAreRead(t *testing.T) {
	for _, format := range []oid.Format{oid.SHA1, oid.SHA256} {
		for _, options := range []uint16{optFullDAG, optFullDAG | optHashCache, optFullDAG | optLookupTable, optFullDAG | optHashCache | optLookupTable | optPseudoMerges} {
			for _, n := range []int{1, 64, 65, 5000} {
				s := newSample(format, n, uint64(n))
				s.options = options
				f, err := Parse("b", s.bytes(), s.owner)
				if err != nil {
					t.Fatalf("%v %#x %d: %v", format, options, n, err)
				}
				checkSample(t, s, f)
			}
		}
	}
}

func checkSample(t *testing.T, s *sample, f *File) {
	t.Helper()
	types, err := f.Types()
	if err != nil {
		t.Fatal(err)
	}
	for i := range types {
		if !slices.Equal(types[i], s.types[i]) {
			t.Fatalf("type %d", i)
		}
	}
	if f.Entries() != len(s.entries) || f.Bits() != int(s.owner.Objects) || f.Find(1) != -1 {
		t.Fatal("numbers")
	}
	r := NewReader(f)
	for _, e := range s.entries {
		i := f.Find(uint32(e.pos))
		if i < 0 || f.Position(i) != uint32(e.pos) {
			t.Fatalf("no entry for %d", e.pos)
		}
		if got, err := r.Entry(i); err != nil || !slices.Equal(got, e.bits) {
			t.Fatalf("entry %d: %v", i, err)
		}
	}
}

// A chain through all entries is decoded without recursion and, with a memory that holds two
// sets, still right.
func TestALongChain(t *testing.T) {
	s := newSample(oid.SHA1, 30000, 5)
	for i := range s.entries {
		s.entries[i].xor = min(i, 1)
	}
	f, err := Parse("b", s.bytes(), s.owner)
	if err != nil {
		t.Fatal(err)
	}
	r := NewReader(f)
	r.room = 2
	for _, i := range []int{len(s.entries) - 1, 0, 17, len(s.entries) - 1, len(s.entries) / 2} {
		if got, err := r.Entry(i); err != nil || !slices.Equal(got, s.entries[i].bits) {
			t.Fatalf("entry %d: %v", i, err)
		}
	}
}

// The next layer of a chain: positions go on counting where the layer below ends.
func TestALayer(t *testing.T) {
	s := newSample(oid.SHA1, 300, 5)
	low := newSample(oid.SHA1, 100, 5)
	s.owner.Base, s.owner.Objects = 100, 200
	for i := range s.types {
		for w := range low.types[i] {
			s.types[i][w] &^= low.types[0][w] | low.types[1][w] | low.types[2][w] | low.types[3][w]
		}
	}
	f, err := Parse("b", s.bytes(), s.owner)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Types(); err != nil {
		t.Error(err)
	}
	s.types[0].Add(3)
	f, _ = Parse("b", s.bytes(), s.owner)
	if _, err := f.Types(); err == nil {
		t.Error("the type of an object of the layer below was believed")
	}
}

func TestPseudoMerges(t *testing.T) {
	s := newSample(oid.SHA1, 200, 5)
	s.options |= optPseudoMerges
	set := func(members ...uint32) Set {
		s := NewSet(200)
		for _, m := range members {
			s.Add(m)
		}
		return s
	}
	s.merges = [][2]Set{{set(3, 4), set(3, 4, 5)}, {set(1, 2), set(1, 2, 3, 4)}, {set(), set(9)}, {set(1, 99), set(98, 99)}}
	f, err := Parse("b", s.bytes(), s.owner)
	if err != nil {
		t.Fatal(err)
	}
	r := NewReader(f)
	for range 2 { // a reader forgets nothing and invents nothing
		got := set(1, 2)
		if added, err := r.Merge(got.Clone(), got); err != nil || !added || !slices.Equal(got, set(1, 2, 3, 4, 5)) {
			t.Errorf("%v %v", added, err)
		}
		got = set(1)
		if added, err := r.Merge(got.Clone(), got); err != nil || added || !slices.Equal(got, set(1)) {
			t.Errorf("%v %v", added, err)
		}
	}
}

// Each way in which a file can be wrong although its checksum fits.
func TestBadFiles(t *testing.T) {
	over := frame(64, []uint64{rlw(true, 1000, 0)}, 0)
	for name, c := range map[string]struct {
		harm func(*sample)
		err  string
	}{
		"signature":           {func(s *sample) { s.magic = "BITN" }, "is no bitmap file"},
		"version":             {func(s *sample) { s.version = 2 }, "version 2, not 1"},
		"no closure":          {func(s *sample) { s.options &^= optFullDAG }, "full closure"},
		"unknown option":      {func(s *sample) { s.options |= 0x80 }, "unknown options 0x80"},
		"of another pack":     {func(s *sample) { s.owner.Checksum = make([]byte, 20) }, "belongs to 0000"},
		"count":               {func(s *sample) { s.count = 0xffffffff }, "lookup table needs 68719476720 bytes"},
		"count without table": {func(s *sample) { s.count, s.options = 0xffffffff, optFullDAG }, "4294967295 entries don't fit"},
		"one entry too few":   {func(s *sample) { s.count, s.options = len(s.entries)-1, optFullDAG }, "bytes are left behind the last entry"},
		"position":            {func(s *sample) { s.entries[3].pos = 100 }, "entry 3 is of object 100, and there are 100"},
		"twice":               {func(s *sample) { s.entries[3].pos = s.entries[4].pos }, "a second entry for object"},
		"XOR with the future": {func(s *sample) { s.entries[3].xor = 4 }, "entry 3 is XORed with the one 4 before it"},
		"XOR too far":         {func(s *sample) { s.entries[3].xor = 161 }, "entry 3 is XORed with the one 161 before it"},
		"hash cache":          {func(s *sample) { s.owner.Objects = 1 << 30 }, "name-hash cache needs 4294967296 bytes"},
		"table":               {func(s *sample) { s.table = make([]byte, rowSize*len(s.entries)) }, "row 0 of the lookup table"},
		"entry bits":          {func(s *sample) { s.entries[2].raw, s.table = over, nil }, "a run of 1000 full words"},
		"bit behind the last": {func(s *sample) { s.entries[2].bits.Add(101) }, "a bit behind the last object is set"},
		"no type":             {func(s *sample) { s.types[1].Clear() }, "objects have a type"},
		"two types":           {func(s *sample) { s.types[1].Add(0) }, "1 objects are of two types"},
		"merge bits":          {func(s *sample) { s.merges = [][2]Set{{NewSet(100), s.bad()}}; s.options |= optPseudoMerges }, "a bit behind the last object is set"},
	} {
		s := newSample(oid.SHA1, 100, 9)
		owner := s.owner
		c.harm(s)
		if name == "hash cache" {
			owner = s.owner
			s.owner.Objects = 100
		}
		err := readAll(s.bytes(), owner)
		var bad *finding.Corrupt
		if !errors.As(err, &bad) || bad.ID != finding.BitmapUnusable || bad.Pos.File != "b" || !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v, want %q", name, err, c.err)
		}
	}
}

func (s *sample) bad() Set {
	b := NewSet(100)
	b.Add(127)
	return b
}

// readAll does with a file all that can be done.
func readAll(data []byte, owner Owner) error {
	f, err := Parse("b", data, owner)
	if err != nil {
		return err
	}
	if _, err := f.Types(); err != nil {
		return err
	}
	r := NewReader(f)
	s := NewSet(f.Bits())
	for i := range f.Entries() {
		e, err := r.Entry(i)
		if err != nil {
			return err
		}
		s.Or(e)
	}
	_, err = r.Merge(s, s.Clone())
	return err
}

// Any flipped bit breaks the checksum; any cut too.
func TestNothingIsBelievedWithoutItsChecksum(t *testing.T) {
	s := newSample(oid.SHA1, 100, 9)
	data := s.bytes()
	for i := range data {
		bad := slices.Clone(data)
		bad[i] ^= 0x41
		for what, b := range map[string][]byte{"flip": bad, "cut": data[:i]} {
			var c *finding.Corrupt
			if err := readAll(b, s.owner); !errors.As(err, &c) || c.ID != finding.BitmapUnusable {
				t.Errorf("%s at %d: %v", what, i, err)
			}
		}
	}
}

func TestBadPseudoMergeSections(t *testing.T) {
	s := newSample(oid.SHA1, 100, 9)
	s.options = optFullDAG | optPseudoMerges
	s.merges = [][2]Set{{NewSet(100), NewSet(100)}}
	data := s.bytes()
	end := len(data) - 20
	for name, c := range map[string]struct {
		at    int
		value []byte
		err   string
	}{
		"size":    {end - 8, []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, "pseudo-merges of 18446744073709551615 bytes"},
		"small":   {end - 8, []byte{0, 0, 0, 0, 0, 0, 0, 23}, "pseudo-merges of 23 bytes"},
		"table":   {end - 16, []byte{0xff, 0, 0, 0, 0, 0, 0, 0}, "don't fit"},
		"commits": {end - 20, []byte{0xff, 0xff, 0xff, 0xff}, "don't fit"},
		"count":   {end - 24, []byte{0xff, 0xff, 0xff, 0xff}, "don't fit"},
		"none":    {end - 24, []byte{0, 0, 0, 0}, "bytes are left behind the last pseudo-merge"},
		"offset":  {end - 32, []byte{0, 0, 0, 0, 0, 0, 0, 1}, "is said to be at 1"},
	} {
		bad := slices.Clone(data[:end])
		copy(bad[c.at:], c.value)
		if err := readAll(seal(oid.SHA1, bad), s.owner); err == nil || !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v, want %q", name, err, c.err)
		}
	}
}

// The checksum is made to fit, so that the fuzzer gets past it.
func FuzzBitmap(f *testing.F) {
	for _, n := range []int{1, 65, 300} {
		for _, options := range []uint16{optFullDAG, 0x35} {
			s := newSample(oid.SHA1, n, 3)
			s.options = options
			if options&optPseudoMerges != 0 {
				s.merges = [][2]Set{{s.entries[0].bits, s.entries[0].bits}}
			}
			b := s.bytes()
			f.Add(b[:len(b)-20], uint16(n), uint16(0))
		}
	}
	owner := newSample(oid.SHA1, 1, 1).owner
	f.Fuzz(func(t *testing.T, b []byte, n, base uint16) {
		o := owner
		o.Objects, o.Base = uint32(n), uint32(base)
		err := readAll(seal(oid.SHA1, slices.Clone(b)), o)
		var bad *finding.Corrupt
		if err != nil && !errors.As(err, &bad) {
			t.Fatalf("an error without its place: %v", err)
		}
	})
}

func TestRev(t *testing.T) {
	for _, format := range []oid.Format{oid.SHA1, oid.SHA256} {
		owner := Owner{Format: format, Objects: 3, Checksum: make([]byte, format.Size())}
		build := func(places ...uint32) []byte {
			b := []byte{'R', 'I', 'D', 'X', 0, 0, 0, 1, 0, 0, 0, byte(format)}
			for _, p := range places {
				b = binary.BigEndian.AppendUint32(b, p)
			}
			return seal(format, append(b, owner.Checksum...))
		}
		r, err := ParseRev("r", build(2, 0, 1), owner)
		if err != nil || r.Len() != 3 || r.At(0) != 2 || r.At(2) != 1 {
			t.Fatalf("%v %v", r, err)
		}
		layer := owner
		layer.Base = 100
		if r, err := ParseRev("r", build(102, 100, 101), layer); err != nil || r.At(0) != 2 {
			t.Errorf("a layer: %v", err)
		}
		other := owner
		other.Checksum = []byte(strings.Repeat("x", format.Size()))
		reseal := func(b []byte, edit func([]byte)) []byte {
			b = b[:len(b)-format.Size()]
			edit(b)
			return seal(format, b)
		}
		for name, c := range map[string]struct {
			data  []byte
			owner Owner
			err   string
		}{
			"out of range":    {build(2, 0, 3), owner, "names object 3, and there are 3"},
			"below the layer": {build(102, 99, 101), layer, "names object 99, and there are 103"},
			"above the layer": {build(102, 100, 103), layer, "names object 103, and there are 103"},
			"twice":           {build(2, 0, 2), owner, "names object 2 twice"},
			"too few":         {build(1, 0), owner, "8 bytes, 3 objects need 12"},
			"too many":        {build(1, 0, 2, 3), owner, "16 bytes, 3 objects need 12"},
			"of another pack": {build(2, 0, 1), other, "belongs to 00"},
			"signature":       {reseal(build(2, 0, 1), func(b []byte) { b[0]++ }), owner, "is no reverse index"},
			"version":         {reseal(build(2, 0, 1), func(b []byte) { b[7]++ }), owner, "version 2"},
			"hash":            {reseal(build(2, 0, 1), func(b []byte) { b[11] = 9 }), owner, "hash id 9"},
			"short":           {build()[:20], owner, "is too short"},
			"flipped":         {slices.Concat(build(2, 0, 1)[:20], build(2, 1, 0)[20:]), owner, "checksum"},
		} {
			r, err := ParseRev("r", c.data, c.owner)
			if err == nil {
				err = r.Check()
			}
			var bad *finding.Corrupt
			if !errors.As(err, &bad) || bad.ID != finding.BitmapUnusable || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%v %s: %v, want %q", format, name, err, c.err)
			}
		}
	}
}

func FuzzRev(f *testing.F) {
	f.Add([]byte("RIDX\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01"), uint32(2))
	f.Fuzz(func(t *testing.T, b []byte, n uint32) {
		sum := make([]byte, 20)
		r, err := ParseRev("r", seal(oid.SHA1, append(slices.Clone(b), sum...)), Owner{Format: oid.SHA1, Objects: n % (1 << 20), Checksum: sum})
		if err == nil {
			err = r.Check()
		}
		if err != nil {
			var bad *finding.Corrupt
			if !errors.As(err, &bad) {
				t.Fatalf("an error without its place: %v", err)
			}
			return
		}
		sum2 := uint64(0)
		for i := range r.Len() {
			sum2 += uint64(r.At(i))
		}
		if k := uint64(r.Len()); k > 0 && sum2 != k*(k-1)/2 {
			t.Fatal("is no permutation")
		}
	})
}

func BenchmarkParseRev(b *testing.B) {
	const n = 1 << 20
	body := []byte("RIDX\x00\x00\x00\x01\x00\x00\x00\x01")
	for i := range uint32(n) {
		body = binary.BigEndian.AppendUint32(body, i*7919%n)
	}
	owner := Owner{Format: oid.SHA1, Objects: n, Checksum: make([]byte, 20)}
	data := seal(oid.SHA1, append(body, owner.Checksum...))
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		r, err := ParseRev("r", data, owner)
		if err != nil || r.Check() != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParse(b *testing.B) {
	s := newSample(oid.SHA1, 100000, 1)
	data := s.bytes()
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := Parse("b", data, s.owner); err != nil {
			b.Fatal(err)
		}
	}
}
