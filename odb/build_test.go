package odb

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/binary"
	"errors"
	"hash/adler32"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"refaudit/finding"
	"refaudit/oid"
)

// builder writes a pack by hand, with entries as git would never make them.
type builder struct {
	f     oid.Format
	pack  bytes.Buffer
	rows  []row
	level int
}

type row struct {
	id  oid.ID
	off uint64
	crc uint32
}

func newBuilder(f oid.Format) *builder {
	b := &builder{f: f, level: -1}
	b.pack.WriteString("PACK\x00\x00\x00\x02\x00\x00\x00\x00")
	return b
}

// entry writes an entry of any kind and claimed size. base is what stands between header and stream.
func (b *builder) entry(id oid.ID, kind EntryKind, size uint64, base, content []byte) (off uint64) {
	off = uint64(b.pack.Len())
	c := byte(kind)<<4 | byte(size&15)
	for size >>= 4; size > 0; size >>= 7 {
		b.pack.WriteByte(c | 0x80)
		c = byte(size & 0x7f)
	}
	b.pack.WriteByte(c)
	b.pack.Write(base)
	if b.level == 0 && len(content) < 1<<16 { // one stored block, as making a zlib writer takes long
		n := uint16(len(content))
		b.pack.Write([]byte{0x78, 0x01, 0x01, byte(n), byte(n >> 8), ^byte(n), ^byte(n >> 8)})
		b.pack.Write(content)
		b.pack.Write(binary.BigEndian.AppendUint32(nil, adler32.Checksum(content)))
	} else {
		z, _ := zlib.NewWriterLevel(&b.pack, b.level)
		z.Write(content)
		z.Close()
	}
	b.rows = append(b.rows, row{id, off, crc32.ChecksumIEEE(b.pack.Bytes()[off:])})
	return off
}

// whole adds an object as it is.
func (b *builder) whole(kind oid.Kind, content []byte) oid.ID {
	id := b.f.Object(kind.String(), content)
	b.entry(id, EntryKind(kind), uint64(len(content)), nil, content)
	return id
}

// ofs adds a delta to the entry at base, ref one to an object.
func (b *builder) ofs(id oid.ID, base uint64, delta []byte) uint64 {
	return b.entry(id, OfsDelta, uint64(len(delta)), distance(uint64(b.pack.Len())-base), delta)
}

func (b *builder) ref(id, base oid.ID, delta []byte) uint64 {
	return b.entry(id, RefDelta, uint64(len(delta)), base.Bytes(), delta)
}

// distance is a number as OfsDelta entries have it.
func distance(n uint64) []byte {
	out := []byte{byte(n & 0x7f)}
	for n >>= 7; n > 0; n >>= 7 {
		n--
		out = append(out, 0x80|byte(n&0x7f))
	}
	slices.Reverse(out)
	return out
}

// delta makes target from base by copying what both begin with and inserting the rest.
func deltaOf(base, target []byte) []byte {
	out := binary.AppendUvarint(binary.AppendUvarint(nil, uint64(len(base))), uint64(len(target)))
	same := 0
	for same < len(base) && same < len(target) && base[same] == target[same] && same < 0xffff {
		same++
	}
	if same > 0 {
		out = append(out, 0x80|0x30, byte(same), byte(same>>8))
	}
	for rest := target[same:]; len(rest) > 0; {
		n := min(len(rest), 127)
		out = append(append(out, byte(n)), rest[:n]...)
		rest = rest[n:]
	}
	return out
}

// write finishes the pack and its index under dir/pack.
func (b *builder) write(t testing.TB, dir, name string, version int) {
	t.Helper()
	pack, idx := b.files(version)
	put(t, dir, name+".pack", pack)
	put(t, dir, name+".idx", idx)
}

func (b *builder) files(version int) (pack, idx []byte) {
	pack = b.pack.Bytes()
	binary.BigEndian.PutUint32(pack[8:], uint32(len(b.rows)))
	pack = append(pack, hashed(b.f, pack)...)
	return pack, b.index(version, pack[len(pack)-b.f.Size():])
}

func (b *builder) index(version int, packHash []byte) []byte {
	rows := slices.Clone(b.rows)
	slices.SortFunc(rows, func(x, y row) int { return x.id.Compare(y.id) })
	var x, crcs, offs, far []byte
	if version == 2 {
		x = append(x, "\xfftOc\x00\x00\x00\x02"...)
	}
	for first, n := 0, 0; first < 256; first++ {
		for n < len(rows) && int(rows[n].id.Bytes()[0]) <= first {
			n++
		}
		x = binary.BigEndian.AppendUint32(x, uint32(n))
	}
	for _, r := range rows {
		if version == 1 {
			x = binary.BigEndian.AppendUint32(x, uint32(r.off))
			x = r.id.AppendTo(x)
			continue
		}
		x = r.id.AppendTo(x)
		crcs = binary.BigEndian.AppendUint32(crcs, r.crc)
		off := uint32(r.off)
		if r.off >= 1<<31 {
			off = 1<<31 | uint32(len(far)/8)
			far = binary.BigEndian.AppendUint64(far, r.off)
		}
		offs = binary.BigEndian.AppendUint32(offs, off)
	}
	x = slices.Concat(x, crcs, offs, far, packHash)
	return append(x, hashed(b.f, x)...)
}

func hashed(f oid.Format, b []byte) []byte {
	h := f.New()
	h.Write(b)
	return h.Sum(nil)
}

func put(t testing.TB, dir, name string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, "pack"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "pack", name), data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// putLoose writes a loose object file that holds text, header included.
func putLoose(t testing.TB, dir string, id oid.ID, text []byte) string {
	t.Helper()
	var z bytes.Buffer
	w := zlib.NewWriter(&z)
	w.Write(text)
	w.Close()
	path := filepath.Join(dir, filepath.FromSlash(loosePath(&id)))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, z.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func loose(t testing.TB, dir string, f oid.Format, kind oid.Kind, content []byte) oid.ID {
	id := f.Object(kind.String(), content)
	putLoose(t, dir, id, append(appendHeader(nil, kind, uint64(len(content))), content...))
	return id
}

func open(t testing.TB, dir string, f oid.Format) *DB {
	t.Helper()
	db, _, err := Open(dir, f, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func lookAll(t testing.TB, db *DB, ids []oid.ID) []oid.Fact {
	t.Helper()
	out := make([]oid.Fact, len(ids))
	if err := db.Look(context.Background(), ids, out); err != nil {
		t.Fatal(err)
	}
	return out
}

func lookOne(t testing.TB, db *DB, id oid.ID) oid.Fact {
	t.Helper()
	return lookAll(t, db, []oid.ID{id})[0]
}

// isDamaged tells what peel is told: the object's bytes are wrong.
func isDamaged(f oid.Fact) bool {
	var c *finding.Corrupt
	return f.State == oid.Unreadable && errors.As(f.Err, &c)
}

// notSeen is the other kind of unreadable.
func notSeen(f oid.Fact) bool {
	var c *finding.Corrupt
	return f.State == oid.Unreadable && f.Err != nil && !errors.As(f.Err, &c)
}

// tagOf is the text of a tag.
func tagOf(target oid.ID, kind oid.Kind, name, body string) []byte {
	return []byte("object " + target.String() + "\ntype " + kind.String() + "\ntag " + name + "\ntagger A U Thor <a@example.com> 1700000000 +0000\n\n" + body)
}

var bothFormats = []oid.Format{oid.SHA1, oid.SHA256}
