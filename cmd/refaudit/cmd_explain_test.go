package main

import (
	"strings"
	"testing"

	"refaudit/finding"
)

func TestExplainKnowsEveryID(t *testing.T) {
	list := command(t, nil, nil, "explain")
	for i := range finding.Catalog {
		id := string(finding.Catalog[i].ID)
		if !strings.Contains(list.out, "  "+id+" ") {
			t.Errorf("%s is not listed", id)
		}
		r := command(t, nil, nil, "explain", strings.ToUpper(id))
		x, _ := finding.Explain(finding.ID(id))
		text := strings.Join(strings.Fields(r.out), " ")
		for _, part := range []string{x.Means, x.Comes, x.Seen, x.Fix, x.Mend} {
			if r.code != 0 || !strings.Contains(text, strings.Join(strings.Fields(part), " ")) {
				t.Errorf("%s: exit %d, %q is not in it", id, r.code, part)
			}
		}
	}
	if r := command(t, nil, nil, "explain", "peelM"); r.code != 129 || r.out != "" || !strings.Contains(r.err, "peelMismatch") {
		t.Errorf("%+v", r)
	}
}
