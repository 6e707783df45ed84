package main

import (
	"os"
	"strings"
	"testing"

	"refaudit/internal/gittest"
)

// A report that can't be written is told once, and the code is that of an incomplete run.
func TestAFullDiskIsToldOnce(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skipf("NOT TESTED, this needs /dev/full: %v", err)
	}
	defer full.Close()
	state := t.TempDir()
	r, _ := gittest.Mismatch(t, gittest.Options{})
	other, _ := gittest.Mismatch(t, gittest.Options{})
	run := func(args ...string) {
		t.Helper()
		cmd := program(t, state, nil, args...)
		var errs strings.Builder
		cmd.Stdout, cmd.Stderr = full, &errs
		if code := exitOf(t, cmd.Run()); code != exitIncomplete || strings.Count(errs.String(), "no space left") != 1 || strings.Count(errs.String(), "\n") != 1 {
			t.Errorf("%q: exit %d: %s", args, code, errs.String())
		}
	}
	for _, format := range []string{"text", "jsonl", "sarif"} {
		run("fix", "--dry-run", "--format="+format, r.Path, other.Path)
	}
	run("fix", "--yes", r.Path)
	ids, err := os.ReadDir(state + "/refaudit/journal")
	if err != nil || len(ids) != 1 {
		t.Fatal(ids, err)
	}
	id, _, _ := strings.Cut(ids[0].Name(), ".")
	run("undo", "--format=jsonl", id)
	out := command(t, nil, map[string]string{"XDG_STATE_HOME": state}, "fix", "--yes", other.Path)
	run("undo", offered(out.out)[0])
}
