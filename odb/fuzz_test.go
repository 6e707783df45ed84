package odb

import (
	"bytes"
	"testing"

	"refaudit/internal/gittest"
	"refaudit/internal/vfs"
	"refaudit/oid"
)

// seedPack is a small pack with every kind of entry.
func seedPack(f oid.Format) *builder {
	b := newBuilder(f)
	commit := b.whole(oid.Commit, []byte("commit"))
	text := tagOf(commit, oid.Commit, "a", "body\n")
	b.whole(oid.Tag, text)
	text2 := tagOf(commit, oid.Commit, "b", "body\n")
	tag2, tag3 := f.Object("tag", text2), f.Object("tag", append(text2, '!'))
	b.ofs(tag2, b.rows[1].off, deltaOf(text, text2))
	b.ref(tag3, tag2, deltaOf(text2, append(text2, '!')))
	b.whole(oid.Tree, nil)
	b.whole(oid.Blob, bytes.Repeat([]byte("blob"), 100))
	return b
}

func format(sha256 bool) oid.Format {
	if sha256 {
		return oid.SHA256
	}
	return oid.SHA1
}

func FuzzIndex(f *testing.F) {
	for _, sha256 := range []bool{false, true} {
		for version := 1; version <= 2; version++ {
			_, idx := seedPack(format(sha256)).files(version)
			f.Add(idx, sha256)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, sha256 bool) {
		x, err := ParseIndex(data, format(sha256), "x")
		if err != nil {
			return
		}
		ordered := x.ids.checkOrder() == nil
		for i := range x.Count() {
			id := x.ID(i)
			x.Offset(i)
			if at, ok := x.Find(&id); ok && x.ID(at) != id || ordered && (!ok || at != i) {
				t.Fatalf("id %d, %v, is found at %d, %v", i, id, at, ok)
			}
		}
		other := format(sha256).Object("blob", nil)
		if at, ok := x.Find(&other); ok && x.ID(at) != other {
			t.Fatalf("%v is found at %d", other, at)
		}
		x.PackHash()
		if x.Verify() == nil && !ordered {
			t.Fatal("ids out of order pass")
		}
	})
}

func FuzzMidx(f *testing.F) {
	r := gittest.New(f, gittest.Options{})
	manyPacksOf(r)
	r.Git("multi-pack-index", "write", "--bitmap")
	f.Add(r.ReadFile("objects/"+midxFile), false)
	r = gittest.New(f, gittest.Options{Format: oid.SHA256})
	manyPacksOf(r)
	r.Git("multi-pack-index", "write")
	f.Add(r.ReadFile("objects/"+midxFile), true)
	f.Add(smallMidx().bytes(), false)
	f.Fuzz(func(t *testing.T, data []byte, sha256 bool) {
		m, err := ParseMidx(data, format(sha256), "m")
		if err != nil {
			return
		}
		ordered := m.ids.checkOrder() == nil
		for i := range m.Count() {
			id := m.ID(i)
			if at, ok := m.Find(&id); ok && m.ID(at) != id || ordered && (!ok || at != i) {
				t.Fatalf("id %d, %v, is found at %d, %v", i, id, at, ok)
			}
			if pack, _, ok := m.Place(i); ok && m.PackNames()[pack] == "\x00" {
				t.Fatal("a pack name with NUL")
			}
		}
		m.Checksum()
		m.Chunk("RIDX")
	})
}

// manyPacksOf makes a pack of each of a few tags.
func manyPacksOf(r *gittest.Repo) {
	for _, name := range []string{"x", "y", "z"} {
		r.Git("tag", "-a", "-m", name, name, r.A)
		r.Git("repack", "-dq")
	}
}

// FuzzPack reads every object of a pack that has any bytes between its header and its trailer,
// and any places in its index.
func FuzzPack(f *testing.F) {
	seeds := map[oid.Format]*builder{}
	for _, format := range bothFormats {
		b := seedPack(format)
		seeds[format] = b
		var steps []byte
		last := uint64(packHeaderLen)
		for _, r := range b.rows {
			steps = append(steps, byte(r.off-last))
			last = r.off
		}
		f.Add(b.pack.Bytes()[packHeaderLen:], steps, format == oid.SHA256)
	}
	empty, err := vfs.Open(f.TempDir())
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body, steps []byte, sha256 bool) {
		if len(body) > 1<<16 || len(steps) > 32 {
			return
		}
		format := format(sha256)
		b := newBuilder(format)
		b.pack.Write(body)
		at := uint64(packHeaderLen)
		for i, step := range steps { // the first ids are those that the seed has
			id := format.Object("blob", []byte{byte(i)})
			if i < len(seeds[format].rows) {
				id = seeds[format].rows[i].id
			}
			at += uint64(step)
			b.rows = append(b.rows, row{id: id, off: at})
		}
		s := &Store{dir: empty, prefix: "objects/", format: format, covered: []bool{false}}
		s.loose.store = s
		s.packs = []*Pack{memoryPack(t, s, b)}
		w := newWorker(format)
		w.look = &look{db: &DB{format: format}, view: &view{stores: []*Store{s}, packs: s.packs, first: []int{0}}}
		for i := range b.rows {
			id := &b.rows[i].id
			got := w.readSite(site{pack: s.packs[0], off: b.rows[i].off, store: s}, id, true)
			mended := w.mend(id, newMender(w.view, format, 1<<20), nil, true)
			switch {
			case got.State == oid.Unreadable && got.Err == nil, got.State != oid.Unreadable && got.State != oid.Present:
				t.Fatalf("%+v", got)
			case got.State == oid.Present && mended != got:
				t.Fatalf("%+v, mended %+v", got, mended)
			}
			if kind, content, err := NewReader(1<<20, 1<<20).Object(s.packs[0], b.rows[i].off); got.State == oid.Present && (err != nil || format.Object(kind.String(), content) != *id) {
				t.Fatalf("%v is there, but can't be read: %v", id, err)
			}
		}
	})
}

