package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"refaudit/reports"
)

// progress tells how far a run is: drawn on a terminal once it takes longer than
// GIT_PROGRESS_DELAY seconds (1), as plain lines where --progress=plain asks for them.
type progress struct {
	refs  atomic.Int64 // looked at so far
	done  atomic.Int64 // repositories
	total atomic.Int64 // repositories known so far
	whole atomic.Bool  // total is all there are

	stop chan struct{}
	idle sync.WaitGroup
}

// How often a terminal is drawn anew, and a plain line is written.
const (
	drawEvery  = 100 * time.Millisecond
	plainEvery = 5 * time.Second
)

// startProgress begins to tell. mode is that of --progress: auto, plain or none.
func startProgress(e env, mode string) (*progress, error) {
	p := &progress{stop: make(chan struct{})}
	delay := time.Second
	if text, ok := e.getenv("GIT_PROGRESS_DELAY"); ok {
		if n, err := strconv.Atoi(text); err == nil && n >= 0 {
			delay = time.Duration(n) * time.Second
		}
	}
	switch {
	case mode == "plain":
		p.tell(plainEvery, plainEvery, func(line string) { fmt.Fprintln(e.stderr, line) }, nil)
	case mode == "auto" && e.errTerminal:
		p.tell(delay, drawEvery, func(line string) { draw(e.stderr, line) }, func() { draw(e.stderr, "") })
	case mode != "auto" && mode != "none":
		return nil, usagef("--progress takes auto, plain or none, not %q", mode)
	}
	return p, nil
}

// draw replaces the line on a terminal.
func draw(w io.Writer, line string) { io.WriteString(w, "\r"+line+"\x1b[K") }

func (p *progress) tell(delay, every time.Duration, say func(string), clear func()) {
	p.idle.Add(1)
	began := time.Now()
	go func() {
		defer p.idle.Done()
		timer := time.NewTimer(delay)
		defer timer.Stop()
		drawn := false
		for {
			select {
			case <-p.stop:
				if drawn && clear != nil {
					clear()
				}
				return
			case <-timer.C:
				say(p.line(time.Since(began)))
				drawn = true
				timer.Reset(every)
			}
		}
	}()
}

// line words the state of the run: how much is done, how fast, and how long it will take.
func (p *progress) line(elapsed time.Duration) string {
	done, total, refs := p.done.Load(), p.total.Load(), p.refs.Load()
	var b strings.Builder
	if p.whole.Load() {
		fmt.Fprintf(&b, "%d of %d repositories", done, total)
	} else {
		fmt.Fprintf(&b, "%d repositories", done)
	}
	fmt.Fprintf(&b, ", %s refs", reports.Thousands(refs))
	if s := elapsed.Seconds(); s > 0 {
		fmt.Fprintf(&b, ", %s refs/s", reports.Thousands(int64(float64(refs)/s)))
	}
	if p.whole.Load() && done > 0 && done < total {
		left := time.Duration(float64(elapsed) / float64(done) * float64(total-done))
		fmt.Fprintf(&b, ", about %v left", left.Round(time.Second))
	}
	return b.String()
}

// end stops the telling and clears the line.
func (p *progress) end() {
	close(p.stop)
	p.idle.Wait()
}
