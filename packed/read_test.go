package packed

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"sort"
	"strings"
	"testing"

	"refaudit/finding"
	"refaudit/oid"
)

// A row is an entry that outlives its callback.
type row struct {
	name, id, peel string
	line, peelLine int
	style          Style
}

func readAll(t testing.TB, data []byte, f oid.Format, opts Options) (Summary, []row, []finding.Finding) {
	t.Helper()
	var rows []row
	var found []finding.Finding
	sum, err := Read(bytes.NewReader(data), int64(len(data)), f, opts,
		func(f finding.Finding) error { found = append(found, f); return nil },
		func(e *Entry) error {
			if got := string(data[e.Offset : e.Offset+e.Length]); !strings.Contains(got, string(e.Name)) {
				t.Errorf("entry %q lies at %q", e.Name, got)
			}
			if e.HasPeelLine() && data[e.PeelOffset] != '^' {
				t.Errorf("the peel of %q lies at %q", e.Name, data[e.PeelOffset:e.PeelOffset+e.PeelLength])
			}
			rows = append(rows, row{string(e.Name), fmt.Sprintf("%x", e.OID), fmt.Sprintf("%x", e.Peel), e.Line, e.PeelLine, e.Style})
			return nil
		})
	if err != nil {
		t.Fatal(err)
	}
	return sum, rows, found
}

// However small the windows are, the answer is the same.
func TestTheWindowDoesNotShow(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	files := [][]byte{sample(oid.SHA1, 60)}
	for range 100 {
		files = append(files, mutate(r, sample(oid.SHA1, 12)))
	}
	for _, text := range situations(oid.SHA1) {
		files = append(files, []byte(text), []byte(text+hexOf(oid.SHA1, "z")+" refs/zz/y\n"+hexOf(oid.SHA1, "z")+" refs/zz/z\n"))
	}
	for i, data := range files {
		sum, rows, found := readAll(t, data, oid.SHA1, Options{})
		for _, first := range []int{1, 3, 40, 41, 60, 128} {
			sum2, rows2, found2 := readAll(t, data, oid.SHA1, Options{first: first, most: 1 << 20})
			if fmt.Sprintf("%+v", sum) != fmt.Sprintf("%+v", sum2) || fmt.Sprint(rows) != fmt.Sprint(rows2) || fmt.Sprint(found) != fmt.Sprint(found2) {
				t.Fatalf("file %d, windows of %d bytes:\n%q\n%+v\n%+v\n%v\n%v\n%v\n%v", i, first, data, sum, sum2, rows, rows2, found, found2)
			}
		}
	}
}

// A line longer than any window is a finding, and what stands behind it is read.
func TestALineLongerThanTheWindow(t *testing.T) {
	a := hexOf(oid.SHA1, "a")
	data := []byte(fullHeader + a + " refs/heads/a\n" + a + " refs/heads/" + strings.Repeat("x", 5000) + "\n^" + a + "\n" + a + " refs/tags/z\n^" + strings.Repeat("a", 5000) + "\n" + a + " refs/tags/zz\n")
	sum, rows, found := readAll(t, data, oid.SHA1, Options{first: 64, most: 256})
	if len(rows) != 3 || rows[2].line != 7 || sum.Refs != 3 || sum.Malformed < 1 || !sum.LostBytes || sum.Lines != 7 {
		t.Errorf("%+v\n%v", sum, rows)
	}
	for _, f := range found {
		if f.Line != 3 && f.Line != 6 {
			t.Errorf("%+v", f)
		}
		if part := data[f.Offset : f.Offset+f.Length]; len(part) < 5000 {
			t.Errorf("place of %v is %q", f.ID, part)
		}
	}
}

type failing struct{ at int64 }

func (f failing) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > f.at {
		return 0, errors.New("input/output error")
	}
	return copy(p, bytes.Repeat([]byte("x"), len(p))), nil
}

// What can't be read is an error, and never the end of the file.
func TestAFailingDiskIsAnError(t *testing.T) {
	if _, err := Read(failing{at: 1 << 20}, 2<<20, oid.SHA1, Options{}, nil, nil); err == nil || !strings.Contains(err.Error(), "input/output error") {
		t.Errorf("error: %v", err)
	}
	data := sample(oid.SHA1, 10)
	if _, err := Read(bytes.NewReader(data), int64(len(data))+1, oid.SHA1, Options{}, nil, nil); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a file that has become shorter: %v", err)
	}
}

func TestCallbacksEndTheReading(t *testing.T) {
	stop := errors.New("enough")
	data := []byte(fullHeader + "bad\n" + string(sample(oid.SHA1, 10)[len(fullHeader):]))
	n := 0
	if _, err := Read(bytes.NewReader(data), int64(len(data)), oid.SHA1, Options{}, nil, func(*Entry) error { n++; return stop }); err != stop || n != 1 {
		t.Errorf("%d entries, %v", n, err)
	}
	if _, err := Read(bytes.NewReader(data), int64(len(data)), oid.SHA1, Options{}, func(finding.Finding) error { return stop }, nil); err != stop {
		t.Errorf("%v", err)
	}
}

// All duplicates of a file that is in no order are found, whichever share of the hashes they fall in.
func TestDuplicatesInNoOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	var lines []string
	want := map[string]int{}
	for i := range 3000 {
		name := fmt.Sprintf("refs/heads/%d", r.IntN(2500))
		want[name]++
		lines = append(lines, hexOf(oid.SHA1, fmt.Sprint(i%2))+" "+name+"\n")
	}
	sum, rows, found := readAll(t, []byte(strings.Join(lines, "")), oid.SHA1, Options{})
	got := map[string]int{}
	dups := 0
	for _, f := range found {
		if f.ID == finding.PackedRefDuplicate {
			got[string(f.Ref)]++
			dups++
		}
	}
	if sum.Sorted || len(rows) != 3000 || sum.Duplicates != dups {
		t.Errorf("%+v", sum)
	}
	for name, n := range want {
		if got[name] != n-1 {
			t.Errorf("%s stands %d times, reported %d times", name, n, got[name])
		}
	}
}

