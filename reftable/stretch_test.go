package reftable

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"refaudit/finding"
	"refaudit/oid"
)

// written is a table of refs with these numbers, deleted where the number is below zero.
func written(t *testing.T, index uint64, block int, numbers ...int) *Table {
	t.Helper()
	var b bytes.Buffer
	w, err := NewWriter(&b, Options{Format: oid.SHA1, Min: index, Max: index, BlockSize: block})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range numbers {
		ref := Ref{Name: fmt.Appendf(nil, "refs/heads/%06d", max(n, -n)), UpdateIndex: index, Type: Deletion}
		if n >= 0 {
			ref.Type, ref.Value = Direct, bytes.Repeat([]byte{1}, 20)
		}
		if err := w.AddRef(&ref); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	table, err := OpenBytes(b.Bytes(), fmt.Sprint(index), oid.SHA1)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func upTo(n, step int) (all []int) {
	for i := step; i <= n; i += step {
		all = append(all, i)
	}
	return all
}

func TestStretchesAreTheWhole(t *testing.T) {
	stacks := map[string][]*Table{
		"one":            {written(t, 1, 256, upTo(500, 1)...)},
		"three":          {written(t, 1, 256, upTo(500, 2)...), written(t, 2, 256, 3, 5, -40, 401), written(t, 3, 512, -3, -4, -200, 300)},
		"without blocks": {written(t, 1, 256, upTo(500, 2)...), written(t, 2, 256)},
	}
	for name, tables := range stacks {
		var want []string
		whole := Merge(tables)
		for whole.Next() {
			want = append(want, fmt.Sprint(string(whole.Entries()[0].Name), len(whole.Entries())))
		}
		for n := 1; n < 7; n++ {
			cuts := tables[0].Split(n)
			if len(cuts) != n-1 {
				t.Fatalf("%s: %d cuts for %d stretches", name, len(cuts), n)
			}
			var got []string
			var all []*Stretch
			for i := range n {
				var from, to []byte
				if i > 0 {
					from = cuts[i-1]
				}
				if i < n-1 {
					to = cuts[i]
				}
				s := MergeStretch(tables, from, to)
				for s.Next() {
					got = append(got, fmt.Sprint(string(s.Entries()[0].Name), len(s.Entries())))
				}
				if s.Err() != nil {
					t.Fatal(s.Err())
				}
				all = append(all, s)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s in %d: %q\nwant %q", name, n, got, want)
			}
			said := errors.New("said something")
			if whole, err := JudgeStretches(all, func(finding.Finding) error { return said }); !whole || err != nil {
				t.Errorf("%s in %d: whole %v, error %v", name, n, whole, err)
			}
		}
	}
}

// What lies between two stretches, or in both, is no whole.
func TestStretchesThatDoNotMeet(t *testing.T) {
	tables := []*Table{written(t, 1, 256, upTo(500, 2)...), written(t, 2, 256, 101, 103)}
	name := func(n int) []byte { return fmt.Appendf(nil, "refs/heads/%06d", n) }
	for _, c := range []struct {
		to, from int
		whole    bool
	}{{100, 100, true}, {101, 101, true}, {100, 102, false}, {102, 100, false}, {101, 102, false}, {102, 103, false}, {100, 101, false}} {
		first, second := MergeStretch(tables, nil, name(c.to)), MergeStretch(tables, name(c.from), nil)
		for first.Next() {
		}
		for second.Next() {
		}
		if whole, err := JudgeStretches([]*Stretch{first, second}, func(finding.Finding) error { return nil }); whole != c.whole || err != nil {
			t.Errorf("up to %d, and from %d: whole %v, error %v", c.to, c.from, whole, err)
		}
	}
}

// Of a damaged index the stretches tell what the whole does, unless they can't be put together.
func TestStretchesJudgeTheIndex(t *testing.T) {
	sound := written(t, 1, 256, upTo(300, 1)...)
	cuts := sound.Split(3)
	told := 0
	for at := sound.RefIndex - 1000; at < sound.end; at++ {
		for _, bit := range []byte{1, 64} {
			data := bytes.Clone(sound.mem)
			data[at] ^= bit
			table, err := OpenBytes(data, "1", oid.SHA1)
			if err != nil {
				t.Fatal(err)
			}
			table.Damage = func(c *finding.Corrupt) error { return c }
			var want, got []string
			whole := Merge([]*Table{table})
			whole.Searches()
			for whole.Next() {
			}
			if whole.Err() != nil {
				continue // the records themselves
			}
			whole.JudgeSearches(func(f finding.Finding) error { want = append(want, f.Message); return nil })
			var all []*Stretch
			for i := range 3 {
				var from, to []byte
				if i > 0 {
					from = cuts[i-1]
				}
				if i < 2 {
					to = cuts[i]
				}
				s := MergeStretch([]*Table{table}, from, to)
				for s.Next() {
				}
				if all = append(all, s); s.Err() != nil {
					err = s.Err()
				}
			}
			if err != nil {
				continue // the search for the first name
			}
			fits, err := JudgeStretches(all, func(f finding.Finding) error { got = append(got, f.Message); return nil })
			if err != nil || fits && !slices.Equal(got, want) {
				t.Errorf("bit %d at %d: %q, error %v\nwant %q", bit, at, got, err, want)
			}
			if fits && len(want) > 0 {
				told++
			}
		}
	}
	if told < 100 {
		t.Errorf("only %d of the flips were told of by stretches that fit", told)
	}
}
