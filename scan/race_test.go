package scan_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"refaudit/finding"
	"refaudit/internal/gittest"
	"refaudit/repo"
	"refaudit/scan"
)

// raceFor is how long writers run beside the audits, in each format.
const raceFor = 4 * time.Second

// Beside a git that packs refs, compacts tables, moves objects and deletes tags, an audit finds nothing: what
// is half-way there is not wrong.
func TestWritersMakeNoFalseFindings(t *testing.T) {
	for _, o := range formats() {
		t.Run(o.String(), func(t *testing.T) {
			r := gittest.New(t, o)
			b := r.Git("rev-parse", "refs/heads/main")
			ctx, cancel := context.WithCancel(context.Background())
			var writers sync.WaitGroup
			write := func(fn func(i int)) {
				writers.Go(func() {
					for i := 0; ctx.Err() == nil; i++ {
						fn(i)
					}
				})
			}
			git := func(args ...string) {
				r.Try(append([]string{"-c", "gc.auto=0", "-c", "reftable.lockTimeout=5000"}, args...)...)
			}
			write(func(i int) {
				tag := fmt.Sprintf("t%d", i%5)
				git("tag", "-f", "-a", "-m", fmt.Sprint(i), tag, b)
				git("update-ref", fmt.Sprintf("refs/heads/b%d", i%7), b)
				if i%3 == 0 {
					git("tag", "-d", tag)
				}
			})
			write(func(i int) {
				git("pack-refs", "--all")
				if i%2 == 0 {
					git("repack", "-adq")
				}
			})
			for end := time.Now().Add(raceFor); time.Now().Before(end); {
				res, found := audit(t, r.Path, scan.Standard)
				for i := range found {
					if found[i].Severity > finding.Info {
						t.Errorf("%s", describe(&found[i]))
					}
				}
				if res.State != scan.Clean {
					t.Errorf("%+v", res)
				}
			}
			cancel()
			writers.Wait()
		})
	}
}

// An audit that is told to stop says so, and hangs nowhere.
func TestACancelledAuditEnds(t *testing.T) {
	r, _ := gittest.Mismatch(t, gittest.Options{})
	target, err := scan.Open(r.Path, scan.ByPath, repo.Options{Env: repo.EmptyEnv})
	if err != nil {
		t.Fatal(err)
	}
	policy, err := scan.NewPolicy(target.Repo, false, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := scan.Repository(ctx, target, policy, scan.Options{Level: scan.Standard, Now: time.Now}, func(*finding.Finding) error { return nil }); err == nil {
		t.Error("a cancelled audit gave a result")
	}
	// and one whose caller has seen enough
	_, err = scan.Repository(context.Background(), target, policy, scan.Options{Level: scan.Standard, Now: time.Now}, func(*finding.Finding) error { return os.ErrClosed })
	if err != os.ErrClosed {
		t.Errorf("%v", err)
	}
}
