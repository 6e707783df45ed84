package gittest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// Limit is how long one command may take.
const Limit = 2 * time.Minute

// Date is the date of everything, as git reads it from the environment.
const Date = "1700000000 +0000"

// Env is a clean environment: what the machine has, without anything that git reads, and one
// identity and date. More variables are appended; the last one of a name wins.
func Env(more ...string) []string {
	var env []string
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if strings.HasPrefix(name, "GIT_") || strings.HasPrefix(name, "LC_") || strings.HasPrefix(name, "XDG_") ||
			name == "LANG" || name == "LANGUAGE" || name == "HOME" || name == "TZ" || name == "EDITOR" || name == "PAGER" {
			continue
		}
		env = append(env, kv)
	}
	env = append(env,
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_TERMINAL_PROMPT=0",
		"HOME=/nonexistent", "LC_ALL=C", "TZ=UTC",
		"GIT_AUTHOR_NAME=A U Thor", "GIT_AUTHOR_EMAIL=author@example.com", "GIT_AUTHOR_DATE="+Date,
		"GIT_COMMITTER_NAME=C O Mitter", "GIT_COMMITTER_EMAIL=committer@example.com", "GIT_COMMITTER_DATE="+Date)
	return append(env, more...)
}

// Result is how a command ended.
type Result struct {
	Stdout, Stderr string
	Code           int
	// Died tells that a signal ended the command, or a child of it. What it printed is no answer then.
	Died bool
}

// Run runs a program to its end, with a time limit for it and its children. dir and stdin may be "".
func Run(t testing.TB, dir string, env []string, stdin string, argv ...string) Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = dir, env
	if stdin != "" {
		cmd.Stdin = strings.NewReader(stdin)
	}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	ownGroup(cmd)
	cmd.WaitDelay = 5 * time.Second
	err := cmd.Run()
	if cmd.ProcessState == nil || ctx.Err() != nil {
		t.Fatalf("%s: %v (limit %v)\n%s", strings.Join(argv, " "), err, Limit, errs.String())
	}
	r := Result{Stdout: out.String(), Stderr: errs.String(), Code: cmd.ProcessState.ExitCode()}
	switch r.Code {
	case -1, 128 + 4, 128 + 6, 128 + 7, 128 + 8, 128 + 9, 128 + 11: // ILL ABRT BUS FPE KILL SEGV
		r.Died = true
	}
	if strings.Contains(r.Stderr, "died of signal") {
		r.Died = true
	}
	return r
}

// Run runs the program in a folder with the clean environment.
func (p *Program) Run(t testing.TB, dir string, env []string, stdin string, args ...string) Result {
	t.Helper()
	argv := append([]string{p.Path, "-c", "gc.auto=0", "-c", "maintenance.auto=false"}, args...)
	return Run(t, dir, Env(env...), stdin, argv...)
}

// must is the output of a command that has to succeed, without its last newline.
func (r Result) must(t testing.TB, what ...string) string {
	t.Helper()
	if r.Died || r.Code != 0 {
		t.Fatalf("%s: exit %d (died of a signal: %v)\n%s", strings.Join(what, " "), r.Code, r.Died, r.Stderr)
	}
	return strings.TrimSuffix(r.Stdout, "\n")
}

func (r Result) String() string {
	return fmt.Sprintf("exit %d\n%s%s", r.Code, r.Stdout, r.Stderr)
}
