package gitconfig

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// show prints entries as the golden cases have them: key=value, or key alone without "=".
func show(e Entry) string {
	if e.NoValue {
		return fmt.Sprintf("%d %s", e.Line, e.Key)
	}
	return fmt.Sprintf("%d %s=%q", e.Line, e.Key, e.Value)
}

func parseAll(text string) ([]string, error) {
	var got []string
	err := Parse("f", []byte(text), func(e Entry) error {
		got = append(got, show(e))
		return nil
	})
	return got, err
}

func TestParse(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", ""},
		{"comments and blank lines", "# a\n ; b\n\n\t\n", ""},
		{"case", "[SecTion \"SubSec\"]\n\tNaMe = VaLue\n", `2 section.SubSec.name="VaLue"`},
		{"dotted section is lower case", "[A.B.C]\nx=1\n", `2 a.b.c.x="1"`},
		{"two on a line with the section", "[a] x = 1\n", `1 a.x="1"`},
		{"two sections on a line", "[a] [b] x = 1\n", `1 b.x="1"`},
		{"no value is not an empty value", "[a]\nx\ny=\nz =   \n", `2 a.x|3 a.y=""|4 a.z=""`},
		{"no value at the end of the file", "[a]\nx", `2 a.x`},
		{"value at the end of the file", "[a]\nx=1", `2 a.x="1"`},
		{"inner white space stays, outer goes", "[a]\nx = \t a \t b \t \n", `2 a.x="a \t b"`},
		{"quotes keep white space", "[a]\nx = \" a \" \n", `2 a.x=" a "`},
		{"quotes in the middle", "[a]\nx = a\"  #;\"b\n", `2 a.x="a  #;b"`},
		{"comment behind a value", "[a]\nx = 1 # c\ny = 2;c\nz = 3 \\# no\n", "! 4"},
		{"comment without blank", "[a]\nx = 1#c\\\ny = 2\n", `2 a.x="1"|3 a.y="2"`},
		{"escapes", "[a]\nx = \\t\\n\\b\\\\\\\"\n", `2 a.x="\t\n\b\\\""`},
		{"unknown escape", "[a]\nx = \\q\n", "! 2"},
		{"continued", "[a]\nx = 1 \\\n  2\ny=3\n", `3 a.x="1   2"|4 a.y="3"`},
		{"continued inside quotes", "[a]\nx = \"1\\\n 2\"\n", `3 a.x="1 2"`},
		{"continued at the end", "[a]\nx = 1\\\n", `3 a.x="1"`},
		{"open quote", "[a]\nx = \"1\ny = 2\n", "! 2"},
		{"subsection with everything", "[a \"b.\\\"\\\\c ]#\"]\nx=1\n", `2 a.b."\c ]#.x="1"`},
		{"subsection of nothing", "[a \"\"]\nx=1\n", `2 a..x="1"`},
		{"subsection with a line feed", "[a \"b\nc\"]\nx=1\n", "! 1"},
		{"subsection behind a line feed", "[a\n\"b\"]\n", "! 1"},
		{"blank behind a section", "[a ]\nx=1\n", "! 1"},
		{"no section name", "[]\nx=1\n", "! 1"},
		{"header left open", "[a", "! 2"},
		{"junk behind the name", "[a]\nx y = 1\n", "! 2"},
		{"digit at the start", "[a]\n1x = 1\n", "! 2"},
		{"underscore", "[a]\nx_y = 1\n", "! 2"},
		{"above the first section", "x = 1\n[a]\ny = 2\n", `1 x="1"|3 a.y="2"`},
		{"byte order mark", "\xef\xbb\xbf[a]\nx=1\n", `2 a.x="1"`},
		{"half a byte order mark", "\xef\xbb[a]\nx=1\n", "! 1"},
		{"CR LF", "[a]\r\nx = 1\r\ny = \"2\\\r\n3\"\r\nz\r\n", `2 a.x="1"|4 a.y="23"|5 a.z`},
		{"CR alone is white space", "[a]\nx = 1\r\r\ny = a\rb\n", `2 a.x="1"|3 a.y="a\rb"`},
		{"form feed is no white space", "[a]\nx = 1 \f\n", `2 a.x="1 \f"`},
		{"NUL ends a value", "[a]\nx = 1\x002\ny=3\n", `2 a.x="1"|3 a.y="3"`},
		{"NUL ends a name", "[a \"b\x00c\"]\nx = 1\n", `2 a.b="1"`},
	} {
		got, err := parseAll(c.text)
		said := strings.Join(got, "|")
		if e, bad := errors.AsType[*SyntaxError](err); bad {
			said = fmt.Sprintf("! %d", e.Line)
		}
		if said != c.want {
			t.Errorf("%s: %s\nwant %s (%v)", c.name, said, c.want, err)
		}
	}
}

