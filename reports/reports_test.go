package reports

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"refaudit/finding"
	"refaudit/oid"
)

var rewrite = flag.Bool("rewrite", false, "write what the formats give now into testdata")

// story is one run with everything in it that a format has to say.
func story(t *testing.T, r Report) {
	t.Helper()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	bad := finding.Finding{ID: finding.PeelOfCorruptTag, Severity: finding.Error, Repo: "/srv/git/a.git", Ref: "refs/tags/v1",
		OID: oid.SHA1.Object("tag", []byte("v1")), Cached: oid.SHA1.Object("blob", nil), Cause: finding.CauseFalseTypeLine, Fixable: true,
		Pos:     finding.Pos{File: "packed-refs", Line: 12, Offset: 734, Length: 42, Placed: true},
		Message: "caches a peel for a tag that is corrupt"}
	odd := finding.Finding{ID: finding.BadRefName, Severity: finding.Error, Repo: "/srv/git/a.git", Ref: "refs/heads/\xff\x1b[31m",
		Pos: finding.Pos{File: "refs/heads/\xff\x1b[31m"}, Message: "a name with \"quotes\" and \x07", GitText: "refs/heads/\x1b: badRefName: invalid refname format"}
	table := finding.Finding{ID: finding.ReftableRecord, Severity: finding.Error, Repo: "/srv/git/b.git",
		Pos: finding.Pos{File: "reftable/t.ref", Offset: 0, Block: 0, Placed: true, Blocked: true}, Message: "value type 5 does not exist"}
	quiet := finding.Finding{ID: finding.RefMissingNewline, Severity: finding.Info, Repo: "/srv/git/b.git", Ref: "refs/heads/x",
		Pos: finding.Pos{File: "refs/heads/x"}, Message: "no newline at the end", GitText: "refs/heads/x: refMissingNewline: misses LF at the end"}
	for _, err := range []error{
		r.Start(&Start{Command: "scan", Version: "1.0", Level: "standard", Time: at}),
		r.Finding(&bad), r.Finding(&odd),
		r.Notice(&Notice{Repo: "/srv/git/a.git", Message: "a note"}),
		r.Repository(&Repository{Repo: "/srv/git/a.git", State: Found, Refs: 1234567, Peels: 2, Severities: map[finding.Severity]int64{finding.Error: 2}, Hidden: 3}),
		r.Finding(&table), r.Finding(&quiet),
		r.Repository(&Repository{Repo: "/srv/git/b.git", State: Incomplete, Reason: "reftable/t.ref can't be read"}),
		r.Repair(&Repair{Repo: "/srv/git/a.git", Ref: "refs/tags/v1", ID: finding.PeelOfCorruptTag, File: "packed-refs", Before: bad.Cached, Action: "drop the cached peel", Applied: true, Journal: "20260102-1"}),
		r.Usage(&Usage{Repo: "/srv/git/a.git", Method: "walk", Reason: "there is no bitmap", Figures: []Figure{{Name: "reachable", Bytes: 1234567, Known: true}, {Name: "own", Reason: "an object is missing"}},
			By: []Group{{Key: "type", Name: "tree", Figures: []Figure{{Name: "reachable", Bytes: 7, Known: true}}}}}),
		r.Progress(&Progress{Repo: "/srv/git/b.git", Done: 1, Total: 2, Refs: 5, Elapsed: time.Second}),
		r.Summary(&Summary{Severities: map[finding.Severity]int64{finding.Error: 3, finding.Info: 1}, IDs: map[finding.ID]int64{finding.PeelOfCorruptTag: 1},
			Refs: 1234567, PeelsChecked: 2, Repositories: map[State]int64{Found: 1, Incomplete: 1}, Duration: 1500 * time.Millisecond, Exit: 7}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestFormats(t *testing.T) {
	for _, format := range Formats {
		var b bytes.Buffer
		r, err := New(format, &b, Options{})
		if err != nil {
			t.Fatal(err)
		}
		story(t, r)
		file := "testdata/story." + format
		if *rewrite {
			os.MkdirAll("testdata", 0o755)
			os.WriteFile(file, b.Bytes(), 0o644)
		}
		want, err := os.ReadFile(file)
		if err != nil || !bytes.Equal(want, b.Bytes()) {
			t.Errorf("%s: %v\n got:\n%s\nwant:\n%s", format, err, b.Bytes(), want)
		}
		for i, c := range b.Bytes() {
			if c == 0x1b || c == 7 {
				t.Errorf("%s: a control byte at %d", format, i)
			}
		}
	}
}

func TestEveryJSONLineIsOne(t *testing.T) {
	var b bytes.Buffer
	r, _ := New("jsonl", &b, Options{})
	story(t, r)
	if !utf8.Valid(b.Bytes()) {
		t.Error("not UTF-8")
	}
	last := ""
	for _, l := range strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n") {
		var m map[string]any
		if err := json.Unmarshal([]byte(l), &m); err != nil {
			t.Fatalf("%v: %s", err, l)
		}
		if m["schema"] != Schema {
			t.Errorf("no schema: %s", l)
		}
		last, _ = m["type"].(string)
		if last == "finding" {
			if _, ok := m["fingerprint"]; !ok {
				t.Errorf("no fingerprint: %s", l)
			}
		}
	}
	if last != "summary" {
		t.Errorf("the last line is a %s", last)
	}
}

func TestEscapeLeavesNoControl(t *testing.T) {
	for in, want := range map[string]string{
		"plain": "plain", "ümläut": "ümläut", "a\x1b[31m": `a\x1b[31m`, "\xff": `\xff`, "x\u009by": `x\xc2\x9by`, "nul\x00": `nul\x00`, "\u202e": `\xe2\x80\xae`,
	} {
		if got := Escape(in); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}

// Every id has a line, so that an alert can tell silence from health.
func TestMetricsNameEveryID(t *testing.T) {
	var b bytes.Buffer
	s := &Summary{IDs: map[finding.ID]int64{finding.PeelMismatch: 3}, Repositories: map[State]int64{Clean: 2}, Refs: 12, Duration: 1500 * time.Millisecond, Exit: 1}
	if err := Metrics(&b, s, time.Unix(1_700_000_000, 0)); err != nil {
		t.Fatal(err)
	}
	for i := range finding.Catalog {
		id := finding.Catalog[i].ID
		want := `refaudit_findings{msgid="` + string(id) + `"} `
		if id == finding.PeelMismatch {
			want += "3\n"
		} else {
			want += "0\n"
		}
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q", want)
		}
	}
	for _, want := range []string{"refaudit_refs 12\n", "refaudit_duration_seconds 1.5\n", "refaudit_exit_code 1\n", `refaudit_repositories{state="clean"} 2`, "refaudit_last_run_timestamp_seconds 1.7e+09\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in:\n%s", want, b.String())
		}
	}
}

