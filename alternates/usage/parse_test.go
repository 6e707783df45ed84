package usage

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"refaudit/oid"
)

// listed are the entries of a tree, as mode and id; false if it is malformed.
func listed(tree []byte, size int) ([]string, bool) {
	var all []string
	_, err := newEntries(tree, nil, size, nil, 0, func(mode uint32, id []byte) { all = append(all, fmt.Sprintf("%o %x", mode, id)) })
	return all, err == nil
}

// What a tree has and its base has not is new; nothing else is, if both are sorted.
func checkNew(t *testing.T, tree, base []byte, size int, sorted bool) {
	t.Helper()
	whole, ok := listed(tree, size)
	var fresh []string
	starts, err := newEntries(tree, base, size, nil, 0, func(mode uint32, id []byte) { fresh = append(fresh, fmt.Sprintf("%o %x", mode, id)) })
	if (err == nil) != ok {
		t.Fatalf("malformed %v, beside its base %v", !ok, err)
	}
	if !ok {
		return
	}
	inBase, soundBase := listed(base, size)
	checkStarts(t, tree, starts, size)
	for _, e := range whole {
		if !slices.Contains(fresh, e) && !slices.Contains(inBase, e) {
			t.Fatalf("entry %s is neither new nor in the base", e)
		}
	}
	for _, e := range fresh {
		if !slices.Contains(whole, e) {
			t.Fatalf("entry %s is new and not in the tree", e)
		}
		if sorted && soundBase && slices.Contains(inBase, e) {
			t.Fatalf("entry %s is in the base and called new", e)
		}
	}
}

// checkStarts parses a tree entry by entry.
func checkStarts(t *testing.T, tree []byte, starts []uint32, size int) {
	t.Helper()
	at := 0
	for _, s := range starts {
		if int(s) != at {
			t.Fatalf("entries begin at %v, not at %d", starts, at)
		}
		_, _, id, err := entry(tree[at:], size)
		if err != nil {
			t.Fatal(err)
		}
		at += id + size
	}
	if at != len(tree) {
		t.Fatalf("entries end at %d of %d", at, len(tree))
	}
}

// checkDelta takes the tree for a delta of the base, as far as both begin and end alike.
func checkDelta(t *testing.T, tree, base []byte, prefix, suffix, size int) {
	t.Helper()
	o := &object{data: tree, baseData: base, isDelta: true}
	for o.prefix < min(prefix, len(tree), len(base)) && tree[o.prefix] == base[o.prefix] {
		o.prefix++
	}
	for o.suffix < min(suffix, len(tree)-o.prefix, len(base)-o.prefix) && tree[len(tree)-1-o.suffix] == base[len(base)-1-o.suffix] {
		o.suffix++
	}
	inBase, ok := listed(base, size)
	if !ok {
		return
	}
	marks, _ := newEntries(base, nil, size, nil, 0, func(uint32, []byte) {})
	var fresh []string
	starts, ok := newOfDelta(o, marks, size, nil, func(mode uint32, id []byte) { fresh = append(fresh, fmt.Sprintf("%o %x", mode, id)) })
	whole, sound := listed(tree, size)
	if ok != sound && ok {
		t.Fatalf("a malformed tree passes beside its base")
	}
	for _, e := range fresh {
		if sound && !slices.Contains(whole, e) {
			t.Fatalf("entry %s is new and not in the tree", e)
		}
	}
	if !ok {
		return
	}
	for _, e := range whole {
		if !slices.Contains(fresh, e) && !slices.Contains(inBase, e) {
			t.Fatalf("entry %s is neither new nor in the base", e)
		}
	}
	checkStarts(t, tree, starts, size)
}

func TestNewEntries(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 5))
	for range 3000 {
		size := []int{20, 32}[rnd.IntN(2)]
		names := map[string]bool{}
		make := func() []byte {
			var b []byte
			for i := range 30 {
				if rnd.IntN(4) == 0 {
					continue
				}
				name := fmt.Sprintf("%c%d", 'a'+i, 0)
				names[name] = true
				mode := []string{"40000", "100644", "160000", "040000"}[i%4]
				id := bytes.Repeat([]byte{byte(i)}, size)
				id[rnd.IntN(size)] = byte(rnd.IntN(3)) // perhaps another, perhaps the same
				b = append(append(append(b, mode+" "+name...), 0), id...)
			}
			return b
		}
		// ids differ between names, so an entry by mode and id is an entry by name
		tree, base := make(), make()
		checkNew(t, tree, base, size, true)
		checkDelta(t, tree, base, rnd.IntN(2000), rnd.IntN(2000), size)
		cut := slices.Clone(base) // one entry changed, as by a commit
		if len(cut) > size {
			cut[rnd.IntN(len(cut))]++
			checkDelta(t, cut, base, rnd.IntN(2000), rnd.IntN(2000), size)
			checkDelta(t, cut, base, 2000, 2000, size)
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
	f.Add([]byte("100644 f\x00"+id+"40000 g\x00"+id), []byte("100644 f\x00"+id))
	f.Add([]byte("100644 f\x00"+id), []byte("40"))
	f.Fuzz(func(t *testing.T, tree, base []byte) {
		checkNew(t, tree, base, 20, false)
		checkDelta(t, tree, base, len(tree), len(tree), 20)
		checkDelta(t, tree, base, len(tree)/2, len(tree)/3, 20)
	})
}

func FuzzApplyDelta(f *testing.F) {
	f.Add([]byte("0123456789"), deltaOf(10, 12, 0x90, 10, 2, 'a', 'b'))
	f.Add([]byte("0123456789"), deltaOf(10, 4, 0xff, 1, 0, 0, 0, 4, 0, 0))
	f.Fuzz(func(t *testing.T, base, delta []byte) {
		from, to, code, err := deltaSizes(delta)
		if err != nil || from != uint64(len(base)) || to > 1<<16 {
			return
		}
		dst := bytes.Repeat([]byte{0xee}, int(to))
		prefix, suffix, err := applyDelta(dst[:to:to], base, code)
		if err != nil {
			return
		}
		if prefix+suffix > min(len(dst), len(base)) || !bytes.Equal(dst[:prefix], base[:prefix]) || !bytes.Equal(dst[len(dst)-suffix:], base[len(base)-suffix:]) {
			t.Fatalf("%d and %d bytes are not the base's", prefix, suffix)
		}
	})
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
	for _, n := range []int{0, 1, 100, 5000} {
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
