package scan_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"refaudit/finding"
	"refaudit/internal/gittest"
	"refaudit/repo"
	"refaudit/scan"
)

func open(t *testing.T, path string, now time.Time) (*scan.Target, *scan.Policy) {
	t.Helper()
	target, err := scan.Open(path, scan.ByPath, repo.Options{Env: repo.EmptyEnv})
	if err != nil {
		t.Fatal(err)
	}
	policy, err := scan.NewPolicy(target.Repo, false, now)
	if err != nil {
		t.Fatal(err)
	}
	return target, policy
}

func TestKnownFindingsDoNotCount(t *testing.T) {
	bad, _ := gittest.FalseType(t, gittest.Options{})
	target, policy := open(t, bad.Path, time.Now())
	o := scan.Options{Level: scan.Standard, Now: time.Now, MaxFindings: 1, Known: func(f *finding.Finding) bool { return f.ID == finding.PeelOfCorruptTag }}
	var ids []finding.ID
	res, err := scan.Repository(context.Background(), target, policy, o, func(f *finding.Finding) error { ids = append(ids, f.ID); return nil })
	if err != nil || len(ids) != 1 || ids[0] != finding.TagTypeMismatch || res.Known != 1 || res.Hidden != 0 || res.Count(finding.Info) != 1 {
		t.Errorf("%v %v %+v", err, ids, res)
	}
	o.Known = func(*finding.Finding) bool { return true }
	res, err = scan.Repository(context.Background(), target, policy, o, func(f *finding.Finding) error { return errors.New(string(f.ID)) })
	if err != nil || res.State != scan.Clean || res.Known != 2 {
		t.Errorf("%v %+v", err, res)
	}
}

func TestAPaceThatFailsEndsTheAudit(t *testing.T) {
	clean, _ := gittest.Clean(t, gittest.Options{})
	target, policy := open(t, clean.Path, time.Now())
	why := errors.New("too fast")
	o := scan.Options{Level: scan.Standard, Now: time.Now, Pace: func(context.Context) error { return why }}
	if _, err := scan.Repository(context.Background(), target, policy, o, nil); !errors.Is(err, why) {
		t.Error(err)
	}
}

// A digest differs whenever a finding might be judged otherwise.
func TestDigestsOfPolicies(t *testing.T) {
	r, _ := gittest.Clean(t, gittest.Options{})
	list := filepath.Join(t.TempDir(), "list")
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	digest := func() [32]byte {
		_, p := open(t, r.Path, now)
		return p.Digest()
	}
	seen := map[[32]byte]string{digest(): "nothing set"}
	step := func(what string, do func()) {
		do()
		d := digest()
		if other, ok := seen[d]; ok {
			t.Errorf("%s: the digest is that of %s", what, other)
		}
		if seen[d] = what; d != digest() {
			t.Errorf("%s: two digests", what)
		}
	}
	step("a severity", func() { r.Git("config", "refaudit.peelMismatch", "warn") })
	step("another", func() { r.Git("config", "refaudit.peelMismatch", "ignore") })
	step("of git's", func() { r.Git("config", "fsck.badRefName", "warn") })
	step("the same, set by us", func() { r.Git("config", "refaudit.badRefName", "warn") })
	step("a list", func() {
		os.WriteFile(list, []byte("refs/tags/a until=2026-03-02\n"), 0o644)
		r.Git("config", "refaudit.skipList", list)
	})
	step("a day later than its line", func() { now = now.AddDate(0, 0, 2) })
	step("objects", func() {
		os.WriteFile(list+"2", []byte(r.V1+"\n"), 0o644)
		r.Git("config", "fsck.skipList", list+"2")
	})
}

// What an include would have set is not known: that is no clean audit, at any level.
func TestIncludesThatAreNotFollowedAreTold(t *testing.T) {
	r, _ := gittest.Clean(t, gittest.Options{})
	r.WriteFile("more", []byte("[refaudit]\n\tpeelMismatch = ignore\n"))
	config := string(r.ReadFile("config"))
	r.WriteFile("config", []byte(config+"[includeIf \"gitdir:/"+strings.Repeat("*a", 5000)+"\"]\n\tpath = more\n"))
	for _, level := range []scan.Level{scan.Quick, scan.Standard, scan.Deep} {
		res, found := audit(t, r.Path, level)
		if res.State != scan.Found || len(found) != 1 || found[0].ID != finding.AuditSkipped || !strings.Contains(found[0].Message, "is not followed") {
			t.Errorf("%v: %v %v", level, res.State, found)
		}
	}
}
