package oid

import (
	"encoding/json"
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
