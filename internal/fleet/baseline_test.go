package fleet

import (
	"bytes"
	"strings"
	"testing"

	"refaudit/finding"
)

func one(repo string, id finding.ID, ref string) *finding.Finding {
	f := finding.New(id, finding.Pos{}, "what")
	f.Repo, f.Ref = repo, finding.RefName(ref)
	return &f
}

func TestABaselineIsReadAsItWasWritten(t *testing.T) {
	known := []*finding.Finding{one("/b", finding.PeelMismatch, "refs/tags/a"), one("/a", finding.PeelMismatch, "refs/tags/a"), one("/a\xff", finding.PeelMissing, "refs/tags/\xfe")}
	var g, other Gathered
	for i := range known {
		g.Add(known[i])
		other.Add(known[len(known)-1-i])
	}
	var file, again bytes.Buffer
	if err := g.Write(&file); err != nil {
		t.Fatal(err)
	}
	if err := other.Write(&again); err != nil || again.String() != file.String() {
		t.Errorf("another order makes another file: %v", err)
	}
	b, err := ReadBaseline(&file)
	if err != nil || b.Gone() != 3 {
		t.Fatal(err, b.Gone())
	}
	for _, f := range known[:2] {
		if !b.Has(f) {
			t.Errorf("%v is not known", f)
		}
	}
	if b.Has(one("/c", finding.PeelMismatch, "refs/tags/a")) || b.Has(one("/a", finding.PeelMismatch, "refs/tags/b")) {
		t.Error("a new finding is known")
	}
	if b.Gone() != 1 {
		t.Errorf("%d are gone", b.Gone())
	}
}

// A store that git takes for empty is never old news.
func TestWhatCantBeLoweredAlwaysCounts(t *testing.T) {
	var g Gathered
	f := one("/a", finding.ReftableCrc, "")
	g.Add(f)
	var file bytes.Buffer
	if err := g.Write(&file); err != nil {
		t.Fatal(err)
	}
	if b, err := ReadBaseline(&file); err != nil || b.Has(f) {
		t.Error("a broken stack is known", err)
	}
}

func TestReadBaseline(t *testing.T) {
	report := `{"schema":"refaudit/1","type":"start","command":"scan"}

{"type":"finding","repo":"/a","id":"peelMismatch","fingerprint":"00112233445566778899aabbccddeeff"}
{"type":"summary","exit":1}
`
	if b, err := ReadBaseline(strings.NewReader(report)); err != nil || len(b.known) != 1 {
		t.Errorf("a report: %v %v", b, err)
	}
	for _, bad := range []string{report[:len(report)-5], `{"type":"finding","fingerprint":"0011"}`, `{"type":"finding"}`, "refs/tags/a\n",
		`{"$schema":"https://json.schemastore.org/sarif-2.1.0.json","version":"2.1.0","runs":[]}`, "[]", "7",
		`{"schema":"refaudit/2","type":"finding","fingerprint":"00112233445566778899aabbccddeeff"}`} {
		if _, err := ReadBaseline(strings.NewReader(bad)); err == nil || !strings.Contains(err.Error(), "line ") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func FuzzBaseline(f *testing.F) {
	f.Add([]byte(`{"type":"finding","fingerprint":"00112233445566778899aabbccddeeff"}`))
	f.Fuzz(func(_ *testing.T, b []byte) { ReadBaseline(bytes.NewReader(b)) })
}
