//go:build unix

package usage

import (
	"slices"
	"syscall"
	"testing"

	"refaudit/finding"
)

// git passes over what is no file, so the figures are known; that something stands there is told.
func TestAFIFOInPlaceOfARef(t *testing.T) {
	r := plain(t)
	if err := syscall.Mkfifo(r.File("refs/heads/x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, stderr, code := r.Try("rev-list", "--all", "--objects"); code != 0 {
		t.Fatalf("rev-list exits with %d: %s", code, stderr)
	}
	s := NewSession(2)
	defer s.Close()
	u := measured(t, s, r, Options{})
	if !u.Complete() || !slices.ContainsFunc(u.Findings, func(f finding.Finding) bool { return f.ID == finding.BadRefFiletype }) {
		t.Errorf("unknown %v, findings %v", u.Unknown, u.Findings)
	}
}