// A path can be pasted into a shell as it is shown, and shows no control byte.
func TestShellQuote(t *testing.T) {
	for path, want := range map[string]string{
		"/srv/git/a.git": "/srv/git/a.git", "a b": "'a b'", "it's": `'it'\''s'`, "": "''", "-x": "'-x'", "esc\x1b[31m": `$'esc\x1b[31m'`, "a'\n\\": `$'a\'\x0a\\'`, "\xff": `$'\xff'`,
	} {
		got := shellQuote(path)
		if got != want {
			t.Errorf("%q: %s, want %s", path, got, want)
		}
		if sh, err := exec.LookPath("bash"); err == nil {
			if out, err := exec.Command(sh, "-c", "printf %s "+got).Output(); err != nil || string(out) != path {
				t.Errorf("%q: the shell reads %q", path, out)
			}
		}
	}
}

// A run that computes disk usage has checked no refs, and doesn't count them.
func TestTextOfUsageCountsNoRefs(t *testing.T) {
	for command, want := range map[string]string{
		"size": "1 repository: 0 errors, 1 warning, 0 info\n",
		"scan": "1 repository, 0 refs, 0 cached peels checked: 0 errors, 1 warning, 0 info\n",
	} {
		var b strings.Builder
		r, err := New("text", &b, Options{})
		if err != nil {
			t.Fatal(err)
		}
		s := &Summary{Repositories: map[State]int64{Clean: 1}, Severities: map[finding.Severity]int64{finding.Warn: 1}}
		if err := errors.Join(r.Start(&Start{Command: command}), r.Summary(s)); err != nil {
			t.Fatal(err)
		}
		if b.String() != want {
			t.Errorf("%s: %q, want %q", command, b.String(), want)
		}
	}
}

// Figures are what a command was asked for: they go with --quiet, and not where the summary alone is wanted.
func TestFiguresWithSummaryAndQuiet(t *testing.T) {
	u := &Usage{Repo: "r.git", Figures: []Figure{{Name: "own", Bytes: 7, Known: true}}, Method: "walk", Reason: "because"}
	for _, format := range []string{"text", "jsonl"} {
		for o, want := range map[Options]bool{{}: true, {Quiet: true}: true, {Summary: true}: false} {
			var b strings.Builder
			r, err := New(format, &b, o)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(r.Start(&Start{Command: "size"}), r.Usage(u), r.Summary(&Summary{})); err != nil {
				t.Fatal(err)
			}
			if got := strings.Contains(b.String(), "own"); got != want {
				t.Errorf("%s, %+v: %q", format, o, b.String())
			}
		}
	}
}
