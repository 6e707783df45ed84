package inflate

import (
	"bytes"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
)

func deflate(t testing.TB, level int, data []byte) []byte {
	var b bytes.Buffer
	w, err := zlib.NewWriterLevel(&b, level)
	if err != nil {
		t.Fatal(err)
	}
	w.Write(data)
	w.Close()
	return b.Bytes()
}

func tagText(i int) []byte {
	return fmt.Appendf(nil, "object %040x\ntype commit\ntag v%07d\ntagger C O Mitter <c@example.com> %d +0000\n\nrelease %07d\n", uint64(i)*0x9e3779b97f4a7c15, i, 1600000000+i, i)
}

// samples have the shapes that lead to each kind of block and table.
func samples() map[string][]byte {
	rnd := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 70000)
	for i := range noise {
		noise[i] = byte(rnd.Uint32())
	}
	skew := make([]byte, 200000) // codes up to 15 bits
	for i := range skew {
		skew[i] = byte(rnd.ExpFloat64() * 12)
	}
	words := make([]byte, 0, 300000)
	for len(words) < 300000 {
		words = append(words, strings.Repeat(string(rune('a'+rnd.IntN(26))), 1+rnd.IntN(9))...)
		words = append(words, fmt.Sprint(rnd.IntN(100000))...)
	}
	return map[string][]byte{
		"empty": nil, "one": {'x'}, "tag": tagText(7), "zeros": make([]byte, 100000),
		"noise": noise, "skew": skew, "words": words, "abc": []byte(strings.Repeat("abc", 500)),
	}
}

func TestInflatesWhatIsDeflated(t *testing.T) {
	var z Inflater
	for name, want := range samples() {
		for level := zlib.HuffmanOnly; level <= zlib.BestCompression; level++ {
			packed := deflate(t, level, want)
			got := make([]byte, len(want))
			for _, tail := range []string{"", "x", "what follows in the pack"} {
				n, err := z.InflateChecked(got, append(packed[:len(packed):len(packed)], tail...))
				if err != nil || n != len(packed) || !bytes.Equal(got, want) {
					t.Fatalf("%s, level %d, tail %q: took %d of %d: %v", name, level, tail, n, len(packed), err)
				}
			}
			for _, size := range []int{0, 1, 10, 32, len(want) / 2, len(want), len(want) + 1} {
				head := make([]byte, size)
				n, err := z.Prefix(head, packed)
				if err != nil || n != min(size, len(want)) || !bytes.Equal(head[:n], want[:n]) {
					t.Fatalf("%s, level %d: prefix of %d: %d %v", name, level, size, n, err)
				}
			}
		}
	}
}

func TestTheSizeMustBeRight(t *testing.T) {
	var z Inflater
	for name, want := range samples() {
		for level := zlib.HuffmanOnly; level <= zlib.BestCompression; level++ {
			packed := deflate(t, level, want)
			if _, err := z.InflateChecked(make([]byte, len(want)+1), packed); err != ErrShorter {
				t.Errorf("%s, level %d: one byte too few: %v", name, level, err)
			}
			if len(want) == 0 {
				continue
			}
			if _, err := z.InflateChecked(make([]byte, len(want)-1), packed); err != ErrLonger {
				t.Errorf("%s, level %d: one byte too many: %v", name, level, err)
			}
		}
	}
}

func TestACutStreamIsAnUnexpectedEnd(t *testing.T) {
	var z Inflater
	want := tagText(1)
	for level := zlib.HuffmanOnly; level <= zlib.BestCompression; level++ {
		packed := deflate(t, level, want)
		for n := range packed {
			if _, err := z.InflateChecked(make([]byte, len(want)), packed[:n]); !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("level %d, %d of %d bytes: %v", level, n, len(packed), err)
			}
		}
	}
}

func TestTheChecksumIsCompared(t *testing.T) {
	var z Inflater
	want := tagText(1)
	packed := deflate(t, -1, want)
	for i := 1; i <= 4; i++ {
		packed[len(packed)-i] ^= 1
		if _, err := z.InflateChecked(make([]byte, len(want)), packed); err != ErrChecksum {
			t.Errorf("byte %d: %v", i, err)
		}
		packed[len(packed)-i] ^= 1
	}
}

