package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"refaudit/internal/fleet"
	"refaudit/reports"
	"refaudit/scan"
)

type fingerprintOptions struct {
	targets
	output
}

func fingerprintCommand(e env) *cli.Command {
	var o fingerprintOptions
	return &cli.Command{
		Name:      "fingerprint",
		Usage:     "one hash over refs and true peels, to find drift between replicas",
		ArgsUsage: "[PATH…]",
		Description: "The hash covers the name and value of each ref and what it truly peels to. It is the same on every\n" +
			"replica, whether refs are files or tables, loose or packed, and whatever peels are cached. Left\n" +
			"out: HEAD and what else each worktree has for itself. A line is `HASH  PATH`. Exit code: 3 if a\n" +
			"store can't be read whole, or an object of a ref is not there: then there is no hash.",
		Flags: append(o.targets.flags(), o.output.flags()...),
		Action: func(c *cli.Context) error {
			o.paths = c.Args().Slice()
			return runFingerprint(c.Context, e, o)
		},
	}
}

func runFingerprint(ctx context.Context, e env, o fingerprintOptions) error {
	if o.format != "text" && o.format != "jsonl" {
		return usagef("fingerprints are written as text or jsonl, not as %s", o.format)
	}
	o.quiet = true // lines of text stand for themselves
	report, publish, err := o.open(e)
	if err != nil {
		return err
	}
	p := &printing{env: e, report: report, tally: newTally(e.now()), jobs: o.jobs}
	if err := report.Start(&reports.Start{Command: "fingerprint", Version: versionString(), Time: e.now()}); err != nil {
		return err
	}
	err = o.targets.each(ctx, e, func(t target) error { return p.one(ctx, t) })
	return p.end(ctx, err, publish)
}

// printing takes fingerprints of any number of repositories, one after the other.
type printing struct {
	env    env
	report reports.Report
	tally  *tally
	jobs   int
}

func (p *printing) one(ctx context.Context, t target) error {
	began := p.env.now()
	end := reports.Repository{Repo: p.env.abs(t.path), State: reports.Clean}
	f, err := (*fleet.Fingerprint)(nil), t.err
	if err == nil {
		f, err = p.take(ctx, t)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	end.Fingerprint = &reports.Fingerprint{}
	if err != nil {
		end.State, end.Reason = reports.Incomplete, err.Error()
		fmt.Fprintf(p.env.stderr, "refaudit: %s: no fingerprint: %s\n", reports.Escape(end.Repo), reports.Escape(err.Error()))
	} else {
		end.Refs, end.Fingerprint.Hash, end.Fingerprint.Head = f.Refs, f.Hash, f.Head
	}
	p.tally.sum.Refs += end.Refs
	p.tally.sum.Repositories[end.State]++
	end.Duration = p.env.now().Sub(began)
	return p.report.Repository(&end)
}

func (p *printing) take(ctx context.Context, t target) (*fleet.Fingerprint, error) {
	target, err := scan.Open(t.path, t.how, p.env.seeing())
	if err != nil {
		return nil, err
	}
	return fleet.Fingerprinted(ctx, target, p.jobs)
}

func (p *printing) end(ctx context.Context, err error, publish func() error) error {
	sum := &p.tally.sum
	sum.Exit = p.env.conclude(ctx, err, sum, func(incomplete bool) int { return verdict(0, incomplete) })
	sum.Duration = p.env.now().Sub(p.tally.start)
	if err := errors.Join(p.report.Summary(sum), publish()); err != nil {
		return err
	}
	return exitWith(sum.Exit)
}
