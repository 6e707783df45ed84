package remote

import "testing"

func TestUnquote(t *testing.T) {
	for in, want := range map[string]string{
		`""`:                      "",
		`"a b"`:                   "a b",
		`"a \"b\" c"`:             `a "b" c`,
		`"\a\b\t\n\v\f\r\\"`:      "\a\b\t\n\v\f\r\\",
		`"\303\274\000\377"`:      "\xc3\xbc\x00\xff",
		"\"\xc3\xbc\"":            "\xc3\xbc",
		`"a" and more, "with" it`: "a",
	} {
		if got, _, err := Unquote(in); err != nil || got != want {
			t.Errorf("%s: %q %v", in, got, err)
		}
	}
	for _, in := range []string{``, `a`, `"`, `"a`, `"a\`, `"\"`, `"\x"`, `"\4"`, `"\400"`, `"\08"`, `"\18"`, `"\1"`, `"\01"`} {
		if got, _, err := Unquote(in); err == nil {
			t.Errorf("%s was read as %q", in, got)
		}
	}
	if _, rest, err := Unquote(`"a" b`); err != nil || rest != " b" {
		t.Errorf("what follows is %q, %v", rest, err)
	}
}

func FuzzQuote(f *testing.F) {
	for _, s := range []string{"", "a b", "\"\\\n\x00\x7f\xff", "a\a\b\t\v\f\r"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		quoted := Quote(text)
		if hasControl(quoted) {
			t.Errorf("%q keeps a control byte: %q", text, quoted)
		}
		got, rest, err := Unquote(quoted + "x")
		if err != nil || got != text || rest != "x" {
			t.Errorf("%q -> %s -> %q, %q, %v", text, quoted, got, rest, err)
		}
		if plain, rest, err := Unquote(text); err == nil && len(plain)+len(rest) > len(text) {
			t.Errorf("%q grew to %q and %q", text, plain, rest)
		}
	})
}
