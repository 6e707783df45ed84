package bitmap

import (
	"math/rand/v2"
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
		count, common, within := 0, 0, true
		for i := range len(a) * 64 {
			x, y := a.Has(uint32(i)), b.Has(uint32(i))
			for name, want := range map[string]bool{"or": x || y, "and": x && y, "andnot": x && !y, "xor": x != y, "range": x || i >= lo && i < hi} {
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
