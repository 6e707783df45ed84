package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"refaudit/finding"
	"refaudit/internal/fleet"
	"refaudit/reports"
	"refaudit/scan"
)

type nagiosOptions struct {
	targets
	stateOptions
	level  string
	limit  time.Duration
	maxAge time.Duration
	codes  bool
}

func nagiosCommand(e env) *cli.Command {
	var o nagiosOptions
	return &cli.Command{
		Name:      "nagios",
		Usage:     "one line for Nagios, Icinga and their like, with performance data",
		ArgsUsage: "[PATH…]",
		Description: "Without a PATH it tells what scans with the same --state have noted, and reads no repository. The\n" +
			"line says OK, WARNING, CRITICAL (errors) or UNKNOWN (something could not be looked at, or the last\n" +
			"scan is too old). The exit code is refaudit's own: 0, 1 errors, 3 not looked at, 7 both; Nagios\n" +
			"wants --nagios-codes: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN.",
		Flags: append(append(o.targets.flags(), o.stateOptions.flags()...),
			&cli.StringFlag{Name: "level", Value: "standard", Destination: &o.level, Usage: "with a PATH, how deep to look: quick, standard or deep"},
			&cli.DurationFlag{Name: "max-duration", Value: 50 * time.Second, Destination: &o.limit, Usage: "with a PATH, be done in `DUR`: Nagios waits for 60 s"},
			&cli.DurationFlag{Name: "max-age", Value: 26 * time.Hour, Destination: &o.maxAge, Usage: "without a PATH, the last scan must not be older than `DUR`"},
			&cli.BoolFlag{Name: "nagios-codes", Destination: &o.codes, Usage: "exit with the codes of Nagios, where 2 is CRITICAL"},
		),
		Action: func(c *cli.Context) error {
			o.paths = c.Args().Slice()
			return runNagios(c.Context, e, o)
		},
	}
}

// status is one of Nagios' four.
type status struct {
	word   string
	code   int // Nagios'
	weight int // which of several is told
}

var (
	nagiosOK       = status{"OK", 0, 0}
	nagiosWarning  = status{"WARNING", 1, 1}
	nagiosUnknown  = status{"UNKNOWN", 3, 2}
	nagiosCritical = status{"CRITICAL", 2, 3}
)

// nagiosResult is a service's state, as it is told.
type nagiosResult struct {
	errors, warnings, incomplete, repositories int64

	status status
	code   int      // refaudit's own, where the numbers don't make it
	why    []string // beside the numbers
	bad    []string // repositories
	blind  string   // the first of them by name that could not be read whole, and why
	reason string
	perf   []string
}

// unread notes a repository that could not be read whole.
func (n *nagiosResult) unread(repo, reason string) {
	if n.blind == "" || repo < n.blind {
		first, _, _ := strings.Cut(reason, "\n")
		n.blind, n.reason = repo, first
	}
}

func (n *nagiosResult) raise(s status, why string) {
	if s.weight > n.status.weight {
		n.status = s
	}
	if why != "" {
		n.why = append(n.why, why)
	}
}

