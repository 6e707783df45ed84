package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"refaudit/internal/gittest"
)

// What we hand out for cron and systemd has to be what the program takes.
func TestTheExamplesRun(t *testing.T) {
	for file, pattern := range map[string]string{
		"cron/refaudit":                 `(?m)^[0-9].* git  refaudit (.*)$`,
		"systemd/refaudit-scan.service": `(?m)^ExecStart=/usr/bin/refaudit (.*)$`,
	} {
		text, err := os.ReadFile(filepath.Join("..", "..", "contrib", filepath.FromSlash(file)))
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1)
		if len(found) == 0 {
			t.Errorf("%s runs nothing", file)
		}
		root, state := t.TempDir(), t.TempDir()
		gittest.InitAt(t, gittest.Options{}, filepath.Join(root, "a.git"))
		for _, m := range found {
			args := strings.Fields(strings.NewReplacer("/srv/git", root, "%S/refaudit", state, "/var/lib/refaudit", state, "--jitter=30m", "--jitter=1ms").Replace(m[1]))
			if r := later(t, 0, args...); r.code != 0 || r.out+r.err != "" {
				t.Errorf("%s: %s: exit %d: %s%s", file, m[1], r.code, r.out, r.err)
			}
		}
		if left, _ := filepath.Glob(filepath.Join(state, "audits", "*")); len(left) == 0 {
			t.Errorf("%s remembers nothing", file)
		}
	}
}

func TestSystemdTakesTheUnits(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("there is no systemd-analyze")
	}
	dir := t.TempDir()
	names, err := filepath.Glob(filepath.Join("..", "..", "contrib", "systemd", "*"))
	if err != nil || len(names) < 2 {
		t.Fatal(names, err)
	}
	args := []string{"verify", "--man=no"}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		// It has to be a program that is there.
		file := filepath.Join(dir, filepath.Base(name))
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(text), "/usr/bin/refaudit", "/bin/true")), 0o644); err != nil {
			t.Fatal(err)
		}
		args = append(args, file)
	}
	if out, err := exec.Command(analyze, args...).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v: %s", err, out)
	}
}
