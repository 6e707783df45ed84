package reftable

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"testing"

	"refaudit/finding"
	"refaudit/oid"
)

// refsOf gives n refs, half of them tags with a peel, named as in a server's repositories.
func refsOf(n int, fn func(*Ref)) {
	var value, peel [20]byte
	name := []byte{}
	for i := range n {
		binary.BigEndian.PutUint64(value[:], uint64(i)*0x9e3779b97f4a7c15)
		binary.BigEndian.PutUint64(peel[:], uint64(i/3)*0xc2b2ae3d27d4eb4f)
		r := Ref{UpdateIndex: 1, Type: Direct, Value: value[:]}
		if i < n/2 {
			name = fmt.Appendf(name[:0], "refs/heads/topic-%07d", i)
		} else {
			name = fmt.Appendf(name[:0], "refs/tags/v1.%07d", i)
			r.Type, r.Peel = Peeled, peel[:]
		}
		r.Name = name
		fn(&r)
	}
}

func tableOf(b testing.TB, n int) []byte {
	var out bytes.Buffer
	w, err := NewWriter(&out, Options{Min: 1, Max: 1})
	if err != nil {
		b.Fatal(err)
	}
	refsOf(n, func(r *Ref) {
		if err := w.AddRef(r); err != nil {
			b.Fatal(err)
		}
	})
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	return out.Bytes()
}

// reader hides that the table is in memory.
type reader struct{ io.ReaderAt }

func openReader(b testing.TB, data []byte) *Table {
	t, err := Open(reader{bytes.NewReader(data)}, int64(len(data)), "bench.ref", oid.SHA1)
	if err != nil {
		b.Fatal(err)
	}
	return t
}

func perRecord(b *testing.B, n int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/record")
}

func BenchmarkRefs100k(b *testing.B) {
	const n = 100_000
	data := tableOf(b, n)
	t := openReader(b, data)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		k := 0
		if err := t.Refs(func(r *Ref) error { k++; return nil }); err != nil || k != n {
			b.Fatal(k, err)
		}
	}
	perRecord(b, n)
}

func BenchmarkSeek(b *testing.B) {
	const n = 100_000
	t := openReader(b, tableOf(b, n))
	it := t.Iter()
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i = (i + 7919) % (n / 2)
		name := fmt.Appendf(nil, "refs/heads/topic-%07d", i)
		it.Seek(name)
		if !it.Next() || !bytes.Equal(it.Ref().Name, name) {
			b.Fatalf("%q: %v", name, it.Err())
		}
	}
}

func BenchmarkWrite100k(b *testing.B) {
	const n = 100_000
	b.ReportAllocs()
	for b.Loop() {
		tableOf(b, n)
	}
	perRecord(b, n)
}

func BenchmarkMerged100k(b *testing.B) {
	const n = 100_000
	tables := []*Table{openReader(b, tableOf(b, n))}
	for _, size := range []int{20_000, 2000, 200, 20, 2} {
		tables = append(tables, openReader(b, tableOf(b, size)))
	}
	b.ReportAllocs()
	for b.Loop() {
		k := 0
		m := Merge(tables)
		for m.Next() {
			k += len(m.Entries())
		}
		if m.Err() != nil || k != n+22222 {
			b.Fatal(k, m.Err())
		}
	}
	perRecord(b, n)
}

func BenchmarkVerify100k(b *testing.B) {
	const n = 100_000
	t := openReader(b, tableOf(b, n))
	b.ReportAllocs()
	for b.Loop() {
		err := Verify(t, VerifyOptions{}, func(f finding.Finding) error { return errors.New(f.Message) })
		if err != nil {
			b.Fatal(err)
		}
	}
	perRecord(b, n)
}