func runNagios(ctx context.Context, e env, o nagiosOptions) error {
	level, err := scan.ParseLevel(o.level)
	if err != nil {
		return &usageError{err}
	}
	if o.limit <= 0 || o.maxAge <= 0 {
		return usagef("--max-duration and --max-age take a time above 0")
	}
	n := &nagiosResult{status: nagiosOK}
	if len(o.paths) == 0 && o.from == "" && o.gitDir == "" && !o.recursive {
		err = o.remembered(e, n)
	} else if wrong := e.checkConfig(); wrong != nil {
		n.code = exitUsage
		n.raise(nagiosUnknown, wrong.Error())
	} else {
		err = o.audit(ctx, e, level, n)
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if usage := (*usageError)(nil); errors.As(err, &usage) {
		return err
	}
	if err != nil {
		n.raise(nagiosUnknown, err.Error())
	}
	return n.tell(e.stdout, o.codes)
}

// audit looks at the repositories now.
func (o *nagiosOptions) audit(ctx context.Context, e env, level scan.Level, n *nagiosResult) error {
	report, err := reports.New("text", io.Discard, reports.Options{Quiet: true})
	if err != nil {
		return err
	}
	quiet := e
	quiet.stderr = io.Discard // Nagios shows one line
	s := &scanning{env: quiet, report: report, told: startProgress(quiet, "none", nil), tally: newTally(e.now()), whole: &whole{o: &fleetOptions{maxDuration: o.limit}, env: e},
		options: scan.Options{Level: level, Now: e.now}}
	limited, cancel := s.whole.limited(ctx)
	defer cancel()
	s.each = func(r *reports.Repository) {
		if r.State != reports.Clean {
			n.bad = append(n.bad, r.Repo)
		}
		if r.State == reports.Incomplete {
			n.unread(r.Repo, r.Reason)
		}
	}
	err = s.all(limited, &o.targets, runtime.GOMAXPROCS(0))
	err = s.whole.stopped(limited, err, s.told.total.Load())
	t := &s.tally.sum
	n.errors, n.warnings, n.incomplete = t.Severities[finding.Error], t.Severities[finding.Warn], t.Repositories[reports.Incomplete]
	for _, k := range t.Repositories {
		n.repositories += k
	}
	n.perf = append(n.perf, fmt.Sprintf("time=%.3fs;;;0", e.now().Sub(s.tally.start).Seconds()))
	if err == nil && n.repositories == 0 {
		err = errors.New("no repository was found")
	}
	return err
}

// clockSkew is how far the clocks of two machines with one state may differ.
const clockSkew = 5 * time.Minute

// remembered adds up what scans have noted of the repositories that are still there.
func (o *nagiosOptions) remembered(e env, n *nagiosResult) error {
	folder, err := o.folder(e)
	if err != nil {
		return err
	}
	run, err := fleet.LastRun(folder)
	if err != nil {
		return err
	}
	age := e.now().Sub(run.End)
	switch {
	case age < -clockSkew: // and it would look young for long
		n.raise(nagiosUnknown, fmt.Sprintf("the last scan ended %v from now: a clock is wrong, or was", (-age).Round(time.Second)))
	case age > o.maxAge:
		n.raise(nagiosUnknown, fmt.Sprintf("the last scan ended %v ago", age.Round(time.Second)))
	case run.Signal != "" || run.Stopped != "":
		n.raise(nagiosUnknown, "the last scan was cut short: "+run.Signal+run.Stopped)
	}
	oldest := run.End
	err = fleet.NewMemory(folder, e.now).All(func(a *fleet.Audit) error {
		if _, err := os.Lstat(a.Repo); errors.Is(err, os.ErrNotExist) {
			return nil
		}
		n.repositories++
		n.errors += a.Severities[finding.Error]
		n.warnings += a.Severities[finding.Warn]
		if a.State == scan.Incomplete {
			n.incomplete++
			n.unread(a.Repo, a.Reason)
		}
		if a.Bad() {
			n.bad = append(n.bad, a.Repo)
		}
		if a.At.Before(oldest) {
			oldest = a.At
		}
		return nil
	})
	n.perf = append(n.perf, fmt.Sprintf("age=%.0fs;%.0f;;0", max(0, age).Seconds(), o.maxAge.Seconds()),
		fmt.Sprintf("oldest=%.0fs;;;0", max(0, e.now().Sub(oldest)).Seconds()))
	return err
}

// namedBad is how many repositories the line names.
const namedBad = 3

// tell writes the line, and gives the exit code as an error.
func (n *nagiosResult) tell(w io.Writer, codes bool) error {
	switch {
	case n.errors > 0:
		n.raise(nagiosCritical, "")
	case n.warnings > 0:
		n.raise(nagiosWarning, "")
	}
	if n.incomplete > 0 {
		n.raise(nagiosUnknown, "")
	}
	text := fmt.Sprintf("%s, %s, %d of %d repositories could not be read whole", finding.Count(n.errors, "error", "errors"), finding.Count(n.warnings, "warning", "warnings"),
		n.incomplete, n.repositories)
	if len(n.why) > 0 {
		text = strings.Join(n.why, "; ") + "; " + text
	}
	slices.Sort(n.bad)
	if len(n.bad) > 0 {
		text += ": " + strings.Join(n.bad[:min(len(n.bad), namedBad)], ", ")
		if more := len(n.bad) - namedBad; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
	}
	if n.reason != "" {
		if len(n.bad) > 1 {
			text += "; " + n.blind
		}
		text += ": " + n.reason
	}
	perf := append([]string{fmt.Sprintf("errors=%d;;0;0", n.errors), fmt.Sprintf("warnings=%d;0;;0", n.warnings), fmt.Sprintf("incomplete=%d;;;0", n.incomplete),
		fmt.Sprintf("repositories=%d;;;0", n.repositories)}, n.perf...)
	text = strings.ReplaceAll(reports.Escape(text), "|", `\x7c`) // behind a bar come the numbers
	if _, err := fmt.Fprintf(w, "REFAUDIT %s: %s | %s\n", n.status.word, text, strings.Join(perf, " ")); err != nil {
		return err
	}
	switch {
	case codes:
		return exitWith(n.status.code)
	case n.code != exitOK:
		return exitWith(n.code)
	}
	blind := n.incomplete > 0 || n.status == nagiosUnknown || len(n.why) > 0
	return exitWith(verdict(n.errors, blind))
}
