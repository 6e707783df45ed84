package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"refaudit/internal/gittest"
	"refaudit/internal/logging"
)

// online makes the programs that a command starts find git, and no configuration of this machine.
func online(t *testing.T, vars map[string]string) (tmp string, env map[string]string) {
	t.Helper()
	git := gittest.Need(t, gittest.Any)
	tmp = t.TempDir()
	env = map[string]string{"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.DevNull, "TMPDIR": tmp, "HOME": tmp,
		"PATH": filepath.Dir(git.Path) + string(os.PathListSeparator) + os.Getenv("PATH")}
	for k, v := range vars {
		env[k] = v
	}
	for k, v := range env {
		t.Setenv(k, v)
	}
	return tmp, env
}

func TestScanRemoteExitCodes(t *testing.T) {
	clean, _ := gittest.Clean(t, gittest.Options{})
	bad, _ := gittest.Mismatch(t, gittest.Options{})
	corrupt := gittest.New(t, gittest.Options{})
	corrupt.FalseTag("bad")
	tmp, env := online(t, nil)
	for _, c := range []struct {
		args []string
		want int
		says string // on stderr
	}{
		{[]string{"--remote", clean.Path}, 0, ""},
		{[]string{"--remote=file://" + clean.Path}, 0, ""},
		{[]string{"--remote", bad.Path}, 1, ""},
		{[]string{"--remote", bad.Path, "--fail-on=never"}, 0, ""},
		{[]string{"--remote", corrupt.Path}, 3, ""},
		{[]string{"--remote", corrupt.Path, "--strict"}, 7, ""},
		{[]string{"--remote", tmp + "/nowhere"}, 3, "nowhere"},
		{[]string{"--remote", ""}, 129, "empty"},
		{[]string{"--remote="}, 129, "empty"},
		{[]string{"--remote", "--upload-pack=x"}, 129, "begins with '-'"},
		{[]string{"--remote=-x"}, 129, "begins with '-'"},
		{[]string{"--remote", "ext::sh -c x"}, 129, "another remote helper"},
		{[]string{"--remote", "http://user:secret@localhost/x"}, 129, "of schemes"},
		{[]string{"--remote", clean.Path, bad.Path}, 129, "no PATH"},
		{[]string{"--remote", clean.Path, "--recursive"}, 129, "no PATH"},
		{[]string{"--remote", clean.Path, "--fail-on=x"}, 129, "--fail-on"},
		{[]string{"--remote", clean.Path, "--max-findings=-1"}, 129, "--max-findings"},
	} {
		r := command(t, nil, env, append([]string{"scan", "--format=jsonl"}, c.args...)...)
		if r.code != c.want || !strings.Contains(r.err, c.says) || strings.Contains(r.err, "secret") {
			t.Errorf("%q: exit %d, want %d; %s", c.args, r.code, c.want, r.err)
		}
		if c.want != exitUsage {
			r.lines(t)
		}
	}
	if left, _ := os.ReadDir(tmp); len(left) > 0 {
		t.Errorf("left in TMPDIR: %v", left)
	}
}

// A server that says nothing is waited for as long as the flags say.
func TestScanRemoteTimeLimits(t *testing.T) {
	clean, _ := gittest.Clean(t, gittest.Options{})
	script := filepath.Join(t.TempDir(), "slow")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nwhile read line; do :; done\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	tmp, env := online(t, map[string]string{"GIT_SSH_COMMAND": script, "GIT_SSH_VARIANT": "ssh"})
	for _, c := range []struct {
		flag, says string
		code       int
	}{
		{"--timeout-per-repo=300ms", "it took too long: more than 300ms", 3},
		{"--max-duration=300ms", "--max-duration is over (300ms)", 3},
		{"--timeout-per-repo=-1s", "takes a time from 0 up", 129},
	} {
		r := command(t, nil, env, "scan", "--format=jsonl", "--remote", "ssh://host"+clean.Path, c.flag)
		if r.code != c.code || !strings.Contains(r.err, c.says) || strings.Contains(r.err, "signal") {
			t.Errorf("%s: exit %d, %s", c.flag, r.code, r.err)
		}
		if c.code != exitUsage {
			if stopped := r.of(t, "summary")[0]["stopped"]; (stopped == "max-duration") != strings.HasPrefix(c.flag, "--max") {
				t.Errorf("%s: stopped %v", c.flag, stopped)
			}
		}
	}
	if left, _ := os.ReadDir(tmp); len(left) > 0 {
		t.Errorf("left in TMPDIR: %v", left)
	}
	for _, flag := range []string{"--timeout-per-repo=1h", "--max-duration=1h"} {
		if r := command(t, nil, env, "scan", "--remote", clean.Path, flag); r.code != 0 {
			t.Errorf("%s: exit %d, %s", flag, r.code, r.err)
		}
	}
	for _, flag := range []string{"--subset=1/2", "--jitter=1s", "--max-age=1h", "--page-cache=use", "--single-instance"} {
		if r := command(t, nil, env, "scan", "--remote", clean.Path, flag); r.code != exitUsage {
			t.Errorf("%s: exit %d, %s", flag, r.code, r.err)
		}
	}
}

