package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"sync/atomic"
	"time"

	"github.com/urfave/cli/v2"

	"refaudit/finding"
	"refaudit/internal/fleet"
	"refaudit/internal/gitconfig"
	"refaudit/internal/logging"
	"refaudit/internal/state"
	"refaudit/internal/vfs"
	"refaudit/reports"
	"refaudit/scan"
)

// fleetOptions are for scans of whole servers: which repositories are read, what counts, and how
// much of the machine a scan takes.
type fleetOptions struct {
	stateOptions
	timeout, maxDuration, maxAge, jitter time.Duration
	subset                               string
	onlyBad, changedOnly                 bool
	baseline, writeBaseline              string
	single, ioIdle                       bool
	readRate, pageCache                  string
}

func (o *fleetOptions) flags() []cli.Flag {
	return append([]cli.Flag{
		&cli.DurationFlag{Name: "timeout-per-repo", Destination: &o.timeout, Usage: "give up on a repository after `DUR`, such as 10m: it is incomplete"},
		&cli.DurationFlag{Name: "max-duration", Destination: &o.maxDuration, Usage: "end the run after `DUR`: what was not reached is incomplete"},
		&cli.StringFlag{Name: "subset", Destination: &o.subset, Usage: "take one part of the repositories: `N/T`, the N-th of T; a repository is always in the same one"},
		&cli.DurationFlag{Name: "max-age", Destination: &o.maxAge, Usage: "pass over a repository that has not changed since a clean audit of the last `DUR`, as --state remembers it"},
		&cli.BoolFlag{Name: "changed-only", Destination: &o.changedOnly, Usage: "pass over a repository that has not changed since its last audit; what that gave still counts"},
		&cli.BoolFlag{Name: "only-known-bad", Destination: &o.onlyBad, Usage: "read only repositories whose last audit was not clean"},
		&cli.StringFlag{Name: "baseline", Destination: &o.baseline, Usage: "findings in `FILE`, a report of --format=jsonl, are known: only others count"},
		&cli.StringFlag{Name: "write-baseline", Destination: &o.writeBaseline, Usage: "write all findings to `FILE`, for --baseline"},
		&cli.BoolFlag{Name: "single-instance", Destination: &o.single, Usage: "do nothing if another such scan with the same --state is at work (exit code 5)"},
		&cli.DurationFlag{Name: "lock-timeout", Destination: &o.lockTimeout, Usage: "with --single-instance: wait so long for the other one; -1s: for ever"},
		&cli.DurationFlag{Name: "jitter", Destination: &o.jitter, Usage: "wait a random time of up to `DUR` first, so that not all servers begin at once"},
		&cli.BoolFlag{Name: "io-idle", Destination: &o.ioIdle, Usage: "read from the disk only when nobody else does, as ionice -c 3 (Linux)"},
		&cli.StringFlag{Name: "read-rate", Destination: &o.readRate, Usage: "read at most `BYTES` a second from the disk, with a unit of k, m or g (Linux)"},
		&cli.StringFlag{Name: "page-cache", Value: "auto", Destination: &o.pageCache, Usage: "leave the page cache as it was (leave), use it as usual (use), or leave it with --recursive and --repos-from (auto)"},
	}, o.stateOptions.flags()...)
}

// given tells whether any of the flags is set.
func (o *fleetOptions) given() bool {
	rest := *o
	rest.pageCache = ""
	return rest != fleetOptions{} || o.pageCache != "" && o.pageCache != "auto"
}

// remembers tells whether the flags ask for something that earlier runs have noted.
func (o *fleetOptions) remembers() bool {
	return o.dir != "" || o.maxAge > 0 || o.changedOnly || o.onlyBad
}

