package remote

import (
	"slices"
	"testing"
)

func TestPushRows(t *testing.T) {
	out := "To /srv/a.git\n" +
		" \trefs/heads/a:refs/heads/a\t1234567..89abcde\n" +
		"+\trefs/heads/b:refs/heads/b\t1234567...89abcde (forced update)\n" +
		"*\tHEAD:refs/heads/c\t[new branch]\n" +
		"-\t:refs/heads/d\t[deleted]\n" +
		"=\trefs/heads/e:refs/heads/e\t[up to date]\n" +
		"!\trefs/heads/f:refs/heads/f\t[rejected] (non-fast-forward)\n" +
		"!\trefs/heads/g:refs/heads/g\t[remote rejected] (hook declined (twice))\n" +
		"!\t(delete):refs/heads/h\t[remote failure] (remote failed to report status)\n" +
		"a line of something else\n" +
		"Done\n"
	want := []PushRow{
		{' ', "refs/heads/a", "1234567..89abcde", ""},
		{'+', "refs/heads/b", "1234567...89abcde", "forced update"},
		{'*', "refs/heads/c", "[new branch]", ""},
		{'-', "refs/heads/d", "[deleted]", ""},
		{'=', "refs/heads/e", "[up to date]", ""},
		{'!', "refs/heads/f", "[rejected]", "non-fast-forward"},
		{'!', "refs/heads/g", "[remote rejected]", "hook declined (twice)"},
		{'!', "refs/heads/h", "[remote failure]", "remote failed to report status"},
	}
	rows := parsePush(out)
	if !slices.Equal(rows, want) {
		t.Errorf("%q", rows)
	}
	if !rejected(rows) || rejected(rows[:5]) {
		t.Error("which rows reject")
	}
	if rows := parsePush("To x\nDone\n"); len(rows) > 0 {
		t.Errorf("%q", rows)
	}
}

func FuzzPushRows(f *testing.F) {
	f.Add("!\ta:b\t[rejected] (x)\n")
	f.Add(" \t\t (")
	f.Fuzz(func(t *testing.T, out string) { parsePush(out) })
}
