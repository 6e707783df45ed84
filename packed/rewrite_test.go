package packed

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"refaudit/oid"
)

// counted is a writer that knows how often it was called.
type counted struct {
	bytes.Buffer
	writes []int
}

func (c *counted) Write(p []byte) (int, error) {
	c.writes = append(c.writes, len(p))
	return c.Buffer.Write(p)
}

func mustRewrite(t testing.TB, data []byte, f oid.Format, plan Plan) ([]byte, Result) {
	t.Helper()
	var out counted
	res, err := Rewrite(&out, bytes.NewReader(data), int64(len(data)), f, plan)
	if err != nil {
		t.Fatal(err)
	}
	if res.Size != int64(out.Len()) || res.Writes != len(out.writes) {
		t.Errorf("%+v, but %d bytes in %d writes", res, out.Len(), len(out.writes))
	}
	return out.Bytes(), res
}

// offsetOf is the offset of the nth entry with a name.
func offsetOf(t testing.TB, data []byte, f oid.Format, name string, nth int) int64 {
	t.Helper()
	off := int64(-1)
	Read(bytes.NewReader(data), int64(len(data)), f, Options{}, nil, func(e *Entry) error {
		if string(e.Name) == name {
			if nth--; nth == 0 {
				off = e.Offset
			}
		}
		return nil
	})
	if off < 0 {
		t.Fatalf("no %s", name)
	}
	return off
}

var modern = &Header{Peeled: true, FullyPeeled: true, Sorted: true}

// One wrong peel among 100,000 refs: what stands before it, the peel, and what stands behind it.
func TestOneBadPeelIsThreeWrites(t *testing.T) {
	data := bigFile(100_000)
	right := oid.SHA1.Object("blob", []byte("right"))
	plan := Plan{Edits: []Edit{{offsetOf(t, data, oid.SHA1, "refs/tags/v0020000", 1), right}}}
	var out counted
	if _, err := Rewrite(&out, bytes.NewReader(data), int64(len(data)), oid.SHA1, plan); err != nil {
		t.Fatal(err)
	}
	if len(out.writes) != 3 || out.writes[1] != 42 {
		t.Errorf("writes of %d bytes", out.writes)
	}
	at := bytes.Index(data, []byte("refs/tags/v0020000\n^")) + len("refs/tags/v0020000\n^")
	want := append(append(bytes.Clone(data[:at]), right.String()...), data[at+40:]...)
	if !bytes.Equal(out.Bytes(), want) {
		t.Error("more than the one line changed")
	}
}

// An edit that changes nothing does not break the run.
func TestAnEditThatChangesNothingCostsNothing(t *testing.T) {
	data := bigFile(20_000)
	var edits []Edit
	Read(bytes.NewReader(data), int64(len(data)), oid.SHA1, Options{}, nil, func(e *Entry) error {
		if len(edits) < 5000 {
			edits = append(edits, Edit{Offset: e.Offset})
			if e.Peel != nil {
				edits[len(edits)-1].Peel = oid.FromBytes(oid.SHA1, e.Peel)
			}
		}
		return nil
	})
	if got, res := mustRewrite(t, data, oid.SHA1, Plan{Edits: edits}); !bytes.Equal(got, data) || res.Writes != 1 || res.Set+res.Dropped > 0 {
		t.Errorf("%+v", res)
	}
}

func TestASoundFileIsCopied(t *testing.T) {
	data := sample(oid.SHA256, 30)
	got, res := mustRewrite(t, data, oid.SHA256, Plan{})
	if !bytes.Equal(got, data) || res.Refs != 30 || res.Writes != 1 {
		t.Errorf("%+v", res)
	}
	if got, res = mustRewrite(t, data, oid.SHA256, Plan{Header: modern, Sort: true, MergeEqual: true, DropOrphans: true, Terminate: true}); !bytes.Equal(got, data) || res.Refs != 30 {
		t.Errorf("%+v", res)
	}
}