// whole is a run over any number of repositories, as the flags want it.
type whole struct {
	o        *fleetOptions
	env      env
	level    scan.Level
	least    finding.Severity
	subset   fleet.Subset
	memory   *fleet.Memory // nil: nothing is remembered
	folder   *state.Folder // where
	stamper  *fleet.Stamper
	rules    string // what has a say in all audits
	baseline *fleet.Baseline
	gathered *fleet.Gathered
	pace     func(context.Context) error
	held     *vfs.Held
	leaving  bool // the page cache is left as it was

	passedOver, never atomic.Int64           // repositories that were not wanted, and of these the ones never audited
	last              atomic.Pointer[string] // repository that was come to
	begun             atomic.Int64
	flushed           time.Time
	notices           []string
	trouble           chan error // the first one with the memory; nobody's audit suffers from it
}

// errMaxDuration is the cause of a context that --max-duration has ended.
var errMaxDuration = errors.New("--max-duration is over")

// open checks the flags and gets ready. It waits, if the flags say so.
func (o *fleetOptions) open(ctx context.Context, e env, level scan.Level, least finding.Severity, several bool) (*whole, error) {
	w := &whole{o: o, env: e, level: level, least: least, flushed: e.now(), trouble: make(chan error, 1)}
	if err := o.check(); err != nil {
		return nil, err
	}
	var err error
	if o.subset != "" {
		if w.subset, err = fleet.ParseSubset(o.subset); err != nil {
			return nil, usagef("--subset: %w", err)
		}
	}
	w.rules = versionString()
	if o.baseline != "" {
		if err := w.readBaseline(); err != nil {
			return nil, usagef("--baseline: %w", err)
		}
	}
	if o.writeBaseline != "" {
		w.gathered = &fleet.Gathered{}
	}
	if err := w.manners(several); err != nil {
		return nil, err
	}
	if !o.remembers() && !o.single {
		return w, o.wait(ctx)
	}
	folder, err := o.folder(e)
	if err != nil {
		return nil, err
	}
	if o.remembers() {
		w.folder, w.memory, w.stamper = folder, fleet.NewMemory(folder, e.now), fleet.NewStamper(e.now)
	}
	if err := o.wait(ctx); err != nil {
		return nil, err
	}
	if o.single {
		w.held, err = o.lock(ctx, e, folder, "scan")
	}
	return w, err
}

func (o *fleetOptions) check() error {
	for name, d := range map[string]time.Duration{"timeout-per-repo": o.timeout, "max-duration": o.maxDuration, "max-age": o.maxAge, "jitter": o.jitter} {
		if d < 0 {
			return usagef("--%s takes a time from 0 up", name)
		}
	}
	if o.writeBaseline != "" && (o.maxAge > 0 || o.changedOnly || o.onlyBad || o.subset != "") {
		return usagef("--write-baseline needs all findings: it doesn't go with --max-age, --changed-only, --only-known-bad or --subset")
	}
	if err := noDash("write-baseline", o.writeBaseline); err != nil {
		return err
	}
	switch o.pageCache {
	case "", "auto", "leave", "use":
		return nil
	}
	return usagef("--page-cache takes auto, leave or use, not %q", o.pageCache)
}

// wait is --jitter.
func (o *fleetOptions) wait(ctx context.Context) error {
	if o.jitter == 0 {
		return nil
	}
	return fleet.Sleep(ctx, rand.N(o.jitter))
}

func (w *whole) readBaseline() error {
	f, err := os.Open(w.o.baseline)
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha256.New()
	if w.baseline, err = fleet.ReadBaseline(io.TeeReader(f, h)); err != nil {
		return fmt.Errorf("%s: %w", w.o.baseline, err)
	}
	w.rules += " " + hex.EncodeToString(h.Sum(nil))
	return nil
}

// manners are what others on the machine notice of us.
func (w *whole) manners(several bool) error {
	if w.o.ioIdle {
		if err := vfs.IdleIO(); err != nil {
			return usagef("--io-idle: %w", err)
		}
	}
	if w.o.readRate != "" {
		rate, err := gitconfig.ParseInt(w.o.readRate, math.MaxInt64)
		if err != nil || rate <= 0 {
			return usagef("--read-rate takes a number of bytes, such as 10m, not %q", w.o.readRate)
		}
		p, err := fleet.NewPacer(rate, vfs.DiskRead)
		if err != nil {
			return usagef("--read-rate: %w", err)
		}
		w.pace = p.Pause
	}
	w.leaving = w.o.pageCache == "leave" || several && w.o.pageCache != "use"
	vfs.LeaveCache(w.leaving)
	return nil
}

