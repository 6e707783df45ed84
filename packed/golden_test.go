package packed

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"refaudit/finding"
	"refaudit/oid"
)

var rewriteFiles = flag.Bool("rewrite", false, "write what the code gives into the expected part of testdata/*.txt")

// A case file is comments, then steps: a command, its input up to "----", and what is expected up to
// an empty line. In the input {a} is an id, the same for the same letters, {A} that id in upper case,
// {a:20} its first digits; \0, \r and \t are bytes; and \c at the end of a line joins the next to it.
//
//	read [sha256]                what Read reports, and the summary
//	dump [sha256]                what Dump prints
//	rewrite [WORD…]              what Rewrite makes of it: sort merge drop-orphans terminate header=TRAITS NAME=PEEL NAME=-
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := runGolden(t, string(text))
			if got == string(text) {
				return
			}
			if *rewriteFiles {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			t.Errorf("%s now reads\n%s", file, got)
		})
	}
}

func runGolden(t *testing.T, text string) string {
	var out strings.Builder
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i := 0; i < len(lines); {
		out.WriteString(lines[i] + "\n")
		command := strings.Fields(lines[i])
		i++
		if len(command) == 0 || command[0][0] == '#' {
			continue
		}
		g := golden{ids: map[string]string{}, f: oid.SHA1}
		if len(command) > 1 && command[1] == "sha256" {
			g.f, command = oid.SHA256, append(command[:1], command[2:]...)
		}
		var input strings.Builder
		for ; i < len(lines) && lines[i] != "----"; i++ {
			out.WriteString(lines[i] + "\n")
			input.WriteString(lines[i] + "\n")
		}
		for i++; i < len(lines) && lines[i] != ""; i++ {
		}
		out.WriteString("----\n" + g.shorten(g.run(t, command, g.expand(input.String()))))
	}
	return out.String()
}

type golden struct {
	f   oid.Format
	ids map[string]string // hex to letters
}

var idPattern = regexp.MustCompile(`\{(\w+)(?::(\d+))?\}`)

func (g *golden) id(letters string) oid.ID {
	id := g.f.Object("blob", []byte(letters))
	g.ids[id.String()] = letters
	return id
}

func (g *golden) expand(text string) []byte {
	text = idPattern.ReplaceAllStringFunc(text, func(s string) string {
		m := idPattern.FindStringSubmatch(s)
		hex := g.id(strings.ToLower(m[1])).String()
		if m[1] != strings.ToLower(m[1]) {
			hex = strings.ToUpper(hex)
		}
		if m[2] != "" {
			n := 0
			fmt.Sscan(m[2], &n)
			hex = hex[:n]
		}
		return hex
	})
	return []byte(strings.NewReplacer("\\c\n", "", `\0`, "\x00", `\r`, "\r", `\t`, "\t").Replace(text))
}

// shorten puts letters for ids, and makes bytes that do not show visible.
func (g *golden) shorten(text string) string {
	for hex, letters := range g.ids {
		text = strings.ReplaceAll(text, hex, "{"+letters+"}")
		text = strings.ReplaceAll(text, strings.ToUpper(hex), "{"+strings.ToUpper(letters)+"}")
	}
	return strings.NewReplacer("\x00", `\0`, "\r", `\r`, "\t", `\t`).Replace(text)
}

func (g *golden) run(t *testing.T, command []string, data []byte) string {
	switch command[0] {
	case "read":
		return g.read(data)
	case "dump":
		var out []byte
		if _, err := Dump(bytes.NewReader(data), int64(len(data)), g.f, Options{}, func(p *Piece) error {
			out = p.AppendText(out)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return string(out)
	case "rewrite":
		return g.rewrite(t, command[1:], data)
	}
	t.Fatalf("unknown command %q", command)
	return ""
}

func (g *golden) read(data []byte) string {
	var out strings.Builder
	sum, err := Read(bytes.NewReader(data), int64(len(data)), g.f, Options{}, func(f finding.Finding) error {
		fmt.Fprintf(&out, "%v +%d,%d %v %s", f.Pos, f.Offset, f.Length, f.Severity, f.ID)
		if f.Ref != "" {
			fmt.Fprintf(&out, " %q", f.Ref)
		}
		if f.Fixable {
			out.WriteString(" fixable")
		}
		fmt.Fprintf(&out, "\n  %s\n", f.Message)
		if f.GitText != "" {
			fmt.Fprintf(&out, "  git: %s\n", strings.ReplaceAll(f.GitText, "\n", `\n`))
		}
		return nil
	}, nil)
	if err != nil {
		return err.Error() + "\n"
	}
	fmt.Fprintf(&out, "%d refs, %d peels", sum.Refs, sum.Peels)
	for _, c := range []struct {
		n    int
		what string
	}{{sum.Duplicates, "duplicates"}, {sum.Differing, "differing"}, {sum.Orphans, "orphans"}, {sum.BadPeels, "bad peels"}, {sum.BadNames, "bad names"}, {sum.Malformed, "malformed"}, {sum.Odd, "odd"}} {
		if c.n > 0 {
			fmt.Fprintf(&out, ", %d %s", c.n, c.what)
		}
	}
	for _, c := range []struct {
		is   bool
		what string
	}{{sum.Sorted, "sorted"}, {sum.Empty, "empty"}, {sum.Unterminated, "unterminated"}, {sum.Damaged, "damaged"}, {sum.LostBytes, "lost bytes"}, {sum.CutName, "cut name"}} {
		if c.is {
			out.WriteString(", " + c.what)
		}
	}
	return out.String() + "\n"
}

func (g *golden) rewrite(t *testing.T, words []string, data []byte) string {
	var plan Plan
	want := map[string]oid.ID{}
	for _, w := range words {
		key, value, _ := strings.Cut(w, "=")
		switch key {
		case "sort":
			plan.Sort = true
		case "merge":
			plan.MergeEqual = true
		case "drop-orphans":
			plan.DropOrphans = true
		case "terminate":
			plan.Terminate = true
		case "header":
			h := parseHeader([]byte(headerStart + strings.ReplaceAll(value, ",", " ") + " "))
			plan.Header = &h
		default:
			want[key] = oid.ID{}
			if value != "-" {
				want[key] = g.id(value)
			}
		}
	}
	if _, err := Read(bytes.NewReader(data), int64(len(data)), g.f, Options{}, nil, func(e *Entry) error {
		if id, ok := want[string(e.Name)]; ok {
			plan.Edits = append(plan.Edits, Edit{e.Offset, id})
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	res, err := Rewrite(&out, bytes.NewReader(data), int64(len(data)), g.f, plan)
	if err != nil {
		return "refused: " + err.Error() + "\n"
	}
	return fmt.Sprintf("%s= %d refs, peels %d set %d dropped, %d orphans, %d merged\n", &out, res.Refs, res.Set, res.Dropped, res.Orphans, res.Merged)
}
