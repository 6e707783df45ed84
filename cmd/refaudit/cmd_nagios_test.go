package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"refaudit/internal/gittest"
)

// One line: a word, text, a bar, and values as Nagios reads them.
var nagiosLine = regexp.MustCompile(`^REFAUDIT (OK|WARNING|CRITICAL|UNKNOWN): [^|\n]+ \| ([a-z]+=[0-9.]+s?;[0-9.]*;[0-9.]*;[0-9.]*)( [a-z]+=[0-9.]+s?;[0-9.]*;[0-9.]*;[0-9.]*)*\n$`)

func TestNagiosLooksNow(t *testing.T) {
	clean, _ := gittest.Clean(t, gittest.Options{})
	wrong, _ := gittest.Mismatch(t, gittest.Options{})
	warns, _ := gittest.MissingPeel(t, gittest.Options{})
	broken, _ := gittest.TableCrc(t, gittest.Options{RefFormat: gittest.Reftable})
	future := gittest.New(t, gittest.Options{})
	future.Git("config", "core.repositoryFormatVersion", "9")
	bar := filepath.Join(t.TempDir(), "a|b.git")
	if err := os.Rename(future.Path, bar); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args         string
		word         string
		code, nagios int
		says         string
	}{
		{clean.Path, "OK", 0, 0, "0 errors, 0 warnings, 0 of 1 repositories"},
		{warns.Path, "WARNING", 0, 1, "1 warning, "},
		{wrong.Path, "CRITICAL", 1, 2, wrong.Path},
		{broken.Path, "CRITICAL", 7, 2, "1 of 1 repositories could not be read whole"},
		{bar, "UNKNOWN", 3, 3, `a\x7cb.git`},
		{bar, "UNKNOWN", 3, 3, "version 9, and the highest"},
		{bar + " " + warns.Path, "UNKNOWN", 3, 3, "1 warning, "},
		{bar + " " + warns.Path, "UNKNOWN", 3, 3, "version 9, and the highest"},
		{"--recursive " + t.TempDir(), "UNKNOWN", 3, 3, "1 of 1 repositories could not be read whole"},
		{clean.Path + " --max-duration=1ns", "UNKNOWN", 3, 3, "--max-duration is over"},
	} {
		for _, codes := range []bool{false, true} {
			args, want := append([]string{"nagios"}, strings.Fields(c.args)...), c.code
			if codes {
				args, want = append(args, "--nagios-codes"), c.nagios
			}
			r := command(t, nil, nil, args...)
			m := nagiosLine.FindStringSubmatch(r.out)
			if m == nil || m[1] != c.word || r.code != want || !strings.Contains(r.out, c.says) || r.err != "" {
				t.Errorf("%v: exit %d, want %d and %s: %q %q", args, r.code, want, c.word, r.out, r.err)
			}
		}
	}
	for _, args := range []string{"--level=deeper", "--max-age=0s", "--no-such"} {
		if r := command(t, nil, nil, "nagios", args); r.code != 129 || r.out != "" {
			t.Errorf("%s: exit %d: %s", args, r.code, r.out)
		}
	}
}

func TestNagiosTellsWhatScansHaveNoted(t *testing.T) {
	dir := t.TempDir()
	wrong, _ := gittest.Mismatch(t, gittest.Options{})
	clean, _ := gittest.Clean(t, gittest.Options{})
	nagios := func(passed time.Duration, word, says string) {
		t.Helper()
		r := later(t, passed, "nagios", "--nagios-codes", "--state", dir)
		m := nagiosLine.FindStringSubmatch(r.out)
		if m == nil || m[1] != word || !strings.Contains(r.out, says) || r.code != map[string]int{"OK": 0, "CRITICAL": 2, "UNKNOWN": 3}[word] {
			t.Errorf("exit %d, want %s: %q %q", r.code, word, r.out, r.err)
		}
	}
	nagios(0, "UNKNOWN", "the last scan")
	later(t, 0, "scan", "--state", dir, clean.Path)
	nagios(time.Hour, "OK", "0 of 1 repositories")
	nagios(27*time.Hour, "UNKNOWN", "the last scan ended 27h")
	nagios(-time.Minute, "OK", "0 of 1 repositories")
	nagios(-27*time.Hour, "UNKNOWN", "the last scan ended 27h0m0s from now")
	later(t, 0, "scan", "--state", dir, wrong.Path)
	nagios(time.Hour, "CRITICAL", wrong.Path)
	if err := os.RemoveAll(wrong.Path); err != nil {
		t.Fatal(err)
	}
	nagios(time.Hour, "OK", "0 of 1 repositories")
	ctx, cancel := cancelled(syscall.SIGTERM)
	defer cancel()
	commandIn(ctx, dir, nil, nil, "scan", "--state", dir, clean.Path)
	nagios(time.Hour, "UNKNOWN", "the last scan was cut short: terminated")
	later(t, 0, "scan", "--state", dir, clean.Path)
	future := gittest.New(t, gittest.Options{})
	future.Git("config", "core.repositoryFormatVersion", "9")
	later(t, 0, "scan", "--state", dir, future.Path)
	nagios(time.Hour, "UNKNOWN", "version 9, and the highest")
	shards, _ := filepath.Glob(filepath.Join(dir, "audits", "*"))
	os.WriteFile(shards[0], []byte("x"), 0o600)
	nagios(time.Hour, "UNKNOWN", "is damaged")
}