// memoryPack is a pack of s that lies in no file.
func memoryPack(t *testing.T, s *Store, b *builder) *Pack {
	data, idx := b.files(2)
	x, err := ParseIndex(idx, b.f, "idx")
	if err == nil {
		err = checkPack(data, x, "pack")
	}
	if err != nil {
		t.Fatal(err)
	}
	p := &Pack{store: s, name: "pack-fuzz"}
	p.index.get(func() (*Index, error) { return x, nil })
	p.body.get(func() ([]byte, error) { return data[:len(data)-b.f.Size()], nil })
	return p
}

func FuzzLoose(f *testing.F) {
	text := tagOf(oid.SHA1.Object("commit", nil), oid.Commit, "t", "x\n")
	for _, header := range []string{"tag 139\x00", "blob 0\x00", "tag 0139\x00", "tag -1\x00", "tag\x00", "commit 99999999999999999999\x00", "tree  3\x00"} {
		f.Add(append([]byte(header), text...))
	}
	f.Add(append(appendHeader(nil, oid.Tag, uint64(len(text))), text...))
	f.Fuzz(func(t *testing.T, object []byte) {
		dir := t.TempDir()
		id := hashID(object)
		putLoose(t, dir, id, object)
		db, _, err := Open(dir, oid.SHA1, Options{Workers: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		got := lookOne(t, db, id)
		kind, content, err := db.Read(id, 1<<20)
		switch {
		case got.State == oid.Absent || got.State == oid.Unasked:
			t.Fatalf("%+v", got)
		case err == nil && !bytes.Equal(append(appendHeader(nil, kind, uint64(len(content))), content...), object):
			t.Fatalf("%q was read as %v %q", object, kind, content)
		case err == nil && got.State == oid.Present && got.Kind != kind:
			t.Fatalf("%v and %v", got.Kind, kind)
		}
	})
}

// hashID is the id that an object with this header and content has, whatever they are.
func hashID(object []byte) oid.ID {
	sum := hashOf(oid.SHA1, object)
	return oid.FromBytes(oid.SHA1, sum[:])
}

func FuzzEntry(f *testing.F) {
	f.Add([]byte("\x95\x0a\x00"), uint16(0))
	f.Add(append([]byte("\xf0\x80\x80\x80\x80\x80\x80\x80\x80\x01"), make([]byte, 40)...), uint16(0))
	f.Add([]byte("\xe4\x80\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7fx"), uint16(0))
	f.Fuzz(func(t *testing.T, data []byte, at uint16) {
		body := append(make([]byte, packHeaderLen+int(at)), data...)
		off := uint64(packHeaderLen + int(at))
		e, err := parseEntry(body, off, 20)
		if err != nil {
			return
		}
		if e.Data >= uint64(len(body)) || e.Data <= off || e.Kind == 0 || e.Kind == 5 || e.Kind > 7 {
			t.Fatalf("%+v", e)
		}
		if e.Kind == OfsDelta && (e.Base >= off || e.Base < packHeaderLen) || e.Kind == RefDelta && e.Ref+20 != e.Data {
			t.Fatalf("%+v", e)
		}
		b := newBuilder(oid.SHA1) // written again, it is read the same
		b.pack.Write(make([]byte, at))
		var base []byte
		switch e.Kind {
		case OfsDelta:
			base = distance(off - e.Base)
		case RefDelta:
			base = body[e.Ref:e.Data]
		}
		b.entry(oid.ID{}, e.Kind, e.Size, base, nil)
		again, err := parseEntry(b.pack.Bytes(), off, 20)
		if err != nil || again.Size != e.Size || again.Kind != e.Kind || again.Base != e.Base {
			t.Fatalf("%+v, then %+v %v", e, again, err)
		}
	})
}

func TestEntriesLieBetweenHeaderAndTrailer(t *testing.T) {
	body := append(make([]byte, packHeaderLen), 0x31, 'x')
	for off, want := range map[uint64]bool{0: false, 11: false, 12: true, 13: false, 14: false, 1 << 63: false, 1<<64 - 1: false} {
		if _, err := parseEntry(body, off, 20); (err == nil) != want {
			t.Errorf("offset %d: %v", off, err)
		}
	}
}

// A size takes the bits that git gives it.
func TestEntrySizesUpTo64Bits(t *testing.T) {
	for _, size := range []uint64{0, 15, 16, 1 << 11, 1 << 32, 1<<64 - 1} {
		b := newBuilder(oid.SHA1)
		off := b.entry(oid.ID{}, EntryKind(oid.Blob), size, nil, []byte("x"))
		e, err := parseEntry(b.pack.Bytes(), off, 20)
		if err != nil || e.Size != size {
			t.Errorf("%d: %+v %v", size, e, err)
		}
	}
	body := append(make([]byte, packHeaderLen), bytes.Repeat([]byte{0xbf}, 20)...)
	if _, err := parseEntry(append(body, 0), packHeaderLen, 20); err == nil {
		t.Error("a size of more than 64 bits")
	}
}
