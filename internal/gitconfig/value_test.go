package gitconfig

import (
	"errors"
	"math"
	"testing"
)

func TestParseBool(t *testing.T) {
	for text, want := range map[string]string{
		"true": "true", "TRUE": "true", "Yes": "true", "on": "true", "1": "true", "-1": "true", "0x10": "true", "2k": "true",
		"false": "false", "no": "false", "oFF": "false", "": "false", "0": "false", "00": "false", "0k": "false",
		"maybe": "", "t": "", "1x": "", " true": "", "4294967296": "", "3g": "",
	} {
		b, ok := ParseBool(text)
		got := map[bool]string{true: "true", false: "false"}[b]
		if !ok {
			got = ""
		}
		if got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestParseInt(t *testing.T) {
	for _, c := range []struct {
		text string
		max  int64
		want int64
		err  error
	}{
		{"0", math.MaxInt32, 0, nil}, {"100", math.MaxInt32, 100, nil}, {"-1", math.MaxInt32, -1, nil}, {"+7", math.MaxInt32, 7, nil},
		{" \t12", math.MaxInt32, 12, nil}, {"12 ", math.MaxInt32, 0, ErrUnit}, {"1k", math.MaxInt32, 1024, nil}, {"1M", math.MaxInt32, 1 << 20, nil},
		{"1g", math.MaxInt32, 1 << 30, nil}, {"2g", math.MaxInt32, 0, ErrRange}, {"-2g", math.MaxInt32, -1 << 31, nil}, {"2g", math.MaxInt64, 2 << 30, nil},
		{"010", math.MaxInt32, 8, nil}, {"08", math.MaxInt32, 0, ErrUnit}, {"0x1F", math.MaxInt32, 31, nil}, {"0x", math.MaxInt32, 0, ErrUnit}, {"0xg", math.MaxInt32, 0, ErrUnit},
		{"2147483647", math.MaxInt32, math.MaxInt32, nil}, {"2147483648", math.MaxInt32, 0, ErrRange}, {"-2147483648", math.MaxInt32, math.MinInt32, nil},
		{"9223372036854775807", math.MaxInt64, math.MaxInt64, nil}, {"9223372036854775808", math.MaxInt64, 0, ErrRange},
		{"-9223372036854775808", math.MaxInt64, math.MinInt64, nil}, {"18446744073709551617", math.MaxInt64, 0, ErrRange}, {"9223372036854775808x", math.MaxInt64, 0, ErrRange},
		{"", math.MaxInt32, 0, ErrUnit}, {"k", math.MaxInt32, 0, ErrUnit}, {"-", math.MaxInt32, 0, ErrUnit}, {"1kb", math.MaxInt32, 0, ErrUnit}, {"1.5", math.MaxInt32, 0, ErrUnit},
	} {
		if got, err := ParseInt(c.text, c.max); got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%q up to %d: %d %v, want %d %v", c.text, c.max, got, err, c.want, c.err)
		}
	}
}

func FuzzParseInt(f *testing.F) {
	for _, seed := range []string{"1k", "-0x8000000000000000", "9999999999999999999999", " +010g"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		small, errSmall := ParseInt(text, math.MaxInt32)
		big, errBig := ParseInt(text, math.MaxInt64)
		if errSmall == nil && (errBig != nil || small != big || small > math.MaxInt32 || small < math.MinInt32) {
			t.Fatalf("%q: %d %v, %d %v", text, small, errSmall, big, errBig)
		}
	})
}

func TestParseParameters(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""}, {`'a.b=c'`, `a.b="c"`}, {`'a.b'='c' 'A.D'=`, `a.b="c"|a.d`}, {`'a.b'`, `a.b`}, {`'a.b='`, `a.b=""`}, {`'a.b'=''`, `a.b=""`},
		{`'a.x=y.b'='1'`, `a.x=y.b="1"`}, {`'a.x=y.b=1'`, `a.x="y.b=1"`}, {`'a.b=it'\''s'  'c.d=w'\!'x'`, `a.b="it's"|c.d="w!x"`},
		{`a.b=c`, "!"}, {`'a.b`, "!"}, {`'a.b'x`, "!"}, {`'a.b'='c'x`, "!"}, {`'a.b'=c`, "!"}, {`'=x'`, "!"}, {`'a'`, "!"}, {`'a.b\'`, `!`},
	} {
		var got string
		err := ParseParameters(c.text, func(e Entry) error {
			if got != "" {
				got += "|"
			}
			got += show(e)[2:]
			return nil
		})
		if err != nil {
			got = "!"
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s (%v)", c.text, got, c.want, err)
		}
	}
}

func FuzzParseParameters(f *testing.F) {
	for _, seed := range []string{`'a.b=c'`, `'a.b'='c' 'd.e'=`, `'a'\''b.c=1'`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		ParseParameters(text, func(e Entry) error {
			if c, err := CanonicalKey(e.Key); err != nil || c != e.Key {
				t.Fatalf("key %q: %v", e.Key, err)
			}
			return nil
		})
	})
}
