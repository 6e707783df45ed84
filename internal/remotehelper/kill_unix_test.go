//go:build unix

package remotehelper

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"refaudit/internal/gittest"
)

// slow is a server that stops in the middle, and tells by a file that it has begun.
func (w *world) slow(t *testing.T) (env []string, begun string) {
	t.Helper()
	s := w.src.Program.SSH(t)
	begun = w.in("begun")
	real := strings.TrimPrefix(s.Env[0], "GIT_SSH_COMMAND=")
	script := filepath.Join(t.TempDir(), "slow")
	text := "#!/bin/sh\ntest -e " + w.in("lists") + " || { touch " + w.in("lists") + "; exec " + real + ` "$@"; }` + "\ntouch " + begun + "\nwhile read line; do :; done\n"
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return append(w.env, "GIT_SSH_COMMAND="+script, "GIT_SSH_VARIANT=ssh"), begun
}

func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not in 20 s", what)
		}
	}
}

// Killed in the middle of a fetch, git's helper cleans up and changes nothing: also when git is gone
// at once and has told nobody.
func TestKilledInTheMiddle(t *testing.T) {
	for name, sig := range map[string]syscall.Signal{"SIGKILL": syscall.SIGKILL, "SIGTERM": syscall.SIGTERM} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, gittest.Options{})
			w.silent("", "clone", "-q", w.url(), "c")
			w.commit(w.src.B, "new")
			env, begun := w.slow(t)
			w.unchanged("c/.git", func() {
				cmd := exec.Command(w.git.Path, "fetch", "-q", "refaudit::ssh://host"+w.src.Path, "main:x")
				cmd.Dir, cmd.Env = w.in("c"), gittest.Env(env...)
				cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				defer syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
				await(t, "the fetch has begun", func() bool { _, err := os.Stat(begun); return err == nil })
				quarantines := func() int { l, _ := filepath.Glob(w.in("c/.git/objects/tmp_objdir-*")); return len(l) }
				if quarantines() != 1 {
					t.Errorf("%d quarantines", quarantines())
				}
				cmd.Process.Signal(sig)
				cmd.Wait()
				await(t, "the quarantine is gone", func() bool { return quarantines() == 0 })
			})
		})
	}
}