func TestTheCallersErrorComesThrough(t *testing.T) {
	mine := errors.New("mine")
	err := Parse("f", []byte("[a]\nx\ny\n"), func(Entry) error { return mine })
	if err != mine {
		t.Errorf("%v", err)
	}
}

func TestASyntaxErrorNamesFileAndLine(t *testing.T) {
	_, err := parseAll("[a]\n= 1\n")
	if err == nil || !strings.HasPrefix(err.Error(), "bad config line 2 in file f: ") {
		t.Errorf("%v", err)
	}
}

func TestCanonicalKey(t *testing.T) {
	for key, want := range map[string]string{
		"Core.PackedRefsTimeout": "core.packedrefstimeout", "A.B.C": "a.B.c", "a.b=c d.E": "a.b=c d.e", "remote.My.Site.URL": "remote.My.Site.url",
		"a": "", "a.": "", ".a": "", "": "", "a_b.c": "", "a.1b": "", "a.b c": "", "a.x\ny.c": "", "-.a": "-.a",
	} {
		if got, err := CanonicalKey(key); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q %v, want %q", key, got, err, want)
		}
	}
}

func TestSplitKey(t *testing.T) {
	for key, want := range map[string][3]string{
		"core.bare": {"core", "", "bare"}, "remote.a.b.url": {"remote", "a.b", "url"}, "a..x": {"a", "", "x"}, "x": {"", "", "x"},
	} {
		s, sub, n := SplitKey(key)
		if [3]string{s, sub, n} != want {
			t.Errorf("%s: %q %q %q", key, s, sub, n)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"[core]\n\tbare = true\n[remote \"origin\"]\n\turl = \"a\\\"b\" ; c\n", "[a.b] x", "\xef\xbb\xbf[a]\r\nx=1\\\r\n2", "[a \"b\x00\"]\nx=\"\x00", "[include]\npath=~/x\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		lines := strings.Count(string(data), "\n") + 1
		last := 0
		var kept []Entry
		err := Parse("f", data, func(e Entry) error {
			if e.Line < last || e.Line > lines+1 { // a backslash at the end of the file continues it
				t.Fatalf("line %d after %d of %d", e.Line, last, lines)
			}
			last = e.Line
			if len(e.Key)+len(e.Value) > len(data)+1 {
				t.Fatalf("%q=%q is longer than the file", e.Key, e.Value)
			}
			kept = append(kept, e)
			return nil
		})
		if e, bad := errors.AsType[*SyntaxError](err); err != nil && (!bad || e.Line < last || e.Line > lines+2) {
			t.Fatalf("%v after line %d of %d", err, last, lines)
		}
		again, err := parseAll(write(kept))
		if err != nil {
			t.Fatalf("%v in what was written of %v:\n%s", err, kept, write(kept))
		}
		if len(again) != len(written(kept)) {
			t.Fatalf("%d entries became %d", len(written(kept)), len(again))
		}
		for i, e := range written(kept) {
			e.Line = 2*i + 2
			if again[i] != show(e) {
				t.Fatalf("%s became %s", show(e), again[i])
			}
		}
	})
}

// written are the entries whose keys a file can hold under a section of their own.
func written(entries []Entry) (kept []Entry) {
	for _, e := range entries {
		if c, err := CanonicalKey(e.Key); err == nil && c == e.Key && !strings.HasPrefix(e.Key, ".") {
			kept = append(kept, e)
		}
	}
	return kept
}

// write makes a file of entries, two lines each.
func write(entries []Entry) string {
	var b strings.Builder
	for _, e := range written(entries) {
		section, sub, name := SplitKey(e.Key)
		if section+"."+name == e.Key {
			fmt.Fprintf(&b, "[%s]\n", section)
		} else {
			fmt.Fprintf(&b, "[%s \"%s\"]\n", section, strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(sub))
		}
		b.WriteString(name)
		if !e.NoValue {
			fmt.Fprintf(&b, " = \"%s\"", strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\b", `\b`).Replace(e.Value))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func BenchmarkParse(b *testing.B) {
	text := []byte(strings.Repeat("[remote \"origin\"]\n\turl = https://example.com/a.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n", 50))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		Parse("f", text, func(Entry) error { return nil })
	}
}
