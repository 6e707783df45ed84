package usage

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"refaudit/internal/delta"
	"refaudit/oid"
)

// listed are the entries of a tree, as mode and id; false if it is malformed.
func listed(tree []byte, size int) ([]string, bool) {
	var all []string
	_, err := entries(tree, size, nil, func(mode uint32, id []byte) { all = append(all, fmt.Sprintf("%o %x", mode, id)) })
	return all, err == nil
}

// checkStarts parses a tree entry by entry.
func checkStarts(t *testing.T, tree []byte, starts []uint32, size int) {
	t.Helper()
	at := 0
	for _, s := range starts {
		if int(s) != at {
			t.Fatalf("entries begin at %v, not at %d", starts, at)
		}
		_, id, err := entry(tree[at:], size)
		if err != nil {
			t.Fatal(err)
		}
		at += id + size
	}
	if at != len(tree) {
		t.Fatalf("entries end at %d of %d", at, len(tree))
	}
}

// checkDelta makes a tree by a delta: what it has and its base has not is new, and what is new it has.
func checkDelta(t *testing.T, base, code []byte, size int) {
	t.Helper()
	_, to, code, err := delta.Sizes(code)
	if err != nil || to > 1<<16 {
		return
	}
	o := &object{data: make([]byte, to), baseData: base, isDelta: true}
	if err = delta.Apply(o.data, base, code, &o.copies); err != nil {
		return
	}
	inBase, sound := listed(base, size)
	var marks []uint32
	if sound {
		marks, _ = entries(base, size, nil, func(uint32, []byte) {})
	}
	whole, sound := listed(o.data, size)
	var fresh []string
	starts, err := newEntries(o, marks, size, nil, func(mode uint32, id []byte) { fresh = append(fresh, fmt.Sprintf("%o %x", mode, id)) })
	if (err == nil) != sound {
		t.Fatalf("sound %v, beside its base %v", sound, err)
	}
	if !sound {
		return
	}
	for _, e := range whole {
		if !slices.Contains(fresh, e) && !(len(marks) > 0 && slices.Contains(inBase, e)) {
			t.Fatalf("entry %s is neither new nor in the base", e)
		}
	}
	for _, e := range fresh {
		if !slices.Contains(whole, e) {
			t.Fatalf("entry %s is new and not in the tree", e)
		}
	}
	checkStarts(t, o.data, starts, size)
}

// randomDelta copies parts of the base, from anywhere, and inserts, also in the middle of entries.
func randomDelta(rnd *rand.Rand, base []byte, insert func() []byte) []byte {
	var code []byte
	to := 0
	for range rnd.IntN(6) {
		if len(base) > 0 && rnd.IntN(3) > 0 {
			from := rnd.IntN(len(base))
			n := 1 + rnd.IntN(len(base)-from)
			code = append(code, 0xb3, byte(from), byte(from>>8), byte(n), byte(n>>8))
			to += n
			continue
		}
		b := insert()
		b = b[:min(len(b), 127)]
		if len(b) > 0 {
			code = append(append(code, byte(len(b))), b...)
			to += len(b)
		}
	}
	return deltaOf(uint64(len(base)), uint64(to), code...)
}

func TestNewEntriesOfDeltas(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 5))
	for range 20000 {
		size := []int{20, 32}[rnd.IntN(2)]
		some := func(n int) []byte {
			var b []byte
			for i := range n {
				mode := []string{"40000", "100644", "160000", "040000"}[i%4]
				b = append(append(append(b, fmt.Sprintf("%s n%d", mode, rnd.IntN(30))...), 0), bytes.Repeat([]byte{byte(rnd.IntN(9))}, size)...)
			}
			return b
		}
		base := some(rnd.IntN(12))
		checkDelta(t, base, randomDelta(rnd, base, func() []byte { return some(rnd.IntN(3)) }), size)
		// and as git makes them: one id changes
		if n := len(base); n > 0 {
			at := size + rnd.IntN(n-size)
			ins := min(1+rnd.IntN(size), n-at, 127)
			code := append([]byte{0xb3, 0, 0, byte(at), byte(at >> 8), byte(ins)}, bytes.Repeat([]byte{7}, ins)...)
			if rest := n - at - ins; rest > 0 {
				code = append(code, 0xb3, byte(at+ins), byte((at+ins)>>8), byte(rest), byte(rest>>8))
			}
			checkDelta(t, base, deltaOf(uint64(n), uint64(n), code...), size)
		}
	}
}