// C08: whatever the order of the ^ lines below a tag, the result is the same file.
func TestAllOrdersOfPeelsGiveTheSameFile(t *testing.T) {
	f := oid.SHA1
	tag, c1, c2 := hexOf(f, "tag"), f.Object("blob", []byte("c1")), f.Object("blob", []byte("c2"))
	for _, tail := range []string{"\n", ""} {
		want := fullHeader + tag + " refs/tags/v1\n^" + c2.String() + "\n"
		for _, order := range [][]oid.ID{{c1, c2}, {c2, c1}, {c1, c1}, {c2, c2}, {c1, c2, c1}, {c2, c1, c1, c2}, {c1}, {c2}, {}} {
			text := fullHeader + tag + " refs/tags/v1\n"
			for _, p := range order {
				text += "^" + p.String() + "\n"
			}
			data := []byte(strings.TrimSuffix(text, "\n") + tail)
			plan := Plan{Edits: []Edit{{int64(len(fullHeader)), c2}}, DropOrphans: true, Terminate: tail == ""}
			if got, _ := mustRewrite(t, data, f, plan); string(got) != want {
				t.Errorf("%q becomes %q", data, got)
			}
		}
	}
}

// The second file of C08: a branch has no peel, however many lines stand below it.
func TestOrphansBelowABranchGoToo(t *testing.T) {
	a := hexOf(oid.SHA1, "a")
	data := []byte(fullHeader + a + " refs/heads/main\n^" + a + "\n^" + hexOf(oid.SHA1, "b") + "\n" + a + " refs/heads/x\n")
	got, res := mustRewrite(t, data, oid.SHA1, Plan{Edits: []Edit{{Offset: int64(len(fullHeader))}}, DropOrphans: true})
	if string(got) != fullHeader+a+" refs/heads/main\n"+a+" refs/heads/x\n" || res.Dropped != 1 || res.Orphans != 1 {
		t.Errorf("%q %+v", got, res)
	}
}

