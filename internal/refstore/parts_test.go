package refstore

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"refaudit/finding"
	"refaudit/oid"
	"refaudit/reftable"
	"refaudit/repo"
)

// inParts makes even short files be looked at in parts.
func inParts(t testing.TB, least int64) {
	old := partLeast
	partLeast = least
	t.Cleanup(func() { partLeast = old })
}

// told is all that a visit says with so many workers.
func told(t testing.TB, r *repo.Repo, workers int) string {
	t.Helper()
	stores, err := Open(r)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	sum, err := stores.Visit(context.Background(), Options{Workers: workers}, func(f finding.Finding) error {
		fmt.Fprintf(&text, "%s %q %v: %s\n", f.ID, f.Ref, f.Pos, f.Message)
		return nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(&text, "%d refs, unread: %q, packed: %+v\n", sum.Refs, sum.Unread, sum.Packed)
	return text.String()
}

// isSound tells whether packed-refs is found sound by its parts.
func isSound(t testing.TB, r *repo.Repo, workers int) bool {
	t.Helper()
	v := &visit{ctx: context.Background(), repo: r, place: &place{root: r.Refs.Root, main: true}, o: Options{Workers: workers}, sum: &Summary{},
		report: func(finding.Finding) error { return nil }}
	var refs []looseRef
	if err := v.folder("refs", &refs); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(refs, func(a, b looseRef) int { return strings.Compare(a.name, b.name) })
	text, err := os.ReadFile(filepath.Join(r.CommonDir, "packed-refs"))
	if err != nil {
		t.Fatal(err)
	}
	p := &packedVisit{visit: v, names: newConflicts(), over: overlay{loose: refs}, label: "packed-refs"}
	return p.sound(bytes.NewReader(text), int64(len(text)))
}

// opened is a repository without objects of which the tests write packed-refs themselves.
func opened(t testing.TB, f oid.Format) *repo.Repo {
	t.Helper()
	return openedAs(t, f, "files", "ref: refs/heads/main\n")
}

func openedAs(t testing.TB, f oid.Format, storage, head string) *repo.Repo {
	t.Helper()
	dir := t.TempDir()
	config := "[core]\n\trepositoryformatversion = 1\n\tbare = true\n[extensions]\n\tobjectFormat = " + f.String() + "\n\trefStorage = " + storage + "\n"
	for name, text := range map[string]string{"HEAD": head, "config": config, "objects/x": "", "refs/heads/x": ""} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if text == "" {
			continue
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r, err := repo.OpenGitDir(dir, repo.Options{Env: repo.EmptyEnv})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func write(t testing.TB, r *repo.Repo, name, text string) {
	t.Helper()
	path := filepath.Join(r.CommonDir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func hexOf(rnd *rand.Rand, f oid.Format) string {
	b := make([]byte, f.Size())
	for i := range b {
		b[i] = byte(rnd.UintN(256))
	}
	return fmt.Sprintf("%x", b)
}

// packedText is a packed-refs file with these names, some with peels.
func packedText(rnd *rand.Rand, f oid.Format, names []string) string {
	var b strings.Builder
	b.WriteString("# pack-refs with: peeled fully-peeled sorted \n")
	for _, n := range names {
		fmt.Fprintf(&b, "%s %s\n", hexOf(rnd, f), n)
		if rnd.UintN(3) == 0 {
			fmt.Fprintf(&b, "^%s\n", hexOf(rnd, f))
		}
	}
	return b.String()
}

// someWords are what names are made of: such that names begin with each other and lie below each other, and now and then
// some that are refused, or have capitals.
func someWords(rnd *rand.Rand) []string {
	words := []string{"a", "b", "ab", "a-b", "a.b", "v1", "v10", "v1-x", "a/b", "v1/x", "release", "main", "x/y/z", "long-name-of-a-branch"}
	if rnd.IntN(4) == 0 {
		words = append(words, "B", "Release", "a.lock", "..", "b//c", "é", "x@{y")
	}
	return words
}

// someName is a branch or a tag made of these words.
func someName(rnd *rand.Rand, words []string) string {
	name := []string{"refs/heads", "refs/tags"}[rnd.IntN(2)]
	for range 1 + rnd.IntN(3) {
		name += "/" + words[rnd.IntN(len(words))]
		if rnd.IntN(3) == 0 {
			name += fmt.Sprint(rnd.IntN(30))
		}
	}
	return name
}

// Whether a file is read in parts or from front to back, the same is said of it.
func TestPartsSayWhatTheWholeDoes(t *testing.T) {
	inParts(t, 100)
	sound := 0
	for n := range 3000 {
		rnd := rand.New(rand.NewPCG(uint64(n), 5))
		f := []oid.Format{oid.SHA1, oid.SHA256}[rnd.IntN(2)]
		r := opened(t, f)
		from := someWords(rnd)
		var names []string
		for range 5 + rnd.IntN(60) {
			names = append(names, someName(rnd, from))
		}
		slices.Sort(names)
		names = slices.Compact(names)
		if rnd.IntN(3) > 0 { // without those that can't stand beside each other
			var kept []string
			for _, name := range names {
				if !slices.ContainsFunc(kept, func(k string) bool { return strings.HasPrefix(name, k+"/") }) {
					kept = append(kept, name)
				}
			}
			names = kept
		}
		text := []byte(packedText(rnd, f, names))
		for range max(0, rnd.IntN(4)-2) { // some damage
			switch at := rnd.IntN(len(text)); rnd.IntN(4) {
			case 0:
				text[at] ^= 1 << rnd.IntN(8)
			case 1:
				text = slices.Delete(text, at, min(at+1+rnd.IntN(60), len(text)))
			case 2:
				text = text[:at+1]
			case 3:
				text = slices.Insert(text, at, text[rnd.IntN(len(text)):][:1]...)
			}
		}
		write(t, r, "packed-refs", string(text))
		for range max(0, rnd.IntN(6)-3) {
			name := names[rnd.IntN(len(names))] + []string{"", "", "-z", "/z"}[rnd.IntN(4)]
			os.MkdirAll(filepath.Join(r.CommonDir, filepath.Dir(name)), 0o755)
			os.WriteFile(filepath.Join(r.CommonDir, name), []byte(hexOf(rnd, f)+"\n"), 0o644)
		}
		want := told(t, r, 1)
		for _, workers := range []int{2, 3, 7} {
			if got := told(t, r, workers); got != want {
				t.Fatalf("%d, %d workers:\n%swant\n%s\n%s", n, workers, got, want, text)
			}
			if isSound(t, r, workers) {
				sound++
				if strings.Count(want, "\n") != 1 {
					t.Fatalf("%d, %d workers: sound, and there is something to tell:\n%s\n%s", n, workers, want, text)
				}
			}
		}
	}
	if sound < 2000 {
		t.Errorf("only %d files were found sound by their parts", sound)
	}
}

// What is wrong between two parts and with neither of them.
func TestPartsThatDoNotFit(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	filler := func(prefix string) (all []string) {
		for i := range 20 {
			all = append(all, fmt.Sprintf("%s%02d", prefix, i))
		}
		return all
	}
	for name, c := range map[string]struct {
		names []string
		loose string
	}{
		"sound":                         {names: slices.Concat(filler("refs/heads/a"), filler("refs/heads/b"))},
		"a name below one of the first": {names: slices.Concat([]string{"refs/heads/a"}, filler("refs/heads/a-"), []string{"refs/heads/a/b"}, filler("refs/heads/b"))},
		"below one, later":              {names: slices.Concat([]string{"refs/heads/a"}, filler("refs/heads/a-a"), filler("refs/heads/a-b"), filler("refs/heads/a.c"), []string{"refs/heads/a/b"})},
		"below a loose one":             {names: slices.Concat(filler("refs/heads/a-a"), filler("refs/heads/a-b"), []string{"refs/heads/a/b"}), loose: "refs/heads/a"},
		"only in case":                  {names: slices.Concat([]string{"refs/heads/A"}, filler("refs/heads/_"), []string{"refs/heads/a"})},
		"not in order":                  {names: slices.Concat(filler("refs/heads/b"), filler("refs/heads/a"))},
		"one twice":                     {names: slices.Concat(filler("refs/heads/a"), filler("refs/heads/a")[19:], filler("refs/heads/b"))},
	} {
		t.Run(name, func(t *testing.T) {
			r := opened(t, oid.SHA1)
			text := packedText(rnd, oid.SHA1, c.names)
			write(t, r, "packed-refs", text)
			if c.loose != "" {
				write(t, r, c.loose, hexOf(rnd, oid.SHA1)+"\n")
			}
			for least := int64(60); least < int64(len(text)); least += 7 { // the cut is everywhere once
				inParts(t, least)
				want := told(t, r, 1)
				if clean := strings.Count(want, "\n") == 1; clean != (name == "sound") {
					t.Fatal(want)
				}
				if got := told(t, r, 2); got != want {
					t.Fatalf("parts of %d:\n%swant\n%s", least, got, want)
				}
				if isSound(t, r, 2) && name != "sound" {
					t.Fatalf("parts of %d: sound", least)
				}
			}
		})
	}
}

// tableOf is a table of these names; those in gone are deleted.
func tableOf(t testing.TB, rnd *rand.Rand, f oid.Format, index uint64, block int, names, gone []string) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := reftable.NewWriter(&b, reftable.Options{Format: f, Min: index, Max: index, BlockSize: block})
	if err != nil {
		t.Fatal(err)
	}
	all := slices.Concat(names, gone)
	slices.Sort(all)
	for _, name := range slices.Compact(all) {
		ref := reftable.Ref{Name: []byte(name), UpdateIndex: index, Type: reftable.Direct}
		switch {
		case slices.Contains(gone, name):
			ref.Type = reftable.Deletion
		case name == "HEAD" || rnd.IntN(20) == 0:
			ref.Type, ref.Target = reftable.Symref, []byte("refs/heads/main")
		default:
			id := make([]byte, f.Size())
			for i := range id {
				id[i] = byte(rnd.UintN(256))
			}
			if ref.Value = id; rnd.IntN(3) == 0 {
				ref.Type, ref.Peel = reftable.Peeled, slices.Clone(id)
			}
		}
		if err := w.AddRef(&ref); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// writeStack makes these tables the stack, the oldest first.
func writeStack(t testing.TB, r *repo.Repo, tables [][]byte) {
	t.Helper()
	list := ""
	for i, data := range tables {
		name := fmt.Sprintf("0x%012x-0x%012x-%08x.ref", i+1, i+1, i)
		write(t, r, "reftable/"+name, string(data))
		list += name + "\n"
	}
	write(t, r, "reftable/tables.list", list)
}

// stackIsSound tells whether a stack is found sound by its parts.
func stackIsSound(t testing.TB, r *repo.Repo, workers int) bool {
	t.Helper()
	v := &visit{ctx: context.Background(), repo: r, place: &place{root: r.Refs.Root, main: true}, o: Options{Workers: workers}, sum: &Summary{}, report: odd}
	s, whole, err := v.openStack()
	if s != nil {
		defer s.close()
	}
	return err == nil && whole && (&tableVisit{visit: v, tables: s.tables, names: newConflicts()}).sound()
}

// As with packed-refs, but with stacks of tables.
func TestPartsOfStacksSayWhatTheWholeDoes(t *testing.T) {
	inParts(t, 200)
	sound := 0
	for n := range 3000 {
		rnd := rand.New(rand.NewPCG(uint64(n), 6))
		f := []oid.Format{oid.SHA1, oid.SHA256}[rnd.IntN(2)]
		r := openedAs(t, f, "reftable", "ref: refs/heads/.invalid\n")
		from := someWords(rnd)
		block := []int{256, 300, 512, 4096}[rnd.IntN(4)]
		names := []string{"HEAD"}
		for range 30 + rnd.IntN(100) {
			name := someName(rnd, from)
			if rnd.IntN(8) == 0 || !slices.ContainsFunc(names, func(k string) bool { return strings.HasPrefix(name, k+"/") || strings.HasPrefix(k, name+"/") }) {
				names = append(names, name)
			}
		}
		tables := [][]byte{tableOf(t, rnd, f, 1, block, names, nil)}
		for i := range rnd.IntN(3) {
			var some, gone []string
			for range 1 + rnd.IntN(4) {
				some = append(some, names[rnd.IntN(len(names))]+[]string{"", "-z"}[rnd.IntN(2)])
			}
			for range rnd.IntN(3) {
				gone = append(gone, names[rnd.IntN(len(names))])
			}
			tables = append(tables, tableOf(t, rnd, f, uint64(i+2), block, some, gone))
		}
		for range max(0, rnd.IntN(4)-2) { // some damage
			data := tables[rnd.IntN(len(tables))]
			data[rnd.IntN(len(data))] ^= 1 << rnd.IntN(8)
		}
		writeStack(t, r, tables)
		want := told(t, r, 1)
		for _, workers := range []int{2, 3, 7} {
			if got := told(t, r, workers); got != want {
				t.Fatalf("%d, %d workers:\n%swant\n%s", n, workers, got, want)
			}
			if stackIsSound(t, r, workers) {
				sound++
				if strings.Count(want, "\n") != 1 {
					t.Fatalf("%d, %d workers: sound, and there is something to tell:\n%s", n, workers, want)
				}
			}
		}
	}
	if sound < 800 {
		t.Errorf("only %d stacks were found sound by their parts", sound)
	}
}

func FuzzParts(f *testing.F) {
	inParts(f, 80)
	rnd := rand.New(rand.NewPCG(3, 4))
	f.Add([]byte(packedText(rnd, oid.SHA1, []string{"refs/heads/a", "refs/heads/a-b", "refs/heads/a/b", "refs/tags/v1", "refs/tags/v10"})))
	f.Add([]byte(packedText(rnd, oid.SHA1, []string{"refs/heads/B", "refs/heads/b", "refs/tags/v1", "refs/tags/v10"})))
	r := opened(f, oid.SHA1)
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(filepath.Join(r.CommonDir, "packed-refs"), text, 0o644); err != nil {
			t.Fatal(err)
		}
		want := told(t, r, 1)
		for _, workers := range []int{2, 5} {
			if got := told(t, r, workers); got != want {
				t.Fatalf("%d workers:\n%swant\n%s", workers, got, want)
			}
		}
	})
}

func BenchmarkQuickPacked(b *testing.B) {
	rnd := rand.New(rand.NewPCG(3, 4))
	var names []string
	for i := range 100_000 {
		names = append(names, fmt.Sprintf("refs/tags/v%07d", i))
	}
	r := opened(b, oid.SHA1)
	text := packedText(rnd, oid.SHA1, names)
	write(b, r, "packed-refs", text)
	for _, workers := range []int{1, 2} {
		b.Run(fmt.Sprint(workers), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				told(b, r, workers)
			}
		})
	}
}

func FuzzPartsOfStacks(f *testing.F) {
	inParts(f, 300)
	rnd := rand.New(rand.NewPCG(5, 6))
	names := []string{"HEAD"}
	for i := range 120 {
		names = append(names, fmt.Sprintf("refs/%s/a%s%d", []string{"heads", "tags"}[i%2], []string{"-", ".", "b"}[i%3], i))
	}
	tables := [][]byte{tableOf(f, rnd, oid.SHA1, 1, 256, names, nil), tableOf(f, rnd, oid.SHA1, 2, 256, names[50:60], names[70:75])}
	r := openedAs(f, oid.SHA1, "reftable", "ref: refs/heads/.invalid\n")
	f.Add([]byte{})
	f.Add([]byte{0, 1, 0, 1, 1, 20, 0, 3})
	f.Fuzz(func(t *testing.T, flips []byte) { // of four bytes each: a table, a place in it, a bit
		damaged := [][]byte{bytes.Clone(tables[0]), bytes.Clone(tables[1])}
		for ; len(flips) >= 4; flips = flips[4:] {
			data := damaged[flips[0]%2]
			data[(int(flips[1])<<8|int(flips[2]))%len(data)] ^= 1 << (flips[3] % 8)
		}
		writeStack(t, r, damaged)
		want := told(t, r, 1)
		for _, workers := range []int{2, 5} {
			if got := told(t, r, workers); got != want {
				t.Fatalf("%d workers:\n%swant\n%s", workers, got, want)
			}
		}
	})
}
