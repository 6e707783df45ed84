package main

import (
	"path/filepath"
	"strings"
	"testing"

	"refaudit/internal/gittest"
)

// What is said of git holds for git: of a tables.list whose lines it reads all the same nobody says that it sees no refs.
func TestALineOfTheListThatGitReads(t *testing.T) {
	const noRefs = "git sees no refs at all here"
	inFormats(t, tableFormats, func(t *testing.T, l *lab) {
		l.Use(gittest.Newest)
		l.Git("tag", "-f", "-a", "-m", "anew", "v1", l.B)
		v1 := l.Git("rev-parse", "v1")
		l.SetPeel("refs/tags/v1", v1, l.B, l.A)
		lines := strings.SplitAfter(string(l.ReadFile("reftable/tables.list")), "\n")
		if len(lines) != 3 {
			t.Fatalf("%q", lines)
		}
		a, b := lines[0], lines[1]
		for _, c := range []struct {
			what, list string
			code       int
		}{
			{"the first twice", a + a + b, 7}, {"the last twice", a + b + b, 7}, {"apart", a + b + a, 7}, {"all twice", a + b + a + b, 7},
			{"a path", "./" + a + b, 1}, {"paths", ".//" + a + "../reftable/" + b, 1}, {"a path to what is named", "./" + a + a + b, 7},
			{"a full path", filepath.ToSlash(l.Path) + "/reftable/" + a + b, 7}, {"what is no table", a + b + "../HEAD\n", 7},
			{"a path and what is no table", "./" + a + b + "../HEAD\n", 7}, {"twice, and a NUL", a + a + b + "\x00\n", 7}, {"a folder", a + "./" + strings.TrimSuffix(b, "\n") + "/\n", 7},
		} {
			l.WriteFile("reftable/tables.list", []byte(c.list))
			served := l.Git("for-each-ref") != ""
			for _, level := range []string{"quick", "standard", "deep"} {
				scan := l.run("scan", "--level="+level)
				if scan.code != c.code || !strings.Contains(scan.out, "reftableListBad") || served == strings.Contains(scan.out, noRefs) {
					t.Errorf("%s: git serves refs: %v; %s gives %d: %s", c.what, served, level, scan.code, scan.out)
				}
				if judged := strings.Contains(scan.out, "peelMismatch"); judged != (c.code == 1 && level != "quick") {
					t.Errorf("%s: %s judges the peel that git serves: %v", c.what, level, judged)
				}
			}
			if guard := l.run("guard"); guard.code == 0 {
				t.Errorf("%s: guard gives 0", c.what)
			}
			l.refuses(c.code)
		}
		// What is said to come of it does come.
		l.WriteFile("reftable/tables.list", []byte(a+b+b))
		l.Git("update-ref", "refs/heads/new", l.A)
		if out := l.Git("for-each-ref"); out != "" {
			t.Errorf("git serves refs after all: %s", out)
		}
	})
}
