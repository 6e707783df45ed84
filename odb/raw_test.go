package odb

import (
	"bytes"
	"testing"

	"refaudit/oid"
)

func TestRawIDIsTheID(t *testing.T) {
	for _, f := range []oid.Format{oid.SHA1, oid.SHA256} {
		var data []byte
		data = append(data, indexMagic...)
		data = append(data, 0, 0, 0, 2)
		for i := range 256 {
			data = append(data, 0, 0, 0, byte(min(i, 2))) // ids 1... and 2...
		}
		for _, first := range []byte{1, 2} {
			data = append(append(data, first), bytes.Repeat([]byte{0xab}, f.Size()-1)...)
		}
		data = append(data, make([]byte, 2*4+2*4+2*f.Size())...)
		x, err := ParseIndex(data, f, "idx")
		if err != nil {
			t.Fatal(err)
		}
		if err := x.VerifyChecksum(); err == nil {
			t.Errorf("%v: a checksum of zeros fits", f)
		}
		h := f.New()
		h.Write(data[:len(data)-f.Size()])
		h.Sum(data[:len(data)-f.Size()])
		if err := x.VerifyChecksum(); err != nil {
			t.Errorf("%v: %v", f, err)
		}
		for i := range x.Count() {
			id := x.ID(i)
			if !bytes.Equal(x.RawID(i), id.Bytes()) || x.RawID(i)[0] != byte(i+1) {
				t.Errorf("%v: id %d is %x, raw %x", f, i, id.Bytes(), x.RawID(i))
			}
		}
	}
}
