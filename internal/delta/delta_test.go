package delta

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"testing"
)

// of is a delta that says so many bytes of base and result, and has these instructions.
func of(base, result uint64, code ...byte) []byte {
	return append(binary.AppendUvarint(binary.AppendUvarint(nil, base), result), code...)
}

// encode makes target from base: what both begin with is copied, the rest inserted.
func encode(base, target []byte) []byte {
	out := of(uint64(len(base)), uint64(len(target)))
	same := 0
	for same < len(base) && same < len(target) && base[same] == target[same] && same < 0xffff {
		same++
	}
	if same > 0 {
		out = append(out, 0xb0, byte(same), byte(same>>8))
	}
	for rest := target[same:]; len(rest) > 0; {
		n := min(len(rest), 127)
		out = append(append(out, byte(n)), rest[:n]...)
		rest = rest[n:]
	}
	return out
}

func TestApply(t *testing.T) {
	large := bytes.Repeat([]byte("0123456789abcdef"), 1<<13)
	for name, c := range map[string]struct {
		base  string
		delta []byte
		want  string
		err   string
	}{
		"copy and insert":         {"0123456789", of(10, 12, 0x90, 10, 2, 'a', 'b'), "0123456789ab", ""},
		"from the middle":         {"0123456789", of(10, 3, 0x91, 4, 3), "456", ""},
		"all arguments":           {"0123456789", of(10, 4, 0xff, 1, 0, 0, 0, 4, 0, 0), "1234", ""},
		"65536 bytes":             {string(large), of(1<<17, 1<<16, 0x82, 1), string(large[256 : 256+1<<16]), ""},
		"nothing":                 {"0123456789", of(10, 0), "", ""},
		"an insert cut short":     {"0123456789", of(10, 3, 3, 'a', 'b'), "", "ends too early"},
		"a copy cut short":        {"0123456789", of(10, 4, 0xff), "", "ends too early"},
		"a copy cut shorter":      {"0123456789", of(10, 4, 0xff, 1, 0, 0, 0, 4, 0), "", "ends too early"},
		"the reserved one":        {"0123456789", of(10, 4, 0), "", "reserved"},
		"from outside":            {"0123456789", of(10, 4, 0x91, 7, 4), "", "copies bytes 7 to 11, from outside its base of 10"},
		"from far outside":        {"0123456789", of(10, 4, 0xff, 255, 255, 255, 255, 255, 255, 255), "", "outside its base"},
		"more copied than said":   {"0123456789", of(10, 4, 0x90, 5), "", "more than the 4 bytes"},
		"more inserted than said": {"0123456789", of(10, 1, 2, 'a', 'b'), "", "more than the 1 bytes"},
		"less than said":          {"0123456789", of(10, 4, 0x90, 3), "", "makes 3 of the 4 bytes"},
	} {
		_, result, code, err := Sizes(c.delta)
		if err != nil {
			t.Fatal(err)
		}
		dst := make([]byte, result)
		var copies []Copied
		err = Apply(dst, []byte(c.base), code, &copies)
		switch {
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%s: %v, want %q", name, err, c.err)
		case c.err == "" && (err != nil || string(dst) != c.want):
			t.Errorf("%s: %q, %v", name, dst, err)
		}
		if same := Apply(dst, []byte(c.base), code, nil); (same == nil) != (err == nil) {
			t.Errorf("%s: %v if nobody asks what is copied", name, same)
		}
	}
	for _, short := range []string{"", "\x80", "\x0a", "\x0a\x80", strings.Repeat("\xff", 20)} {
		if _, _, _, err := Sizes([]byte(short)); err == nil {
			t.Errorf("%q has sizes", short)
		}
	}
}

func TestCopies(t *testing.T) {
	dst := make([]byte, 8)
	copies := []Copied{{9, 9, 9}}
	_, _, code, err := Sizes(of(10, 8, 0x91, 2, 3, 1, 'x', 0x90, 4))
	if err == nil {
		err = Apply(dst, []byte("0123456789"), code, &copies)
	}
	if want := []Copied{{9, 9, 9}, {0, 2, 3}, {4, 0, 4}}; err != nil || string(dst) != "234x0123" || !slices.Equal(copies, want) {
		t.Errorf("%q %v %v", dst, copies, err)
	}
}

func FuzzApply(f *testing.F) {
	f.Add([]byte("base"), []byte("\x04\x06\x90\x04\x02ab"))
	f.Add([]byte("base"), []byte("\x04\x04\xff\x00\x00\x00\x00\x04\x00\x00"))
	f.Add([]byte("base"), []byte("\x04\x80\x80\x04\x80"))
	f.Add([]byte("0123456789"), of(10, 12, 0x90, 10, 2, 'a', 'b'))
	f.Fuzz(func(t *testing.T, base, delta []byte) {
		from, to, code, err := Sizes(delta)
		if err != nil || from != uint64(len(base)) || to > 1<<20 {
			return
		}
		room := bytes.Repeat([]byte{0xee}, int(to)+8)
		made := room[:to:to]
		var copies []Copied
		err = Apply(made, base, code, &copies)
		if !bytes.Equal(room[to:], []byte("\xee\xee\xee\xee\xee\xee\xee\xee")) {
			t.Fatal("what lies behind the result has changed")
		}
		last := 0
		for _, c := range copies {
			if c.At < last || c.N < 1 || !bytes.Equal(made[c.At:c.At+c.N], base[c.From:c.From+c.N]) {
				t.Fatalf("%+v is not the base's, or out of order", c)
			}
			last = c.At + c.N
		}
		if err != nil {
			return
		}
		// made from base in another way, it is the same
		again := make([]byte, to)
		_, _, code, err = Sizes(encode(base, made))
		if err == nil {
			err = Apply(again, base, code, nil)
		}
		if err != nil || !bytes.Equal(made, again) {
			t.Fatalf("%q became %q: %v", made, again, err)
		}
	})
}

// A tree of 500 entries, of which a delta changes one.
func BenchmarkApply(b *testing.B) {
	base := bytes.Repeat([]byte("100644 a-file-of-some-name\x0001234567890123456789"), 500)
	n := len(base)
	code := []byte{0xb0, 0, 0x20, 20, 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x'}
	at := 0x2000 + 20
	code = append(code, 0xb3, byte(at), byte(at>>8), byte(n-at), byte((n-at)>>8))
	dst := make([]byte, n)
	var copies []Copied
	b.SetBytes(int64(n))
	for b.Loop() {
		copies = copies[:0]
		if err := Apply(dst, base, code, &copies); err != nil {
			b.Fatal(err)
		}
	}
}
