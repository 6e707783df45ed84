package bitmap

import (
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

// Every operation, against the same on a plain slice of booleans.
func TestSetOperations(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		n := 1 + rnd.IntN(400)
		a, b := randomSet(rnd, n), randomSet(rnd, n)
		lo, hi := rnd.IntN(n), rnd.IntN(n+1)
		results := map[string]Set{"or": a.Clone(), "and": a.Clone(), "andnot": a.Clone(), "xor": a.Clone(), "range": a.Clone()}
		results["or"].Or(b)
		results["and"].And(b)
		results["andnot"].AndNot(b)
		results["xor"].Xor(b)
		results["range"].AddRange(uint32(lo), uint32(hi))
		results["join"], results["joined"] = a.Clone(), NewSet(n)
		results["join"].Join(b, results["joined"].Add)
		count, common, within := 0, 0, true
		for i := range len(a) * 64 {
			x, y := a.Has(uint32(i)), b.Has(uint32(i))
			for name, want := range map[string]bool{"or": x || y, "and": x && y, "andnot": x && !y, "xor": x != y, "range": x || i >= lo && i < hi,
				"join": x || y, "joined": y && !x} {
				if results[name].Has(uint32(i)) != want {
					t.Fatalf("%s at %d of %d", name, i, n)
				}
			}
			if x {
				count++
			}
			if x && y {
				common++
			}
			within = within && (!x || y)
		}
		if a.Count() != count || a.CountCommon(b) != common || a.Within(b) != within || a.Empty() != (count == 0) {
			t.Fatalf("count %d %d, common %d %d, within %v", a.Count(), count, a.CountCommon(b), common, within)
		}
		checkRuns(t, a)
	}
}

// Runs and Each visit each member once, in order, and nothing else.
func checkRuns(t *testing.T, s Set) {
	t.Helper()
	seen, last := NewSet(len(s)*64), -1
	s.Runs(func(start, end int) {
		if start <= last || end <= start {
			t.Fatalf("run %d to %d after %d", start, end, last)
		}
		last = end
		seen.AddRange(uint32(start), uint32(end))
	})
	var each int
	s.Each(func(i uint32) {
		if !s.Has(i) {
			t.Fatal("a position that is no member")
		}
		each++
	})
	seen.Xor(s)
	if !seen.Empty() || each != s.Count() {
		t.Fatalf("runs or members are missing: %d of %d", each, s.Count())
	}
}

func TestOrAt(t *testing.T) {
	rnd := rand.New(rand.NewPCG(2, 1))
	for range 2000 {
		n := rnd.IntN(300)
		from, to := rnd.IntN(200), rnd.IntN(200)
		if rnd.IntN(2) == 0 {
			from, to = from&^63, to&^63
		}
		src, dst := randomSet(rnd, 500), randomSet(rnd, 500)
		want := dst.Clone()
		for i := range n {
			if src.Has(uint32(from + i)) {
				want.Add(uint32(to + i))
			}
		}
		if dst.OrAt(to, src, from, n); !slices.Equal(dst, want) {
			t.Fatalf("%d from %d to %d", n, from, to)
		}
	}
}

// Of many who add the same position, one is told that it was the first.
func TestAddShared(t *testing.T) {
	const n = 1000
	s := NewSet(n)
	var first atomic.Int64
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range uint32(n) {
				if s.AddShared(i) {
					first.Add(1)
				}
				if !s.HasShared(i) {
					t.Error("what was added is not there")
				}
			}
		})
	}
	wg.Wait()
	if first.Load() != n || s.Count() != n {
		t.Errorf("%d were first, %d are there", first.Load(), s.Count())
	}
}
