package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"refaudit/finding"
	"refaudit/internal/vfs"
	"refaudit/repair"
	"refaudit/repo"
	"refaudit/reports"
	"refaudit/scan"
)

type fixOptions struct {
	targets
	output
	journalOptions
	dryRun      bool
	yes         bool
	replicated  bool
	only        string
	refs        globs
	compact     bool
	dropCorrupt bool
	rebuild     bool
	staleLocks  bool
	olderThan   time.Duration
	maxChanges  int
	failOn      string
	strict      bool
	detailed    bool
}

// journalOptions say where the journal is, and how long to wait for locks.
type journalOptions struct {
	state       string
	lockTimeout time.Duration
	waits       bool // --lock-timeout was given
}

func (o *journalOptions) flags() []cli.Flag {
	return []cli.Flag{
		&cli.DurationFlag{Name: "lock-timeout", Destination: &o.lockTimeout, Usage: "how long to wait for a lock, such as 5s; -1s: for ever (default: what core.packedRefsTimeout and reftable.lockTimeout say, but a minute at most for several repositories or without a terminal)"},
		&cli.StringFlag{Name: "state", Destination: &o.state, Usage: "keep the journal below `DIR` (default: $XDG_STATE_HOME/refaudit, root's in /var/lib/refaudit)"},
	}
}

// timeout is what --lock-timeout says; nil: nothing.
func (o *journalOptions) timeout() *time.Duration {
	if !o.waits {
		return nil
	}
	t := o.lockTimeout
	if t < 0 {
		t = repair.Forever
	}
	return &t
}

// longestWait is how long a repository's configuration can make us wait for a lock where others wait for
// their turn, or nobody sees it. Tests wait for less.
var longestWait = time.Minute

// longest bounds such a wait; 0: nothing does.
func longest(e env, one bool) time.Duration {
	if one && e.canAsk() {
		return 0
	}
	return longestWait
}

func fixCommand(e env) *cli.Command {
	var o fixOptions
	flags := append(o.targets.flags(), o.output.flags()...)
	return &cli.Command{
		Name:      "fix",
		Usage:     "repair what is a cache or a header, under git's own locks",
		ArgsUsage: "[PATH…]",
		Description: "Gives wrong cached peels their right values and mends packed-refs files: order, header, lines\n" +
			"that belong to nothing. The value of a ref is never changed. What is done goes to a journal\n" +
			"first, and `refaudit undo` takes it back. Without --yes it asks on a terminal, and elsewhere\n" +
			"writes nothing. Exit code: what a scan would give afterwards; 5 a lock was not obtained,\n" +
			"6 refused for safety.",
		Flags: append(append(flags, o.journalOptions.flags()...),
			&cli.BoolFlag{Name: "dry-run", Aliases: []string{"n"}, Destination: &o.dryRun, Usage: "show the exact change, and write nothing"},
			&cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Destination: &o.yes, Usage: "do it without asking"},
			&cli.BoolFlag{Name: "yes-replicated", Destination: &o.replicated, Usage: "go on where hooks, Gitaly or Gerrit keep account of the files"},
			&cli.StringFlag{Name: "only", Destination: &o.only, Usage: "answer findings of these ids only: `MSGID,…`"},
			globsFlag("ref", &o.refs, "mend these refs only: a `GLOB`, which may be given more than once"),
			&cli.BoolFlag{Name: "compact", Destination: &o.compact, Usage: "rewrite the tables that hold wrong records, so that no wrong value stays behind, instead of adding a table"},
			&cli.BoolFlag{Name: "drop-corrupt-tags", Destination: &o.dropCorrupt, Usage: "delete the refs of corrupt tags, so that the repository can be cloned"},
			&cli.BoolFlag{Name: "rebuild-tables-list", Destination: &o.rebuild, Usage: "put a lost tables.list together again from the tables"},
			&cli.BoolFlag{Name: "stale-locks", Destination: &o.staleLocks, Usage: "remove locks that were left behind; needs --older-than"},
			&cli.DurationFlag{Name: "older-than", Destination: &o.olderThan, Usage: "the least `AGE` of a lock that was left behind, such as 1h"},
			&cli.IntFlag{Name: "max-changes", Destination: &o.maxChanges, Usage: "allow up to `N` changes in a store, also where they look like a pool that is not mounted"},
			&cli.StringFlag{Name: "fail-on", Value: "error", Destination: &o.failOn, Usage: "lowest `SEVERITY` that makes the exit code 1: error, warn, info or never"},
			&cli.BoolFlag{Name: "strict", Destination: &o.strict, Usage: "take warnings for errors"},
			&cli.BoolFlag{Name: "detailed-exitcode", Destination: &o.detailed, Usage: "4 instead of 0 where something was changed"},
		),
		Action: func(c *cli.Context) error {
			o.paths, o.waits = c.Args().Slice(), c.IsSet("lock-timeout")
			return runFix(c.Context, e, o)
		},
	}
}

