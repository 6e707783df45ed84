package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"refaudit/finding"
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

// How often a terminal is drawn anew, a plain line is written, and a record for machines.
const (
	drawEvery  = 100 * time.Millisecond
	plainEvery = 5 * time.Second
)

var recordEvery = 5 * time.Second // tests don't wait so long

func checkProgress(mode string) error {
	if mode != "auto" && mode != "plain" && mode != "none" {
		return usagef("--progress takes auto, plain or none, not %q", mode)
	}
	return nil
}

// startProgress begins to tell. mode is that of --progress: auto, plain or none. record, if it isn't nil,
// gets records for machines as well, unless the mode is none.
func startProgress(e env, mode string, record func(*reports.Progress)) *progress {
	p := &progress{stop: make(chan struct{})}
	delay := time.Second
	if text, ok := e.getenv("GIT_PROGRESS_DELAY"); ok {
		if n, err := strconv.Atoi(text); err == nil && n >= 0 {
			delay = time.Duration(n) * time.Second
		}
	}
	switch {
	case mode == "plain":
		p.tell(plainEvery, plainEvery, func(d time.Duration) { fmt.Fprintln(e.stderr, p.line(d)) }, nil)
	case mode == "auto" && e.errTerminal:
		p.tell(delay, drawEvery, func(d time.Duration) { draw(e.stderr, p.line(d)) }, func() { draw(e.stderr, "") })
	}
	if record != nil && mode != "none" {
		p.tell(recordEvery, recordEvery, func(elapsed time.Duration) { record(p.state(elapsed)) }, nil)
	}
	return p
}

// state is how far the run is, for machines.
func (p *progress) state(elapsed time.Duration) *reports.Progress {
	r := &reports.Progress{Done: int(p.done.Load()), Refs: p.refs.Load(), Elapsed: elapsed}
	if p.whole.Load() {
		r.Total = int(p.total.Load())
	}
	return r
}

// draw replaces the line on a terminal.
func draw(w io.Writer, line string) { io.WriteString(w, "\r"+line+"\x1b[K") }

func (p *progress) tell(delay, every time.Duration, say func(elapsed time.Duration), clear func()) {
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
				say(time.Since(began))
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
		b.WriteString(finding.Count(done, "repository", "repositories"))
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
