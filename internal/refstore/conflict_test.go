package refstore

import (
	"fmt"
	"slices"
	"testing"

	"refaudit/finding"
)

func TestConflicts(t *testing.T) {
	for _, c := range []struct {
		names []string
		want  []string
	}{
		{[]string{"refs/heads/a", "refs/heads/a-b", "refs/heads/ab"}, nil},
		{[]string{"refs/heads/a", "refs/heads/a/b"}, []string{"refs/heads/a/b error"}},
		{[]string{"refs/heads/a", "refs/heads/a-b", "refs/heads/a/b"}, []string{"refs/heads/a/b error"}},
		{[]string{"refs/heads/a", "refs/heads/a-b/c", "refs/heads/a-b/d", "refs/heads/a/b", "refs/heads/a/c"}, []string{"refs/heads/a/b error", "refs/heads/a/c error"}},
		{[]string{"refs/heads/a", "refs/heads/a/b", "refs/heads/a/b/c"}, []string{"refs/heads/a/b error", "refs/heads/a/b/c error"}},
		{[]string{"refs/heads/Foo", "refs/heads/foo"}, []string{"refs/heads/foo warn"}},
		{[]string{"refs/heads/FOO", "refs/heads/Foo", "refs/heads/fOo", "refs/heads/foo"}, []string{"refs/heads/Foo warn", "refs/heads/fOo warn", "refs/heads/foo warn"}},
		{[]string{"refs/heads/JIRA-1", "refs/heads/JIRA-2", "refs/heads/jira-3"}, nil},
		{[]string{"refs/heads/X", "refs/heads/X"}, nil},               // a duplicate is another finding
		{[]string{"refs/heads/\xc3\x84", "refs/heads/\xc3\xa4"}, nil}, // only ASCII is folded, as git does
	} {
		slices.Sort(c.names)
		x := newConflicts()
		var got []string
		for _, n := range c.names {
			x.report([]byte(n), x.common([]byte(n)), &finding.Pos{}, func(f finding.Finding) error {
				got = append(got, fmt.Sprintf("%s %v", f.Ref, f.Severity))
				return nil
			})
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.names, got, c.want)
		}
	}
}

func BenchmarkConflicts(b *testing.B) {
	var names [][]byte
	for i := range 100_000 {
		names = append(names, fmt.Appendf(nil, "refs/heads/b/%07d", i))
	}
	for b.Loop() {
		c := newConflicts()
		for _, n := range names {
			c.add(n, c.common(n))
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100_000, "ns/ref")
}