func runFix(ctx context.Context, e env, o fixOptions) error {
	least, err := failOn(o.failOn)
	if err != nil {
		return err
	}
	ro, err := o.repairOptions(e)
	if err != nil {
		return err
	}
	report, publish, err := o.open(e)
	if err != nil {
		return err
	}
	f := &fixing{env: e, o: &o, options: ro, report: report, tally: newTally(e.now()), failOn: least}
	jobs := o.jobs
	if f.asks() {
		jobs = 1 // a person is asked about one repository at a time
	}
	if err := report.Start(&reports.Start{Command: "fix", Version: versionString(), Time: e.now()}); err != nil {
		return err
	}
	for _, n := range repair.Tidy(ro.Journal, e.now()) {
		if err := report.Notice(&reports.Notice{Message: n}); err != nil {
			return err
		}
	}
	err = inOrder(ctx, e, &o.targets, jobs, func(ctx context.Context, t target, _ <-chan struct{}) *fixed { return f.one(ctx, t) }, f.finish)
	return f.end(ctx, err, publish)
}

// repairOptions makes what the flags say into what repair takes.
func (o *fixOptions) repairOptions(e env) (repair.Options, error) {
	r := repair.Options{
		FS: vfs.OS{}, Scan: scan.Options{Level: scan.Standard, Now: e.now},
		DryRun: o.dryRun, Compact: o.compact, DropCorrupt: o.dropCorrupt, Rebuild: o.rebuild, StaleLocks: o.staleLocks, OlderThan: o.olderThan,
		MaxChanges: o.maxChanges, Replicated: o.replicated, LockTimeout: o.timeout(), LongestWait: longest(e, o.one()),
	}
	if o.dryRun && o.yes {
		return r, usagef("--dry-run and --yes exclude each other")
	}
	if o.staleLocks != (o.olderThan > 0) {
		return r, usagef("--stale-locks goes with --older-than=AGE, which says when a lock counts as left behind")
	}
	if o.maxChanges < 0 {
		return r, usagef("--max-changes takes a number from 1 up")
	}
	for _, word := range strings.FieldsFunc(o.only, func(c rune) bool { return c == ',' || c == ' ' }) {
		id, ok := finding.ParseID(word)
		if !ok {
			return r, usagef("--only: no message id %q (see refaudit explain)", word)
		}
		if r.Only == nil {
			r.Only = map[finding.ID]bool{}
		}
		r.Only[id] = true
	}
	r.Ref = repair.Globs(o.refs)
	if !o.dryRun && !o.yes && !e.canAsk() {
		r.DryRun = true
	}
	var err error
	r.Journal, err = o.journal(e)
	return r, err
}

// journal finds the journal. It need not be there.
func (o *journalOptions) journal(e env) (repair.Journal, error) {
	get := func(name string) string { v, _ := e.getenv(name); return v }
	state := o.state
	if state != "" {
		state = e.abs(state)
	}
	j, err := repair.OpenJournal(vfs.OS{}, state, get, os.Geteuid() == 0)
	if err != nil {
		return nil, &usageError{err}
	}
	return j, nil
}

// canAsk tells whether there is somebody to ask.
func (e *env) canAsk() bool {
	f, ok := e.stdin.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && e.terminal
}

// fixing is one run over any number of repositories.
type fixing struct {
	env     env
	o       *fixOptions
	options repair.Options
	report  reports.Report
	tally   *tally
	failOn  finding.Severity
	claims  claims

	// What the exit code depends on; only finish uses it.
	failed  error // of writing results
	changed bool
	held    bool
	refused bool
	blocked int64 // findings left only because of a lock or a refusal
}

