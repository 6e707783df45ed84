package usage

import (
	"errors"
	"io/fs"
	"sync"
	"sync/atomic"

	"refaudit/finding"
)

// inParallel calls fn for 0 to n-1, from several goroutines.
func inParallel(workers, n int, fn func(i int)) {
	var next atomic.Int64
	run := func() {
		for {
			i := int(next.Add(1)) - 1
			if i >= n {
				return
			}
			fn(i)
		}
	}
	var wg sync.WaitGroup
	for range min(n, workers) - 1 {
		wg.Go(run)
	}
	run()
	wg.Wait()
}

// isGone tells whether a file was there when its folder was listed and is not any more.
func isGone(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// problem makes a finding of an error about a file.
func problem(id finding.ID, file string, err error) finding.Finding {
	var c *finding.Corrupt
	if errors.As(err, &c) {
		return c.Finding()
	}
	return finding.New(id, finding.Pos{File: file}, "%v", err)
}
