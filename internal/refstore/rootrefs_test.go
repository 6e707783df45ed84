package refstore_test

import (
	"encoding/hex"
	"strings"
	"testing"

	"refaudit/finding"
	"refaudit/internal/gittest"
	"refaudit/internal/refstore"
)

// Whatever is written as root refs are may stand in a table: git writes it and finds nothing wrong. What is not has lost bytes.
func TestRootRefsOfAnyNameInATable(t *testing.T) {
	for _, format := range gittest.AllFormats {
		if format.RefFormat != gittest.Reftable {
			continue
		}
		r := gittest.New(t, format)
		before := seen(t, r.Path, func(*refstore.Ref) error { return nil })
		for _, name := range []string{"FOO", "A_", "__", "QUX-BAR", "AUTO_MERGE", "HEADX"} {
			r.Git("update-ref", name, r.A)
		}
		r.Git("symbolic-ref", "TO_MAIN", "refs/heads/main")
		if _, stderr, code := r.Try("refs", "verify"); code != 0 || stderr != "" {
			t.Fatalf("git finds %d %s", code, stderr)
		}
		if after := seen(t, r.Path, func(*refstore.Ref) error { return nil }); after != before {
			t.Errorf("%v: %s\nand without those refs: %s", format, after, before)
		}
		r.PatchTables(hex.EncodeToString([]byte("QUX-BAR")), hex.EncodeToString([]byte("QUX\x00BAR")))
		if after := seen(t, r.Path, nil); !strings.Contains(after, string(finding.BadRefName)+` "QUX\x00BAR"`) || !strings.Contains(after, "lost") {
			t.Errorf("%v: of damage it is said: %s", format, after)
		}
	}
}