// wants tells whether a repository is read at all.
func (w *whole) wants(path string) bool {
	if !w.subset.Has(path) {
		w.passedOver.Add(1)
		return false
	}
	if !w.o.onlyBad {
		return true
	}
	a, known, err := w.memory.Last(path)
	if known && !a.Bad() || !known && err == nil {
		w.passedOver.Add(1)
		if !known {
			w.never.Add(1)
		}
		return false
	}
	return true // also if what was known can't be read
}

// limited is the context of the run.
func (w *whole) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if w.o.maxDuration == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, w.o.maxDuration, errMaxDuration)
}

// stopped words why a run has ended early. total is how many repositories it came to: the last of them
// may have waited for its turn in vain.
func (w *whole) stopped(ctx context.Context, err error, total int64) error {
	if err == nil || !errors.Is(context.Cause(ctx), errMaxDuration) {
		return err
	}
	last := w.last.Load()
	switch {
	case last == nil:
		return fmt.Errorf("%w (%v): no repository was reached", errMaxDuration, w.o.maxDuration)
	case w.begun.Load() < total:
		return fmt.Errorf("%w (%v): %s and what comes after it was not reached", errMaxDuration, w.o.maxDuration, *last)
	}
	return fmt.Errorf("%w (%v): what comes after %s was not reached", errMaxDuration, w.o.maxDuration, *last)
}

// glance is what is known of a repository before it is read.
type glance struct {
	w       *whole
	path    string
	rules   string
	last    fleet.Audit
	stamp   fleet.Stamp
	stamped bool
	passed  bool // it was not read again
	folders []string
}

func (w *whole) begin(path string) *glance { return &glance{w: w, path: path} }

