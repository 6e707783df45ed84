package reftable

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"refaudit/finding"
	"refaudit/oid"
)

var rewrite = flag.Bool("rewrite", false, "write what the code gives into the expected part of testdata/*.txt")

// A case file is comments, then steps: a line with a command, its input, "----", and what is
// expected up to an empty line. The step "table" builds the table that later ones look at.
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
			if *rewrite {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			t.Errorf("%s: %s", file, difference(string(text), got))
		})
	}
}

func runGolden(t *testing.T, text string) string {
	var out strings.Builder
	g := &golden{t: t}
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i := 0; i < len(lines); {
		if lines[i] == "" || strings.HasPrefix(lines[i], "#") {
			out.WriteString(lines[i] + "\n")
			i++
			continue
		}
		command := lines[i]
		var input []string
		for i++; i < len(lines) && lines[i] != "----"; i++ {
			input = append(input, lines[i])
		}
		for i++; i < len(lines) && lines[i] != ""; i++ {
		}
		out.WriteString(command + "\n")
		for _, l := range input {
			out.WriteString(l + "\n")
		}
		out.WriteString("----\n" + g.step(command, strings.Join(input, "\n")))
	}
	return out.String()
}

func difference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range g {
		if i >= len(w) || w[i] != g[i] {
			return fmt.Sprintf("line %d is\n\t%s\nwant\n\t%s", i+1, g[i], strings.Join(w[min(i, len(w)):min(i+1, len(w))], ""))
		}
	}
	return fmt.Sprintf("want %d lines, got %d", len(w), len(g))
}

// golden is the state of one case file.
type golden struct {
	t    *testing.T
	data []byte
	out  strings.Builder
}

const goldenFile = "reftable/t.ref"

func (g *golden) step(command, input string) string {
	g.out.Reset()
	words, err := split(command)
	if err != nil {
		g.t.Fatal(err)
	}
	switch words[0] {
	case "table":
		g.data = build(g.t, input)
		fmt.Fprintf(&g.out, "%d bytes\n", len(g.data))
	case "open":
		var want oid.Format
		if len(words) > 1 {
			want, _ = oid.ParseFormat(words[1])
		}
		if tab, err := OpenBytes(g.data, goldenFile, want); err != nil {
			g.error(err)
		} else {
			fmt.Fprintf(&g.out, "%+v\n", tab.Footer)
			for _, bad := range tab.Faults() {
				g.damage(bad)
			}
		}
	case "dump":
		g.end(dumpText(&g.out, g.data))
	default:
		tab, err := OpenBytes(g.data, goldenFile, 0)
		if err != nil {
			g.error(err)
			break
		}
		tab.Damage = g.damage
		if len(words) > 1 && words[len(words)-1] == "strict" {
			tab.Damage = nil
		}
		g.query(tab, words)
	}
	return g.out.String()
}

func (g *golden) query(tab *Table, words []string) {
	switch words[0] {
	case "refs":
		g.end(tab.Refs(func(r *Ref) error { g.ref(r); return nil }))
	case "seek":
		it := tab.Seek([]byte(words[1]))
		if it.Next() {
			g.ref(it.Ref())
		}
		g.end(it.Err())
	case "verify":
		g.end(Verify(tab, VerifyOptions{RefName: func(name []byte) string {
			if bytes.Contains(name, []byte("..")) {
				return "holds .."
			}
			return ""
		}}, g.finding))
	case "logs":
		g.end(tab.Logs(func(l *Log) error { g.log(l); return nil }))
	case "seeklog":
		it := tab.LogIter()
		it.Seek([]byte(words[1]))
		if it.Next() {
			g.log(it.Log())
		}
		g.end(it.Err())
	case "objs":
		g.end(tab.Objs(func(o *Obj) error { g.obj(o); return nil }))
	case "findobj":
		o, err := tab.FindObj(bytes.Repeat(unhex(words[1]), tab.Format.Size()))
		if o != nil {
			g.obj(o)
		}
		g.end(err)
	default:
		g.t.Fatalf("unknown step %q", words[0])
	}
}

