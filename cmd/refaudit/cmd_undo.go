package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"refaudit/internal/vfs"
	"refaudit/repair"
	"refaudit/reports"
	"refaudit/scan"
)

type undoOptions struct {
	output
	journalOptions
	replicated bool
	ids        []string
}

func undoCommand(e env) *cli.Command {
	var o undoOptions
	return &cli.Command{
		Name:      "undo",
		Usage:     "take a repair back, if the repaired state still stands",
		ArgsUsage: "ID…",
		Description: "ID is what fix printed. A packed-refs file comes back byte for byte while it is the one that the\n" +
			"repair left; else each record goes back that is still as the repair left it. Exit code: 6 if\n" +
			"nothing of it stands any more, 3 if a part doesn't.",
		Flags: append(append([]cli.Flag{
			&cli.BoolFlag{Name: "yes-replicated", Destination: &o.replicated, Usage: "go on where hooks, Gitaly or Gerrit keep account of the files"},
		}, o.output.flags()...), o.journalOptions.flags()...),
		Action: func(c *cli.Context) error {
			o.ids, o.waits = c.Args().Slice(), c.IsSet("lock-timeout")
			return runUndo(c.Context, e, o)
		},
	}
}

func runUndo(ctx context.Context, e env, o undoOptions) error {
	if len(o.ids) == 0 {
		return usagef("undo takes the id of a repair, as fix printed it")
	}
	journal, err := o.journal(e)
	if err != nil {
		return err
	}
	report, publish, err := o.open(e)
	if err != nil {
		return err
	}
	if err := report.Start(&reports.Start{Command: "undo", Version: versionString(), Time: e.now()}); err != nil {
		return err
	}
	u := &undoing{env: e, report: report, options: repair.Options{FS: vfs.OS{}, Journal: journal, Replicated: o.replicated, LockTimeout: o.timeout(), LongestWait: longest(e, len(o.ids) == 1)}}
	tally := newTally(e.now())
	code := exitOK
	for _, id := range o.ids {
		code = max(code, u.one(ctx, id))
	}
	tally.sum.Exit, tally.sum.Duration = code, e.now().Sub(tally.start)
	if err := errors.Join(u.failed, report.Summary(&tally.sum), publish()); err != nil {
		return err
	}
	return exitWith(code)
}

type undoing struct {
	env     env
	report  reports.Report
	options repair.Options
	failed  error // of writing results
}

// one takes one repair back and gives its exit code.
func (u *undoing) one(ctx context.Context, id string) int {
	e, err := repair.Entry(u.options.Journal, id)
	if err != nil {
		return u.say("", id, err)
	}
	target, err := scan.Open(e.GitDir, scan.ByGitDir, u.env.fresh())
	if err != nil {
		return u.say(e.GitDir, id, err)
	}
	done, err := u.undo(ctx, target, e)
	for i := range done.Done {
		d := &done.Done[i]
		u.failed = errors.Join(u.failed, u.report.Repair(&reports.Repair{Repo: e.GitDir, Ref: d.Ref, ID: d.ID, File: d.File, Before: d.Before, After: d.After,
			Action: d.Action, Applied: true, Journal: d.Journal}))
	}
	for _, n := range slices.Concat(done.Left, done.Notices) {
		u.failed = errors.Join(u.failed, u.report.Notice(&reports.Notice{Repo: e.GitDir, Message: n}))
	}
	switch {
	case err != nil:
		return u.say(e.GitDir, id, err)
	case len(done.Left) > 0:
		return exitIncomplete
	}
	return exitOK
}

func (u *undoing) undo(ctx context.Context, target *scan.Target, e *repair.JournalEntry) (repair.Undone, error) {
	who, other, err := otherOwner(target.Repo.GitDir)
	if err != nil {
		return repair.Undone{}, err
	}
	if other {
		o := order{Path: []byte(e.GitDir), How: scan.ByGitDir, Undo: e.ID, Options: orderOptions{Replicated: u.options.Replicated, LockTimeout: u.options.LockTimeout, LongestWait: u.options.LongestWait}}
		res, err := asOwner(ctx, u.env, who, o, u.options.Journal, e.GitDir, nil)
		return repair.Undone{Done: res.Done, Left: res.Kept, Notices: res.Notices}, err
	}
	if err := target.Repo.CheckOwner(); err != nil {
		return repair.Undone{}, notOurs(err)
	}
	return repair.Undo(ctx, target, e, u.options)
}

// say tells on stderr and in the report why a repair was not taken back, and gives the exit code. path is the
// repository, where it is known.
func (u *undoing) say(path, id string, err error) int {
	fmt.Fprintf(u.env.stderr, "refaudit: undo %s: %s\n", reports.Escape(id), reports.Escape(err.Error()))
	u.failed = errors.Join(u.failed, u.report.Notice(&reports.Notice{Repo: path, Message: fmt.Sprintf("undo %s: %v", id, err)}))
	switch {
	case errors.Is(err, repair.ErrRefused):
		return exitRefused
	case errors.Is(err, repair.ErrHeld):
		return exitLocked
	}
	return exitIncomplete
}