func bigFile(refs int) []byte {
	var b strings.Builder
	b.WriteString(fullHeader)
	var names []string
	for i := range refs / 2 {
		names = append(names, fmt.Sprintf("refs/heads/b/%07d", i), fmt.Sprintf("refs/tags/v%07d", i))
	}
	sort.Strings(names)
	for i, name := range names {
		fmt.Fprintf(&b, "%s %s\n", hexOf(oid.SHA1, fmt.Sprint(i)), name)
		if strings.Contains(name, "/tags/") {
			fmt.Fprintf(&b, "^%s\n", hexOf(oid.SHA1, fmt.Sprint(-i)))
		}
	}
	return []byte(b.String())
}

// Memory must not grow with the file.
func TestReadAllocatesAWindowAndNoMore(t *testing.T) {
	data := bigFile(50_000)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	sum, err := Read(bytes.NewReader(data), int64(len(data)), oid.SHA1, Options{}, nil, func(*Entry) error { return nil })
	runtime.ReadMemStats(&after)
	if err != nil || sum.Refs != 50_000 || sum.Peels != 25_000 {
		t.Fatalf("%+v %v", sum, err)
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > 2*firstWindow {
		t.Errorf("%d bytes allocated for a file of %d", got, len(data))
	}
	if n := after.Mallocs - before.Mallocs; n > 100 {
		t.Errorf("%d allocations", n)
	}
}

// A file like that of the benchmark repository: 100,000 refs, half of them with peels.
func BenchmarkRead(b *testing.B) {
	data := bigFile(100_000)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		sum, err := Read(bytes.NewReader(data), int64(len(data)), oid.SHA1, Options{}, nil, func(e *Entry) error { n += len(e.Peel); return nil })
		if err != nil || sum.Refs != 100_000 || !sum.Sorted {
			b.Fatal(sum, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100_000, "ns/ref")
}

func FuzzRead(f *testing.F) {
	for _, format := range []oid.Format{oid.SHA1, oid.SHA256} {
		for _, text := range situations(format) {
			f.Add([]byte(text), uint8(format), 7)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, format uint8, window int) {
		hash := oid.SHA1
		if format == uint8(oid.SHA256) {
			hash = oid.SHA256
		}
		sum, rows, found := readAll(t, data, hash, Options{first: 1 + window&0xff, most: 1 << 24})
		for _, r := range rows {
			if r.name == "" || strings.IndexByte(r.name, 0) >= 0 || len(r.id) != hash.HexLen() {
				t.Errorf("entry %+v", r)
			}
		}
		for _, x := range found {
			if x.Offset < 0 || x.Length < 0 || x.Offset+x.Length > int64(len(data)) {
				t.Errorf("%s lies at %d+%d of %d", x.ID, x.Offset, x.Length, len(data))
			}
		}
		if bytes.IndexByte(data, 0) >= 0 && !sum.LostBytes {
			t.Errorf("zero bytes went unnoticed: %+v", sum)
		}
		if sum.Refs != len(rows) || len(data) > 0 && sum.Lines == 0 {
			t.Errorf("%+v, %d rows", sum, len(rows))
		}
		var whole []byte
		dumped := 0
		sum2, err := Dump(bytes.NewReader(data), int64(len(data)), hash, Options{first: 1 + window&0xff, most: 1 << 24}, func(p *Piece) error {
			if p.Offset != int64(len(whole)) || int64(len(p.Bytes)) != p.Length {
				t.Errorf("a piece of %d bytes, of %d, at %d behind %d", len(p.Bytes), p.Length, p.Offset, len(whole))
			}
			whole = append(whole, p.Bytes...)
			dumped += len(p.Findings)
			return nil
		})
		if err != nil || !bytes.Equal(whole, data) || dumped != len(found) || fmt.Sprintf("%+v", sum2) != fmt.Sprintf("%+v", sum) {
			t.Errorf("the dump is not the file: %v\n%q\n%q\n%d findings, read gave %d\n%+v\n%+v", err, whole, data, dumped, len(found), sum2, sum)
		}
	})
}

// A part of a file has no header, and promises nothing.
func TestPartOfAFile(t *testing.T) {
	line := strings.Repeat("ab", 20) + " refs/heads/a\n"
	for text, want := range map[string][]finding.ID{
		line:                               nil,
		"# pack-refs with: sorted \n":      {finding.BadPackedRefEntry},
		line + "^" + line[:40] + "\n":      nil,
		"^" + line[:40] + "\n" + line:      {finding.BadPackedRefEntry, finding.PeelOrphan},
		line[:41] + "refs/z\n" + line:      nil, // not in order, which Summary.Sorted tells
		line + line[:41] + "refs/heads/b/": {finding.PackedRefEntryNotTerminated, finding.BadRefName},
	} {
		var got []finding.ID
		sum, err := Read(strings.NewReader(text), int64(len(text)), oid.SHA1, Options{Part: true}, func(f finding.Finding) error {
			got = append(got, f.ID)
			return nil
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
		if sum.Header.Present || sum.Sorted == strings.Contains(text, "refs/z\n") {
			t.Errorf("%q: %+v", text, sum)
		}
	}
}
