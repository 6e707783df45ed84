package remotehelper

import (
	"errors"
	"slices"
	"testing"

	"refaudit/internal/remote"
)

func TestStatuses(t *testing.T) {
	rows := []remote.PushRow{
		{Flag: '*', Ref: "refs/heads/new", Summary: "[new branch]"},
		{Flag: '+', Ref: "refs/heads/forced", Reason: "forced update"},
		{Flag: '=', Ref: "refs/heads/same", Summary: "[up to date]"},
		{Flag: '!', Ref: "refs/heads/behind", Summary: "[rejected]", Reason: "non-fast-forward"},
		{Flag: '!', Ref: "refs/heads/lease", Summary: "[rejected]", Reason: "stale info"},
		{Flag: '!', Ref: "refs/heads/atomic", Summary: "[rejected]", Reason: "atomic push failed"},
		{Flag: '!', Ref: "refs/heads/hook", Summary: "[remote rejected]", Reason: "non-fast-forward"},
		{Flag: '!', Ref: "refs/heads/lost", Summary: "[remote failure]", Reason: "remote failed to report status"},
		{Flag: '!', Ref: "refs/heads/bare", Summary: "[rejected]"},
		{Flag: '!', Ref: "refs/heads/said", Summary: "[remote rejected]", Reason: `he said "no"`},
		{Flag: '-', Ref: "refs/heads/gone", Summary: "[deleted]"},
	}
	want := []string{
		"ok refs/heads/new\n",
		"ok refs/heads/forced forced update\n",
		"ok refs/heads/same up to date\n",
		"error refs/heads/behind non-fast forward\n",
		"error refs/heads/lease stale info\n",
		"error refs/heads/atomic atomic push failed\n",
		"error refs/heads/hook non-fast-forward\n",
		"error refs/heads/lost expecting report\n",
		"error refs/heads/bare rejected\n",
		`error refs/heads/said "he said \"no\""` + "\n",
		"ok refs/heads/gone\n",
	}
	var specs, got []string
	for _, r := range rows {
		specs = append(specs, "x:"+r.Ref)
	}
	specs[10] = ":refs/heads/gone"
	for _, s := range statuses(specs, rows, nil) {
		got = append(got, s.line())
	}
	if !slices.Equal(got, want) {
		t.Errorf("\n got %q\nwant %q", got, want)
	}
}

func TestARefOfWhichNothingWasSaid(t *testing.T) {
	specs := []string{"a:refs/heads/a", "b:refs/for/main"}
	row := remote.PushRow{Flag: '*', Ref: "refs/heads/a"}
	if got := statuses(specs, []remote.PushRow{row}, errors.New("hung up")); !got[0].ok || got[1].ok || got[1].why == "" {
		t.Errorf("after an error: %+v", got)
	}
	moved := remote.PushRow{Flag: '*', Ref: "refs/changes/1"}
	got := statuses(specs, []remote.PushRow{row, moved}, nil)
	if got[1].line() != "ok refs/for/main\noption refname refs/changes/1\n" {
		t.Errorf("put somewhere else: %q", got[1].line())
	}
}
