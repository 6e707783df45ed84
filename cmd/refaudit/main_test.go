package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"refaudit/internal/gittest"
	"refaudit/internal/logging"
)

// Whatever writes waits until signals are caught; a scan or size of one repository, which writes all at once, does not.
func TestWritersWaitUntilSignalsAreCaught(t *testing.T) {
	r := gittest.New(t, gittest.Options{})
	for _, c := range []struct {
		args  string
		waits bool
	}{
		{"scan REPO", false},
		{"size REPO", false},
		{"scan --format=jsonl REPO REPO", true}, // what is known of the first is written while the second is read
		{"size REPO REPO", true},
		{"scan -o OUT REPO", true},
		{"size --metrics-textfile OUT REPO", true},
		{"scan --write-baseline OUT REPO", true},
		{"scan --changed-only --state STATE REPO", true},
		{"fix --yes REPO", true},
		{"undo REPO", true},
		{"guard --state STATE REPO", true},
		{"hook install REPO", true},
	} {
		dir := t.TempDir()
		held := &signals{need: make(chan struct{}), armed: make(chan struct{})}
		e := env{stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard, log: logging.Discard(), now: time.Now, dir: dir, signals: held,
			getenv: func(name string) (string, bool) {
				v, ok := map[string]string{"HOME": dir, "XDG_STATE_HOME": filepath.Join(dir, "state"), "GIT_CONFIG_NOSYSTEM": "1"}[name]
				return v, ok
			}}
		words := strings.NewReplacer("REPO", r.Path, "OUT", filepath.Join(dir, "out"), "STATE", filepath.Join(dir, "state")).Replace(c.args)
		done := make(chan int, 1)
		go func() { done <- run(context.Background(), e, append([]string{"refaudit"}, strings.Fields(words)...)) }()
		if !c.waits {
			if code := <-done; code != exitOK {
				t.Errorf("%s: exit code %d", c.args, code)
			}
			continue
		}
		select {
		case code := <-done:
			t.Errorf("%s: did not wait; exit code %d", c.args, code)
			continue
		case <-time.After(100 * time.Millisecond):
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%s: wrote %v before, error %v", c.args, left, err)
		}
		close(held.armed)
		<-done
	}
}
