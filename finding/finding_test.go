package finding

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"strconv"
	"testing"

	"refaudit/oid"
)

func TestParseSeverityTakesGitsWordsInAnyCase(t *testing.T) {
	for _, c := range []struct {
		word string
		want Severity
		ok   bool
	}{
		{"error", Error, true}, {"warn", Warn, true}, {"info", Info, true}, {"ignore", Ignore, true},
		{"ERROR", Error, true}, {"Warn", Warn, true},
		{"fatal", Ignore, false}, {"warning", Ignore, false}, {"", Ignore, false}, {" error", Ignore, false},
	} {
		if got, ok := ParseSeverity(c.word); got != c.want || ok != c.ok {
			t.Errorf("ParseSeverity(%q) = %v, %v", c.word, got, ok)
		}
	}
}

func TestSeveritiesAreOrderedAndFatalShowsAsError(t *testing.T) {
	for i, want := range []string{"ignore", "info", "warn", "error", "error"} {
		s := Severity(i)
		if s.String() != want {
			t.Errorf("Severity(%d) is %q, not %q", i, s, want)
		}
		if text, err := json.Marshal(s); err != nil || string(text) != strconv.Quote(want) {
			t.Errorf("Severity(%d) is %s in JSON, %v", i, text, err)
		}
	}
	if Ignore >= Info || Info >= Warn || Warn >= Error || Error >= Fatal {
		t.Error("the severities are out of order")
	}
	if got := Severity(77).String(); got != "severity(77)" {
		t.Errorf("an unknown severity is %q", got)
	}
}

// constants are the ids that catalog.go declares, by their value.
func constants(t *testing.T) map[ID]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "catalog.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := map[ID]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 || len(spec.Names) != 1 {
			return true
		}
		if kind, ok := spec.Type.(*ast.Ident); !ok || kind.Name != "ID" {
			return true
		}
		text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		if other, twice := found[ID(text)]; twice {
			t.Errorf("%s and %s are both %q", other, spec.Names[0].Name, text)
		}
		found[ID(text)] = spec.Names[0].Name
		return true
	})
	return found
}

func TestCatalogHasEachIDOnce(t *testing.T) {
	declared, seen := constants(t), map[ID]bool{}
	for _, e := range Catalog {
		if seen[e.ID] {
			t.Errorf("%s stands twice in the catalogue", e.ID)
		}
		seen[e.ID] = true
		if declared[e.ID] == "" {
			t.Errorf("%s has no constant", e.ID)
		}
		if e.Summary == "" || e.Summary[len(e.Summary)-1] == '.' {
			t.Errorf("%s: summary %q", e.ID, e.Summary)
		}
		if e.Floor > e.Default {
			t.Errorf("%s is %v by default and can't be lowered below %v", e.ID, e.Default, e.Floor)
		}
	}
	for id, name := range declared {
		if !seen[id] {
			t.Errorf("%s (%s) is not in the catalogue", name, id)
		}
	}
}

// git calls these FATAL; a setting for them is an error there. And a store that can't be read is
// never silenced: git takes it for an empty repository.
func TestFloors(t *testing.T) {
	want := map[ID]Severity{
		NulInHeader: Fatal, UnterminatedHeader: Fatal,
		ReftableUnreadable: Warn, ReftableCrc: Warn, ReftableMissingTable: Warn, ReftableListBad: Warn,
	}
	for _, e := range Catalog {
		if e.Floor != want[e.ID] {
			t.Errorf("%s can't be lowered below %v, not %v", e.ID, e.Floor, want[e.ID])
		}
		if e.Default == Fatal && e.Floor != Fatal {
			t.Errorf("%s is fatal and can be lowered", e.ID)
		}
	}
}

// As Documentation/fsck-msgids in git lists them, of the ids that we have.
func TestGitsIDsHaveGitsSeverities(t *testing.T) {
	others := map[ID]Severity{
		NulInHeader: Fatal, UnterminatedHeader: Fatal, BadReftableTableName: Warn, ExtraHeaderEntry: Ignore,
		EmptyPackedRefsFile: Info, RefMissingNewline: Info, SymlinkRef: Info, SymrefTargetIsNotARef: Info,
		TrailingRefContent: Info, BadTagName: Info, MissingTaggerEntry: Info,
	}
	count := 0
	for _, e := range Catalog {
		if !e.Git {
			continue
		}
		count++
		want, ok := others[e.ID]
		if !ok {
			want = Error
		}
		if e.Default != want {
			t.Errorf("%s is %v (%d), in git %v (%d)", e.ID, e.Default, e.Default, want, want)
		}
	}
	if count != 16+24 {
		t.Errorf("%d ids are git's, not 16 of references and 24 of tags", count)
	}
}

func TestParseIDTakesAnyCase(t *testing.T) {
	for _, word := range []string{"peelMismatch", "peelmismatch", "PEELMISMATCH"} {
		if id, ok := ParseID(word); !ok || id != PeelMismatch {
			t.Errorf("ParseID(%q) = %q, %v", word, id, ok)
		}
	}
	if id, ok := ParseID("peelMismatches"); ok {
		t.Errorf("an unknown id is %q", id)
	}
}

func TestLookupAndDefault(t *testing.T) {
	if e := Lookup(PeelMissing); e == nil || e.ID != PeelMissing || Default(PeelMissing) != Warn {
		t.Errorf("peelMissing is %+v", e)
	}
	if Lookup("noSuchID") != nil || Default("noSuchID") != Error {
		t.Error("an unknown id is not nil and error")
	}
}

