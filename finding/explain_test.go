package finding

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write the catalogue and the explanations into docs/msg-ids.md")

func TestEveryIDIsExplainedOnce(t *testing.T) {
	where := map[ID]int{}
	for _, part := range explainers {
		for id := range part() {
			where[id]++
			if Lookup(id) == nil {
				t.Errorf("%s is explained and not in the catalogue", id)
			}
		}
	}
	for _, e := range Catalog {
		if where[e.ID] != 1 {
			t.Errorf("%s is explained %d times", e.ID, where[e.ID])
		}
		if _, ok := Explain(e.ID); !ok {
			t.Errorf("%s is not explained", e.ID)
		}
	}
	if _, ok := Explain("noSuchID"); ok {
		t.Error("an unknown id is explained")
	}
}

func TestExplanationsAreSentences(t *testing.T) {
	for _, entry := range Catalog {
		e, _ := Explain(entry.ID)
		for part, text := range map[string]string{"Means": e.Means, "Comes": e.Comes, "Seen": e.Seen, "Fix": e.Fix} {
			check(t, entry.ID, part, text)
			if n := strings.Count(text+" ", ". "); n < 1 || n > 4 || strings.Contains(text, "  ") || !strings.HasSuffix(text, ".") {
				t.Errorf("%s: %s is not one to four sentences: %q", entry.ID, part, text)
			}
		}
		check(t, entry.ID, "Short", e.Short)
		check(t, entry.ID, "Mend", e.Mend)
		if n := len(e.Short); n == 0 || n > ShortMax || strings.HasSuffix(e.Short, ".") {
			t.Errorf("%s: Short has %d bytes: %q", entry.ID, n, e.Short)
		}
		if e.Mend == "" || strings.HasSuffix(e.Mend, ".") {
			t.Errorf("%s: Mend is %q", entry.ID, e.Mend)
		}
	}
}

func check(t *testing.T, id ID, part, text string) {
	t.Helper()
	if strings.Count(text, "`")%2 != 0 {
		t.Errorf("%s: %s has an open backtick: %q", id, part, text)
	}
	if strings.ContainsAny(text, "\n\t\r") {
		t.Errorf("%s: %s has more than one line: %q", id, part, text)
	}
	if strings.Contains(text, "%s") || strings.Contains(text, "%v") {
		t.Errorf("%s: %s has a verb of a format: %q", id, part, text)
	}
}

// What `fix` never does by itself must not be advised as if it did.
func TestMendAgreesWithFix(t *testing.T) {
	for _, entry := range Catalog {
		e, _ := Explain(entry.ID)
		leaves := strings.HasPrefix(e.Fix, "Leaves") || strings.HasPrefix(e.Fix, "Refuses") || strings.HasPrefix(e.Fix, "Is not a reason")
		if leaves && strings.HasPrefix(e.Mend, "refaudit fix REPO") || !leaves && !strings.Contains(e.Mend, "refaudit fix") {
			t.Errorf("%s: fix %q, mend %q", entry.ID, e.Fix, e.Mend)
		}
	}
}

func TestGroupsAreTheCatalogue(t *testing.T) {
	groups := Groups()
	if len(groups) != len(groupTitles) {
		t.Fatalf("%d groups of %d titles: a first id is not in the catalogue, or not in its order", len(groups), len(groupTitles))
	}
	i := 0
	for _, g := range groups {
		if g.Title == "" || len(g.Entries) == 0 {
			t.Errorf("group %q has %d entries", g.Title, len(g.Entries))
		}
		for _, e := range g.Entries {
			if e != Catalog[i] {
				t.Fatalf("entry %d is %s, not %s", i, e.ID, Catalog[i].ID)
			}
			i++
		}
	}
	if i != len(Catalog) {
		t.Errorf("the groups hold %d of %d entries", i, len(Catalog))
	}
}

const generated = "<!-- From here on written by: go test ./finding -rewrite -->\n"

// document is docs/msg-ids.md below its introduction.
func document() string {
	var b strings.Builder
	b.WriteString(generated)
	for _, g := range Groups() {
		fmt.Fprintf(&b, "\n## %s\n\n| id | default | never below | whose | what |\n| --- | --- | --- | --- | --- |\n", g.Title)
		for _, e := range g.Entries {
			fmt.Fprintf(&b, "| [`%s`](#%s) | %v | %s | %s | %s |\n", e.ID, strings.ToLower(string(e.ID)), e.Default, floor(e), whose(e), cell(e.Summary))
		}
		for _, e := range g.Entries {
			x, _ := Explain(e.ID)
			fmt.Fprintf(&b, "\n### %s\n\n", e.ID)
			for _, part := range []struct{ name, text string }{
				{"What it means", x.Means}, {"How it comes about", x.Comes}, {"What readers see", x.Seen}, {"`refaudit fix`", x.Fix},
			} {
				fmt.Fprintf(&b, "- **%s:** %s\n", part.name, markdown(part.text))
			}
			fmt.Fprintf(&b, "- **To mend it:** %s\n", mend(x.Mend))
		}
	}
	return b.String()
}

func floor(e Entry) string {
	if e.Floor == Ignore {
		return "–"
	}
	return e.Floor.String()
}

func whose(e Entry) string {
	if e.Git {
		return "git's"
	}
	return "refaudit's"
}

// mend sets a command as one.
func mend(text string) string {
	if strings.HasPrefix(text, "refaudit ") || strings.HasPrefix(text, "git ") {
		return "`" + text + "`"
	}
	return markdown(text)
}

// markdown escapes what would be markup outside of backticks.
func markdown(text string) string {
	parts := strings.Split(text, "`")
	for i := 0; i < len(parts); i += 2 {
		parts[i] = strings.NewReplacer("<", "\\<", "*", "\\*", "_", "\\_", "[", "\\[", "~", "\\~", "\\", "\\\\").Replace(parts[i])
	}
	return strings.Join(parts, "`")
}

func cell(text string) string { return strings.ReplaceAll(markdown(text), "|", "\\|") }

func TestDocumentIsTheCatalogue(t *testing.T) {
	path := filepath.Join("..", "docs", "msg-ids.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, found := strings.Cut(string(text), generated)
	if !found {
		t.Fatalf("%s has no line %q", path, strings.TrimSpace(generated))
	}
	want := document()
	if *rewrite {
		if err := os.WriteFile(path, []byte(head+want), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got := generated + rest; got != want {
		t.Errorf("%s is not what the catalogue and the explanations say; first at %q\nrun: go test ./finding -rewrite", path, difference(got, want))
	}
}

// difference is the first line of got that is not in its place in want.
func difference(got, want string) string {
	lines := strings.Split(want, "\n")
	for i, line := range strings.Split(got, "\n") {
		if i >= len(lines) || line != lines[i] {
			return line
		}
	}
	return "the end"
}
