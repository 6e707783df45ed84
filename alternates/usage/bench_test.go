package usage

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"refaudit/internal/delta"
	"refaudit/internal/gittest"
	"refaudit/odb"
	"refaudit/oid"
	"refaudit/repo"
)

// large has a few thousand commits that change files in many folders.
func large(b *testing.B) *gittest.Repo {
	b.Helper()
	r := gittest.Init(b, gittest.Options{})
	rnd := rand.New(rand.NewPCG(1, 1))
	var s strings.Builder
	for i := range 4000 {
		fmt.Fprintf(&s, "commit refs/heads/main\ncommitter C <c@example.com> %d +0000\ndata 1\nx\n", 1600000000+i*60)
		for range 3 {
			body := strings.Repeat(fmt.Sprintf("%d line\n", rnd.IntN(9999)), 10)
			fmt.Fprintf(&s, "M 100644 inline src%d/mod%d/file%d.c\ndata %d\n%s\n", rnd.IntN(20), rnd.IntN(20), rnd.IntN(30), len(body), body)
		}
		s.WriteString("\n")
	}
	r.GitIn(s.String(), "fast-import", "--quiet")
	return r
}

// bench measures again and again, with the session that is given, else with a new one each time.
func bench(b *testing.B, r *gittest.Repo, shared *Session, o Options) {
	b.Helper()
	at, err := repo.Open(r.Path, repo.Options{})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		session := shared
		if session == nil {
			session = NewSession(0)
		}
		u, err := session.Measure(context.Background(), at, o)
		if err != nil || len(u.Unknown) > 0 {
			b.Fatal(err, u)
		}
		if shared == nil {
			session.Close()
		}
	}
}

func BenchmarkMeasure(b *testing.B) {
	r := large(b)
	r.Git("repack", "-adbq")
	b.Run("walk, commits inflated", func(b *testing.B) { bench(b, r, nil, Options{Method: Walk}) })
	b.Run("bitmap", func(b *testing.B) { bench(b, r, nil, Options{}) })
	b.Run("bitmap and types", func(b *testing.B) { bench(b, r, nil, Options{By: ByType}) })
	fork := *r
	fork.Path = filepath.Join(b.TempDir(), "fork.git")
	r.Git("clone", "-q", "--bare", "--shared", r.Path, fork.Path)
	fork.Git("update-ref", "refs/heads/own", fork.Git("commit-tree", "refs/heads/main^{tree}", "-p", "refs/heads/main", "-m", "own"))
	b.Run("fork", func(b *testing.B) { bench(b, &fork, nil, Options{ExcludeAlternates: true}) })
	shared := NewSession(0)
	defer shared.Close()
	b.Run("one more fork of a pool", func(b *testing.B) { bench(b, &fork, shared, Options{ExcludeAlternates: true}) })
	r.Git("commit-graph", "write", "--reachable")
	b.Run("walk", func(b *testing.B) { bench(b, r, nil, Options{Method: Walk}) })
}

// indexOf is an index of n objects, which lie in the pack in the order of their ids.
func indexOf(t testing.TB, n int) (x *odb.Index, ids [][]byte) {
	t.Helper()
	rnd := rand.NewChaCha8([32]byte{byte(n)})
	for range n {
		id := make([]byte, 20)
		rnd.Read(id)
		ids = append(ids, id)
	}
	slices.SortFunc(ids, bytes.Compare)
	file := []byte("\xfftOc\x00\x00\x00\x02")
	at := 0
	for first := range 256 {
		for at < n && int(ids[at][0]) <= first {
			at++
		}
		file = binary.BigEndian.AppendUint32(file, uint32(at))
	}
	for _, id := range ids {
		file = append(file, id...)
	}
	file = append(file, make([]byte, 4*n)...) // CRCs
	for i := range n {
		file = binary.BigEndian.AppendUint32(file, uint32(12+i))
	}
	file = append(file, make([]byte, 40)...)
	x, err := odb.ParseIndex(file, oid.SHA1, "test.idx")
	if err != nil {
		t.Fatal(err)
	}
	return x, ids
}

// A fork's trees name many objects, of which the pool has nearly all: each look-up is of 32 ids, one a thousandth of
// the index after another.
func BenchmarkFindAll(b *testing.B) {
	x, ids := indexOf(b, 300_000)
	p := &pack{x: x, format: oid.SHA1}
	var err error
	if p.order, err = orderBySort(x, uint64(12+x.Count())); err != nil {
		b.Fatal(err)
	}
	own, _ := indexOf(b, 200)
	small := &pack{x: own, format: oid.SHA1}
	if small.order, err = orderBySort(own, uint64(12+own.Count())); err != nil {
		b.Fatal(err)
	}
	size := int(align(uint64(x.Count())))
	sp := &space{format: oid.SHA1, own: 1, first: []uint32{0, 256}, stores: []*store{{packs: []*pack{small}, size: 256}, {packs: []*pack{p}, size: uint32(size)}}}
	for _, s := range sp.stores {
		s.expect(x.Count())
	}
	var group [together][]byte
	var found [together]uint32
	at := 0
	for b.Loop() {
		for i := range group {
			at += 289
			group[i] = ids[at%len(ids)]
		}
		sp.findAll(group[:], found[:])
		if found[7] == none {
			b.Fatal("lost")
		}
	}
}

// A tree of 500 entries, of which a delta changes one.
func BenchmarkNewEntries(b *testing.B) {
	var base []byte
	for i := range 500 {
		base = append(append(append(base, fmt.Sprintf("100644 file%03d", i)...), 0), make([]byte, 20)...)
	}
	marks, err := entries(base, 20, nil, func(uint32, []byte) {})
	if err != nil {
		b.Fatal(err)
	}
	at := int(marks[250]) + 15
	o := &object{data: base, baseData: base, isDelta: true, copies: []delta.Copied{{N: at}, {At: at + 20, From: at + 20, N: len(base) - at - 20}}}
	for name, run := range map[string]func(starts []uint32) ([]uint32, error){
		"whole": func(starts []uint32) ([]uint32, error) { return entries(base, 20, starts, func(uint32, []byte) {}) },
		"delta": func(starts []uint32) ([]uint32, error) {
			return newEntries(o, marks, 20, starts, func(uint32, []byte) {})
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(base)))
			var starts []uint32
			for b.Loop() {
				if starts, err = run(starts[:0]); err != nil || len(starts) != 500 {
					b.Fatal(err, len(starts))
				}
			}
		})
	}
}
