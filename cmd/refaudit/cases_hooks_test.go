package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"refaudit/internal/gittest"
)

// pushing writes objects as a push does, into a quarantine of the repository, and gives a hook's environment.
func (l *lab) pushing(t *testing.T) (vars map[string]string, object func(kind, text string) string) {
	t.Helper()
	vars = quarantine(t, l.Repo)
	vars["XDG_STATE_HOME"] = l.vars["XDG_STATE_HOME"]
	return vars, func(kind, text string) string {
		l.t.Helper()
		var env []string
		for k, v := range vars {
			env = append(env, k+"="+v)
		}
		res := l.Program.Run(l.t, l.Path, env, text, "hash-object", "-t", kind, "-w", "--stdin", "--literally")
		if res.Code != 0 {
			l.t.Fatal(res)
		}
		return strings.TrimSpace(res.Stdout)
	}
}

// in runs a command where a hook runs.
func (l *lab) in(vars map[string]string, args ...string) ran {
	return commandIn(context.Background(), l.Path, nil, vars, args...)
}

// git-lfs issue 4685, atlassian-external-hooks issue 50, spokes-receive-pack PR 37: in pre-receive the new objects lie
// elsewhere, and the repository itself is "the alternate".
func TestC56InAHookTheRepositoryIsTheAlternate(t *testing.T) {
	inFormats(t, gittest.AllFormats, func(t *testing.T, l *lab) {
		whole := l.figures(0)
		vars, object := l.pushing(t)
		tagger := "tagger A <a@x> 1700000000 +0000"
		good := object("tag", "object "+l.B+"\ntype commit\ntag new\n"+tagger+"\n\nm\n")
		nul := object("tag", "object "+l.B+"\ntype commit\ntag nul\ntagger A\x00 <a@x> 1700000000 +0000\n\nm\n") // git lets it in
		lie := object("tag", "object "+l.B+"\ntype tree\ntag lie\n"+tagger+"\n\nm\n")
		nested := object("tag", "object "+good+"\ntype tag\ntag nested\n"+tagger+"\n\nm\n")
		row := func(id, ref string) string { return l.zero() + " " + id + " " + ref }
		gittest.Unchanged(t, l.Path, func() {
			if a := preReceive(l.Repo, vars, row(good, "refs/tags/new"), row(nested, "refs/tags/nested"), row(l.B, "refs/heads/x")); a.code != 0 || a.out+a.err != "" {
				t.Errorf("sound tags, new ones and of the repository: %+v", a)
			}
			a := preReceive(l.Repo, vars, row(good, "refs/tags/new"), row(nul, "refs/tags/nul"), row(lie, "refs/tags/lie"))
			if a.code != 1 || strings.Count(a.err, "\n") != 2 || !strings.Contains(a.err, "refs/tags/nul") || !strings.Contains(a.err, "refs/tags/lie") || !strings.Contains(a.err, "nulInHeader") {
				t.Errorf("bad tags: %d %q", a.code, a.err)
			}
			if a := preReceive(l.Repo, map[string]string{"GIT_DIR": "."}, row(good, "refs/tags/new")); a.err == "" {
				t.Errorf("without the quarantine its objects are not found, and that is said: %+v", a)
			}
			if a := l.in(vars, "scan", "--format=jsonl"); a.code != 0 {
				t.Errorf("scan: %d %s%s", a.code, a.out, a.err)
			}
			// The real folder is an alternate here, and its objects are our own.
			a = l.in(vars, "size", "--format=jsonl", "--exclude-alternates")
			u := a.of(t, "usage")
			if a.code != 0 || len(u) != 1 || u[0]["own"] != whole["own"] || u[0]["reachable"] != whole["reachable"] || number(u[0]["own"]) == "0" {
				t.Errorf("size: %d %s, and outside the hook %v", a.code, a.out, whole)
			}
		})
	})
}

