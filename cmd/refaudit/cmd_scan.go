package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"refaudit/finding"
	"refaudit/internal/fleet"
	"refaudit/reports"
	"refaudit/scan"
)

type scanOptions struct {
	targets
	output
	fleetOptions
	level       string
	failOn      string
	strict      bool
	maxFindings int
	progress    string
	remote      string
}

func scanCommand(e env) *cli.Command {
	var o scanOptions
	flags := append(append(o.targets.flags(), o.output.flags()...), o.fleetOptions.flags()...)
	return &cli.Command{
		Name:      "scan",
		Usage:     "audit repositories; never writes to one",
		ArgsUsage: "[PATH…] | --remote URL",
		Description: "Compares every cached peeled value in packed-refs and reftables with the objects, and names\n" +
			"the corrupt tags that break clones. Exit code: 0 nothing at or above --fail-on, 1 findings,\n" +
			"3 something could not be looked at, 7 both.",
		Flags: append(flags,
			&cli.StringFlag{Name: "level", Value: "standard", Destination: &o.level,
				Usage: "how deep to look: quick (the ref stores alone), standard (also every object that a ref leads to) or deep"},
			&cli.StringFlag{Name: "fail-on", Value: "error", Destination: &o.failOn,
				Usage: "lowest `SEVERITY` that makes the exit code 1: error, warn, info or never"},
			&cli.BoolFlag{Name: "strict", Destination: &o.strict, Usage: "take warnings for errors"},
			&cli.IntFlag{Name: "max-findings", Destination: &o.maxFindings, Usage: "show at most `N` findings of a repository, and count the rest (0: all)"},
			&cli.StringFlag{Name: "remote", Destination: &o.remote, Usage: "audit the server at `URL` from outside: what it advertises as peeled against the tags that it hands out"},
			&cli.StringFlag{Name: "progress", Value: "auto", Destination: &o.progress, Usage: "auto (drawn on a terminal), plain (a line every few seconds) or none"},
		),
		Action: func(c *cli.Context) error {
			o.paths = c.Args().Slice()
			if c.IsSet("remote") { // also to ""
				return runScanRemote(c.Context, e, o)
			}
			return runScan(c.Context, e, o)
		},
	}
}

func runScan(ctx context.Context, e env, o scanOptions) error {
	level, err := scan.ParseLevel(o.level)
	if err != nil {
		return &usageError{err}
	}
	least, err := failOn(o.failOn)
	if err != nil {
		return err
	}
	if o.maxFindings < 0 {
		return usagef("--max-findings takes a number from 0 up")
	}
	if err := o.output.check(); err != nil {
		return err
	}
	if err := checkProgress(o.progress); err != nil {
		return err
	}
	w, err := o.fleetOptions.open(ctx, e, level, least, o.recursive || o.from != "")
	if err != nil {
		return err
	}
	o.alone = o.targets.one()
	report, publish, err := o.output.open(e)
	if err != nil {
		return err
	}
	told := startProgress(e, o.progress, o.output.progress(report))
	s := &scanning{env: e, report: report, told: told, tally: newTally(e.now()), failOn: least, strict: o.strict, whole: w,
		options: scan.Options{Level: level, MaxFindings: o.maxFindings, Now: e.now, Seen: &told.refs, Pace: w.pace}}
	if err := report.Start(&reports.Start{Command: "scan", Version: versionString(), Level: o.level, Time: e.now()}); err != nil {
		return err
	}
	limited, cancel := w.limited(ctx)
	defer cancel()
	err = s.all(limited, &o.targets, o.jobs)
	err = w.stopped(limited, err, told.total.Load())
	told.end()
	return s.end(ctx, err, publish)
}

// scanning is one run over any number of repositories.
type scanning struct {
	env     env
	report  reports.Report
	told    *progress
	tally   *tally
	failOn  finding.Severity
	strict  bool
	options scan.Options
	whole   *whole
	each    func(*reports.Repository) // is told how each audit ended, one after the other; nil: nobody is
}

