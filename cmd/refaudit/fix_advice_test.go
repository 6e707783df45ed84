package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

// advice is a command of ours as a message gives it: its words up to what is no flag and no
// argument in capitals or of a format.
var advice = regexp.MustCompile(`\brefaudit ([a-z][a-z-]*)((?: +(?:--?[a-z][a-z-]*(?:=[^ )` + "`" + `,;:]+)?|%[a-z]|[A-Z]+\b))*)`)

var aFlag = regexp.MustCompile(`(?:^|[ (` + "`" + `])--?([a-z][a-z-]*)`)

// prose are words behind our name that begin no command.
var prose = map[string]bool{"is": true, "fetches": true}

// literals gives every piece of text of the program's own files below a folder.
func literals(t *testing.T, dir string, fn func(file, text string)) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, src, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if text, err := strconv.Unquote(lit.Value); err == nil {
					fn(path, text)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func flagsOf(c *cli.Command) map[string]bool {
	names := map[string]bool{"help": true}
	for _, f := range c.Flags {
		for _, n := range f.Names() {
			names[n] = true
		}
	}
	return names
}

// Every command that a message gives exists, and has the flags that it gives.
func TestAdviceCanBeFollowed(t *testing.T) {
	app := newApp(env{}, "")
	seen := 0
	check := func(file, text string) {
		for _, m := range advice.FindAllStringSubmatch(text, -1) {
			seen++
			c := commandNamed(app.Commands, m[1])
			if c == nil && prose[m[1]] && m[2] == "" {
				continue
			}
			if c == nil {
				t.Errorf("%s: %q names no command of ours", file, m[0])
				continue
			}
			has := flagsOf(c)
			for _, f := range aFlag.FindAllStringSubmatch(m[2], -1) {
				if !has[f[1]] {
					t.Errorf("%s: %q: %s has no flag --%s", file, m[0], m[1], f[1])
				}
			}
		}
	}
	for _, dir := range []string{"../../repair", "../../internal", "../../finding", "../../reports", "../../scan", "../../odb", "../../packed", "../../reftable", "../../loose", "../../alternates"} {
		literals(t, dir, check)
	}
	if seen < 30 {
		t.Errorf("only %d commands were found in messages", seen)
	}
}

// fixOnly are the files whose messages no undo gives.
var fixOnly = map[string]bool{"brake.go": true, "session.go": true, "sessionrun.go": true, "compact.go": true, "stale.go": true}

// What undo may say too names the command whose flags it speaks of: undo has hardly any of fix's.
func TestUndoSpeaksOfNoFlagsThatItLacks(t *testing.T) {
	app := newApp(env{}, "")
	fix, undo := flagsOf(commandNamed(app.Commands, "fix")), flagsOf(commandNamed(app.Commands, "undo"))
	for _, dir := range []string{"../../repair", "../../internal/lockfile", "../../internal/journal"} {
		literals(t, dir, func(file, text string) {
			has := undo
			if fixOnly[filepath.Base(file)] {
				has = fix
			}
			for _, f := range aFlag.FindAllStringSubmatch(advice.ReplaceAllString(text, ""), -1) {
				if !has[f[1]] && len(f[1]) > 1 {
					t.Errorf("%s: --%s in %q belongs to no command that says this", file, f[1], text)
				}
			}
		})
	}
}