func TestRefusals(t *testing.T) {
	f := oid.SHA1
	a, b := hexOf(f, "a"), hexOf(f, "b")
	h := fullHeader
	all := Plan{Header: modern, Sort: true, MergeEqual: true, DropOrphans: true, Terminate: true}
	straight := all
	straight.Sort = false
	first := []Edit{{Offset: int64(len(h))}}
	for _, c := range []struct {
		what, text string
		plan       Plan
		want       error
	}{
		{"empty", "", all, ErrLostBytes},
		{"HTML", h + a + " refs/heads/x\n</script>\n", all, ErrLostBytes},
		{"NUL in a name", h + a + " refs/heads/ma\x00in\n", all, ErrLostBytes},
		{"NUL in a name among others", h + a + " refs/heads/a\n" + a + " refs/heads/m\x00\n" + a + " refs/heads/z\n", straight, ErrLostBytes},
		{"zeros", h + strings.Repeat("\x00", 200) + "\n", all, ErrLostBytes},
		{"NUL in the header", "# pack-refs with: sorted \x00\n", all, ErrLostBytes},
		{"cut in an id", h + a[:20], all, ErrLostBytes},
		{"cut in a peel", h + a + " refs/tags/x\n^" + a[:20], Plan{Edits: first, Terminate: true}, ErrLostBytes},
		{"short id", h + a[1:] + " refs/heads/x\n", all, ErrLostBytes},
		{"no name", h + a + " \n", all, ErrLostBytes},
		{"the other hash", h + hexOf(oid.SHA256, "a") + " refs/heads/x\n", all, ErrLostBytes},
		{"a line swallowed by a peel", h + a + " refs/tags/x\n^" + a + b + " refs/tags/y\n", Plan{Edits: first}, ErrLostBytes},
		{"an orphan that is no peel", h + "^x\n", all, ErrLostBytes},
		{"no newline", h + a + " refs/heads/x", Plan{}, ErrUnterminated},
		{"no newline behind a peel", h + a + " refs/heads/x\n^" + b, Plan{}, ErrUnterminated},
		{"cut behind the header", h[:len(h)-1], Plan{}, ErrLostBytes},
		{"cut in the header", h[:20], all, ErrLostBytes},
		{"cut before the header's words", h[:5], straight, ErrLostBytes},
		{"cut in a name's first letters", h + a + " ref", all, ErrLostBytes},
		{"cut in a name, straight", h + a + " refs/heads/", straight, ErrLostBytes},
		{"orphan", h + "^" + a + "\n", Plan{}, ErrOrphan},
		{"bad peel", h + a + " refs/tags/x\n^" + a[1:] + "\n", all, ErrBadPeel},
		{"bad header", "# pack-refs wit: x\n" + a + " refs/heads/x\n", Plan{}, ErrBadHeader},
		{"unsorted", h + a + " refs/heads/b\n" + a + " refs/heads/a\n", Plan{}, ErrUnsorted},
		{"unsorted, new header", a + " refs/heads/b\n" + a + " refs/heads/a\n", Plan{Header: modern}, ErrUnsorted},
		{"duplicate under sorted", h + a + " refs/heads/a\n" + a + " refs/heads/a\n", Plan{}, ErrUnsorted},
		{"duplicate", h + a + " refs/heads/a\n" + a + " refs/heads/a\n", Plan{Sort: true}, ErrDuplicate},
		{"differing", h + a + " refs/heads/a\n" + b + " refs/heads/a\n", all, ErrDiffering},
		{"differing, in order", h + a + " refs/heads/a\n" + b + " refs/heads/a\n", straight, ErrDiffering},
		{"peels differ", h + a + " refs/tags/a\n^" + b + "\n" + a + " refs/tags/a\n", all, ErrPlan},
		{"no such entry", h + a + " refs/heads/a\n", Plan{Edits: []Edit{{Offset: 3}}}, ErrPlan},
		{"no such entry, sorting", h + a + " refs/heads/a\n", Plan{Sort: true, Edits: []Edit{{Offset: 3}}}, ErrPlan},
		{"edits in no order", h + a + " refs/heads/a\n", Plan{Edits: []Edit{{Offset: 3}, {Offset: 3}}}, ErrPlan},
		{"an edit of the other hash", h + a + " refs/heads/a\n", Plan{Edits: []Edit{{int64(len(h)), oid.SHA256.Object("blob", nil)}}}, ErrPlan},
	} {
		var out bytes.Buffer
		_, err := Rewrite(&out, strings.NewReader(c.text), int64(len(c.text)), f, c.plan)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.what, err, c.want)
		}
	}
}

// The proof is the last line of defence: it must see what no other check does.
func TestTheProofSeesWhatShouldNotBe(t *testing.T) {
	f := oid.SHA1
	a, b := hexOf(f, "a"), hexOf(f, "b")
	good := fullHeader + a + " refs/heads/a\n^" + b + "\n" + b + " refs/heads/b\n"
	want := newDigest()
	want.add([]byte(a + " refs/heads/a"))
	want.add([]byte(b + " refs/heads/b"))
	for what, text := range map[string]string{
		"":                good,
		"a value":         strings.Replace(good, b+" refs", a+" refs", 1),
		"a name":          strings.Replace(good, "heads/b", "heads/c", 1),
		"a lost ref":      strings.TrimSuffix(good, b+" refs/heads/b\n"),
		"one ref twice":   good + b + " refs/heads/b\n",
		"order":           fullHeader + b + " refs/heads/b\n" + a + " refs/heads/a\n",
		"a second ^ line": strings.Replace(good, "^", "^"+a+"\n^", 1),
		"a ^ line first":  strings.Replace(good, fullHeader, fullHeader+"^"+a+"\n", 1),
		"a bad ^ line":    strings.Replace(good, "^", "^0", 1),
		"no last newline": strings.TrimSuffix(good, "\n"),
		"a second header": good + "# pack-refs with: \n",
		"an empty line":   good + "\n",
	} {
		for _, step := range []int{1, 7, 60, 100, 101, 10_000} {
			p := proof{digits: f.HexLen(), claimsSorted: true, found: digest{seed: want.seed}}
			for part := range slices.Chunk([]byte(text), step) {
				own := bytes.Clone(part)
				p.read(own)
				clear(own) // it may be overwritten from now on
			}
			p.end()
			if err := p.holds(&want); (err == nil) != (what == "") {
				t.Errorf("%s, %d bytes at a time: %v", what, step, err)
			}
		}
	}
}

