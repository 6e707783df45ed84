//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"refaudit/internal/gittest"
)

// tableLocks are the locks of tables that there are in a repository's stack.
func tableLocks(r *gittest.Repo) []string {
	names, _ := filepath.Glob(r.File("reftable/*.ref.lock"))
	return names
}

// The lock of a table that a killed compaction left is named by the next fix and by a deep scan, and
// removed where that is asked for, whether its table is gone or not.
func TestLocksOfTablesAreNamedAndCleared(t *testing.T) {
	r, _ := gittest.Clean(t, gittest.Options{RefFormat: gittest.Reftable})
	vars := map[string]string{"XDG_STATE_HOME": t.TempDir()}
	const gone = "0x000000000001-0x000000000002-0badf00d.ref"
	old := time.Now().Add(-2 * time.Hour)
	stood := filepath.Base(r.Tables()[0])
	for _, table := range []string{gone, stood} {
		name := "reftable/" + table + ".lock"
		r.WriteFile(name, nil)
		os.Chtimes(r.File(name), old, old)
	}
	for _, args := range []string{"--dry-run", "--yes"} {
		out := command(t, nil, vars, "fix", args, r.Path)
		for _, table := range []string{gone, stood} {
			if out.code != 0 || !strings.Contains(out.out, "reftable/"+table+".lock") {
				t.Errorf("fix %s does not name the lock of %s: %d %s%s", args, table, out.code, out.out, out.err)
			}
		}
	}
	if deep := command(t, nil, vars, "scan", "--level=deep", "--format=jsonl", r.Path); strings.Count(deep.out, `"staleLock"`) < 2 || !strings.Contains(deep.out, gone+".lock") {
		t.Errorf("a deep scan says\n%s", deep.out)
	}
	young := "reftable/0x000000000001-0x000000000003-0badf00d.ref.lock"
	r.WriteFile(young, nil)
	out := command(t, nil, vars, "fix", "--yes", "--stale-locks", "--older-than=1h", r.Path)
	if left := tableLocks(r); out.code != 0 || fmt.Sprint(left) != fmt.Sprint([]string{r.File(young)}) {
		t.Errorf("exit %d, left %v: %s%s", out.code, left, out.out, out.err)
	}
}

// kill -9 of a compaction at each rename and removal: the next fix clears what is certainly dead, names
// what is not, and --stale-locks takes that away too.
func TestAKilledCompactionLeavesNothingForGood(t *testing.T) {
	tracer := strace(t)
	kills, cleared := 0, false
	for _, call := range []string{"renameat", "unlinkat"} {
		for n := 1; n < 20; n++ {
			r, want := gittest.Mismatch(t, gittest.Options{RefFormat: gittest.Reftable})
			state := t.TempDir()
			vars := map[string]string{"XDG_STATE_HOME": state}
			under := []string{tracer, "-f", "-qq", "-o", "/dev/null", "-e", "trace=" + call, "-e", "inject=" + call + ":signal=SIGKILL:when=" + strconv.Itoa(n)}
			code := exitOf(t, program(t, state, under, "fix", "--yes", "--compact", r.Path).Run())
			if code == 0 {
				break
			}
			kills++
			what := fmt.Sprintf("killed at %s %d", call, n)
			os.Remove(r.File("reftable/tables.list.lock"))
			out := command(t, nil, vars, "fix", "--yes", r.Path)
			if got := served(t, r, r.Program)[string(want[0].Ref)]; got != want[0].Expected || out.code != 0 {
				t.Errorf("%s: a later fix gives %d and %v: %s%s", what, out.code, got, out.out, out.err)
			}
			locks := tableLocks(r)
			for _, lock := range locks {
				if _, err := os.Stat(strings.TrimSuffix(lock, ".lock")); err != nil {
					t.Errorf("%s: a later fix leaves %s, of a table that is gone: %s", what, lock, out.out)
				}
			}
			if len(locks) == 0 || cleared { // once is enough: it takes two seconds
				continue
			}
			cleared = true
			out = command(t, nil, vars, "fix", "--yes", "--stale-locks", "--older-than=1ms", r.Path)
			if locks := tableLocks(r); len(locks) > 0 {
				t.Errorf("%s: left %v: %s", what, locks, out.out)
			}
		}
	}
	if kills < 4 || !cleared {
		t.Errorf("killed only %d times, or never while tables were locked", kills)
	}
}

// A repository whose own configuration says to wait for ever, and in which a lock was left, does not keep the others
// from being mended.
func TestNoRepositoryMakesTheRunWaitForEver(t *testing.T) {
	defer func(was time.Duration) { longestWait = was }(longestWait)
	longestWait = 50 * time.Millisecond
	for _, c := range []struct {
		o             gittest.Options
		setting, lock string
		args          []string
	}{
		{gittest.Options{}, "core.packedRefsTimeout", "packed-refs.lock", nil},
		{gittest.Options{RefFormat: gittest.Reftable}, "reftable.lockTimeout", "reftable/tables.list.lock", nil},
		{gittest.Options{}, "core.filesRefLockTimeout", "refs/tags/bad.lock", []string{"--drop-corrupt-tags"}},
	} {
		for _, wait := range []string{"-1", "2000000000"} {
			root := t.TempDir()
			r, _ := gittest.Mismatch(t, c.o)
			if c.args != nil {
				r, _ = gittest.FalseType(t, c.o)
			}
			r.Git("config", c.setting, wait)
			r.WriteFile(c.lock, nil)
			other, want := gittest.Mismatch(t, c.o)
			if err := errors.Join(os.Rename(r.Path, filepath.Join(root, "a.git")), os.Rename(other.Path, filepath.Join(root, "b.git"))); err != nil {
				t.Fatal(err)
			}
			other.Path = filepath.Join(root, "b.git")
			args := append([]string{"fix", "--yes", "-r", "-j", "1"}, c.args...)
			vars := map[string]string{"XDG_STATE_HOME": t.TempDir()}
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			out := commandIn(ctx, root, nil, vars, append(args, root)...)
			cancel()
			if out.code == 0 || c.args == nil && out.code != exitLocked || !strings.Contains(out.err, c.setting+" says to wait longer") || !strings.Contains(out.err, "--lock-timeout") || !strings.Contains(out.err, c.lock) {
				t.Errorf("%s=%s: exit %d: %s", c.setting, wait, out.code, out.err)
			}
			if got := served(t, other, other.Program)[string(want[0].Ref)]; got != want[0].Expected {
				t.Errorf("%s=%s: the other repository was not mended: %v", c.setting, wait, got)
			}
			out = command(t, nil, vars, append(append(args, "--lock-timeout=1ms"), root)...)
			if out.code == 0 || strings.Contains(out.err, "says to wait") {
				t.Errorf("%s=%s, --lock-timeout: exit %d: %s", c.setting, wait, out.code, out.err)
			}
		}
	}
}
