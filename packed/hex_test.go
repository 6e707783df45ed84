package packed

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"refaudit/oid"
)

// Every byte at every place, against the standard library.
func TestHexDecoders(t *testing.T) {
	for _, f := range []oid.Format{oid.SHA1, oid.SHA256} {
		n := f.HexLen()
		base := []byte(strings.Repeat("0123456789abcdef", 4)[:n])
		want, got := make([]byte, f.Size()), make([]byte, f.Size())
		for at := range n {
			for c := range 256 {
				text := bytes.Clone(base)
				text[at] = byte(c)
				_, err := hex.Decode(want, text)
				isUpper := c >= 'A' && c <= 'F'
				clear(got)
				ok, upper := decodeHex(got, text)
				if ok != (err == nil) || ok && (upper != isUpper || !bytes.Equal(got, want)) {
					t.Fatalf("byte %#x at %d: %v %v %x", c, at, ok, upper, got)
				}
				clear(got)
				if ok := decodeLower(got, text); ok != (err == nil && !isUpper) || ok && !bytes.Equal(got, want) {
					t.Fatalf("byte %#x at %d, lower case: %v %x", c, at, ok, got)
				}
			}
		}
	}
}

func BenchmarkDecodeLower(b *testing.B) {
	text := []byte(strings.Repeat("9a", 20))
	var id [20]byte
	for b.Loop() {
		decodeLower(id[:], text)
	}
}