type fullDisk struct{ room int }

var errFull = errors.New("no space left on device")

func (d *fullDisk) Write(p []byte) (int, error) {
	n := min(len(p), d.room)
	d.room -= n
	if n < len(p) {
		return n, errFull
	}
	return n, nil
}

// lazy is a writer that breaks the rules.
type lazy struct{}

func (lazy) Write(p []byte) (int, error) { return len(p) - 1, nil }

func TestAShortWriteIsAnError(t *testing.T) {
	data := sample(oid.SHA1, 10)
	if _, err := Rewrite(lazy{}, bytes.NewReader(data), int64(len(data)), oid.SHA1, Plan{}); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("%v", err)
	}
}

// A writer that fails anywhere is an error, in every kind of rewrite.
func TestAFullDiskIsAnError(t *testing.T) {
	data := bigFile(3000)
	for _, sorting := range []bool{false, true} {
		plan := Plan{Sort: sorting, Edits: []Edit{{Offset: offsetOf(t, data, oid.SHA1, "refs/tags/v0000700", 1)}}}
		for _, room := range []int{0, 10, len(data) / 2, len(data) - 43, len(data) - 42} {
			_, err := Rewrite(&fullDisk{room}, bytes.NewReader(data), int64(len(data)), oid.SHA1, plan)
			if errors.Is(err, errFull) == (room == len(data)-42) {
				t.Errorf("room for %d of %d bytes: %v", room, len(data), err)
			}
		}
		for _, readable := range []int64{10, int64(len(data)) / 2, int64(len(data)) - 1} {
			if _, err := Rewrite(io.Discard, bytes.NewReader(data[:readable]), int64(len(data)), oid.SHA1, plan); !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("a file that became shorter: %v", err)
			}
		}
	}
}

// expected is what a rewrite with every permission should give, computed without any of its code.
func expected(data []byte, f oid.Format, edits []Edit, h *Header) []byte {
	type ref struct{ line, name, peel string }
	var refs []ref
	byOffset := map[int64]oid.ID{}
	for _, e := range edits {
		byOffset[e.Offset] = e.Peel
	}
	off := 0
	for i, line := range strings.SplitAfter(string(data), "\n") {
		text := strings.TrimSuffix(line, "\n")
		switch {
		case text == "" || i == 0 && text[0] == '#':
		case text[0] == '^':
			if i > 0 && len(refs) > 0 && refs[len(refs)-1].peel == "-" {
				refs[len(refs)-1].peel = text
			}
		default:
			refs = append(refs, ref{text, text[f.HexLen()+1:], "-"})
			if id, ok := byOffset[int64(off)]; ok {
				refs[len(refs)-1].peel = "^" + id.String()
				if id.IsZero() {
					refs[len(refs)-1].peel = ""
				}
			}
		}
		off += len(line)
	}
	slices.SortStableFunc(refs, func(a, b ref) int { return strings.Compare(a.name, b.name) })
	refs = slices.CompactFunc(refs, func(a, b ref) bool { return a.name == b.name })
	out := string(h.Format())
	for _, r := range refs {
		out += r.line + "\n"
		if len(r.peel) > 1 {
			out += r.peel + "\n"
		}
	}
	return []byte(out)
}

