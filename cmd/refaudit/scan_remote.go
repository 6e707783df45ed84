package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"refaudit/finding"
	"refaudit/internal/fleet"
	"refaudit/internal/logging"
	"refaudit/internal/remote"
	"refaudit/repo"
	"refaudit/reports"
	"refaudit/scan"
)

// remoteLimit is how long one request to a server may take where --timeout-per-repo says nothing. A clone may be
// as slow as it likes, an audit of tags has to end.
const remoteLimit = 30 * time.Minute

// runScanRemote audits a server from outside.
func runScanRemote(ctx context.Context, e env, o scanOptions) error {
	e.arm() // a scratch repository is made
	if len(o.paths) > 0 || o.from != "" || o.gitDir != "" || o.recursive {
		return usagef("--remote names the repository: no PATH goes with it")
	}
	rest := o.fleetOptions
	if rest.timeout, rest.maxDuration = 0, 0; rest.given() {
		return usagef("--remote audits one server from outside: what is for whole servers of repositories does not go with it")
	}
	if err := o.fleetOptions.check(); err != nil {
		return err
	}
	least, err := failOn(o.failOn)
	if err != nil {
		return err
	}
	if o.maxFindings < 0 {
		return usagef("--max-findings takes a number from 0 up")
	}
	url, err := remote.Parse(o.remote, e.dir)
	if err != nil {
		return &usageError{err}
	}
	report, publish, err := o.output.open(e)
	if err != nil {
		return err
	}
	s := &scanning{env: e, report: report, tally: newTally(e.now()), failOn: least, strict: o.strict, whole: &whole{o: &o.fleetOptions, env: e},
		options: scan.Options{MaxFindings: o.maxFindings, Now: e.now}}
	if err := report.Start(&reports.Start{Command: "scan", Version: versionString(), Time: e.now()}); err != nil {
		return err
	}
	r, began := &result{path: url.String()}, e.now()
	limited, cancel := s.whole.limited(ctx)
	defer cancel()
	if o.timeout > 0 {
		limited, cancel = context.WithTimeoutCause(limited, o.timeout, fmt.Errorf("%w: more than %v", fleet.ErrTimeout, o.timeout))
		defer cancel()
	}
	r.res, r.err = s.auditRemote(limited, url, func(f *finding.Finding) error {
		f.Repo = r.path
		return report.Finding(f)
	})
	if r.err != nil && errors.Is(context.Cause(limited), errMaxDuration) {
		r.err = fmt.Errorf("%w (%v): not looked at to the end", errMaxDuration, o.maxDuration)
		s.tally.sum.Stopped = "max-duration"
	}
	if refused := (*remote.Refused)(nil); errors.As(r.err, &refused) {
		return s.end(ctx, &usageError{r.err}, publish)
	}
	r.conclude(e.now().Sub(began))
	return s.end(ctx, s.finish(r), publish)
}

func (s *scanning) auditRemote(ctx context.Context, url remote.URL, report func(*finding.Finding) error) (scan.Result, error) {
	config, err := repo.UserConfig(s.env.seeing())
	if err != nil {
		return scan.Result{}, err
	}
	policy, err := scan.NewRemotePolicy(config, s.env.dir, s.strict, s.env.now())
	if err != nil {
		return scan.Result{}, err
	}
	limit := remoteLimit
	if s.whole.o.timeout > 0 {
		limit = 0 // the context has it
	}
	r, err := remote.Open(ctx, url, remote.Options{Alone: true, Env: append(os.Environ(), "LC_ALL=C"), Dir: s.env.dir, Limit: limit,
		Trace: func(args []string) { s.env.log.Debug("run git", logging.Strings("args", args)) }})
	if err != nil {
		return scan.Result{}, err
	}
	return remote.Audit(ctx, r, policy, s.options, report)
}