// all audits the targets that are wanted, jobs at a time. Results come out in their order, each
// repository's together.
func (s *scanning) all(ctx context.Context, t *targets, jobs int) error {
	wanted := *t
	wanted.skip = func(one target) bool {
		path := s.env.abs(one.path)
		if one.err == nil && !s.whole.wants(path) {
			return true
		}
		s.whole.last.Store(&path)
		s.told.total.Add(1)
		return false
	}
	wanted.known = func() { s.told.whole.Store(true) }
	return inOrder(ctx, s.env, &wanted, jobs, func(ctx context.Context, one target, turn <-chan struct{}) *result {
		defer s.told.done.Add(1)
		s.whole.begun.Add(1)
		return s.one(ctx, one, turn)
	}, s.finish)
}

// result is what the audit of one repository gave.
type result struct {
	path     string
	findings []finding.Finding // those that wait for their turn
	res      scan.Result
	err      error
	repo     reports.Repository
}

// one audits a repository. While others before it are not done, its findings wait in memory;
// from its turn on they are written as they come.
func (s *scanning) one(ctx context.Context, one target, turn <-chan struct{}) *result {
	r := &result{path: s.env.abs(one.path), err: one.err}
	began := s.env.now()
	if r.err == nil {
		a := &auditing{scanning: s, result: r, turn: turn}
		err := fleet.Within(ctx, s.whole.o.timeout, a.abandon, func(ctx context.Context) { a.run(ctx, one) })
		if err != nil {
			r.err = fmt.Errorf("it is left behind, and may hang: %w", err)
			s.whole.begin(r.path).note(context.WithoutCancel(ctx), &r.res, r.err)
		}
	}
	r.conclude(s.env.now().Sub(began))
	return r
}

// auditing is one audit under way. It may be abandoned, because a disk doesn't answer: then what it
// still does is told to nobody.
type auditing struct {
	*scanning
	*result
	turn <-chan struct{}

	mu        sync.Mutex
	abandoned bool
	told      scan.Result // counts of what was reported
}

func (a *auditing) run(ctx context.Context, one target) {
	res, err := a.audit(ctx, one, a.path, a.found)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("not looked at to the end: %w", context.Cause(ctx))
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.abandoned {
		a.res, a.err = res, err
	}
}

func (a *auditing) abandon() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.abandoned, a.res = true, a.told
}

var errAbandoned = errors.New("nobody waits for this audit any more")

func (a *auditing) found(f *finding.Finding) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.abandoned {
		return errAbandoned
	}
	a.told.Add(f)
	f.Repo = a.path
	select {
	case <-a.turn:
		if err := a.write(a.result); err != nil {
			return err
		}
		return a.report.Finding(f)
	default:
		a.findings = append(a.findings, *f)
		return nil
	}
}

// conclude makes the line that ends what is said of the repository.
func (r *result) conclude(took time.Duration) {
	r.repo = reports.Repository{Repo: r.path, State: reports.State(r.res.State), Refs: r.res.Refs, Peels: r.res.Peels,
		Severities: r.res.Severities, Hidden: r.res.Hidden, Known: r.res.Known, Unchanged: r.res.Unchanged, Duration: took}
	switch {
	case r.err != nil:
		r.repo.State, r.repo.Reason = reports.Incomplete, r.err.Error()
	case len(r.res.Unread) > 0:
		r.repo.Reason = r.res.Unread[0]
		if n := len(r.res.Unread) - 1; n > 0 {
			r.repo.Reason += fmt.Sprintf(", and %d more", n)
		}
	}
}

func (s *scanning) audit(ctx context.Context, one target, path string, report func(*finding.Finding) error) (scan.Result, error) {
	if s.whole.pace != nil {
		if err := s.whole.pace(ctx); err != nil {
			return scan.Result{}, err
		}
	}
	g := s.whole.begin(path)
	res, err := s.read(ctx, one, g, report)
	g.note(ctx, &res, err)
	return res, err
}