// Whatever the windows and portions are, and in whatever order the file is.
func TestSortingAndWindows(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	f := oid.SHA1
	for round := range 60 {
		n := 1 + r.IntN(60)
		var text strings.Builder
		if round%2 == 0 {
			text.WriteString("# pack-refs with: peeled \n")
		}
		var edits []Edit
		for range n {
			name := r.IntN(n * 2)
			if r.IntN(3) > 0 {
				edits = append(edits, Edit{int64(text.Len()), []oid.ID{{}, f.Object("blob", []byte("p"))}[name%2]}) // the same for equal names
			}
			edited := len(edits) > 0 && edits[len(edits)-1].Offset == int64(text.Len())
			fmt.Fprintf(&text, "%s refs/tags/%03d\n", hexOf(f, fmt.Sprint(name)), name)
			if name%3 == 0 || edited && r.IntN(2) == 0 {
				fmt.Fprintf(&text, "^%s\n", hexOf(f, fmt.Sprint("peel", name)))
			}
			if r.IntN(10) == 0 && strings.HasPrefix(text.String()[strings.LastIndex(strings.TrimSuffix(text.String(), "\n"), "\n")+1:], "^") {
				fmt.Fprintf(&text, "^%s\n", hexOf(f, "orphan"))
			}
		}
		data := []byte(text.String())
		if round%3 == 0 {
			data = data[:len(data)-1]
		}
		// every entry gets an edit, so that equal ones never disagree
		edits = edits[:0]
		Read(bytes.NewReader(data), int64(len(data)), f, Options{}, nil, func(e *Entry) error {
			id := oid.ID{}
			if e.OID[0]%2 == 0 {
				id = f.Object("blob", []byte("p"))
			}
			edits = append(edits, Edit{e.Offset, id})
			return nil
		})
		plan := Plan{Edits: edits, Header: modern, Sort: true, MergeEqual: true, DropOrphans: true, Terminate: true}
		want := expected(data, f, edits, modern)
		var first Result
		for _, limit := range []int{1, 300, 2000, maxWindow} {
			var out bytes.Buffer
			res, err := rewrite(&out, bytes.NewReader(data), int64(len(data)), f, plan, 1+limit%77, limit)
			if err != nil || !bytes.Equal(out.Bytes(), want) {
				t.Fatalf("portions of %d bytes: %v\n%s\nbecomes\n%s\nwant\n%s", limit, err, data, out.Bytes(), want)
			}
			res.Writes = 0
			if limit == 1 {
				first = res
			}
			if res != first || res.Set+res.Dropped == 0 && n > 5 {
				t.Errorf("portions of %d bytes: %+v, and of 1: %+v", limit, res, first)
			}
		}
		// what is in order now needs no sorting, whatever the window
		again := plan
		again.Sort, again.Edits = false, nil
		for _, window := range []int{1, 30, 100, 5000} {
			var out bytes.Buffer
			if _, err := rewrite(&out, bytes.NewReader(want), int64(len(want)), f, again, window, maxWindow); err != nil || !bytes.Equal(out.Bytes(), want) {
				t.Fatalf("windows of %d bytes: %v\n%s\nbecomes\n%s", window, err, want, out.Bytes())
			}
		}
	}
}

// The straight rewrite, with edits everywhere, through windows of all sizes.
func TestStraightThroughSmallWindows(t *testing.T) {
	f := oid.SHA1
	data := sample(f, 40)
	var edits []Edit
	i := 0
	Read(bytes.NewReader(data), int64(len(data)), f, Options{}, nil, func(e *Entry) error {
		if i++; i%3 > 0 {
			edits = append(edits, Edit{e.Offset, []oid.ID{{}, f.Object("blob", []byte(e.Name))}[i%2]})
		}
		return nil
	})
	want := expected(data, f, edits, modern)
	for window := 1; window < 400; window += 7 {
		var out bytes.Buffer
		if _, err := rewrite(&out, bytes.NewReader(data), int64(len(data)), f, Plan{Edits: edits}, window, maxWindow); err != nil || !bytes.Equal(out.Bytes(), want) {
			t.Fatalf("windows of %d bytes: %v", window, err)
		}
	}
}

