package reftable

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"testing"

	"refaudit/finding"
	"refaudit/oid"
)

// searchFaults is what VerifySearch says of a table; "" nothing.
func searchFaults(t *testing.T, data []byte) (said string) {
	t.Helper()
	tab, err := OpenBytes(data, "t", oid.SHA1)
	if err != nil {
		return err.Error()
	}
	if err := VerifySearch(tab, func(f finding.Finding) error { said += f.Message + "\n"; return nil }); err != nil {
		t.Fatal(err)
	}
	return said
}

// A bit that flips in the ref index or in the restarts of ref blocks is seen: a search may go wrong by it. A table in
// which every name is found where it is says nothing.
func TestEveryFlippedBitOfASearchIsSeen(t *testing.T) {
	for _, unpadded := range []bool{true, false} {
		data := everything(t, unpadded)
		if said := searchFaults(t, data); said != "" {
			t.Fatalf("a sound table: %s", said)
		}
		sound := openReader(t, data)
		bits := 0
		err := Dump(bytes.NewReader(bytes.Clone(data)), int64(len(data)), "t", func(p *Part) error {
			inRefs := !p.Inflated && p.Offset < sound.RefIndex && p.Kind == PartRestart
			inIndex := !p.Inflated && p.Kind == PartIndex && p.Offset < sound.Obj
			if !inRefs && !inIndex {
				return nil
			}
			for i := range p.Length * 8 {
				data[p.Offset+i/8] ^= 1 << (i % 8)
				bits++
				if said := searchFaults(t, data) + readFaults(t, data); said == "" {
					t.Errorf("unpadded %v: bit %d of byte %d, %s, is not seen", unpadded, i%8, p.Offset+i/8, p.Kind)
				}
				data[p.Offset+i/8] ^= 1 << (i % 8)
			}
			return nil
		})
		if err != nil || bits < 1000 {
			t.Errorf("%d bits, %v", bits, err)
		}
	}
}

// readFaults is what a reading of all refs says.
func readFaults(t *testing.T, data []byte) (said string) {
	t.Helper()
	tab, err := OpenBytes(data, "t", oid.SHA1)
	if err != nil {
		return err.Error()
	}
	tab.Damage = func(c *finding.Corrupt) error { said += c.Error() + "\n"; return nil }
	tab.Refs(func(*Ref) error { return nil })
	return said
}

// git reads no more of a block than the header's block size, and of a longer one nothing.
func TestABlockAboveTheBlockSizeIsSeen(t *testing.T) {
	var out bytes.Buffer
	w, err := NewWriter(&out, Options{Format: oid.SHA1, BlockSize: 4096, Min: 1, Max: 1, NoObjects: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.AddRef(&Ref{Name: []byte("refs/heads/main"), UpdateIndex: 1, Type: Direct, Value: make([]byte, 20)}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	data := out.Bytes()
	footer := len(data) - 68
	for _, at := range []int{5, footer + 5} {
		copy(data[at:], []byte{0, 0, 1})
	}
	binary.BigEndian.PutUint32(data[len(data)-4:], crc32.ChecksumIEEE(data[footer:len(data)-4]))
	if said := searchFaults(t, data); said == "" {
		t.Error("nothing is said")
	}
}