func TestNothingIsAllocated(t *testing.T) {
	z := new(Inflater)
	want := tagText(1)
	packed := deflate(t, -1, want)
	got := make([]byte, len(want))
	if n := testing.AllocsPerRun(100, func() { z.InflateChecked(got, packed) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// library is what compress/zlib says of a stream of at most limit bytes.
func library(src []byte, limit int64) (content []byte, used int, err error) {
	in := bytes.NewReader(src)
	r, err := zlib.NewReader(in)
	if err != nil {
		return nil, 0, err
	}
	content, err = io.ReadAll(io.LimitReader(r, limit+1))
	return content, len(src) - in.Len(), err
}

// Every bit of every kind of block is flipped once; the library is the oracle.
func TestDamagedStreamsAreJudgedAsByTheLibrary(t *testing.T) {
	z := new(Inflater)
	bad := 0
	for _, data := range [][]byte{tagText(3), samples()["skew"][:300], samples()["words"][:400], []byte(strings.Repeat("ab", 40))} {
		for _, level := range []int{zlib.HuffmanOnly, zlib.NoCompression, zlib.BestSpeed, zlib.BestCompression} {
			src := deflate(t, level, data)
			for bit := range 8 * len(src) {
				src[bit/8] ^= 1 << (bit % 8)
				want, used, err := library(src, 1<<16)
				size := len(data)
				if err == nil {
					size = len(want)
				}
				got := make([]byte, size)
				n, ours := z.InflateChecked(got, src)
				if (err == nil) != (ours == nil) || err == nil && (n != used || !bytes.Equal(got, want)) {
					t.Fatalf("level %d, bit %d: library %v, ours %v", level, bit, err, ours)
				}
				if ours != nil {
					bad++
				}
				src[bit/8] ^= 1 << (bit % 8)
			}
		}
	}
	if bad < 1000 {
		t.Errorf("only %d streams were bad", bad)
	}
}

func TestStreamsThatNoCompressorWrites(t *testing.T) {
	for name, bits := range map[string]string{
		"distance before the start":   "1 10 0000001 00000 0000000",
		"distance code 30":            "1 10 00110000 0000001 11110 0000000",
		"length code 286":             "1 10 11000110 00000 0000000",
		"block of kind 3":             "1 11 0000000",
		"stored, lengths that differ": "1 00 00000 1000000000000000 1000000000000000",
		"287 lengths of codes":        "1 01 01111 00000 0000",
		"31 distances":                "1 01 00000 01111 0000",
		"no code for lengths":         "1 01 00000 00000 0000 000 000 000 000",
		"repeat of nothing":           "1 01 00000 00000 0000 100 100 000 000 0 00",
		"too many codes":              "1 01 00000 00000 0000 100 100 100 000",
	} {
		src := []byte{0x78, 0x9c}
		n := 0
		for _, c := range strings.ReplaceAll(bits, " ", "") {
			if n%8 == 0 {
				src = append(src, 0)
			}
			src[len(src)-1] |= byte(c-'0') << (n % 8)
			n++
		}
		src = append(src, make([]byte, 20)...)
		if _, _, err := library(src, 1000); err == nil {
			t.Errorf("%s: the library reads it", name)
		}
		if _, err := new(Inflater).InflateChecked(make([]byte, 3), src); err != ErrCorrupt {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The library is the oracle: the same bytes, the same verdict, the same length.
func FuzzInflate(f *testing.F) {
	for _, data := range samples() {
		if len(data) > 5000 {
			data = data[:5000]
		}
		for level := zlib.HuffmanOnly; level <= zlib.BestCompression; level += 3 {
			f.Add(deflate(f, level, data), uint32(len(data)))
		}
	}
	f.Add([]byte("\x78\x9c\x03\x00\x00\x00\x00\x01"), uint32(0))
	const limit = 1 << 16
	z := new(Inflater)
	f.Fuzz(func(t *testing.T, src []byte, size uint32) {
		dst := make([]byte, size%limit)
		want, used, err := library(src, limit)
		if len(want) > limit {
			return
		}
		whole := err == nil
		if whole {
			dst = make([]byte, len(want))
		}
		n, err := z.InflateChecked(dst, src)
		if whole != (err == nil) {
			t.Fatalf("library reads it: %v; ours: %v", whole, err)
		}
		if whole && (!bytes.Equal(dst, want) || n != used) {
			t.Fatalf("%d bytes %q; library: %d bytes %q", n, dst, used, want)
		}
		head := make([]byte, size%limit)
		if n, err := z.Prefix(head, src); err == nil && whole && (n != min(len(head), len(want)) || !bytes.Equal(head[:n], want[:n])) {
			t.Fatalf("prefix of %d: %q of %q", len(head), head[:n], want)
		}
	})
}

func BenchmarkTag(b *testing.B) {
	var packed [][]byte
	for i := range 1000 {
		packed = append(packed, deflate(b, -1, tagText(i)))
	}
	dst := make([]byte, len(tagText(1)))
	b.Run("own", func(b *testing.B) {
		z := new(Inflater)
		for i := 0; b.Loop(); i++ {
			if _, err := z.InflateChecked(dst, packed[i%1000]); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("library", func(b *testing.B) {
		in := bytes.NewReader(packed[0])
		r, _ := zlib.NewReader(in)
		for i := 0; b.Loop(); i++ {
			in.Reset(packed[i%1000])
			r.(zlib.Resetter).Reset(in, nil)
			if _, err := io.ReadFull(r, dst); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkText(b *testing.B) {
	for _, size := range []int{1000, 10000, 100000} {
		text := samples()["words"][:size]
		packed := deflate(b, -1, text)
		dst := make([]byte, size)
		b.Run(fmt.Sprint("own/", size), func(b *testing.B) {
			z := new(Inflater)
			b.SetBytes(int64(size))
			for b.Loop() {
				z.InflateChecked(dst, packed)
			}
		})
		b.Run(fmt.Sprint("library/", size), func(b *testing.B) {
			in := bytes.NewReader(packed)
			r, _ := zlib.NewReader(in)
			b.SetBytes(int64(size))
			for b.Loop() {
				in.Reset(packed)
				r.(zlib.Resetter).Reset(in, nil)
				io.ReadFull(r, dst)
			}
		})
	}
}