// Decode, rewrite, decode: the refs and their values are those of before, and a second rewrite changes nothing.
func FuzzRewrite(f *testing.F) {
	for _, format := range []oid.Format{oid.SHA1, oid.SHA256} {
		for _, text := range situations(format) {
			f.Add([]byte(text), uint8(format), uint16(1), uint8(3))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, format uint8, window uint16, which uint8) {
		hash := oid.SHA1
		if format == uint8(oid.SHA256) {
			hash = oid.SHA256
		}
		before, rows, _ := readAll(t, data, hash, Options{})
		plan := Plan{Header: &Header{Peeled: true}, Sort: which&1 != 0, MergeEqual: which&2 != 0, DropOrphans: which&4 != 0, Terminate: which&8 != 0}
		values := map[string]string{}
		for _, r := range rows {
			values[r.name] = r.id
		}
		Read(bytes.NewReader(data), int64(len(data)), hash, Options{}, nil, func(e *Entry) error {
			if which&16 != 0 || e.Style&BadPeel != 0 {
				plan.Edits = append(plan.Edits, Edit{Offset: e.Offset, Peel: oid.FromBytes(hash, e.OID)})
			}
			return nil
		})
		var out bytes.Buffer
		_, err := rewrite(&out, bytes.NewReader(data), int64(len(data)), hash, plan, int(window)+1, int(window)+1)
		switch {
		case before.LostBytes || before.Empty:
			if !errors.Is(err, ErrLostBytes) && err == nil {
				t.Fatalf("a file that has lost bytes was rewritten: %q", data)
			}
			return
		case err != nil:
			for _, known := range []error{ErrUnterminated, ErrOrphan, ErrBadPeel, ErrUnsorted, ErrDuplicate, ErrDiffering, ErrPlan} {
				if errors.Is(err, known) {
					return
				}
			}
			t.Fatalf("%v: %q", err, data)
		}
		after, rows2, _ := readAll(t, out.Bytes(), hash, Options{})
		if after.Orphans+after.BadPeels+after.Malformed > 0 || after.Unterminated || after.Refs+before.Duplicates < before.Refs {
			t.Fatalf("%+v\nbecomes\n%+v", before, after)
		}
		seen := map[string]bool{}
		for _, r := range rows2 {
			if v, ok := values[r.name]; !ok || before.Duplicates == 0 && v != r.id {
				t.Fatalf("%s was %s and is %s", r.name, v, r.id)
			}
			seen[r.name] = true
		}
		if len(seen) != len(values) {
			t.Fatalf("of %v only %v is left", values, seen)
		}
		plan.Edits = nil
		var out2 bytes.Buffer
		if _, err := rewrite(&out2, bytes.NewReader(out.Bytes()), int64(out.Len()), hash, plan, 4096, maxWindow); err != nil || !bytes.Equal(out.Bytes(), out2.Bytes()) {
			t.Fatalf("a second rewrite: %v\n%q\n%q", err, out.Bytes(), out2.Bytes())
		}
	})
}

func BenchmarkRewriteOnePeel(b *testing.B) {
	data := bigFile(100_000)
	plan := Plan{Edits: []Edit{{offsetOf(b, data, oid.SHA1, "refs/tags/v0020000", 1), oid.SHA1.Object("blob", nil)}}}
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Rewrite(io.Discard, bytes.NewReader(data), int64(len(data)), oid.SHA1, plan); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100_000, "ns/ref")
}

func BenchmarkRewriteSort(b *testing.B) {
	lines := strings.SplitAfter(string(bigFile(100_000)), "\n")
	var records []string
	for _, l := range lines[1 : len(lines)-1] {
		if l[0] == '^' {
			records[len(records)-1] += l
		} else {
			records = append(records, l)
		}
	}
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(records), func(i, j int) { records[i], records[j] = records[j], records[i] })
	data := []byte(strings.Join(records, ""))
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := Rewrite(io.Discard, bytes.NewReader(data), int64(len(data)), oid.SHA1, Plan{Sort: true, Header: modern}); err != nil {
			b.Fatal(err)
		}
	}
}
