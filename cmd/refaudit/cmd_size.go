package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"refaudit/alternates/usage"
	"refaudit/finding"
	"refaudit/reports"
	"refaudit/scan"
)

type sizeOptions struct {
	targets
	output
	excludeAlternates bool
	exclude           globs
	by                string
	method            string
	verify            bool
	ignoreDead        bool
	failOn            string
	strict            bool
}

func sizeCommand(e env) *cli.Command {
	o := sizeOptions{output: output{figures: true}}
	flags := append(o.targets.flags(), o.output.flags()...)
	return &cli.Command{
		Name:      "size",
		Usage:     "disk usage of repositories, borrowed objects excluded on request",
		ArgsUsage: "[PATH…]",
		Description: "Bytes on disk, as packs and loose files hold them, of each repository:\n\n" +
			usage.Definitions() +
			"\nAn object that lies in several places is measured where the repository's own folder has it,\n" +
			"its smallest copy there; else in the first alternate. A figure that can't be known is not\n" +
			"printed but its reason, and the exit code is 3 (7 with a finding). docs/usage.md says more.",
		Flags: append(flags,
			&cli.BoolFlag{Name: "exclude-alternates", Destination: &o.excludeAlternates, Usage: "ask for what is the repository's own: the figure own comes first"},
			globsFlag("exclude", &o.exclude, "leave out refs that `GLOB` matches, as rev-list --exclude does; may be given more than once"),
			&cli.StringFlag{Name: "by", Destination: &o.by, Usage: "split reachable and own by `WHAT`: type or ref-namespace"},
			&cli.StringFlag{Name: "method", Value: "auto", Destination: &o.method, Usage: "how objects are found: auto, bitmap or walk; the numbers are the same"},
			&cli.BoolFlag{Name: "verify-method", Destination: &o.verify, Usage: "measure by walking too, and compare"},
			&cli.BoolFlag{Name: "ignore-dead-worktrees", Destination: &o.ignoreDead, Usage: "leave out the HEADs of worktrees whose working tree is gone"},
			&cli.StringFlag{Name: "fail-on", Value: "error", Destination: &o.failOn, Usage: "lowest `SEVERITY` that makes the exit code 1: error, warn, info or never"},
			&cli.BoolFlag{Name: "strict", Destination: &o.strict, Usage: "take warnings for errors"},
		),
		Action: func(c *cli.Context) error {
			o.paths = c.Args().Slice()
			return runSize(c.Context, e, o)
		},
	}
}

// noFigures says of formats what they leave out of the figures.
var noFigures = map[string]string{
	"git":   "has no figures, only findings",
	"sarif": "has no figures, only findings",
	"junit": "has no figures, only findings",
	"html":  "has of the figures only own and borrowed",
}

func runSize(ctx context.Context, e env, o sizeOptions) error {
	method, err := usage.ParseMethod(o.method)
	if err != nil {
		return &usageError{err}
	}
	by, err := usage.ParseBy(o.by)
	if err != nil {
		return &usageError{err}
	}
	least, err := failOn(o.failOn)
	if err != nil {
		return err
	}
	collectLate(e.getenv, firstCollection)
	o.alone = o.targets.one()
	report, publish, err := o.open(e)
	if err != nil {
		return err
	}
	if note := noFigures[o.format]; note != "" && !o.quiet && !o.summary {
		fmt.Fprintf(e.stderr, "refaudit: --format=%s %s; text and jsonl have all\n", o.format, note)
	}
	s := &sizing{env: e, report: report, tally: newTally(e.now()), failOn: least, strict: o.strict, session: usage.NewSession(0),
		options: usage.Options{Method: method, By: by, Exclude: o.exclude, ExcludeAlternates: o.excludeAlternates,
			IgnoreDeadWorktrees: o.ignoreDead, Verify: o.verify, Repo: e.seeing()}}
	if err := report.Start(&reports.Start{Command: "size", Version: versionString(), Time: e.now()}); err != nil {
		return err
	}
	err = inOrder(ctx, e, &o.targets, o.jobs, func(ctx context.Context, one target, _ <-chan struct{}) *sized { return s.one(ctx, one) }, s.finish)
	err = errors.Join(err, s.session.Close())
	return s.end(ctx, err, publish)
}

// sizing is one run over any number of repositories.
type sizing struct {
	env     env
	report  reports.Report
	tally   *tally
	failOn  finding.Severity
	strict  bool
	session *usage.Session
	options usage.Options
}

