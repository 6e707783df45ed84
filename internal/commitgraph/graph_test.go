package commitgraph

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"refaudit/finding"
	"refaudit/internal/gittest"
	"refaudit/oid"
)

// What git writes, as one file and as a chain, says of every commit what git says.
func TestGraphsThatGitWrites(t *testing.T) {
	for _, format := range []oid.Format{oid.SHA1, oid.SHA256} {
		for _, which := range []gittest.Which{gittest.Old, gittest.Newest} {
			t.Run(fmt.Sprintf("%v/%v", format, which), func(t *testing.T) {
				if p, why := gittest.Find(which); p == nil {
					t.Skipf("NOT TESTED: %s", why)
				}
				r := gittest.New(t, gittest.Options{Format: format, Git: which})
				r.Git("commit-graph", "write", "--reachable", "--split=no-merge")
				var heads []string
				for i := range 5 {
					heads = append(heads, r.Git("commit-tree", r.Tree, "-p", r.B, "-m", fmt.Sprint("head", i)))
				}
				octopus := []string{"commit-tree", r.Tree, "-m", "octopus"}
				for _, h := range heads {
					octopus = append(octopus, "-p", h)
				}
				o1 := r.Git(octopus...)
				r.Git("update-ref", "refs/heads/octopus", o1)
				r.Git("commit-graph", "write", "--reachable", "--split=no-merge", "--changed-paths")
				o2 := r.Git("commit-tree", r.Tree, "-m", "again", "-p", heads[3], "-p", o1, "-p", r.A)
				r.Git("update-ref", "refs/heads/octopus", o2)
				r.Git("update-ref", "refs/heads/root", r.Git("commit-tree", r.Tree, "-m", "root"))
				r.Git("commit-graph", "write", "--reachable", "--split=no-merge")
				names, err := ChainNames("chain", string(r.ReadFile("objects/info/commit-graphs/commit-graph-chain")), format)
				if err != nil || len(names) != 3 {
					t.Fatal(names, err)
				}
				var layers []*Layer
				for _, n := range names {
					layers = append(layers, parse(t, r, "objects/info/commit-graphs/graph-"+n+".graph"))
				}
				compare(t, r, layers...)
				r.Git("commit-graph", "write", "--reachable")
				compare(t, r, parse(t, r, "objects/info/commit-graph"))
			})
		}
	}
}