func (s *scanning) read(ctx context.Context, one target, g *glance, report func(*finding.Finding) error) (scan.Result, error) {
	t, err := scan.Open(one.path, one.how, s.env.seeing())
	if err != nil {
		return scan.Result{}, err
	}
	policy, err := scan.NewPolicy(t.Repo, s.strict, s.env.now())
	if err != nil {
		return scan.Result{}, err
	}
	if err := g.look(ctx, t, policy); err != nil {
		return scan.Result{}, err
	}
	if res, ok := g.passOver(); ok {
		return res, nil
	}
	o := s.options
	o.Known = s.whole.known(g.path)
	return scan.Repository(ctx, t, policy, o, func(f *finding.Finding) error {
		f.Dir = t.Repo.CommonDir
		return report(f)
	})
}

// write sends the findings that have waited.
func (s *scanning) write(r *result) error {
	for i := range r.findings {
		if err := s.report.Finding(&r.findings[i]); err != nil {
			return err
		}
	}
	r.findings = nil
	return nil
}

// finish writes what is left to say of a repository, when it is its turn.
func (s *scanning) finish(r *result) error {
	err := s.write(r)
	for _, n := range r.res.Notices {
		err = errors.Join(err, s.report.Notice(&reports.Notice{Repo: r.path, Message: n}))
	}
	if r.err != nil {
		fmt.Fprintf(s.env.stderr, "refaudit: %s\n", reports.Escape(r.err.Error()))
	}
	err = errors.Join(err, s.report.Repository(&r.repo))
	if s.each != nil {
		s.each(&r.repo)
	}
	t := &s.tally.sum
	for k, n := range r.res.Severities {
		t.Severities[k] += n
	}
	for k, n := range r.res.IDs {
		t.IDs[k] += n
	}
	t.Refs += r.res.Refs
	t.PeelsChecked += r.res.Peels
	t.Known += r.res.Known
	t.Repositories[r.repo.State]++
	if !r.res.Unchanged.IsZero() {
		t.Unchanged++
	}
	return errors.Join(err, s.whole.flush(false))
}

// end writes the summary, also of a run that was cut short, and gives the exit code as an error.
func (s *scanning) end(ctx context.Context, err error, publish func() error) error {
	if cantWrite(err) {
		return s.unwritten(ctx, errors.Join(err, publish()))
	}
	t := &s.tally.sum
	looked := t.Repositories[reports.Clean] + t.Repositories[reports.Found] + t.Repositories[reports.Incomplete]
	nothing := looked == 0 && s.whole.nothingMatched()
	incomplete := t.Repositories[reports.Incomplete] > 0 || nothing
	code := verdict(s.tally.atLeast(s.failOn), incomplete)
	var sig *signalError
	var usage *usageError
	switch {
	case errors.As(context.Cause(ctx), &sig):
		code, t.Signal = sig.code(), sig.sig.String()
	case errors.As(err, &usage):
		code = exitUsage
		fmt.Fprintf(s.env.stderr, "refaudit: %s\n", reports.Escape(err.Error()))
	case err != nil:
		code = verdict(s.tally.atLeast(s.failOn), true)
		if errors.Is(err, errMaxDuration) {
			t.Stopped = "max-duration"
		}
		fmt.Fprintf(s.env.stderr, "refaudit: %s\n", reports.Escape(err.Error()))
	case nothing:
		fmt.Fprintln(s.env.stderr, "refaudit: no repository was found")
	}
	if err := s.whole.end(s.report, err != nil || t.Signal != ""); err != nil {
		fmt.Fprintf(s.env.stderr, "refaudit: %s\n", reports.Escape(err.Error()))
		if t.Signal == "" && code != exitUsage {
			code = verdict(s.tally.atLeast(s.failOn), true)
		}
	}
	t.Exit, t.Duration = code, s.env.now().Sub(s.tally.start)
	if err := errors.Join(s.report.Summary(t), publish(), s.whole.ended(t)); err != nil {
		if code == exitUsage {
			return err
		}
		return s.unwritten(ctx, err)
	}
	return exitWith(code)
}

// unwritten says what could not be written, and gives the code of a run that was incomplete with it: what was found counts
// all the same.
func (s *scanning) unwritten(ctx context.Context, err error) error {
	if sig := (*signalError)(nil); errors.As(context.Cause(ctx), &sig) {
		return err
	}
	say(s.env.stderr, err)
	return exitWith(verdict(s.tally.atLeast(s.failOn), true))
}