func TestScanRemoteTellsWhatAScanTells(t *testing.T) {
	bad, _ := gittest.Mismatch(t, gittest.Options{})
	_, env := online(t, nil)
	gittest.Unchanged(t, bad.Path, func() {
		r := command(t, nil, env, "scan", "--remote", bad.Path, "--format=jsonl")
		f := r.of(t, "finding")
		if len(f) != 1 || f[0]["id"] != "peelMismatch" || f[0]["repo"] != bad.Path || f[0]["cached"] != bad.B || f[0]["expected"] != bad.A || f[0]["oid"] != bad.V1 || f[0]["fixable"] != false {
			t.Errorf("%v", f)
		}
		if s := r.of(t, "summary")[0]; s["peels_checked"] != 2.0 || s["refs"] != 4.0 {
			t.Errorf("%v", s)
		}
		if text := command(t, nil, env, "scan", "--remote", bad.Path); text.code != 1 || !strings.Contains(text.out, "refs/tags/v1") {
			t.Errorf("%+v", text)
		}
	})
}

// git's rules for protocols refuse a URL before anybody is asked.
func TestScanRemoteKeepsToGitsRules(t *testing.T) {
	clean, _ := gittest.Clean(t, gittest.Options{})
	_, env := online(t, map[string]string{"GIT_ALLOW_PROTOCOL": "https"})
	if r := command(t, nil, env, "scan", "--remote", clean.Path, "--format=jsonl"); r.code != exitUsage || !strings.Contains(r.err, "GIT_ALLOW_PROTOCOL") {
		t.Errorf("%+v", r)
	}
}

func TestScanRemoteEndsWithASignal(t *testing.T) {
	clean, _ := gittest.Clean(t, gittest.Options{})
	begun := filepath.Join(t.TempDir(), "begun")
	ssh := clean.Program.SSH(t)
	script := filepath.Join(t.TempDir(), "slow")
	text := "#!/bin/sh\nmkdir " + begun + "-once 2>/dev/null && exec " + strings.TrimPrefix(ssh.Env[0], "GIT_SSH_COMMAND=") + ` "$@"` + "\ntouch " + begun + "\nwhile read line; do :; done\n"
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	tmp, env := online(t, map[string]string{"GIT_SSH_COMMAND": script, "GIT_SSH_VARIANT": "ssh"})
	ctx, cancel := context.WithCancelCause(context.Background())
	go func() {
		for {
			if _, err := os.Stat(begun); err == nil {
				cancel(&signalError{syscall.SIGTERM})
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	r := commandIn(ctx, t.TempDir(), nil, env, "scan", "--remote", "ssh://host"+clean.Path, "--format=jsonl")
	if s := r.of(t, "summary"); r.code != 143 || len(s) != 1 || s[0]["signal"] == nil {
		t.Errorf("%+v", r)
	}
	if left, _ := os.ReadDir(tmp); len(left) > 0 {
		t.Errorf("left in TMPDIR: %v", left)
	}
}

// The name that we are called by decides.
func TestRemoteHelperByName(t *testing.T) {
	for name, want := range map[string]bool{"git-remote-refaudit": true, "/usr/lib/git-core/git-remote-refaudit": true, "git-remote-refaudit.exe": true, "refaudit": false, "git-remote-refaudit2": false, "": false} {
		if isRemoteHelper(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
	helper := func(in string, args ...string) ran {
		var r ran
		var out, errs strings.Builder
		e := env{stdin: strings.NewReader(in), stdout: &out, stderr: &errs, log: logging.Discard(), now: time.Now, dir: t.TempDir(), getenv: os.LookupEnv}
		r.code = run(context.Background(), e, append([]string{"/x/git-remote-refaudit"}, args...))
		r.out, r.err = out.String(), errs.String()
		return r
	}
	if r := helper("capabilities\n\n", "origin", "/srv/a.git"); r.code != 0 || r.out != "fetch\noption\npush\nobject-format\n\n" || r.err != "" {
		t.Errorf("%+v", r)
	}
	if r := helper("capabilities\n\n", "origin", "ext::x"); r.code != 128 || r.out != "" || !strings.HasPrefix(r.err, "fatal: refaudit: URL \"ext::x\" is refused") {
		t.Errorf("%+v", r)
	}
	if r := helper("", "origin"); r.code != exitUsage || !strings.Contains(r.err, "usage:") {
		t.Errorf("%+v", r)
	}
}