func parse(t *testing.T, r *gittest.Repo, name string) *Layer {
	t.Helper()
	l, err := Parse(name, r.ReadFile(name), r.Format)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func compare(t *testing.T, r *gittest.Repo, layers ...*Layer) {
	t.Helper()
	g, err := Stack(layers...)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(r.Git("rev-list", "--all", "--no-commit-header", "--format=%H %T %P"), "\n")
	if g.Len() != len(lines) {
		t.Errorf("%d commits, git says %d", g.Len(), len(lines))
	}
	for _, line := range lines {
		id, _ := hex.DecodeString(line[:r.Format.HexLen()])
		pos, ok := g.Find(id)
		if !ok {
			t.Fatalf("%x is not found", id)
		}
		got := fmt.Sprintf("%x %x ", g.ID(pos), g.Tree(pos))
		parents, err := g.Parents(nil, pos)
		if err != nil {
			t.Fatal(err)
		}
		for i, p := range parents {
			if i > 0 {
				got += " "
			}
			got += fmt.Sprintf("%x", g.ID(p))
		}
		if got != line {
			t.Errorf("%s, git says %s", got, line)
		}
	}
	if _, ok := g.Find(bytes.Repeat([]byte{0xff}, r.Format.Size())); ok {
		t.Error("an id that is not there was found")
	}
}

// A sample is a graph to be written, every field of it free.
type sample struct {
	format  oid.Format
	magic   string
	version byte
	hash    byte
	bases   byte
	n       int
	chunks  map[string][]byte
	order   []string
}

func newSample(n int) *sample {
	s := &sample{format: oid.SHA1, magic: "CGPH", version: 1, hash: 1, n: n, order: []string{"OIDF", "OIDL", "CDAT", "EDGE"}}
	rnd := rand.New(rand.NewPCG(1, uint64(n)))
	var ids [][]byte
	for range n {
		id := make([]byte, 20)
		binary.BigEndian.PutUint64(id, rnd.Uint64())
		ids = append(ids, id)
	}
	slices.SortFunc(ids, bytes.Compare)
	s.chunks = map[string][]byte{"OIDL": bytes.Join(ids, nil)}
	var fanout, data []byte
	for b := range 256 {
		k := 0
		for k < n && int(ids[k][0]) <= b {
			k++
		}
		fanout = binary.BigEndian.AppendUint32(fanout, uint32(k))
	}
	for i := range n {
		data = append(data, make([]byte, 20)...)
		data = binary.BigEndian.AppendUint32(data, uint32((i+1)%n))
		second := uint32(noParent)
		if i == 0 {
			second = moreEdges
		}
		data = binary.BigEndian.AppendUint32(data, second)
		data = append(data, make([]byte, 8)...)
	}
	s.chunks["OIDF"], s.chunks["CDAT"] = fanout, data
	s.chunks["EDGE"] = []byte{0, 0, 0, 1, 0x80, 0, 0, 0}
	return s
}

func (s *sample) bytes() []byte {
	b := append([]byte(s.magic), s.version, s.hash, byte(len(s.order)), s.bases)
	at := uint64(8 + 12*(len(s.order)+1))
	for _, id := range s.order {
		b = binary.BigEndian.AppendUint64(append(b, id...), at)
		at += uint64(len(s.chunks[id]))
	}
	b = binary.BigEndian.AppendUint64(append(b, 0, 0, 0, 0), at)
	for _, id := range s.order {
		b = append(b, s.chunks[id]...)
	}
	return seal(b)
}

func seal(b []byte) []byte {
	h := oid.SHA1.New()
	h.Write(b)
	return h.Sum(b)
}

// readAll does with a file all that can be done.
func readAll(b []byte) error {
	l, err := Parse("g", b, oid.SHA1)
	if err != nil {
		return err
	}
	g, err := Stack(l)
	if err != nil {
		return err
	}
	var parents []uint32
	total := 0
	for i := range uint32(g.Len()) {
		if parents, err = g.Parents(parents[:0], i); err != nil {
			return err
		}
		total += len(parents)
		for _, p := range parents {
			g.ID(p)
			g.Tree(p)
		}
		g.Find(g.ID(i))
	}
	if total > len(b) {
		return fmt.Errorf("%d parents from %d bytes", total, len(b))
	}
	return nil
}

// Each way in which a file can be wrong although its checksum fits.
func TestBadGraphs(t *testing.T) {
	if err := readAll(newSample(50).bytes()); err != nil {
		t.Fatal(err)
	}
	put := func(chunk string, at int, v uint32) func(*sample) {
		return func(s *sample) { binary.BigEndian.PutUint32(s.chunks[chunk][at:], v) }
	}
	for name, c := range map[string]struct {
		harm func(*sample)
		err  string
	}{
		"signature":         {func(s *sample) { s.magic = "CGPI" }, "is no commit-graph"},
		"version":           {func(s *sample) { s.version = 2 }, "version 2"},
		"hash":              {func(s *sample) { s.hash = 2 }, "hash id 2"},
		"bases":             {func(s *sample) { s.bases = 1 }, "1 layers below have 0 bytes"},
		"no fanout":         {func(s *sample) { s.order = s.order[1:] }, "the fanout has 0 bytes"},
		"twice":             {func(s *sample) { s.order = append(s.order, "OIDF") }, `a second chunk "OIDF"`},
		"zero id":           {func(s *sample) { s.order = append(s.order, "\x00\x00\x00\x00") }, "the table of 5 chunks ends at row 4"},
		"fanout falls":      {put("OIDF", 40, 51), "the fanout falls at 11"},
		"fanout too large":  {put("OIDF", 1020, 0xffffffff), "the ids of 4294967295 commits"},
		"data":              {func(s *sample) { s.chunks["CDAT"] = s.chunks["CDAT"][1:] }, "the data of 50 commits"},
		"edges":             {func(s *sample) { s.chunks["EDGE"] = s.chunks["EDGE"][1:] }, "the edges have 7 bytes"},
		"first parent":      {put("CDAT", 36+20, 50), "a parent of commit 1 is said to be commit 50 of 50"},
		"second parent":     {put("CDAT", 36+24, 50), "a parent of commit 1 is said to be commit 50 of 50"},
		"second alone":      {put("CDAT", 36+20, noParent), ""},
		"no first":          {func(s *sample) { put("CDAT", 36+20, noParent)(s); put("CDAT", 36+24, 1)(s) }, "a parent of commit 1"},
		"edge behind":       {put("CDAT", 36+24, moreEdges|7), "the further parents of commit 1 are said to be at 7 of 2"},
		"edges shared":      {put("CDAT", 36+24, moreEdges), "the further parents of commit 1 are another commit's too"},
		"edges' tail":       {put("CDAT", 36+24, moreEdges|1), "the further parents of commit 1 are another commit's too"},
		"edge out of range": {put("EDGE", 4, moreEdges|50), "a parent of commit 0"},
		"no end":            {put("EDGE", 4, 0), "the list of parents of commit 0 has no end"},
	} {
		s := newSample(50)
		c.harm(s)
		err := readAll(s.bytes())
		var bad *finding.Corrupt
		if c.err == "" && err != nil || c.err != "" && (!errors.As(err, &bad) || bad.ID != finding.BitmapUnusable || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: %v, want %q", name, err, c.err)
		}
	}
}

func TestNothingIsBelievedWithoutItsChecksum(t *testing.T) {
	data := newSample(20).bytes()
	for i := range data {
		bad := slices.Clone(data)
		bad[i] ^= 0x41
		if readAll(bad) == nil || readAll(data[:i]) == nil {
			t.Errorf("byte %d", i)
		}
	}
}

func TestStackChecksWhatLiesBelow(t *testing.T) {
	low, _ := Parse("low", newSample(20).bytes(), oid.SHA1)
	other, _ := Parse("other", newSample(21).bytes(), oid.SHA1)
	top := newSample(5)
	top.bases, top.order = 1, append(top.order, "BASE")
	top.chunks["BASE"] = low.Checksum()
	high, err := Parse("high", top.bytes(), oid.SHA1)
	if err != nil {
		t.Fatal(err)
	}
	if g, err := Stack(low, high); err != nil || g.Len() != 25 {
		t.Fatal(err)
	}
	for name, layers := range map[string][]*Layer{"alone": {high}, "another below": {other, high}, "two below": {low, other, high}, "twice": {low, low}} {
		if _, err := Stack(layers...); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	for _, text := range []string{"", "abc\n", strings.Repeat("0", 64) + "\n", strings.Repeat("0", 40) + "\n\n"} {
		if _, err := ChainNames("chain", text, oid.SHA1); err == nil {
			t.Errorf("%q: accepted", text)
		}
	}
}

func FuzzGraph(f *testing.F) {
	for _, n := range []int{1, 3, 60} {
		b := newSample(n).bytes()
		f.Add(b[:len(b)-20])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		err := readAll(seal(slices.Clone(b)))
		var bad *finding.Corrupt
		if err != nil && !errors.As(err, &bad) {
			t.Fatal(err)
		}
	})
}

func BenchmarkParseAndFind(b *testing.B) {
	data := newSample(10000).bytes()
	b.Run("parse", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			Parse("g", data, oid.SHA1)
		}
	})
	l, err := Parse("g", data, oid.SHA1)
	if err != nil {
		b.Fatal(err)
	}
	g, _ := Stack(l)
	i := uint32(0)
	b.Run("find", func(b *testing.B) {
		for b.Loop() {
			i = (i + 7919) % 10000
			if _, ok := g.Find(g.ID(i)); !ok {
				b.Fatal("not found")
			}
		}
	})
}
