package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A source is one Go file of ours.
type source struct {
	pkg     string // its folder, relative to the module
	name    string
	test    bool
	imports map[string]string // by the name that the file calls them
	ast     *ast.File
	fset    *token.FileSet
}

const module = "refaudit"

// sources parses every Go file of the module, whatever system it is for.
func sources(t *testing.T) []source {
	t.Helper()
	root := filepath.Join("..", "..")
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		t.Fatal(err)
	}
	var all []source
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && d.Name() != ".." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules") {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(file, ".go") {
			return nil
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		s, err := parse(file, filepath.ToSlash(rel))
		all = append(all, s)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func parse(file, name string) (source, error) {
	s := source{pkg: path.Dir(name), name: name, test: strings.HasSuffix(name, "_test.go"), imports: map[string]string{}, fset: token.NewFileSet()}
	f, err := parser.ParseFile(s.fset, file, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return s, err
	}
	s.ast = f
	for _, spec := range f.Imports {
		what, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return s, err
		}
		called := path.Base(what)
		if spec.Name != nil {
			called = spec.Name.Name
		}
		s.imports[called] = what
	}
	return s, nil
}

// ours is the package of ours that an import path names.
func ours(what string) (string, bool) { return strings.CutPrefix(what, module+"/") }

func words(text string) []string { return strings.Fields(text) }

func TestArrows(t *testing.T) {
	allowed := map[string][]string{}
	for _, a := range arrows {
		if _, twice := allowed[a.from]; twice || a.why == "" {
			t.Errorf("the row of %s: twice, or without a reason", a.from)
		}
		allowed[a.from] = words(a.to)
	}
	unknown := map[string]bool{}
	for _, s := range sources(t) {
		row, known := allowed[s.pkg]
		if !known && !testOnly[s.pkg] && !unknown[s.pkg] {
			unknown[s.pkg] = true
			t.Errorf("package %s has no row in the table of arrows", s.pkg)
			continue
		}
		for _, what := range s.imports {
			to, ok := ours(what)
			switch {
			case !ok || s.test: // a test may look at anything of ours, the compiler forbids circles
			case testOnly[to]:
				if !testOnly[s.pkg] {
					t.Errorf("%s: %s is for tests", s.name, to)
				}
			case !testOnly[s.pkg] && !slices.Contains(row, to):
				t.Errorf("%s: no arrow leads from %s to %s", s.name, s.pkg, to)
			}
		}
	}
}

// Arrows point one way: a package stands in the table after everything that it uses.
func TestTheTableIsInOrder(t *testing.T) {
	seen := map[string]bool{}
	for _, a := range arrows {
		for _, to := range words(a.to) {
			if !seen[to] {
				t.Errorf("%s -> %s: %s has no row above", a.from, to, to)
			}
		}
		seen[a.from] = true
	}
}

func TestImportsFromOutside(t *testing.T) {
	for _, s := range sources(t) {
		for _, what := range s.imports {
			if _, ok := ours(what); ok {
				continue
			}
			u := useOf(what)
			switch {
			case u == nil:
				if strings.Contains(strings.Split(what, "/")[0], ".") {
					t.Errorf("%s: module %s is in no row", s.name, what)
				}
			case slices.Contains(words(u.by), s.pkg):
			case s.test && (u.tests == "*" || slices.Contains(words(u.tests), s.pkg)):
			default:
				t.Errorf("%s: %s may not import %s (%s)", s.name, s.pkg, what, u.why)
			}
		}
	}
}

// useOf is the first row that an import falls under.
func useOf(what string) *use {
	for i := range uses {
		u := &uses[i]
		if base, deep := strings.CutSuffix(u.what, "/..."); what == u.what || deep && (what == base || strings.HasPrefix(what, base+"/")) {
			return u
		}
	}
	return nil
}

