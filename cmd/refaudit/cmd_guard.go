package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"refaudit/finding"
	"refaudit/internal/fleet"
	"refaudit/internal/refname"
	"refaudit/repo"
	"refaudit/reports"
	"refaudit/scan"
)

type guardOptions struct {
	targets
	output
	stateOptions
	accept  bool
	maxLost int
	ignore  globs
}

func guardCommand(e env) *cli.Command {
	var o guardOptions
	flags := append(append(o.targets.flags(), o.output.flags()...), o.stateOptions.flags()...)
	return &cli.Command{
		Name:      "guard",
		Usage:     "a gate before gc: all refs have to be there, and readable",
		ArgsUsage: "[PATH…]",
		Description: "gc deletes what no ref leads to, and git takes a store that it can't read for an empty one. Exit\n" +
			"code: 0 every ref store can be read whole, and no more refs are gone since the last time than\n" +
			"people delete; 1 a finding in a store; 3 or 7 a store can't be read; 6 refs seem to be lost. After\n" +
			"anything but 0 don't run gc. What refs there are is remembered below --state. As a hook of git:\n" +
			"hooks/pre-auto-gc with `exec refaudit guard --quiet`.",
		Flags: append(flags,
			&cli.BoolFlag{Name: "accept", Destination: &o.accept, Usage: "the refs are right as they are: remember them"},
			&cli.IntFlag{Name: "max-lost", Destination: &o.maxLost, Usage: "up to `N` refs may be gone, also where that looks like damage (or refaudit.guard.maxLost)"},
			globsFlag("ignore", &o.ignore, "refs that come and go: a `GLOB`, which may be given more than once (or refaudit.guard.ignore)"),
		),
		Action: func(c *cli.Context) error {
			o.paths = c.Args().Slice()
			return runGuard(c.Context, e, o)
		},
	}
}

func runGuard(ctx context.Context, e env, o guardOptions) error {
	if o.maxLost < 0 {
		return usagef("--max-lost takes a number from 0 up")
	}
	folder, err := o.folder(e)
	if err != nil {
		return err
	}
	report, publish, err := o.open(e)
	if err != nil {
		return err
	}
	g := &guarding{env: e, o: &o, report: report, tally: newTally(e.now()), guard: fleet.Guard{Folder: folder, Now: e.now, Accept: o.accept}}
	if err := report.Start(&reports.Start{Command: "guard", Version: versionString(), Time: e.now()}); err != nil {
		return err
	}
	err = o.targets.each(ctx, e, func(t target) error { return g.one(ctx, t) })
	return g.end(ctx, err, publish)
}

// guarding is one run over any number of repositories, one after the other.
type guarding struct {
	env        env
	o          *guardOptions
	report     reports.Report
	tally      *tally
	guard      fleet.Guard
	suspicious int
}

// one guards one repository.
func (g *guarding) one(ctx context.Context, t target) error {
	began := g.env.now()
	end := reports.Repository{Repo: g.env.abs(t.path), State: reports.Clean}
	res, gate, err := scan.Result{}, (*reports.Gate)(nil), t.err
	if err == nil {
		res, gate, err = g.check(ctx, t, end.Repo)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	end.Refs, end.Severities, end.Gate = res.Refs, res.Severities, gate
	switch {
	case err != nil || len(res.Unread) > 0:
		end.State = reports.Incomplete
		if err == nil {
			err = &fleet.Unreadable{What: res.Unread}
		}
		end.Reason = err.Error()
		fmt.Fprintf(g.env.stderr, "refaudit: %s: %s\n", reports.Escape(end.Repo), reports.Escape(err.Error()))
	case gate.Verdict == reports.Suspicious:
		end.State = reports.Found
		g.suspicious++
	case res.Count(finding.Warn) > 0:
		end.State = reports.Found
	}
	sum := &g.tally.sum
	for s, n := range res.Severities {
		sum.Severities[s] += n
	}
	for id, n := range res.IDs {
		sum.IDs[id] += n
	}
	sum.Refs += end.Refs
	sum.Repositories[end.State]++
	end.Duration = g.env.now().Sub(began)
	return g.report.Repository(&end)
}

// check reads the ref stores as a scan does, and then asks what has become of the refs.
func (g *guarding) check(ctx context.Context, t target, path string) (scan.Result, *reports.Gate, error) {
	target, err := scan.Open(t.path, t.how, g.env.seeing())
	if err != nil {
		return scan.Result{}, nil, err
	}
	policy, err := scan.NewPolicy(target.Repo, false, g.env.now())
	if err != nil {
		return scan.Result{}, nil, err
	}
	guard, err := g.settings(target.Repo.Config)
	if err != nil {
		return scan.Result{}, nil, err
	}
	res, err := scan.Repository(ctx, target, policy, scan.Options{Level: scan.Quick, Now: g.env.now}, func(f *finding.Finding) error {
		f.Repo, f.Dir = path, target.Repo.CommonDir
		return g.report.Finding(f)
	})
	if err != nil || len(res.Unread) > 0 {
		return res, nil, err
	}
	gate, err := guard.Check(ctx, target.Repo.CommonDir, target)
	if err != nil {
		return res, nil, err
	}
	return res, g.gate(gate), nil
}

// settings are what the flags say, or else the configuration.
func (g *guarding) settings(c *repo.Config) (*fleet.Guard, error) {
	guard := g.guard
	var err error
	if guard.Lost = g.o.maxLost; guard.Lost == 0 {
		if guard.Lost, err = c.Int("refaudit.guard.maxLost", 0); err != nil {
			return nil, err
		}
	}
	globs := []string(g.o.ignore)
	if len(globs) == 0 {
		for _, v := range c.All("refaudit.guard.ignore") {
			globs = append(globs, v.Text)
		}
	}
	for _, glob := range globs {
		guard.Ignore = append(guard.Ignore, refname.NewGlob(glob, 0))
	}
	return &guard, nil
}

func (g *guarding) gate(c *fleet.Gate) *reports.Gate {
	out := &reports.Gate{Verdict: reports.Fine, Refs: int64(c.Refs), Recorded: int64(c.Recorded), Lost: int64(c.Lost), Added: int64(c.Added), Since: c.Since,
		Reasons: c.Suspicious, Sample: c.Sample}
	switch {
	case len(c.Suspicious) > 0:
		out.Verdict = reports.Suspicious
	case c.First:
		out.Verdict = reports.First
	case g.o.accept:
		out.Verdict = reports.Accepted
	}
	return out
}

// end writes the summary and gives the exit code as an error: whatever keeps gc from being safe, the
// code is not 0.
func (g *guarding) end(ctx context.Context, err error, publish func() error) error {
	sum := &g.tally.sum
	sum.Exit = g.env.conclude(ctx, err, sum, func(incomplete bool) int {
		if g.suspicious > 0 && !incomplete {
			return exitRefused
		}
		return verdict(g.tally.atLeast(finding.Error), incomplete)
	})
	sum.Duration = g.env.now().Sub(g.tally.start)
	if err := errors.Join(g.report.Summary(sum), publish()); err != nil {
		return err
	}
	return exitWith(sum.Exit)
}
