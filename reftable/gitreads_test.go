package reftable

import (
	"fmt"
	"strings"
	"testing"

	"refaudit/finding"
	"refaudit/oid"
)

// Where git goes on inside a long index block it may meet the letter of another kind, and takes that for the end of the
// index: then it finds its refs, as git 2.55 does in each of these tables. At an i it crashes.
func TestAnIndexBlockThatGitGoesOnInside(t *testing.T) {
	for letter, seen := range map[string]bool{"r": false, "o": false, "g": false, "i": true, "x": true} {
		var text strings.Builder
		text.WriteString("table version=1 block=160 min=1 max=1\n")
		names := []string{"refs/heads/a" + strings.Repeat("a", 85), "refs/heads/b" + strings.Repeat(letter, 85)}
		for _, name := range names {
			fmt.Fprintf(&text, "block r\n %s +0 value ab\n", name)
		}
		text.WriteString("block i interval=1\n")
		for i, name := range names {
			fmt.Fprintf(&text, " %s -> #%d\n", name, i)
		}
		text.WriteString("footer refindex=#2\n")
		data := build(t, text.String())
		tab, err := OpenBytes(data, "t", oid.SHA1)
		if err != nil {
			t.Fatal(err)
		}
		if got := data[tab.RefIndex+160:][:1]; string(got) != letter {
			t.Fatalf("%q stands where git goes on, not %q", got, letter)
		}
		var found []finding.Finding
		if err := VerifyForGit(tab, true, func(f finding.Finding) error { found = append(found, f); return nil }); err != nil {
			t.Fatal(err)
		}
		if len(found) > 0 != seen || seen && (found[0].ID != finding.ReftableIndexMismatch || found[0].Offset != tab.RefIndex || !found[0].Placed) {
			t.Errorf("%q: %+v", letter, found)
		}
	}
}
