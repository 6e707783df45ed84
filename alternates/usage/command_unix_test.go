//go:build unix

package usage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"refaudit/internal/gittest"
	"refaudit/repo"
)

// A command that hangs ends at its limit, or when we end, and what it has started with it: the shell is not all of it.
func TestACommandThatHangs(t *testing.T) {
	gittest.Need(t, gittest.Newest)
	f := forkOf(t, plain(t))
	defer func(old time.Duration) { commandLimit = old }(commandLimit)
	for _, text := range []string{"sleep 1234 #", "exec sleep 1234 #", "sleep 1234 & exit 0 #"} {
		for _, stopped := range []bool{false, true} {
			fifo := f.File("alive")
			os.Remove(fifo)
			if err := syscall.Mkfifo(fifo, 0o600); err != nil {
				t.Fatal(err)
			}
			alive, err := os.OpenFile(fifo, os.O_RDONLY|syscall.O_NONBLOCK, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer alive.Close()
			commandLimit = 300 * time.Millisecond
			ctx, cancel := context.WithCancel(t.Context())
			if stopped {
				commandLimit = time.Hour
				time.AfterFunc(300*time.Millisecond, cancel)
			}
			r, err := repo.Open(f.Path, withCommand("exec 9>"+fifo+"; echo >&9; "+text).Repo)
			if err != nil {
				t.Fatal(err)
			}
			s := NewSession(2)
			start := time.Now()
			u, err := s.Measure(ctx, r, Options{})
			took := time.Since(start)
			cancel()
			s.Close()
			name := fmt.Sprintf("%s stopped %v", text, stopped)
			switch {
			case took > 10*time.Second:
				t.Errorf("%s: took %v", name, took)
			case stopped && !errors.Is(err, context.Canceled):
				t.Errorf("%s: error %v", name, err)
			case !stopped && (err != nil || !strings.Contains(u.Unknown[Own], "takes longer than 300ms") || u.Unknown[Reachable] != ""):
				t.Errorf("%s: error %v, usage %+v", name, err, u)
			}
			b := make([]byte, 9)
			if n, err := alive.Read(b); n != 1 || err != nil {
				t.Errorf("%s: the command was not run: %v", name, err)
			}
			alive.SetReadDeadline(time.Now().Add(5 * time.Second))
			if _, err := alive.Read(b); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%s: the command is still there: %v", name, err)
			}
		}
	}
}