func TestOnlyVfsWrites(t *testing.T) {
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		for _, r := range s.selectors("os", writers) {
			if !granted(leaves, s, r.name) {
				t.Errorf("%s: os.%s: only internal/vfs may write", r.place, r.name)
			}
		}
		for _, r := range s.selectors(module+"/internal/vfs", vfsWriters) {
			if !granted(vfsWriting, s, r.name) {
				t.Errorf("%s: vfs.%s: %s may not write", r.place, r.name, s.pkg)
			}
		}
		if s.imports["."] != "" {
			t.Errorf("%s: an import into the file's own names hides what is called", s.name)
		}
	}
}

func granted(rows []leave, s source, name string) bool {
	for _, l := range rows {
		if (l.by == s.pkg || l.by == s.name) && (l.what == "*" || slices.Contains(words(l.what), name)) {
			return true
		}
	}
	return false
}

// A reference is one place where a name of a package is spelled.
type reference struct{ place, name string }

// selectors finds where a file spells one of the names of a package that it imports.
func (s source) selectors(pkg, names string) []reference {
	called := ""
	for name, what := range s.imports {
		if what == pkg {
			called = name
		}
	}
	if called == "" {
		return nil
	}
	var refs []reference
	ast.Inspect(s.ast, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := sel.X.(*ast.Ident); ok && x.Name == called && slices.Contains(words(names), sel.Sel.Name) {
			refs = append(refs, reference{s.name + ":" + strconv.Itoa(s.fset.Position(sel.Pos()).Line), sel.Sel.Name})
		}
		return true
	})
	return refs
}

// Each folder with Go in it says in one comment what it is.
func TestEveryPackageSaysWhatItIs(t *testing.T) {
	said := map[string]int{}
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		n := said[s.pkg]
		if s.ast.Doc != nil {
			n++
		}
		said[s.pkg] = n
	}
	for pkg, n := range said {
		if n != 1 {
			t.Errorf("package %s has %d package comments, not 1", pkg, n)
		}
	}
}

// docs/dependencies.md has a row for each module that some file imports, and for no other.
func TestDependenciesAreWrittenDown(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "dependencies.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]bool{} // whether anything imports it
	for _, line := range strings.Split(string(text), "\n") {
		if cell, ok := strings.CutPrefix(line, "| `"); ok {
			rows[cell[:strings.IndexByte(cell, '`')]] = false
		}
	}
	for _, s := range sources(t) {
	imports:
		for _, what := range s.imports {
			if _, ok := ours(what); ok || !strings.Contains(strings.Split(what, "/")[0], ".") {
				continue
			}
			for row := range rows {
				if what == row || strings.HasPrefix(what, row+"/") {
					rows[row] = true
					continue imports
				}
			}
			t.Errorf("%s imports %s, which docs/dependencies.md does not list", s.name, what)
		}
	}
	for row, used := range rows {
		if !used {
			t.Errorf("docs/dependencies.md lists %s, which nothing imports", row)
		}
	}
}

// Every exported name says what it is; a group of constants or variables may say it once.
func TestExportedNamesAreExplained(t *testing.T) {
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		for _, d := range s.ast.Decls {
			for _, name := range unexplained(d) {
				t.Errorf("%s: %s has no doc comment", s.name, name)
			}
		}
	}
}

// unexplained are the exported names of a declaration that no comment stands beside. Methods that
// are there for a well-known interface need none.
func unexplained(d ast.Decl) (names []string) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		known := slices.Contains([]string{"Error", "Unwrap", "String", "Is", "Len", "Less", "Swap", "Close", "Read", "Write"}, d.Name.Name)
		if d.Name.IsExported() && d.Doc == nil && (d.Recv == nil || !known && exportedReceiver(d)) {
			names = append(names, d.Name.Name)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				if spec.Name.IsExported() && d.Doc == nil && spec.Doc == nil {
					names = append(names, spec.Name.Name)
				}
			case *ast.ValueSpec:
				for _, n := range spec.Names {
					if n.IsExported() && d.Doc == nil && spec.Doc == nil && spec.Comment == nil {
						names = append(names, n.Name)
					}
				}
			}
		}
	}
	return names
}

// exportedReceiver tells whether a method's type can be named from outside.
func exportedReceiver(d *ast.FuncDecl) bool {
	typ := d.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	name, ok := typ.(*ast.Ident)
	return ok && name.IsExported()
}
