// Package scan is one audit of a repository from start to end. It reads, and never writes.
//
// A finding is reported only after a second look, under fresh state, still shows it: a
// repository is audited beside live writers, and what is half-way there is not wrong.
package scan

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"refaudit/finding"
)

// Level is how deep an audit looks.
type Level uint8

// The levels, each with all that the one before looks at.
const (
	Quick    Level = iota // the ref stores alone; no object is opened
	Standard              // also every ref's object, and every cached and missing peel
	Deep                  // also the inner structure of tables, shadowed records, logs, leftovers
)

var levelNames = []string{"quick", "standard", "deep"}

func (l Level) String() string { return levelNames[l] }

// ParseLevel reads the value of --level.
func ParseLevel(word string) (Level, error) {
	for i, n := range levelNames {
		if n == word {
			return Level(i), nil
		}
	}
	return 0, fmt.Errorf("no level %q: there are quick, standard and deep", word)
}

// State is how the audit of a repository ended.
type State string

// The states: nothing worth a warning, findings, and something that could not be looked at.
const (
	Clean      State = "clean"
	Found      State = "findings"
	Incomplete State = "incomplete"
)

// Options of an audit.
type Options struct {
	Level       Level
	MaxFindings int // more than these are counted, not reported; 0: no limit
	Workers     int // goroutines that look at objects; 0: one a processor
	Now         func() time.Time
	Seen        *atomic.Int64 // counts records as they are judged, for whoever watches; nil: nobody
	// Known tells of findings that somebody knows already: they don't count and aren't reported; nil: none.
	Known func(*finding.Finding) bool
	// Pace is called now and then, and may take its time; nil: as fast as it goes.
	Pace func(context.Context) error
}

// Result is how the audit of one repository ended.
type Result struct {
	State      State
	Refs       int64
	Peels      int64 // tags in packed-refs and tables whose cached or missing peel was compared
	Severities map[finding.Severity]int64
	IDs        map[finding.ID]int64
	Hidden     int64 // findings that MaxFindings kept back
	Known      int64 // findings that Options.Known knew
	// Unchanged is when the audit was made that gave this, if not just now: the repository is as it was.
	Unchanged time.Time
	Unread    []string // what could not be looked at
	Notices   []string
}

// Add counts a finding.
func (r *Result) Add(f *finding.Finding) {
	if r.Severities == nil {
		r.Severities, r.IDs = map[finding.Severity]int64{}, map[finding.ID]int64{}
	}
	r.Severities[f.Severity]++
	r.IDs[f.ID]++
}

// Count is how many findings are at least this severe.
func (r *Result) Count(least finding.Severity) (n int64) {
	for s, k := range r.Severities {
		if s >= least {
			n += k
		}
	}
	return n
}

// Repository audits one repository and reports what is wrong with it; an error from report
// stops it. The error it gives tells why the audit could not be made at all.
func Repository(ctx context.Context, target *Target, policy *Policy, o Options, report func(*finding.Finding) error) (Result, error) {
	res := Result{Severities: map[finding.Severity]int64{}, IDs: map[finding.ID]int64{}}
	first, err := lookOnce(ctx, target, policy, o, nil, func(*finding.Finding) error { return nil })
	if err != nil {
		return res, err
	}
	tell := func(f *finding.Finding) error {
		if o.Known != nil && o.Known(f) {
			res.Known++
			return nil
		}
		res.Add(f)
		if o.MaxFindings > 0 && res.total() > int64(o.MaxFindings) {
			res.Hidden++
			return nil
		}
		return report(f)
	}
	last := first
	if len(first.seen) > 0 {
		if last, err = lookOnce(ctx, target, policy, o, first, tell); err != nil {
			return res, err
		}
	}
	for i := range last.certain {
		if err := tell(&last.certain[i]); err != nil {
			return res, err
		}
	}
	res.Refs, res.Peels = first.refs, first.peels
	res.Unread = last.notRead
	res.Notices = append(append([]string{}, policy.Notices...), policy.Leftovers()...)
	switch {
	case len(res.Unread) > 0:
		res.State = Incomplete
	case res.Count(finding.Warn) > 0:
		res.State = Found
	default:
		res.State = Clean
	}
	return res, nil
}

func (r *Result) total() (n int64) {
	for _, k := range r.Severities {
		n += k
	}
	return n
}
