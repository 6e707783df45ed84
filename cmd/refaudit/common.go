package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"refaudit/finding"
	"refaudit/repo"
	"refaudit/reports"
	"refaudit/scan"
)

// output is how results are written: flags that every command with a report takes.
type output struct {
	format  string
	file    string
	quiet   bool
	summary bool
	color   string
	jobs    int
	metrics string
	alone   bool // the run is about one repository
	figures bool // the command gives figures
}

func (o *output) flags() []cli.Flag {
	quiet := "findings only: silent when all is well"
	if o.figures {
		quiet = "figures and findings only: no notes and no summary"
	}
	return []cli.Flag{
		&cli.StringFlag{Name: "format", Value: "text", Destination: &o.format, Usage: "write results as `FORMAT`: text, git, jsonl, sarif, junit or html"},
		&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Destination: &o.file, Usage: "write results to `FILE`, which is replaced when they are complete (-: standard output)"},
		&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Destination: &o.quiet, Usage: quiet},
		&cli.BoolFlag{Name: "summary", Destination: &o.summary, Usage: "the summary only"},
		&cli.StringFlag{Name: "color", Value: "auto", Destination: &o.color, Usage: "colours: auto, always or never; NO_COLOR is honoured"},
		&cli.StringFlag{Name: "metrics-textfile", Destination: &o.metrics, Usage: "write Prometheus metrics of the run to `FILE`, which is replaced"},
		&cli.IntFlag{Name: "jobs", Aliases: []string{"j"}, Destination: &o.jobs, Usage: "work on `N` repositories at a time (0: one a processor)"},
	}
}

// check looks at the flags alone.
func (o *output) check() error {
	if o.color != "always" && o.color != "auto" && o.color != "never" {
		return usagef("--color takes auto, always or never, not %q", o.color)
	}
	if o.jobs < 0 {
		return usagef("--jobs takes a number from 0 up")
	}
	if _, err := reports.New(o.format, io.Discard, reports.Options{}); err != nil {
		return &usageError{err}
	}
	return nil
}

// open makes the report. What it returns second publishes the file of -o, and must be called.
func (o *output) open(e env) (reports.Report, func() error, error) {
	if err := errors.Join(o.check(), e.checkConfig()); err != nil {
		return nil, nil, err
	}
	if o.file == "-" { // standard output, where it goes anyway
		o.file = ""
	}
	no, set := e.getenv("NO_COLOR")
	color := o.color == "always" || o.color == "auto" && e.terminal && o.file == "" && !(set && no != "")
	if o.jobs == 0 {
		o.jobs = runtime.GOMAXPROCS(0)
	}
	if err := noDash("metrics-textfile", o.metrics); err != nil {
		return nil, nil, err
	}
	if o.metrics != "" {
		if st, err := os.Stat(filepath.Dir(o.metrics)); err != nil || !st.IsDir() {
			return nil, nil, usagef("--metrics-textfile: there is no folder %s", filepath.Dir(o.metrics))
		}
	}
	if o.file != "" || o.metrics != "" {
		e.arm()
	}
	f := &flushing{b: &buffer{w: e.stdout, before: e.arm}, alone: o.alone, metrics: o.metrics, now: e.now}
	var err error
	if f.Report, err = reports.New(o.format, f.b, reports.Options{Quiet: o.quiet, Summary: o.summary, Color: color}); err != nil {
		return nil, nil, &usageError{err}
	}
	if o.file != "" {
		if f.file, err = newFile(o.file); err != nil {
			return nil, nil, usagef("-o: %w", err)
		}
		f.b.w = f.file
	}
	return f, f.publish, nil
}

// noDash refuses standard output, which holds the report, for a flag that names another file.
func noDash(flag, path string) error {
	if path == "-" {
		return usagef("--%s takes a file; one named - is ./-", flag)
	}
	return nil
}

// checkConfig judges the settings that hold for all repositories, before any of them is read.
func (e *env) checkConfig() error {
	c, err := repo.UserConfig(e.seeing())
	if err == nil {
		err = scan.CheckSettings(c)
	}
	if err != nil {
		return &usageError{err}
	}
	return nil
}

// buffer gathers what is written; flushing empties it after each repository. It is safe for concurrent use.
type buffer struct {
	w      io.Writer
	before func() // called before anything is written that is not all
	mu     sync.Mutex
	b      []byte
	err    error // the first failure: what comes after it would stand in a wrong place
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.b = append(b.b, p...)
	if len(b.b) >= 64<<10 {
		b.before()
		return len(p), b.empty()
	}
	return len(p), nil
}

// flush writes what was gathered; last tells that nothing comes after it.
func (b *buffer) flush(last bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.b) > 0 && !last {
		b.before()
	}
	return b.empty()
}

func (b *buffer) empty() error {
	if b.err == nil {
		_, b.err = b.w.Write(b.b)
	}
	b.b = b.b[:0]
	return b.err
}

// progress is where records of progress go, which come while others write; nil: nowhere.
func (o *output) progress(r reports.Report) func(*reports.Progress) {
	if o.format != "jsonl" || o.quiet || o.summary {
		return nil
	}
	return func(p *reports.Progress) { _ = r.Progress(p) } // who can't write learns it from the next result
}