// asks tells whether a person is asked before anything is changed.
func (f *fixing) asks() bool { return !f.options.DryRun && !f.o.yes }

// fixed is what became of one repository.
type fixed struct {
	path string
	res  *repair.Result
	err  error
	took time.Duration
}

// one repairs one repository.
func (f *fixing) one(ctx context.Context, t target) *fixed {
	r := &fixed{path: f.env.abs(t.path), res: &repair.Result{}, err: t.err}
	began := f.env.now()
	if r.err == nil {
		r.res, r.err = f.fix(ctx, t, r.path)
	}
	r.took = f.env.now().Sub(began)
	return r
}

// claims keep repairs of one repository apart that are made at the same time: it may be named
// twice, or by its worktrees.
type claims struct {
	mu   sync.Mutex
	held map[string]*sync.Mutex
}

// take waits until the repository with this common folder is free, and gives it back with what it returns.
func (c *claims) take(commonDir string) (release func()) {
	if real, err := filepath.EvalSymlinks(commonDir); err == nil {
		commonDir = real
	}
	c.mu.Lock()
	if c.held == nil {
		c.held = map[string]*sync.Mutex{}
	}
	m := c.held[commonDir]
	if m == nil {
		m = &sync.Mutex{}
		c.held[commonDir] = m
	}
	c.mu.Unlock()
	m.Lock()
	return m.Unlock
}

func (f *fixing) fix(ctx context.Context, t target, path string) (res *repair.Result, err error) {
	none := &repair.Result{}
	target, err := scan.Open(t.path, t.how, f.env.fresh())
	if _, other := errors.AsType[*repo.DubiousOwner](err); other {
		return none, notOurs(err)
	}
	if err != nil {
		return none, err
	}
	defer f.claims.take(target.Repo.CommonDir)()
	defer func() {
		for i := range res.Left {
			res.Left[i].Dir = target.Repo.CommonDir
		}
	}()
	confirm := func(plan []repair.Done) (bool, error) { return f.ask(path, plan) }
	if who, other, err := otherOwner(target.Repo.GitDir); err != nil {
		return none, err
	} else if other {
		return asOwner(ctx, f.env, who, f.o.orderOf(f.options, t, path), f.options.Journal, target.Repo.CommonDir, confirm)
	}
	if err := target.Repo.CheckOwner(); err != nil {
		return none, notOurs(err)
	}
	policy, err := scan.NewPolicy(target.Repo, f.o.strict, f.env.now())
	if err != nil {
		return none, err
	}
	o := f.options
	if f.asks() {
		o.Confirm = confirm
	}
	return repair.Fix(ctx, target, policy, o)
}

// notOurs is the refusal to change somebody else's repository.
func notOurs(err error) error {
	return &repair.Refused{Reason: "it belongs to somebody else", Err: err}
}

// ask shows the plan and asks whether to go on.
func (f *fixing) ask(path string, plan []repair.Done) (bool, error) {
	if err := f.show(path, plan); err != nil {
		return false, err
	}
	if fl, ok := f.report.(*flushing); ok { // what is asked about has to be seen
		if err := fl.b.flush(false); err != nil {
			return false, err
		}
	}
	fmt.Fprintf(f.env.stderr, "Make %s in %s? [y/N] ", finding.Count(len(plan), "change", "changes"), reports.Escape(path))
	line, err := bufio.NewReader(f.env.stdin).ReadString('\n')
	if err != nil && line == "" {
		return false, nil
	}
	word := strings.ToLower(strings.TrimSpace(line))
	return word == "y" || word == "yes", nil
}

func (f *fixing) show(path string, done []repair.Done) (err error) {
	for i := range done {
		d := &done[i]
		err = errors.Join(err, f.report.Repair(&reports.Repair{Repo: path, Ref: d.Ref, ID: d.ID, File: d.File, Before: d.Before, After: d.After,
			Action: d.Action, Applied: d.Applied, Journal: d.Journal, Diff: d.Diff}))
	}
	return err
}