// git commit d8f4481c4f: what is written from inside the quarantine may name objects that are thrown away.
func TestC57NoRewritingInsideTheQuarantine(t *testing.T) {
	inFormats(t, gittest.AllFormats, func(t *testing.T, l *lab) {
		bad := l.records()
		bad[len(bad)-1].peel = l.A
		l.put(bad...)
		vars, _ := l.pushing(t)
		gittest.Unchanged(t, l.Path, func() {
			for _, args := range [][]string{{"fix", "--yes"}, {"fix", "--yes", l.Path}, {"fix", "--yes", "--compact"}, {"fix", "--yes", "--drop-corrupt-tags"}, {"fix", "--yes", "--rebuild-tables-list"}} {
				if a := l.in(vars, args...); a.code != exitRefused || !strings.Contains(a.err, "quarantine") {
					t.Errorf("%v: %d %s", args, a.code, a.err)
				}
			}
			if a := l.in(vars, "scan"); a.code != 1 {
				t.Errorf("scan: %d %s%s", a.code, a.out, a.err)
			}
		})
		l.fixes(0)
		undo := l.run("scan") // the journal of that repair is for later: not even an undo is made there
		entries, _ := filepath.Glob(filepath.Join(l.vars["XDG_STATE_HOME"], "refaudit", "journal", "*"))
		if undo.code != 0 || len(entries) == 0 {
			t.Fatalf("%d, journal %v", undo.code, entries)
		}
		id, _, _ := strings.Cut(filepath.Base(entries[0]), ".")
		gittest.Unchanged(t, l.Path, func() {
			if a := l.in(vars, "undo", id); a.code != exitRefused {
				t.Errorf("undo %s: %d %s%s", id, a.code, a.out, a.err)
			}
		})
	})
}

// nixpkgs issue 317865: whose the repository is. Discovery and repairs ask, an explicit path that is only read does not.
func TestC59WhoseRepositoryItIs(t *testing.T) {
	inFormats(t, gittest.AllFormats, func(t *testing.T, l *lab) {
		bad := l.records()
		bad[len(bad)-1].peel = l.A
		l.put(bad...)
		mark := filepath.Join(t.TempDir(), "mark")
		l.Git("config", "core.alternateRefsCommand", "touch "+mark+" #")
		l.Git("config", "core.fsmonitor", "touch "+mark+" #")
		other := map[string]string{"GIT_TEST_ASSUME_DIFFERENT_OWNER": "1", "XDG_STATE_HOME": l.vars["XDG_STATE_HOME"]}
		gittest.Unchanged(t, l.Path, func() {
			for args, want := range map[string]int{
				"scan":                  3, // found by where we stand
				"size":                  3,
				"scan " + l.Path:        1,
				"scan --git-dir .":      1,
				"size " + l.Path:        0,
				"fix --yes " + l.Path:   exitRefused,
				"fix --yes":             exitRefused,
				"fix --yes --git-dir .": exitRefused,
			} {
				a := l.in(other, strings.Fields(args)...)
				if a.code != want {
					t.Errorf("%s: %d, want %d: %s%s", args, a.code, want, a.out, a.err)
				}
				if (want == 3 || want == exitRefused) && !strings.Contains(a.err, "own") && !strings.Contains(a.err, "somebody else") {
					t.Errorf("%s: nothing is said of the owner: %s", args, a.err)
				}
			}
			dir := map[string]string{"GIT_DIR": l.Path, "GIT_TEST_ASSUME_DIFFERENT_OWNER": "1"}
			if a := l.in(dir, "scan"); a.code != 1 {
				t.Errorf("GIT_DIR: %d %s", a.code, a.err)
			}
			home := t.TempDir()
			other["HOME"] = home
			os.WriteFile(filepath.Join(home, ".gitconfig"), fmt.Appendf(nil, "[safe]\n\tdirectory = %s\n", l.Path), 0o644)
			if a := l.in(other, "scan"); a.code != 1 {
				t.Errorf("safe.directory: %d %s", a.code, a.err)
			}
		})
		if _, err := os.Stat(mark); err == nil {
			t.Error("a command of the repository's configuration was run")
		}
		if a := l.in(other, "fix", "--yes"); a.code != 0 {
			t.Errorf("safe.directory, fix: %d %s%s", a.code, a.out, a.err)
		}
	})
}