type flushing struct {
	reports.Report
	b       *buffer
	file    *ownFile // of -o; nil: standard output
	whole   bool     // the report has its end, and nothing of it was lost
	alone   bool
	metrics string
	now     func() time.Time
}

// Progress comes from a goroutine of its own: each line is one write.
func (f *flushing) Progress(p *reports.Progress) error {
	return errors.Join(f.Report.Progress(p), f.b.flush(false))
}

func (f *flushing) Repository(r *reports.Repository) error {
	err := f.Report.Repository(r)
	if f.alone { // the summary follows at once
		return err
	}
	return errors.Join(err, f.b.flush(false))
}

// Summary ends the report. The metrics are written when it is safe: they tell how the run has ended.
func (f *flushing) Summary(s *reports.Summary) error {
	err := errors.Join(f.Report.Summary(s), f.b.flush(true))
	if err == nil && f.file != nil {
		err = f.file.sync()
	}
	f.whole = err == nil
	if f.metrics == "" || err != nil {
		return err
	}
	if err := writeFile(f.metrics, func(w io.Writer) error { return reports.Metrics(w, s, f.now()) }); err != nil {
		return fmt.Errorf("--metrics-textfile: %w", err)
	}
	return nil
}

// publish gives the file of -o its name. A report without its end, or with a part that was lost, is thrown away.
func (f *flushing) publish() error {
	err := f.b.flush(true)
	switch {
	case f.file == nil:
		return err
	case f.whole && err == nil:
		err = f.file.publish()
	default:
		f.file.discard()
	}
	if err != nil {
		return fmt.Errorf("-o: %w", err)
	}
	return nil
}

// newFile begins a file of the user's: it appears under its name when it is whole, or not at all. A
// device, a pipe or what is open already is written to, and never replaced; a symbolic link stays one.
func newFile(name string) (*ownFile, error) {
	st, err := os.Stat(name)
	switch {
	case err == nil && st.IsDir():
		return nil, fmt.Errorf("%s is a folder", name)
	case err == nil && (!st.Mode().IsRegular() || isOpenFile(name)):
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			return nil, err
		}
		return &ownFile{f: f}, nil
	case err == nil:
		if name, err = filepath.EvalSymlinks(name); err != nil {
			return nil, err
		}
	}
	f, err := os.CreateTemp(filepath.Dir(name), ".refaudit-*")
	if err != nil {
		return nil, err
	}
	return &ownFile{f: f, name: name}, nil
}

// isOpenFile tells whether a name is /dev/stdout or the like, which leads to a file of ours that is open.
func isOpenFile(name string) bool {
	const open = "/proc/"
	if to, err := os.Readlink(name); err == nil && strings.HasPrefix(to, open) {
		return true
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(name))
	return err == nil && strings.HasPrefix(dir, open)
}

// writeFile writes a file of the user's whole, or leaves it as it is.
func writeFile(name string, fill func(io.Writer) error) error {
	f, err := newFile(name)
	if err != nil {
		return err
	}
	if err := fill(f); err != nil {
		f.discard()
		return err
	}
	return f.publish()
}

// ownFile is a file on its way to its name. Once a write has failed it never gets there.
type ownFile struct {
	f    *os.File
	name string // "": it has it already
	err  error  // the first failure
}

// Write implements io.Writer.
func (f *ownFile) Write(p []byte) (n int, err error) {
	if f.err == nil {
		n, f.err = f.f.Write(p)
	}
	return n, f.err
}

// sync brings what was written to the disk, where some file systems notice only then that it is full.
func (f *ownFile) sync() error {
	if f.err == nil && f.name != "" {
		f.err = f.f.Sync()
	}
	return f.err
}

// publish gives the file its name, or throws away what is not whole: what had the name before stays then.
func (f *ownFile) publish() error {
	if f.name == "" {
		return errors.Join(f.err, f.f.Close())
	}
	if f.sync() == nil {
		f.err = f.f.Chmod(0o644)
	}
	if err := f.f.Close(); f.err == nil {
		f.err = err
	}
	if f.err == nil {
		f.err = os.Rename(f.f.Name(), f.name)
	}
	if f.err != nil {
		os.Remove(f.f.Name())
		return fmt.Errorf("%s is left as it was: %w", f.name, f.err)
	}
	return nil
}

// discard throws the file away.
func (f *ownFile) discard() {
	f.f.Close()
	if f.name != "" {
		os.Remove(f.f.Name())
	}
}

// tally adds up what the summary tells.
type tally struct {
	sum   reports.Summary
	start time.Time
}

func newTally(now time.Time) *tally {
	return &tally{start: now, sum: reports.Summary{
		Severities:   map[finding.Severity]int64{},
		IDs:          map[finding.ID]int64{},
		Repositories: map[reports.State]int64{},
	}}
}

// atLeast counts the findings that are at least this severe.
func (t *tally) atLeast(least finding.Severity) (n int64) {
	for s, k := range t.sum.Severities {
		if s >= least {
			n += k
		}
	}
	return n
}
