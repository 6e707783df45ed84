package scan_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"refaudit/finding"
	"refaudit/oid"
	"refaudit/repo"
	"refaudit/scan"
)

// configured opens a repository with a configuration and nothing else.
func configured(t *testing.T, config string) *repo.Repo {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{"objects", "refs"} {
		os.Mkdir(filepath.Join(dir, d), 0o755)
	}
	os.WriteFile(filepath.Join(dir, "HEAD"), []byte("ref: refs/heads/main\n"), 0o644)
	os.WriteFile(filepath.Join(dir, "config"), []byte(config), 0o644)
	r, err := repo.Open(dir, repo.Options{Env: repo.EmptyEnv})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestSeverities(t *testing.T) {
	for _, c := range []struct {
		config string
		strict bool
		id     finding.ID
		want   finding.Severity // Ignore: not reported
	}{
		{"", false, finding.PeelMismatch, finding.Error},
		{"", false, finding.PeelMissing, finding.Warn},
		{"", true, finding.PeelMissing, finding.Error},
		{"", true, finding.PeelUnverifiable, finding.Info}, // --strict leaves info alone
		{"", false, finding.TagNameMismatch, finding.Ignore},
		{"[refaudit]\ntagNameMismatch = error\n", false, finding.TagNameMismatch, finding.Error},
		{"[refaudit]\npeelmismatch = WARN\n", false, finding.PeelMismatch, finding.Warn},
		{"[refaudit]\npeelMismatch = warn\n", true, finding.PeelMismatch, finding.Error},
		{"[refaudit]\npeelMismatch = ignore\n", true, finding.PeelMismatch, finding.Ignore},
		{"[fsck]\npeelMismatch = ignore\n", false, finding.PeelMismatch, finding.Error}, // not an id of git's
		{"[fsck]\nbadRefName = warn\n", false, finding.BadRefName, finding.Warn},
		{"[fsck]\nbadRefName = warn\n", true, finding.BadRefName, finding.Warn}, // set by fsck: --strict leaves it
		{"[fsck]\nbadRefName = warn\n[refaudit]\nbadRefName = info\n", false, finding.BadRefName, finding.Info},
		{"", true, finding.BadReftableTableName, finding.Error},
		{"[fsck]\nbadReftableTableName = warn\n", true, finding.BadReftableTableName, finding.Warn},
		{"[refaudit]\nreftableCrc = ignore\n", false, finding.ReftableCrc, finding.Warn}, // can't be lowered further
		{"[refaudit]\nnulInHeader = ignore\n", false, finding.NulInHeader, finding.Error},
		{"[fsck]\nnulInHeader = warn\n", false, finding.NulInHeader, finding.Error},
		{"", false, finding.NulInHeader, finding.Error},
	} {
		p, err := scan.NewPolicy(configured(t, c.config), c.strict, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		f := finding.New(c.id, finding.Pos{}, "")
		got := finding.Ignore
		if p.Apply(&f) {
			got = f.Severity
		}
		if got != c.want {
			t.Errorf("%q, strict %v: %s is %v, want %v", c.config, c.strict, c.id, got, c.want)
		}
		if floor := finding.Lookup(c.id).Floor; strings.Contains(c.config, "ignore") && floor > finding.Ignore && len(p.Notices) == 0 {
			t.Errorf("%q: it is not said that the setting does not count", c.config)
		}
	}
}

// A finding whose own severity is below its id's default is not raised to what is configured for the id.
func TestALesserFindingIsNotRaised(t *testing.T) {
	p, err := scan.NewPolicy(configured(t, "[refaudit]\npeelMissing = error\nrefNameConflict = error\n"), false, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	f := finding.New(finding.PeelMissing, finding.Pos{}, "")
	f.Severity = finding.Info
	if !p.Apply(&f) || f.Severity != finding.Info {
		t.Errorf("%v", f.Severity)
	}
}

func TestBadSettingsAreErrors(t *testing.T) {
	for _, config := range []string{
		"[refaudit]\npeelMismatch = loud\n", "[refaudit]\npeelMismatch\n", "[fsck]\nbadRefName = 7\n",
		"[fsck]\nskipList = /no/such/list\n", "[refaudit]\nskipList = /no/such/list\n", "[fsck]\nskipList\n",
	} {
		if _, err := scan.NewPolicy(configured(t, config), false, time.Now()); err == nil {
			t.Errorf("%q was taken", config)
		}
	}
}

// The hook has settings of its own, ours first.
func TestReceiveSettings(t *testing.T) {
	r := configured(t, "[refaudit \"receive\"]\npeelMismatch = warn\n[refaudit]\ntagTypeMismatch = ignore\n[receive \"fsck\"]\nmissingTaggerEntry = error\n[fsck]\nbadTagName = error\n")
	p, err := scan.NewReceivePolicy(r, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[finding.ID]finding.Severity{
		finding.PeelMismatch: finding.Warn, finding.TagTypeMismatch: finding.Error, finding.MissingTaggerEntry: finding.Error, finding.BadTagName: finding.Info,
	} {
		if got := p.Severity(id); got != want {
			t.Errorf("%s: %v, want %v", id, got, want)
		}
	}
}

func TestASkipListCoversWhatItNames(t *testing.T) {
	tag := oid.SHA1.Object("tag", nil)
	r := configured(t, "[refaudit]\nskipList = list\n[fsck]\nskipList = objects.list\n")
	os.WriteFile(filepath.Join(r.CommonDir, "list"), []byte("refs/heads/* badRefContent\nrefs/tags/v? "+tag.String()+"\n"), 0o644)
	os.WriteFile(filepath.Join(r.CommonDir, "objects.list"), []byte(tag.String()+"\n"), 0o644)
	p, err := scan.NewPolicy(r, false, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		id     finding.ID
		ref    finding.RefName
		oid    oid.ID
		hidden bool
	}{
		{finding.BadRefContent, "refs/heads/a/b", oid.ID{}, true},
		{finding.BadRefName, "refs/heads/a", oid.ID{}, false},
		{finding.RefTargetMissing, "refs/tags/v1", tag, true},
		{finding.RefTargetMissing, "refs/tags/v10", tag, false}, // fsck.skipList is for peels and tags alone
		{finding.PeelMismatch, "refs/tags/other", tag, true},
		{finding.TagUnreadable, "refs/heads/x", tag, true},
		{finding.ReftableCrc, "", tag, false},
	} {
		f := finding.New(c.id, finding.Pos{}, "")
		f.Ref, f.OID = c.ref, c.oid
		if p.Apply(&f) == c.hidden {
			t.Errorf("%s at %s: hidden %v, want %v", c.id, c.ref, !c.hidden, c.hidden)
		}
	}
}

func TestAMisspeltIDIsToldOf(t *testing.T) {
	p, err := scan.NewPolicy(configured(t, "[refaudit]\npeelMismatsch = ignore\nskipList = \npeelMissing = info\n[refaudit \"hook\"]\ntimeout = 5s\n"), false, time.Now())
	if err == nil && (len(p.Notices) != 1 || !strings.Contains(p.Notices[0], "peelmismatsch")) {
		t.Errorf("%q", p.Notices)
	}
	if err != nil {
		t.Error(err)
	}
}
