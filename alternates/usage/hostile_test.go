package usage

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"refaudit/internal/gittest"
	"refaudit/odb"
	"refaudit/oid"
)

// packed is one object of a pack that is written by hand.
type packed struct {
	id   oid.ID
	kind odb.EntryKind
	data []byte
	size uint64 // that the header claims; 0: the true one
	base int    // of an OfsDelta: which entry before it
	ref  oid.ID // of a RefDelta
}

// deflater is one for all, as making one takes longer than its work.
type deflater struct {
	b bytes.Buffer
	w *zlib.Writer
}

func (d *deflater) deflate(data []byte) []byte {
	d.b.Reset()
	if d.w == nil {
		d.w = zlib.NewWriter(&d.b)
	} else {
		d.w.Reset(&d.b)
	}
	d.w.Write(data)
	d.w.Close()
	return d.b.Bytes()
}

// deltaOf is a delta by instructions of one's choice.
func deltaOf(base, result uint64, code ...byte) []byte {
	d := binary.AppendUvarint(nil, base)
	d = binary.AppendUvarint(d, result)
	return append(d, code...)
}

// writePack writes a pack and its index, true or not.
func writePack(r *gittest.Repo, name string, objects []packed) {
	pack := append([]byte("PACK\x00\x00\x00\x02"), binary.BigEndian.AppendUint32(nil, uint32(len(objects)))...)
	offsets := make([]int, len(objects))
	var z deflater
	for i, o := range objects {
		offsets[i] = len(pack)
		size := o.size
		if size == 0 {
			size = uint64(len(o.data))
		}
		c := byte(o.kind)<<4 | byte(size&15)
		for size >>= 4; size > 0; size >>= 7 {
			pack = append(pack, c|0x80)
			c = byte(size & 0x7f)
		}
		pack = append(pack, c)
		switch o.kind {
		case odb.OfsDelta:
			back := offsets[i] - offsets[o.base]
			var b []byte
			for b = []byte{byte(back & 0x7f)}; back >= 0x80; {
				back = back>>7 - 1
				b = append([]byte{0x80 | byte(back&0x7f)}, b...)
			}
			pack = append(pack, b...)
		case odb.RefDelta:
			pack = o.ref.AppendTo(pack)
		}
		pack = append(pack, z.deflate(o.data)...)
	}
	h := r.Format.New()
	h.Write(pack)
	sum := h.Sum(nil)
	r.WriteFile("objects/pack/pack-"+name+".pack", append(pack, sum...))

	byID := make([]int, len(objects))
	for i := range byID {
		byID[i] = i
	}
	slices.SortFunc(byID, func(a, b int) int { return objects[a].id.Compare(objects[b].id) })
	idx := []byte("\xfftOc\x00\x00\x00\x02")
	for b, n := 0, 0; b < 256; b++ {
		for n < len(byID) && int(objects[byID[n]].id.Bytes()[0]) <= b {
			n++
		}
		idx = binary.BigEndian.AppendUint32(idx, uint32(n))
	}
	for _, i := range byID {
		idx = objects[i].id.AppendTo(idx)
	}
	idx = append(idx, make([]byte, 4*len(objects))...)
	for _, i := range byID {
		idx = binary.BigEndian.AppendUint32(idx, uint32(offsets[i]))
	}
	idx = append(idx, sum...)
	h.Reset()
	h.Write(idx)
	r.WriteFile("objects/pack/pack-"+name+".idx", h.Sum(idx))
}