// sized is what came of one repository.
type sized struct {
	path     string
	usage    *usage.Usage
	findings []finding.Finding // those that are to be reported
	notices  []string
	err      error
	took     time.Duration
}

// one measures a repository.
func (s *sizing) one(ctx context.Context, one target) *sized {
	r := &sized{path: s.env.abs(one.path), err: one.err}
	began := s.env.now()
	if r.err == nil {
		r.err = s.measure(ctx, one, r)
	}
	r.took = s.env.now().Sub(began)
	return r
}

func (s *sizing) measure(ctx context.Context, one target, r *sized) error {
	at, err := scan.OpenRepository(one.path, one.how, s.options.Repo)
	if err != nil {
		return err
	}
	policy, err := scan.NewPolicy(at, s.strict, s.env.now())
	if err != nil {
		return err
	}
	if r.usage, err = s.session.Measure(ctx, at, s.options); err != nil {
		return err
	}
	r.notices = append(policy.Notices, r.usage.Notices...)
	for _, f := range r.usage.Findings {
		if f.Repo, f.Dir = r.path, at.CommonDir; policy.Apply(&f) {
			r.findings = append(r.findings, f)
		}
	}
	return nil
}

// finish writes what is known of a repository, when it is its turn.
func (s *sizing) finish(r *sized) error {
	out := reports.Repository{Repo: r.path, State: reports.Clean, Severities: map[finding.Severity]int64{}, Duration: r.took}
	var err error
	t := &s.tally.sum
	for i := range r.findings {
		f := &r.findings[i]
		err = errors.Join(err, s.report.Finding(f))
		out.State = reports.Found
		out.Severities[f.Severity]++
		t.Severities[f.Severity]++
		t.IDs[f.ID]++
	}
	switch {
	case r.err != nil:
		out.State, out.Reason = reports.Incomplete, r.err.Error()
		fmt.Fprintf(s.env.stderr, "refaudit: %s\n", reports.Escape(r.err.Error()))
	default:
		err = errors.Join(err, s.report.Usage(s.lines(r)))
		if !r.usage.Complete() {
			out.State, out.Reason = reports.Incomplete, unknownOf(r.usage)
		}
	}
	for _, n := range r.notices {
		err = errors.Join(err, s.report.Notice(&reports.Notice{Repo: r.path, Message: n}))
	}
	t.Repositories[out.State]++
	return errors.Join(err, s.report.Repository(&out))
}

// lines are the figures in the order in which they are shown.
func (s *sizing) lines(r *sized) *reports.Usage {
	u := &reports.Usage{Repo: r.path, Method: string(r.usage.Method), Reason: r.usage.Reason}
	for _, f := range usage.Figures {
		bytes, known := r.usage.Bytes[f]
		line := reports.Figure{Name: string(f), Bytes: bytes, Known: known, Reason: r.usage.Unknown[f]}
		if f == usage.Own && s.options.ExcludeAlternates {
			u.Figures = append([]reports.Figure{line}, u.Figures...)
			continue
		}
		u.Figures = append(u.Figures, line)
	}
	_, known := r.usage.Bytes[usage.Own]
	for _, share := range r.usage.Shares {
		u.By = append(u.By, reports.Group{Key: string(s.options.By), Name: share.Name, Figures: []reports.Figure{
			{Name: string(usage.Reachable), Bytes: share.Reachable, Known: true},
			{Name: string(usage.Own), Bytes: share.Own, Known: known, Reason: r.usage.Unknown[usage.Own]},
		}})
	}
	return u
}

// unknownOf says which figures are not known, and why the first of them is not.
func unknownOf(u *usage.Usage) string {
	var names []string
	reason := ""
	for _, f := range usage.Figures {
		if why, ok := u.Unknown[f]; ok {
			names = append(names, string(f))
			if reason == "" {
				reason = why
			}
		}
	}
	return fmt.Sprintf("%s can't be known: %s", strings.Join(names, ", "), reason)
}

// end writes the summary, also of a run that was cut short, and gives the exit code as an error.
func (s *sizing) end(ctx context.Context, err error, publish func() error) error {
	if cantWrite(err) {
		return errors.Join(err, publish())
	}
	t := &s.tally.sum
	t.Exit = s.env.conclude(ctx, err, t, func(incomplete bool) int { return verdict(s.tally.atLeast(s.failOn), incomplete) })
	t.Duration = s.env.now().Sub(s.tally.start)
	if err := errors.Join(s.report.Summary(t), publish()); err != nil {
		return err
	}
	return exitWith(t.Exit)
}