// finish reports what became of one repository, when it is its turn.
func (f *fixing) finish(r *fixed) (err error) {
	if f.failed != nil {
		return f.failed // the run ends, and nothing more can be told of what was under way
	}
	defer func() { f.failed = err }()
	path, res := r.path, r.res
	if !res.Declined { // else it was shown when it was asked about
		err = f.show(path, res.Done)
	}
	for i := range res.Left {
		res.Left[i].Repo = path
		err = errors.Join(err, f.report.Finding(&res.Left[i]))
	}
	for _, n := range res.Notices {
		err = errors.Join(err, f.report.Notice(&reports.Notice{Repo: path, Message: n}))
	}
	end := reports.Repository{Repo: path, State: reports.State(res.Scan.State), Refs: res.Scan.Refs, Peels: res.Scan.Peels, Severities: res.Scan.Severities, Duration: r.took}
	err = errors.Join(err, f.count(path, res, r.err, &end))
	t := &f.tally.sum
	for k, n := range res.Scan.Severities {
		t.Severities[k] += n
	}
	for k, n := range res.Scan.IDs {
		t.IDs[k] += n
	}
	t.Refs += res.Scan.Refs
	t.PeelsChecked += res.Scan.Peels
	t.Repositories[end.State]++
	return errors.Join(err, f.report.Repository(&end))
}

// count notes what the exit code depends on, and says on stderr what went wrong; in the report too, where the
// line of the repository does not say it.
func (f *fixing) count(path string, res *repair.Result, failed error, end *reports.Repository) (err error) {
	var wrong []error
	switch {
	case errors.Is(failed, repair.ErrRefused):
		f.refused = true
		end.State = reports.Found
		wrong = append(wrong, failed)
	case failed != nil:
		end.State, end.Reason = reports.Incomplete, failed.Error()
		wrong = append(wrong, failed)
	case len(res.Scan.Unread) > 0:
		end.Reason = res.Scan.Unread[0]
	}
	if len(res.Failed) > 0 {
		end.State, end.Reason = reports.Incomplete, res.Failed[0].Error()
	}
	for _, why := range slices.Concat(wrong, res.Held, res.Refused, res.Failed) {
		fmt.Fprintf(f.env.stderr, "refaudit: %s: %s\n", reports.Escape(path), reports.Escape(why.Error()))
		if why.Error() != end.Reason {
			err = errors.Join(err, f.report.Notice(&reports.Notice{Repo: path, Message: why.Error()}))
		}
	}
	f.held = f.held || len(res.Held) > 0
	f.refused = f.refused || len(res.Refused) > 0
	f.changed = f.changed || res.Changed()
	for s, n := range res.Blocked {
		if s >= f.failOn {
			f.blocked += n
		}
	}
	return err
}

// end writes the summary and gives the exit code as an error.
func (f *fixing) end(ctx context.Context, err error, publish func() error) error {
	if cantWrite(err) {
		return errors.Join(err, publish())
	}
	t := &f.tally.sum
	looked := t.Repositories[reports.Clean] + t.Repositories[reports.Found] + t.Repositories[reports.Incomplete]
	code := f.code(t.Repositories[reports.Incomplete] > 0 || looked == 0)
	var sig *signalError
	var usage *usageError
	switch {
	case errors.As(context.Cause(ctx), &sig):
		code, t.Signal = sig.code(), sig.sig.String()
	case errors.As(err, &usage):
		code = exitUsage
		fmt.Fprintf(f.env.stderr, "refaudit: %s\n", reports.Escape(err.Error()))
	case err != nil:
		code = f.code(true)
		fmt.Fprintf(f.env.stderr, "refaudit: %s\n", reports.Escape(err.Error()))
	case looked == 0:
		fmt.Fprintln(f.env.stderr, "refaudit: no repository was found")
	case f.options.DryRun && !f.o.dryRun:
		fmt.Fprintln(f.env.stderr, "refaudit: nothing was written; --yes makes the changes")
	}
	t.Exit, t.Duration = code, f.env.now().Sub(f.tally.start)
	if err := errors.Join(f.report.Summary(t), publish()); err != nil {
		return err
	}
	return exitWith(code)
}

// code is what a scan would give now; what is left only because of a lock or a refusal has codes of its own.
func (f *fixing) code(incomplete bool) int {
	code := verdict(f.tally.atLeast(f.failOn)-f.blocked, incomplete)
	switch {
	case code == exitFindings || code == exitBoth:
	case f.refused:
		return exitRefused
	case f.held:
		return exitLocked
	case code == exitOK && f.changed && f.o.detailed:
		return exitChanged
	}
	return code
}
