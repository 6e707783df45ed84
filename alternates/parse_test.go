package alternates

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
)

// Each case of testdata/parse.txt is a comment, the list (as a Go string a line, so that any byte
// can stand there), ---- and what is read of it.
func TestParse(t *testing.T) {
	data, err := os.ReadFile("testdata/parse.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range strings.Split(string(data), "\n\n") {
		head, want, ok := strings.Cut(c, "----\n")
		if !ok {
			t.Fatalf("case without ----: %q", c)
		}
		var list []byte
		for line := range strings.Lines(head) {
			if strings.HasPrefix(line, "#") {
				continue
			}
			var text string
			if _, err := fmt.Sscanf(line, "%q", &text); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			list = append(list, text...)
		}
		entries, problems := Parse(list, '\n')
		var got strings.Builder
		for _, e := range entries {
			fmt.Fprintf(&got, "%d: %q\n", e.Line, e.Path)
		}
		for _, p := range problems {
			fmt.Fprintf(&got, "%d: (%s)\n", p.Line, p.Text)
		}
		if strings.TrimSpace(got.String()) != strings.TrimSpace(want) {
			t.Errorf("%sgot\n%s", head, got.String())
		}
	}
}

func TestTheEnvironmentHasItsOwnSeparator(t *testing.T) {
	entries, problems := Parse([]byte(`/a:"/b:c":#x:d`), ':')
	if got := fmt.Sprint(entries, problems); got != "[{/a 1} {/b:c 1} {d 1}] []" {
		t.Error(got)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"", "/a\n", "#\n\n\"a\\n\\303\\244\"x\ny", "\"", "\"\\", "\"\\40", "a\r\n", "a\x00b"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		entries, _ := Parse(text, '\n')
		lines := 1 + bytes.Count(text, []byte{'\n'})
		var again []byte
		for i, e := range entries {
			if e.Line < 1 || e.Line > lines || i > 0 && e.Line < entries[i-1].Line {
				t.Fatalf("entry %d on line %d of %d", i, e.Line, lines)
			}
			if e.Path == "" || strings.IndexByte(e.Path, 0) >= 0 {
				t.Fatalf("path %q", e.Path)
			}
			again = append(again, quote(e.Path)...)
			again = append(again, '\n')
		}
		back, problems := Parse(again, '\n')
		for _, p := range problems {
			if !strings.Contains(p.Text, "carriage return") {
				t.Fatalf("%q: %v", again, p)
			}
		}
		for i := range entries {
			if back[i].Path != entries[i].Path {
				t.Fatalf("%q became %q", entries[i].Path, back[i].Path)
			}
		}
	})
}

// quote writes a path so that unquote reads it.
func quote(path string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range []byte(path) {
		if c < 0x20 || c == '"' || c == '\\' || c >= 0x7f {
			fmt.Fprintf(&b, "\\%03o", c)
		} else {
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func TestQuotesAreGits(t *testing.T) {
	for path, text := range map[string]string{
		"a": `"a"`, "a\tb": `"a\tb"`, `a"b\`: `"a\"b\\"`, "ä": `"\303\244"`, "\a\b\f\n\r\v": `"\a\b\f\n\r\v"`, "": `""`,
	} {
		got, n, err := unquote([]byte(text))
		if err != nil || string(got) != path || n != len(text) {
			t.Errorf("%s: %q %d %v", text, got, n, err)
		}
	}
	for _, text := range []string{`"`, `"a`, `"\`, `"\x"`, `"\400"`, `"\08"`, `"\38"`, `"\1"`, `"\12`} {
		if got, _, err := unquote([]byte(text)); err == nil {
			t.Errorf("%s was read as %q", text, got)
		}
	}
}
