package reports

import (
	"time"

	"refaudit/finding"
)

// Gate is what `guard` says of the refs of one repository.
type Gate struct {
	Verdict  Verdict
	Refs     int64 // that there are
	Recorded int64 // that there were; of no meaning for First
	Lost     int64
	Added    int64
	Since    time.Time         // when the earlier ones were noted
	Reasons  []string          // of Suspicious
	Sample   []finding.RefName // some of the lost ones
}

// Verdict says whether gc may run.
type Verdict string

// The verdicts of a guard. Where refs can't be read there is none.
const (
	Fine       Verdict = "fine"
	First      Verdict = "first"      // nothing was known of this repository: there is nothing to compare with
	Accepted   Verdict = "accepted"   // whatever was known: somebody takes the refs as they are for right
	Suspicious Verdict = "suspicious" // refs seem to be lost, not deleted
)

func (j *jsonLines) gate(o *object, g *Gate) {
	o.str("verdict", string(g.Verdict))
	if g.Verdict != First {
		o.num("recorded_refs", g.Recorded)
		o.num("lost", g.Lost)
		o.num("added", g.Added)
		o.str("recorded", g.Since.UTC().Format(time.RFC3339))
	}
	if len(g.Reasons) > 0 {
		o.key("reasons")
		for i, r := range g.Reasons {
			o.b = appendString(append(o.b, ",["[btoi(i == 0)]), r)
		}
		o.b = append(o.b, ']')
	}
	if len(g.Sample) > 0 {
		o.key("lost_refs")
		for i, name := range g.Sample {
			one := &object{}
			one.bytes("ref", string(name))
			o.b = append(append(append(o.b, ",["[btoi(i == 0)], '{'), one.b[1:]...), '}')
		}
		o.b = append(o.b, ']')
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (t *text) gate(repo string, g *Gate) {
	switch {
	case g.Verdict == Suspicious:
		t.heading(repo)
		for _, r := range g.Reasons {
			t.printf("  %s  %s\n", t.color("31;1", "suspicious"), Escape(r))
		}
		for i, name := range g.Sample {
			t.printf("%s%s", []string{", ", "      lost: "}[btoi(i == 0)], Escape(string(name)))
		}
		if more := g.Lost - int64(len(g.Sample)); len(g.Sample) > 0 && more > 0 {
			t.printf(" and %s more", Thousands(more))
		}
		if len(g.Sample) > 0 {
			t.printf("\n")
		}
		t.printf("      gc must not run; if all this is right: refaudit guard --accept %s\n", shellQuote(repo))
	case t.o.Quiet || t.o.Summary:
	case g.Verdict == First:
		t.heading(repo)
		t.printf("  gc may run: %s, noted for the first time\n", count(g.Refs, "ref", "refs"))
	default:
		t.heading(repo)
		t.printf("  gc may run: %s, %d new and %d gone since %s\n", count(g.Refs, "ref", "refs"), g.Added, g.Lost, g.Since.Format(time.DateTime))
	}
}
