package odb

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"refaudit/finding"
	"refaudit/oid"
)

// midxFields are the parts of a multi-pack-index, to be spoilt one by one.
type midxFields struct {
	f       oid.Format
	head    string
	version byte
	hash    byte
	packs   uint32
	names   string
	chunks  []string // in the order of the file
	fanout  [256]uint32
	ids     []oid.ID
	places  []uint32
	far     []uint64
}

// smallMidx has two objects in each of two packs, one of them at a far offset.
func smallMidx() *midxFields {
	m := &midxFields{f: oid.SHA1, head: "MIDX", version: 1, hash: 1, packs: 2, names: "pack-a.idx\x00pack-b.idx\x00\x00\x00",
		chunks: []string{"PNAM", "OIDF", "OIDL", "OOFF", "LOFF"}, far: []uint64{1 << 40}}
	for i := range 4 {
		raw := bytes.Repeat([]byte{byte(i + 1)}, 20)
		m.ids = append(m.ids, oid.FromBytes(m.f, raw))
	}
	for i := range m.fanout {
		m.fanout[i] = uint32(min(i, 4))
	}
	m.places = []uint32{0, 12, 1, 20, 1, 1 << 31, 0, 40}
	return m
}

func (m *midxFields) bytes() []byte {
	body := map[string][]byte{"PNAM": []byte(m.names)}
	for _, n := range m.fanout {
		body["OIDF"] = binary.BigEndian.AppendUint32(body["OIDF"], n)
	}
	for _, id := range m.ids {
		body["OIDL"] = id.AppendTo(body["OIDL"])
	}
	for _, n := range m.places {
		body["OOFF"] = binary.BigEndian.AppendUint32(body["OOFF"], n)
	}
	for _, n := range m.far {
		body["LOFF"] = binary.BigEndian.AppendUint64(body["LOFF"], n)
	}
	out := append([]byte(m.head), m.version, m.hash, byte(len(m.chunks)), 0)
	out = binary.BigEndian.AppendUint32(out, m.packs)
	at := uint64(len(out) + (len(m.chunks)+1)*midxRowLen)
	for _, id := range m.chunks {
		out = binary.BigEndian.AppendUint64(append(out, id...), at)
		at += uint64(len(body[id]))
	}
	out = binary.BigEndian.AppendUint64(append(out, 0, 0, 0, 0), at)
	for _, id := range m.chunks {
		out = append(out, body[id]...)
	}
	return append(out, hashed(m.f, out)...)
}

func TestAMultiPackIndexIsRead(t *testing.T) {
	want := smallMidx()
	m, err := ParseMidx(want.bytes(), oid.SHA1, "m")
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Verify(); err != nil || m.Count() != 4 || strings.Join(m.PackNames(), " ") != "pack-a.idx pack-b.idx" {
		t.Errorf("%v, %d objects, packs %v", err, m.Count(), m.PackNames())
	}
	places := [][2]uint64{{0, 12}, {1, 20}, {1, 1 << 40}, {0, 40}}
	for i, id := range want.ids {
		at, found := m.Find(&id)
		pack, off, ok := m.Place(i)
		if !found || at != i || !ok || uint64(pack) != places[i][0] || off != places[i][1] {
			t.Errorf("object %d: found %v at %d; in pack %d at %d, %v", i, found, at, pack, off, ok)
		}
	}
	// without far offsets the highest bit is a bit like any other
	want.chunks, want.places[1] = want.chunks[:4], 1<<31|7
	if m, err = ParseMidx(want.bytes(), oid.SHA1, "m"); err != nil {
		t.Fatal(err)
	}
	if _, off, ok := m.Place(0); !ok || off != 1<<31|7 {
		t.Errorf("offset %d, %v", off, ok)
	}
}

func TestPlacesThatDoNotExist(t *testing.T) {
	f := smallMidx()
	f.places[0], f.places[5] = 2, 1<<31|1
	m, err := ParseMidx(f.bytes(), oid.SHA1, "m")
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{false, true, false, true} {
		if pack, off, ok := m.Place(i); ok != want {
			t.Errorf("object %d: pack %d, offset %d, %v", i, pack, off, ok)
		}
	}
}

// Each of these is damage, told with the file's name.
func TestABadMultiPackIndexIsRefused(t *testing.T) {
	for want, spoil := range map[string]func(m *midxFields) []byte{
		"begins with \"MIDy\"":        func(m *midxFields) []byte { m.head = "MIDy"; return m.bytes() },
		"of version 3":                func(m *midxFields) []byte { m.version = 3; return m.bytes() },
		"hash version 2":              func(m *midxFields) []byte { m.hash = 2; return m.bytes() },
		"chunk PNAM is missing":       func(m *midxFields) []byte { m.chunks = m.chunks[1:]; return m.bytes() },
		"chunk OOFF is missing":       func(m *midxFields) []byte { m.chunks[3] = "XXXX"; return m.bytes() },
		"stands twice":                func(m *midxFields) []byte { m.chunks[4] = "PNAM"; return m.bytes() },
		"fanout falls":                func(m *midxFields) []byte { m.fanout[9] = 3; return m.bytes() },
		"for 5 objects":               func(m *midxFields) []byte { m.fanout[255] = 5; return m.bytes() },
		"chunks of 80 and 24 bytes":   func(m *midxFields) []byte { m.places = m.places[:6]; return m.bytes() },
		"pack name 3 of 3 has no end": func(m *midxFields) []byte { m.names, m.packs = "pack-a.idx\x00pack-b.idx\x00xx", 3; return m.bytes() },
		"4000000000 pack names":       func(m *midxFields) []byte { m.packs = 4000000000; return m.bytes() },
		"stands behind":               func(m *midxFields) []byte { m.names = "pack-b.idx\x00pack-a.idx\x00\x00\x00"; return m.bytes() },
		"31 bytes are too few":        func(m *midxFields) []byte { return m.bytes()[:31] },
		"table of 5 chunks":           func(m *midxFields) []byte { return m.bytes()[:60] },
		"does not lie in the file":    func(m *midxFields) []byte { return m.bytes()[:1200] },
		"which 4 does not divide":     func(m *midxFields) []byte { return at(m.bytes(), 12+4+7, 1) },
		"ends after 1 of 5 chunks":    func(m *midxFields) []byte { return at(m.bytes(), 12+12, 'O', 'I', 'D', 'F') },
		"goes on after 5 chunks":      func(m *midxFields) []byte { return at(m.bytes(), 12+5*12, 'M') },
	} {
		data := spoil(smallMidx())
		_, err := ParseMidx(data, oid.SHA1, "objects/pack/multi-pack-index")
		var c *finding.Corrupt
		if !errors.As(err, &c) || c.ID != finding.BitmapUnusable || c.Pos.File != "objects/pack/multi-pack-index" || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	// version 2 may have its packs in any order
	m := smallMidx()
	m.version, m.names = 2, "pack-b.idx\x00pack-a.idx\x00\x00\x00"
	if _, err := ParseMidx(m.bytes(), oid.SHA1, "m"); err != nil {
		t.Error(err)
	}
}

// at changes bytes by XOR.
func at(data []byte, off int, x ...byte) []byte {
	for i, b := range x {
		data[off+i] ^= b
	}
	return data
}