// A tree in a pack that is out to hurt: an error in no time, never a number.
func TestHostilePacks(t *testing.T) {
	content := func(n int) []byte { return append([]byte("100644 f\x00"), bytes.Repeat([]byte{byte(n)}, 20)...) }
	id := func(n int) oid.ID { return oid.SHA1.Object("tree", content(n)) }
	whole := deltaOf(29, 29, 0x90, 29) // copies its base
	deep := []packed{{id: id(0), kind: odb.EntryKind(oid.Tree), data: content(0)}}
	for i := 1; i < 100000; i++ {
		deep = append(deep, packed{id: oid.SHA1.Object("tree", fmt.Append(nil, i)), kind: odb.OfsDelta, data: whole, base: i - 1})
	}
	for name, c := range map[string]struct {
		tree    oid.ID
		objects []packed
		reason  string
	}{
		"a cycle of two":                       {id(1), []packed{{id: id(1), kind: odb.RefDelta, data: whole, ref: id(2)}, {id: id(2), kind: odb.RefDelta, data: whole, ref: id(1)}}, "lead back"},
		"its own base":                         {id(1), []packed{{id: id(1), kind: odb.RefDelta, data: whole, ref: id(1)}}, "lead back"},
		"no base":                              {id(1), []packed{{id: id(1), kind: odb.RefDelta, data: whole, ref: id(2)}}, "not in the pack"},
		"a chain of 100,000 to what is absent": {deep[len(deep)-1].id, deep, "is absent"}, // content(0) names an object that is not there
		"a huge tree":                          {id(1), []packed{{id: id(1), kind: odb.EntryKind(oid.Tree), data: content(1), size: 1 << 40}}, "limit"},
		"a large tree":                         {id(1), []packed{{id: id(1), kind: odb.EntryKind(oid.Tree), data: content(1), size: 200 << 20}}, "claims"},
		"a huge delta":                         {id(1), []packed{{id: id(2), kind: odb.EntryKind(oid.Tree), data: content(2)}, {id: id(1), kind: odb.OfsDelta, data: deltaOf(29, 1<<50, 0x90, 29)}}, "limit"},
		"a copy from outside": {id(1), []packed{{id: id(2), kind: odb.EntryKind(oid.Tree), data: content(2)},
			{id: id(1), kind: odb.OfsDelta, data: deltaOf(29, 29, 0x91, 20, 29)}}, "outside its base"},
		"a delta of nothing": {id(1), []packed{{id: id(2), kind: odb.EntryKind(oid.Tree), data: content(2)}, {id: id(1), kind: odb.OfsDelta, data: deltaOf(29, 29, 0)}}, "reserved"},
		"a delta cut short":  {id(1), []packed{{id: id(2), kind: odb.EntryKind(oid.Tree), data: content(2)}, {id: id(1), kind: odb.OfsDelta, data: deltaOf(29, 29, 0xff)}}, "ends too early"},
		"a delta that makes less": {id(1), []packed{{id: id(2), kind: odb.EntryKind(oid.Tree), data: content(2)},
			{id: id(1), kind: odb.OfsDelta, data: deltaOf(29, 29, 0x90, 28)}}, "that it promises"},
		"a delta of another base": {id(1), []packed{{id: id(2), kind: odb.EntryKind(oid.Tree), data: content(2)},
			{id: id(1), kind: odb.OfsDelta, data: deltaOf(30, 29, 0x90, 29)}}, "for a base of 30 bytes"},
		"a kind that doesn't exist": {id(1), []packed{{id: id(1), kind: 5, data: content(1)}}, "kind 5"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := gittest.Init(t, gittest.Options{})
			writePack(r, "bad", c.objects)
			text := fmt.Sprintf("tree %s\nauthor A <a@b> 1 +0000\ncommitter A <a@b> 1 +0000\n\n", c.tree)
			r.WriteFile("refs/heads/main", []byte(r.WriteObject("commit", []byte(text))+"\n"))
			s := NewSession(2)
			defer s.Close()
			began := time.Now()
			u := measured(t, s, r, Options{})
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("took %v", took)
			}
			if why, unknown := u.Unknown[Reachable]; !unknown || !strings.Contains(why, c.reason) {
				t.Errorf("%v %q, want %q", u.Bytes, why, c.reason)
			}
		})
	}
}

