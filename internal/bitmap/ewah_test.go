package bitmap

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"refaudit/finding"
	"refaudit/internal/binread"
)

func parseEWAH(t testing.TB, b []byte) EWAH {
	t.Helper()
	c := binread.New(b, "f", 0, finding.BitmapUnusable)
	e := readEWAH(&c, "bitmap")
	if err := c.Err(); err != nil || c.Len() > 0 {
		t.Fatalf("%v, %d left", err, c.Len())
	}
	return e
}

func TestRandomSetsComeBack(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 7))
	for range 2000 {
		want := randomSet(rnd, 1+rnd.IntN(3000))
		got, other := NewSet(len(want)*64), randomSet(rnd, len(want)*64)
		e := parseEWAH(t, compress(want))
		if err := e.or(got); err != nil || !slices.Equal(got, want) {
			t.Fatalf("or into an empty set: %v", err)
		}
		both := other.Clone()
		both.Or(want)
		or, xor := other.Clone(), other.Clone()
		if e.or(or) != nil || !slices.Equal(or, both) {
			t.Fatal("or")
		}
		for range 2 {
			if err := e.xor(xor); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(xor, other) {
			t.Fatal("xor twice is not nothing")
		}
		e.xor(xor)
		other.Xor(want)
		if !slices.Equal(xor, other) {
			t.Fatal("xor")
		}
	}
}

func randomSet(rnd *rand.Rand, n int) Set {
	s := NewSet(n)
	for range rnd.IntN(8) {
		switch rnd.IntN(3) {
		case 0:
			s.AddRange(uint32(rnd.IntN(n)), uint32(rnd.IntN(n)))
		case 1:
			for i := rnd.IntN(n); i < n; i += 1 + rnd.IntN(100) {
				s.Add(uint32(i))
			}
		case 2:
			for i := rnd.IntN(n); i < n && i%200 != 0; i++ {
				s.Remove(uint32(i))
			}
		}
	}
	return s
}

func rlw(ones bool, run, literals uint64) uint64 {
	w := run<<1 | literals<<33
	if ones {
		w |= 1
	}
	return w
}

// What a bitmap of 200 positions (4 words) may not say, and what it may.
func TestRunLengthsAreNotBelieved(t *testing.T) {
	for _, c := range []struct {
		name  string
		words []uint64
		err   string
	}{
		{"nothing at all", nil, ""},
		{"empty chunks", []uint64{0, 0, 0}, ""},
		{"all ones", []uint64{rlw(true, 4, 0)}, ""},
		{"a run too long by one", []uint64{rlw(true, 5, 0)}, "a run of 5 full words at word 0, and there are 4"},
		{"the longest run", []uint64{rlw(true, 1<<32-1, 0)}, "a run of 4294967295 full words at word 0"},
		{"runs that add up", []uint64{rlw(true, 3, 0), rlw(true, 2, 0)}, "a run of 2 full words at word 3"},
		{"a full run behind the end", []uint64{rlw(false, 9, 0), rlw(true, 1, 0)}, "a run of 1 full words at word 9"},
		{"zeros behind the end", []uint64{rlw(false, 1<<32-1, 0), rlw(false, 1<<32-1, 1), 0}, ""},
		{"a literal zero behind the end", []uint64{rlw(true, 4, 1), 0}, ""},
		{"a literal behind the end", []uint64{rlw(true, 4, 2), 0, 8}, "a literal word at word 5, and there are 4"},
		{"literals across the end", []uint64{rlw(false, 3, 2), 7, 8}, "a literal word at word 4, and there are 4"},
		{"literals that are not there", []uint64{rlw(false, 1, 2), 7}, "announces 2 literal words, 1 are left"},
		{"as many literals as can be said", []uint64{rlw(false, 0, 1<<31-1), 7}, "announces 2147483647 literal words, 1 are left"},
		{"sums that would wrap", append(slices.Repeat([]uint64{rlw(false, 1<<32-1, 0)}, 64), rlw(true, 1, 0)), "a run of 1 full words"},
	} {
		for _, op := range []func(EWAH, Set) error{EWAH.or, EWAH.xor} {
			err := op(parseEWAH(t, frame(200, c.words, 0)), NewSet(200))
			var bad *ewahError
			if c.err == "" && err != nil || c.err != "" && (!errors.As(err, &bad) || !strings.Contains(bad.text, c.err)) {
				t.Errorf("%s: %v, want %q", c.name, err, c.err)
			}
		}
	}
}

func TestATruncatedBitmapIsCorrupt(t *testing.T) {
	whole := frame(64, []uint64{rlw(false, 0, 1), 5}, 0)
	for n := range whole {
		c := binread.New(whole[:n], "f", 100, finding.BitmapUnusable)
		readEWAH(&c, "bitmap")
		var bad *finding.Corrupt
		if !errors.As(c.Err(), &bad) || bad.ID != finding.BitmapUnusable || bad.Pos.Offset < 100 {
			t.Errorf("%d of %d bytes: %v", n, len(whole), c.Err())
		}
	}
	c := binread.New(frame(64, []uint64{rlw(false, 0, 1), 5}, 2), "f", 0, finding.BitmapUnusable)
	if readEWAH(&c, "bitmap"); c.Err() == nil {
		t.Error("the last run-length word lies behind the end")
	}
}

func FuzzEWAH(f *testing.F) {
	rnd := rand.New(rand.NewPCG(3, 3))
	for range 20 {
		f.Add(compress(randomSet(rnd, 500)), uint16(500))
	}
	f.Add(frame(1, []uint64{rlw(true, 1<<32-1, 0)}, 0), uint16(3))
	f.Fuzz(func(t *testing.T, b []byte, n uint16) {
		c := binread.New(b, "f", 0, finding.BitmapUnusable)
		e := readEWAH(&c, "bitmap")
		s := NewSet(int(n))
		if c.Err() != nil || e.or(s) != nil {
			return
		}
		again := NewSet(int(n))
		if err := parseEWAH(t, compress(s)).or(again); err != nil || !slices.Equal(s, again) {
			t.Fatalf("decoded, encoded and decoded: %v", err)
		}
		if e.xor(again) != nil || !again.Empty() {
			t.Fatal("xor with itself leaves something")
		}
	})
}

func BenchmarkOr(b *testing.B) {
	rnd := rand.New(rand.NewPCG(3, 3))
	for name, s := range map[string]Set{"runs": randomSet(rnd, 1000000), "literals": NewSet(1000000)} {
		if name == "literals" {
			for i := 0; i < 1000000; i += 3 {
				s.Add(uint32(i))
			}
		}
		e, dst := parseEWAH(b, compress(s)), NewSet(1000000)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(8 * len(dst)))
			for b.Loop() {
				e.or(dst)
			}
		})
	}
}