func (g *golden) ref(r *Ref) {
	fmt.Fprintf(&g.out, "%q %d %v", r.Name, r.UpdateIndex, r.Type)
	if r.Value != nil {
		fmt.Fprintf(&g.out, " %s", short(r.Value))
	}
	if r.Peel != nil {
		fmt.Fprintf(&g.out, " %s", short(r.Peel))
	}
	if r.Type == Symref {
		fmt.Fprintf(&g.out, " %q", r.Target)
	}
	fmt.Fprintf(&g.out, " block %d, %d+%d\n", r.Block, r.Offset, r.Length)
	if in := g.data[r.Offset : r.Offset+r.Length]; !bytes.Contains(in, r.Value) || !bytes.Contains(in, r.Peel) {
		fmt.Fprintf(&g.out, "the record's place does not hold its values\n")
	}
}

func (g *golden) log(l *Log) {
	fmt.Fprintf(&g.out, "%q %d", l.Name, l.UpdateIndex)
	if l.Type == LogDeletion {
		fmt.Fprintf(&g.out, " deletion")
	} else {
		fmt.Fprintf(&g.out, " %s %s %q <%s> %d %+d %q", short(l.Old), short(l.New), l.Committer, l.Email, l.Time, l.Zone, l.Message)
	}
	fmt.Fprintf(&g.out, " block %d, %d+%d\n", l.Block, l.Offset, l.Length)
}

func (g *golden) obj(o *Obj) {
	fmt.Fprintf(&g.out, "%x %v block %d, %d+%d\n", o.Prefix, o.Blocks, o.Block, o.Offset, o.Length)
}

func (g *golden) end(err error) {
	if err != nil {
		g.error(err)
	}
}

func (g *golden) error(err error) {
	var bad *finding.Corrupt
	if errors.As(err, &bad) {
		fmt.Fprintf(&g.out, "error: %s %v\n", bad.ID, err)
		return
	}
	fmt.Fprintf(&g.out, "error: %v\n", err)
}

func (g *golden) damage(bad *finding.Corrupt) error {
	fmt.Fprintf(&g.out, "damage: %s", bad.ID)
	if bad.Pos.Blocked {
		fmt.Fprintf(&g.out, " block %d,", bad.Pos.Block)
	}
	fmt.Fprintf(&g.out, " %d+%d: %v\n", bad.Pos.Offset, bad.Pos.Length, bad.Err)
	if bad.Pos.File != goldenFile || !bad.Pos.Placed || finding.Lookup(bad.ID) == nil {
		fmt.Fprintf(&g.out, "the damage has no place or no name: %+v\n", bad.Pos)
	}
	return nil
}

func (g *golden) finding(f finding.Finding) error {
	fmt.Fprintf(&g.out, "%s", f.ID)
	if f.Ref != "" {
		fmt.Fprintf(&g.out, " %q", f.Ref)
	}
	if f.Blocked {
		fmt.Fprintf(&g.out, " block %d,", f.Block)
	}
	fmt.Fprintf(&g.out, " %d+%d: %s\n", f.Offset, f.Length, f.Message)
	if f.File != goldenFile || !f.Placed || f.Severity != finding.Default(f.ID) || finding.Lookup(f.ID) == nil {
		fmt.Fprintf(&g.out, "the finding is not whole: %+v\n", f)
	}
	return nil
}

// dumpText writes a dump as lines of place, kind, bytes and meaning.
func dumpText(out *strings.Builder, data []byte) error {
	return Dump(bytes.NewReader(data), int64(len(data)), goldenFile, func(p *Part) error {
		switch p.Kind {
		case PartDamage, PartResumed:
			fmt.Fprintf(out, "-- %s %s\n", p.Kind, p.Text)
			return nil
		}
		in := " "
		if p.Inflated {
			in = "~"
		}
		hex := hex.EncodeToString(p.Bytes[:min(len(p.Bytes), 8)])
		if len(p.Bytes) > 8 {
			hex += "…"
		}
		fmt.Fprintf(out, "%s%5d +%-4d %-8s %-17s %s\n", in, p.Offset, p.Length, p.Kind, hex, p.Text)
		return nil
	})
}

// short is an id in hex, or two digits of it where all bytes are equal.
func short(id []byte) string {
	if len(id) > 0 && bytes.Count(id, id[:1]) == len(id) {
		return hex.EncodeToString(id[:1])
	}
	return hex.EncodeToString(id)
}
