package oid

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/json"
	"hash"
	"strings"
	"testing"
)

func TestParseTellsTheFormatFromTheLength(t *testing.T) {
	for _, f := range []Format{SHA1, SHA256} {
		text := strings.Repeat("0a", f.Size())
		id, err := Parse(text)
		if err != nil || id.Format() != f || id.String() != text {
			t.Errorf("%v: %v %v", f, id, err)
		}
		if up, err := Parse(strings.ToUpper(text)); err != nil || up != id {
			t.Errorf("%v: upper-case digits: %v %v", f, up, err)
		}
		if _, err := Parse(text[1:]); err == nil {
			t.Errorf("%v: an id that lost a digit was read", f)
		}
		if _, err := Parse("g" + text[1:]); err == nil {
			t.Errorf("%v: an id with a letter g was read", f)
		}
		if got, ok := ParseFormat(f.String()); !ok || got != f {
			t.Errorf("%v: name does not lead back", f)
		}
	}
}

// The ids of the empty blob, as any git prints them.
func TestObjectHashesAsGitDoes(t *testing.T) {
	for f, want := range map[Format]string{
		SHA1:   "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
		SHA256: "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813",
	} {
		if got := f.Object("blob", nil).String(); got != want {
			t.Errorf("%v: empty blob is %s, want %s", f, got, want)
		}
	}
}

func TestDecodeHexRefusesEveryOtherByte(t *testing.T) {
	for b := 0; b < 256; b++ {
		c := byte(b)
		hex := c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
		var dst [1]byte
		if DecodeHex(dst[:], []byte{c, '0'}) != hex || DecodeHex(dst[:], []byte{'0', c}) != hex {
			t.Errorf("byte %#x: wrong verdict", b)
		}
		if (HexPrefix([]byte{c, '0'}, 2) == 2) != hex {
			t.Errorf("byte %#x: wrong prefix", b)
		}
	}
}

func TestHexDistance(t *testing.T) {
	a := MustParse(strings.Repeat("0", 40))
	for text, want := range map[string]int{
		strings.Repeat("0", 40):        0,
		"1" + strings.Repeat("0", 39):  1,
		"11" + strings.Repeat("0", 38): 2,
		strings.Repeat("f", 40):        40,
		strings.Repeat("0", 64):        -1,
	} {
		if got := a.HexDistance(MustParse(text)); got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
}

// lengths is a hash that notes how long each piece is.
type lengths struct {
	hash.Hash
	most, sum int
}

func (l *lengths) Write(p []byte) (int, error) {
	l.most, l.sum = max(l.most, len(p)), l.sum+len(p)
	return l.Hash.Write(p)
}

func TestLongTextsAreHashedPieceByPiece(t *testing.T) {
	for _, n := range []int{0, 1, pieceLen - 1, pieceLen, pieceLen + 1, 3*pieceLen + 7} {
		text := make([]byte, n)
		for i := range text {
			text[i] = byte(i * 31 >> 3)
		}
		l := &lengths{Hash: sha1.New()}
		if wrote, err := (inPieces{l}).Write(text); wrote != n || err != nil || l.sum != n || l.most > pieceLen {
			t.Errorf("%d bytes: wrote %d (%v), hashed %d, at most %d at once", n, wrote, err, l.sum, l.most)
		}
		one, other := SHA1.New(), SHA256.New()
		one.Write(text)
		other.Write(text)
		want, want256 := sha1.Sum(text), sha256.Sum256(text)
		if !bytes.Equal(one.Sum(nil), want[:]) || !bytes.Equal(other.Sum(nil), want256[:]) {
			t.Errorf("%d bytes: another hash than of the whole", n)
		}
	}
}

func TestJSONIsHex(t *testing.T) {
	id := SHA1.Object("blob", nil)
	text, err := json.Marshal(id)
	var back ID
	if err != nil || string(text) != `"`+id.String()+`"` || json.Unmarshal(text, &back) != nil || back != id {
		t.Errorf("%s %v %v", text, err, back)
	}
}

func BenchmarkDecodeHex(b *testing.B) {
	src := []byte(strings.Repeat("9a", 20))
	var dst [20]byte
	b.SetBytes(40)
	for b.Loop() {
		DecodeHex(dst[:], src)
	}
}