func TestMalformedTrees(t *testing.T) {
	id := strings.Repeat("x", 20)
	for text, ok := range map[string]bool{
		"":                                true,
		"100644 f\x00" + id:               true,
		"40000 f\x00" + id:                true,
		"100644 f\x00" + id[1:]:           false,
		"100644 \x00" + id:                false,
		" f\x00" + id:                     false,
		"100648 f\x00" + id:               false,
		"100644":                          false,
		"100644 f":                        false,
		"00000000100644 f\x00" + id:       false,
		"100644 f\x00" + id + "40000":     false,
		"100644 f\x00" + id + "40 g\x00x": false,
	} {
		if _, got := listed([]byte(text), 20); got != ok {
			t.Errorf("%q: sound %v, want %v", text, got, ok)
		}
	}
}

func FuzzNewEntries(f *testing.F) {
	id := strings.Repeat("x", 20)
	base := "100644 f\x00" + id + "40000 g\x00" + id
	f.Add([]byte(base), deltaOf(uint64(len(base)), uint64(len(base)), 0x90, 9, 20, 'y', 'y', 'y', 'y', 'y', 'y', 'y', 'y', 'y', 'y', 'y', 'y', 'y', 'y', 'y', 'y', 'y', 'y', 'y', 'y', 0x91, 29, 28))
	f.Add([]byte(base), deltaOf(uint64(len(base)), 29, 0x90, 29))
	f.Fuzz(func(t *testing.T, base, delta []byte) { checkDelta(t, base, delta, 20) })
}

func FuzzCommit(f *testing.F) {
	hex := strings.Repeat("1", 40)
	f.Add([]byte("tree " + hex + "\nparent " + hex + "\nparent " + hex + "\nauthor A"))
	f.Add([]byte("tree " + hex + "\nparent " + hex))
	f.Fuzz(func(t *testing.T, text []byte) {
		var whole, part commit
		_, err := whole.parse(text, oid.SHA1)
		for n := range len(text) { // a beginning says the same or asks for more
			more, bad := part.parse(text[:n], oid.SHA1)
			if err == nil && bad == nil && !more && (part.tree != whole.tree || !slices.Equal(part.parents, whole.parents)) {
				t.Fatalf("%d of %d bytes: %v, whole %v", n, len(text), part, whole)
			}
		}
	})
}

func TestCommits(t *testing.T) {
	hex := strings.Repeat("1", 40)
	for text, want := range map[string]int{
		"tree " + hex + "\nauthor A":                                       0,
		"tree " + hex + "\nparent " + hex + "\nauthor A":                   1,
		"tree " + hex + "\nparent " + hex + "\nparent " + hex + "\ngpgsig": 2,
		"tree " + hex[1:] + "\nauthor A":                                   -1,
		"tree " + hex + " author A":                                        -1,
		"tree " + hex + "\nparent " + hex[1:] + "x\nauthor A":              -1,
		"tree " + hex + "\nparent " + hex + "author A, and more":           -1,
		"parent " + hex + "\nauthor A":                                     -1,
		"":                                                                 -1,
	} {
		var c commit
		if _, err := c.parse([]byte(text), oid.SHA1); (err == nil) != (want >= 0) || err == nil && len(c.parents) != want {
			t.Errorf("%q: %d parents, %v", text, len(c.parents), err)
		}
	}
}

// Each position of a pack is found from its offset, from wherever one starts.
func TestFindBelow(t *testing.T) {
	o := &order{off32: []uint32{12, 20, 21, 100, 1000, 1001, 4000}, index: make([]uint32, 6)}
	for near := range uint32(7) {
		for i := range uint32(6) {
			if got, ok := o.findBelow(uint64(o.off32[i]), near); ok != (i < near) || ok && got != i {
				t.Errorf("offset of %d from %d: %d %v", i, near, got, ok)
			}
		}
		for _, off := range []uint64{0, 13, 99, 4000, 5000} {
			if got, ok := o.findBelow(off, near); ok {
				t.Errorf("offset %d from %d: %d", off, near, got)
			}
		}
	}
}

func TestSortByKey(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 5))
	for _, n := range []int{0, 1, 100, 255, 256, 5000} {
		keys, values := make([]uint64, n), make([]uint32, n)
		for i := range keys {
			keys[i], values[i] = rnd.Uint64()>>(rnd.IntN(60)), uint32(i)
		}
		before := slices.Clone(keys)
		sortByKey(keys, values)
		for i, v := range values {
			if before[v] != keys[i] || i > 0 && keys[i] < keys[i-1] {
				t.Fatalf("%d keys: wrong at %d", n, i)
			}
		}
		numbers := make([]uint32, n)
		for i := range numbers {
			numbers[i] = rnd.Uint32() >> rnd.IntN(30)
		}
		want := slices.Sorted(slices.Values(numbers))
		if got := sortNumbers(numbers); !slices.Equal(got, want) {
			t.Fatalf("%d numbers", n)
		}
	}
}