// Kinds of all objects of a pack, whichever way their deltas point, in one pass.
func TestKinds(t *testing.T) {
	id := func(n int) oid.ID { return oid.SHA1.Object("blob", fmt.Append(nil, n)) }
	const n = 30000
	objects := []packed{
		{id: id(1), kind: odb.RefDelta, data: deltaOf(1, 1, 1, 'x'), ref: id(2)}, {id: id(2), kind: odb.RefDelta, data: deltaOf(1, 1, 1, 'x'), ref: id(1)},
		{id: id(3), kind: odb.RefDelta, data: deltaOf(1, 1, 1, 'x'), ref: id(1)}, {id: id(4), kind: odb.RefDelta, data: deltaOf(1, 1, 1, 'x'), ref: id(-1)},
		{id: id(5), kind: odb.EntryKind(oid.Tag), data: []byte("x")}, {id: id(6), kind: odb.OfsDelta, data: deltaOf(1, 1, 1, 'x'), base: 4},
	}
	for i := range n { // each a delta of the next
		objects = append(objects, packed{id: id(100 + i), kind: odb.RefDelta, data: deltaOf(1, 1, 1, 'x'), ref: id(101 + i)})
	}
	objects = append(objects, packed{id: id(100 + n), kind: odb.EntryKind(oid.Tree), data: []byte("x")})
	r := gittest.Init(t, gittest.Options{})
	writePack(r, "kinds", objects)
	db, _, err := odb.Open(r.File("objects"), oid.SHA1, odb.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	st, err := openStore(db.Stores()[0], oid.SHA1, "", nil, nil, 1, true)
	if err != nil {
		t.Fatal(err)
	}
	kinds, err := st.packs[0].kinds(oid.SHA1)
	if err != nil {
		t.Fatal(err)
	}
	want := append([]oid.Kind{0, 0, 0, 0, oid.Tag, oid.Tag}, slices.Repeat([]oid.Kind{oid.Tree}, n+1)...)
	if !slices.Equal(kinds, want) {
		t.Errorf("%v", kinds[:10])
	}
}

// An index that puts two objects in one place gives no sizes.
func TestTwoObjectsAtOneOffset(t *testing.T) {
	r := plain(t)
	r.Git("-c", "pack.writeReverseIndex=false", "repack", "-adq")
	name := "objects/" + strings.SplitN(only(t, r, "objects/pack/*.idx"), "objects/", 2)[1]
	idx := r.ReadFile(name)
	n := int(binary.BigEndian.Uint32(idx[8+255*4:]))
	offsets := idx[8+1024+n*24:]
	copy(offsets[4:8], offsets[:4])
	r.WriteFile(name, resum(r.Format, idx))
	s := NewSession(1)
	defer s.Close()
	u := measured(t, s, r, Options{Method: Walk})
	if why := u.Unknown[Reachable]; !strings.Contains(why, "overlap or lie outside") {
		t.Errorf("%v %q", u.Bytes, why)
	}
}

// A .rev whose checksum fits and whose order is another: it is found out, and the numbers are right.
func TestAReverseIndexOfAnotherOrder(t *testing.T) {
	gittest.Need(t, gittest.Newest)
	for _, bitmaps := range []string{"-b", "--no-write-bitmap-index"} {
		r := plain(t)
		r.Git("repack", "-adq", bitmaps)
		r.Git("update-ref", "refs/heads/main", r.A) // so that not all is reached
		r.Git("tag", "-d", "v2")
		name := "objects/" + strings.SplitN(only(t, r, "objects/pack/*.rev"), "objects/", 2)[1]
		rev := r.ReadFile(name)
		copy(rev[12:20], append(slices.Clone(rev[16:20]), rev[12:16]...))
		r.WriteFile(name, resum(r.Format, rev))
		for _, o := range []Options{{}, {Method: Walk}, {By: ByType}} {
			s := NewSession(1)
			u := measured(t, s, r, o)
			s.Close()
			sameNumbers(t, r, u)
			if len(u.Findings) != 1 || u.Method != Walk {
				t.Errorf("%s %v: %s %v", bitmaps, o, u.Method, u.Findings)
			}
		}
	}
}

// A flipped bit anywhere in an index: a figure that is given is the right one. Some offsets can be
// wrong by a few bytes and the order of objects still holds; then only the checksum tells.
func TestAnIndexWithAFlippedBit(t *testing.T) {
	gittest.Need(t, gittest.Newest)
	for _, format := range []oid.Format{oid.SHA1, oid.SHA256} {
		for _, all := range []bool{true, false} { // is reached
			t.Run(fmt.Sprint(format, all), func(t *testing.T) {
				t.Parallel()
				r := gittest.New(t, gittest.Options{Git: gittest.Newest, Format: format})
				r.Git("repack", "-adqb")
				if !all {
					r.Git("update-ref", "refs/heads/main", r.A)
					r.Git("tag", "-d", "v2")
				}
				name := "objects/" + strings.SplitN(only(t, r, "objects/pack/*.idx"), "objects/", 2)[1]
				sound := r.ReadFile(name)
				n := int(binary.BigEndian.Uint32(sound[8+255*4:]))
				from := 8 + 1024 + n*(format.Size()+4) // the offsets
				fresh := func(o Options) *Usage {
					s := NewSession(1)
					defer s.Close()
					return measured(t, s, r, o)
				}
				want := fresh(Options{Method: Walk})
				unknown := 0
				for at := 8 + 1024; at < len(sound); at++ {
					if at < from-2*format.Size() && at%7 != 0 {
						continue // not every byte of every id
					}
					idx := slices.Clone(sound)
					idx[at] ^= 1 << (at % 3)
					r.WriteFile(name, idx)
					for _, o := range []Options{{}, {Method: Walk}} {
						u := fresh(o)
						if !u.Complete() {
							unknown++
						}
						for f, bytes := range u.Bytes {
							if f != Files && bytes != want.Bytes[f] {
								t.Fatalf("byte %d of %d, %v: %s is %d, not %d", at, len(sound), o, f, bytes, want.Bytes[f])
							}
						}
					}
				}
				if unknown == 0 {
					t.Error("no damage was noticed")
				}
			})
		}
	}
}

// resum gives a file the checksum that fits.
func resum(format oid.Format, file []byte) []byte {
	body := file[:len(file)-format.Size()]
	h := format.New()
	h.Write(body)
	return h.Sum(body)
}

// only is the path of the only file that fits.
func only(t *testing.T, r *gittest.Repo, glob string) string {
	t.Helper()
	files, _ := filepath.Glob(r.File(glob))
	if len(files) != 1 {
		t.Fatalf("%s: %v", glob, files)
	}
	return files[0]
}

// Each object of a pack is what git says, whether what was made before it is kept, moved out of the
// way, written over or too large for the ring.
func TestReaderWithARingOfAnySize(t *testing.T) {
	gittest.Need(t, gittest.Newest)
	r := gittest.Init(t, gittest.Options{Git: gittest.Newest})
	var s strings.Builder
	for i := range 150 {
		fmt.Fprintf(&s, "commit refs/heads/main\ncommitter C <c@example.com> %d +0000\ndata 1\nx\n", 1600000000+i)
		for k := range 120 {
			if i == 0 || (k+i)%40 == 0 {
				fmt.Fprintf(&s, "M 100644 inline d%d/file%04d\ndata 8\n%08d\n", k%3, k, i*1000+k)
			}
		}
		s.WriteString("\n")
	}
	r.GitIn(s.String(), "fast-import", "--quiet")
	r.Git("repack", "-adqf", "--depth=30")
	db, _, err := odb.Open(r.File("objects"), oid.SHA1, odb.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	st, err := openStore(db.Stores()[0], oid.SHA1, "", nil, nil, 1, true)
	if err != nil {
		t.Fatal(err)
	}
	sp, err := newSpace(oid.SHA1, []*store{st}, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := map[uint32][]byte{}
	for v := range uint32(len(st.packs[0].index)) {
		id := st.id(v)
		_, content, err := db.Read(id, sizeLimit)
		if err != nil {
			t.Fatal(err)
		}
		want[v] = content
	}
	for _, size := range []int{1 << 10, 1 << 12, 5000, 20000, 40000, 1 << 20} {
		most := size
		if size == 1<<12 { // this one grows
			most = 1 << 20
		}
		rd := newReader(size, most)
		rd.sp = sp
		for step := range 3 { // in pack order, from the back, and by leaps
			for i := range uint32(len(want)) {
				v := []uint32{i, uint32(len(want)) - 1 - i, i * 7919 % uint32(len(want))}[step]
				o, err := rd.object(v)
				if o.kind == oid.Tree {
					checkMarks(t, rd, v, o.data)
				}
				if err != nil || !bytes.Equal(o.data, want[v]) {
					t.Fatalf("ring of %d, object %d: %v", size, v, err)
				}
				if !o.isDelta {
					continue
				}
				if !bytes.Equal(o.baseData, want[o.base]) {
					t.Fatalf("ring of %d, object %d: its base %d is not what it was", size, v, o.base)
				}
				for _, c := range o.copies {
					if !bytes.Equal(o.data[c.At:c.At+c.N], o.baseData[c.From:c.From+c.N]) {
						t.Fatalf("ring of %d, object %d: %+v is not the base's", size, v, c)
					}
				}
			}
		}
		if (len(rd.ring) > size) != (most > size) {
			t.Errorf("ring of %d has become one of %d", size, len(rd.ring))
		}
	}
}

// checkMarks compares what is remembered of a tree with the tree, and remembers it.
func checkMarks(t *testing.T, rd *reader, v uint32, tree []byte) {
	t.Helper()
	starts, err := entries(tree, 20, nil, func(uint32, []byte) {})
	if err != nil {
		t.Fatal(err)
	}
	if marks := rd.marksOf(v); marks != nil && !slices.Equal(marks, starts) {
		t.Fatalf("entries of %d are said to begin at %v, not at %v", v, marks, starts)
	}
	rd.mark(v, starts)
}

// A tree that a tree calls a blob too is walked all the same.
func TestATreeThatIsCalledABlob(t *testing.T) {
	r := plain(t)
	raw := oid.MustParse(r.Tree)
	both := append([]byte("100644 a\x00"), raw.Bytes()...)
	both = append(append(both, "40000 b\x00"...), raw.Bytes()...)
	tree := r.WriteObject("tree", both)
	text := fmt.Sprintf("tree %s\nauthor A <a@b> 1 +0000\ncommitter A <a@b> 1 +0000\n\n", tree)
	for _, ref := range strings.Fields(r.Git("for-each-ref", "--format=%(refname)")) {
		r.Git("update-ref", "-d", ref)
	}
	commit := r.WriteObject("commit", []byte(text))
	r.Git("update-ref", "refs/heads/main", commit)
	want := int64(0)
	for _, id := range []string{commit, tree, r.Tree, r.Blob} {
		want += int64(len(r.ReadFile(r.LooseName(id))))
	}
	s := NewSession(1)
	defer s.Close()
	if u := measured(t, s, r, Options{}); u.Bytes[Reachable] != want {
		t.Errorf("%v %v, want %d", u.Bytes, u.Unknown, want)
	}
}