// look looks at what an open repository has to show without being read.
func (g *glance) look(ctx context.Context, t *scan.Target, p *scan.Policy) error {
	w := g.w
	g.folders = []string{t.Repo.CommonDir, t.Repo.GitDir}
	if w.memory == nil {
		return nil
	}
	g.rules = fleet.Rules(t, p, w.rules)
	var err error
	if g.stamp, err = w.stamper.Stamp(ctx, t); err == nil {
		g.stamped = true // else the audit will say what can't be looked at
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if g.last, _, err = w.memory.Last(g.path); err != nil {
		w.env.log.Warn("the repository is read, whatever is known of it", logging.String("repo", g.path), logging.Error(err))
	}
	return nil
}

// passOver tells whether the repository need not be read, and what its last audit gave.
func (g *glance) passOver() (scan.Result, bool) {
	w, a := g.w, &g.last
	if !g.stamped || a.Repo == "" || !a.Unchanged(&g.stamp, w.level, g.rules) {
		return scan.Result{}, false
	}
	young := w.o.maxAge > 0 && g.stamp.At.Sub(a.At) <= w.o.maxAge && !a.Bad() && a.Count(w.least) == 0
	if !young && !(w.o.changedOnly && a.State != scan.Incomplete) {
		return scan.Result{}, false
	}
	g.passed = true
	res := scan.Result{State: a.State, Unchanged: a.At, Refs: a.Refs, Peels: a.Peels, Known: a.Known, Severities: a.Severities, IDs: a.IDs}
	if a.Bad() {
		res.Notices = []string{fmt.Sprintf("is as it was on %s, when an audit gave %s and %s: it was not read again",
			a.At.Format(time.RFC3339), finding.Count(a.Severities[finding.Error], "error", "errors"), finding.Count(a.Severities[finding.Warn], "warning", "warnings"))}
	}
	return res, true
}

// note remembers what an audit gave. One that was cut short gives nothing.
func (g *glance) note(ctx context.Context, res *scan.Result, failed error) {
	if g.w.leaving && len(g.folders) > 0 { // what it borrows stays to the end: others may borrow it too
		vfs.DropCache(g.folders...)
	}
	if g.w.memory == nil || g.passed || ctx.Err() != nil && !errors.Is(context.Cause(ctx), fleet.ErrTimeout) {
		return
	}
	a := fleet.Audit{Repo: g.path, At: g.w.env.now(), Level: g.w.level, State: res.State, Rules: g.rules, Refs: res.Refs, Peels: res.Peels, Known: res.Known,
		Severities: res.Severities, IDs: res.IDs}
	switch {
	case failed != nil:
		a.State, a.Reason = scan.Incomplete, failed.Error()
	case g.stamped:
		a.Stamped(&g.stamp)
	}
	if len(res.Unread) > 0 {
		a.Reason = res.Unread[0]
	}
	if err := g.w.memory.Note(a); err != nil {
		select {
		case g.w.trouble <- err:
		default:
		}
	}
}

// known is what is asked of each finding of a repository: is it in the baseline?
func (w *whole) known(path string) func(*finding.Finding) bool {
	if w.baseline == nil && w.gathered == nil {
		return nil
	}
	return func(f *finding.Finding) bool {
		f.Repo = path
		if w.gathered != nil {
			w.gathered.Add(f)
		}
		return w.baseline != nil && w.baseline.Has(f)
	}
}

// flushEvery is how much a crash may make us forget.
const flushEvery = time.Minute

// flush writes what was noted, now and then. It is called from one goroutine at a time.
func (w *whole) flush(now bool) error {
	if w.memory == nil || !now && w.env.now().Sub(w.flushed) < flushEvery {
		return nil
	}
	w.flushed = w.env.now()
	if err := w.memory.Flush(context.Background()); err != nil {
		return fmt.Errorf("--state: %w", err)
	}
	return nil
}

// nothingMatched tells whether a run that has looked at nothing has missed something.
func (w *whole) nothingMatched() bool {
	return w.passedOver.Load() == 0 || w.never.Load() > 0
}

// end says what is left to say, before the summary.
func (w *whole) end(report reports.Report, cut bool) (err error) {
	vfs.DropCache()
	vfs.LeaveCache(false)
	defer func() {
		for _, n := range w.notices {
			err = errors.Join(err, report.Notice(&reports.Notice{Message: n}))
		}
	}()
	if n := w.never.Load(); n > 0 {
		w.notices = append(w.notices, finding.Count(n, "repository was", "repositories were")+" passed over (--only-known-bad) that no audit with this --state has seen")
	}
	if w.baseline != nil && !cut {
		if n := w.baseline.Gone(); n > 0 {
			w.notices = append(w.notices, finding.Count(n, "finding of the baseline was", "findings of the baseline were")+" not met again: it can be written anew")
		}
	}
	switch {
	case w.gathered == nil:
	case cut:
		w.notices = append(w.notices, "the baseline was not written: the run did not reach everything")
	default:
		err = w.saveBaseline()
	}
	select {
	case e := <-w.trouble:
		err = errors.Join(err, fmt.Errorf("--state: %w", e))
	default:
	}
	err = errors.Join(err, w.flush(true))
	if w.held != nil {
		err = errors.Join(err, w.held.Release())
	}
	return err
}

// ended notes how the run has ended.
func (w *whole) ended(sum *reports.Summary) error {
	if w.folder == nil || sum.Exit == exitUsage {
		return nil
	}
	return fleet.SaveRun(w.folder, fleet.Run{End: w.env.now().UTC(), Exit: sum.Exit, Signal: sum.Signal, Stopped: sum.Stopped})
}

func (w *whole) saveBaseline() error {
	w.env.arm()
	if err := writeFile(w.o.writeBaseline, w.gathered.Write); err != nil {
		return fmt.Errorf("--write-baseline: %w", err)
	}
	return nil
}