func TestPosReadsAsAPlace(t *testing.T) {
	for _, c := range []struct {
		pos  Pos
		want string
	}{
		{Pos{File: "packed-refs", Line: 12, Offset: 734, Placed: true}, "packed-refs:12"},
		{Pos{File: "reftable/a.ref", Offset: 0, Placed: true}, "reftable/a.ref:+0"},
		{Pos{File: "HEAD"}, "HEAD"},
		{Pos{}, ""},
	} {
		if got := c.pos.String(); got != c.want {
			t.Errorf("%+v is %q, not %q", c.pos, got, c.want)
		}
	}
}

func TestCorruptReadsOutsideInAndUnwraps(t *testing.T) {
	c := &Corrupt{ID: ReftableUnreadable, Pos: Pos{File: "reftable/a.ref", Offset: 24, Placed: true}, Err: fs.ErrPermission}
	if got := c.Error(); got != "reftable/a.ref:+24: permission denied" {
		t.Errorf("text is %q", got)
	}
	if !errors.Is(c, fs.ErrPermission) {
		t.Error("the cause is hidden")
	}
	if got := (&Corrupt{Err: fs.ErrPermission}).Error(); got != "permission denied" {
		t.Errorf("without a place the text is %q", got)
	}
	f := c.Finding()
	if f.ID != c.ID || f.Severity != Error || f.Pos != c.Pos || f.Message != "permission denied" {
		t.Errorf("as a finding it is %+v", f)
	}
}

func TestNewTakesTheDefaultSeverity(t *testing.T) {
	f := New(PeelMissing, Pos{File: "packed-refs", Line: 3}, "tag %s has no peel", "v1")
	if f.Severity != Warn || f.Message != "tag v1 has no peel" || f.Line != 3 {
		t.Errorf("it is %+v", f)
	}
}

func sample() Finding {
	f := New(PeelMismatch, Pos{File: "packed-refs", Line: 12, Offset: 734, Placed: true, Length: 42}, "caches another peel")
	f.Repo, f.Ref = "/srv/git/a.git", "refs/tags/v1"
	f.OID = oid.MustParse("4f2d3c1b0a9988776655443322110099887766ff")
	f.Cached = oid.MustParse("9ae1000000000000000000000000000000000000")
	return f
}

// The same problem, found again after the file was rewritten around it, and described by another version.
func TestFingerprintStaysForTheSameProblem(t *testing.T) {
	want := sample()
	for name, change := range map[string]func(f *Finding){
		"place":    func(f *Finding) { f.Line, f.Offset, f.Length = 400, 21000, 82 },
		"severity": func(f *Finding) { f.Severity = Info },
		"wording":  func(f *Finding) { f.Message = "stores a peel that is not the tag's" },
		"expected": func(f *Finding) { f.Expected = f.OID },
		"cause":    func(f *Finding) { f.Cause, f.Fixable = CauseHexFlip, true },
		"git":      func(f *Finding) { f.GitText = "packed-refs line 12: badPackedRefEntry: x" },
	} {
		f := sample()
		change(&f)
		if f.Fingerprint() != want.Fingerprint() {
			t.Errorf("another %s, another fingerprint", name)
		}
	}
	before, after := sample(), sample()
	before.File, after.File = "reftable/a.ref", "reftable/b.ref"
	if before.Fingerprint() != after.Fingerprint() {
		t.Error("another fingerprint after a compaction")
	}
}

func TestFingerprintDiffersBetweenProblems(t *testing.T) {
	seen := map[string]string{}
	add := func(name string, change func(f *Finding)) {
		f := sample()
		change(&f)
		got := f.Fingerprint()
		if len(got) != 32 {
			t.Errorf("%s: fingerprint %q", name, got)
		}
		if other, twice := seen[got]; twice {
			t.Errorf("%s and %s have the same fingerprint", name, other)
		}
		seen[got] = name
	}
	add("as it is", func(*Finding) {})
	add("another id", func(f *Finding) { f.ID = PeelPartial })
	add("another repository", func(f *Finding) { f.Repo = "/srv/git/b.git" })
	add("another ref", func(f *Finding) { f.Ref = "refs/tags/v2" })
	add("another tag", func(f *Finding) { f.OID = f.Cached })
	add("another peel", func(f *Finding) { f.Cached = f.OID })
	add("another store", func(f *Finding) { f.File = "reftable/a.ref" })
	add("repository and ref divided elsewhere", func(f *Finding) { f.Repo, f.Ref = "/srv/git/a.gitr", "efs/tags/v1" })
	add("no object", func(f *Finding) { f.OID = oid.ID{} })
	add("no object, another message", func(f *Finding) { f.OID, f.Message = oid.ID{}, "something else" })
	add("no ref", func(f *Finding) { f.Ref = "" })
	add("no ref, another line", func(f *Finding) { f.Ref, f.Line = "", 13 })
	add("no ref, another offset", func(f *Finding) { f.Ref, f.Offset = "", 735 })
	add("no ref, another block", func(f *Finding) { f.Ref, f.Block, f.Blocked = "", 4096, true })
	add("no ref, another message", func(f *Finding) { f.Ref, f.Message = "", "something else" })
}
