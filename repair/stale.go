package repair

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"refaudit/internal/lockfile"
)

// removeStale removes the locks of the ref stores that were left behind. Each is watched for a
// while, all of them at the same time.
func (s *session) removeStale(ctx context.Context) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	for _, path := range s.lockable() {
		wg.Add(1)
		go func() {
			defer wg.Done()
			age, err := lockfile.Stale{Path: path, Older: s.o.OlderThan}.RemoveStale(ctx, s.o.FS)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				s.res.Notices = append(s.res.Notices, fmt.Sprintf("the lock stays: %v", err))
			case age > 0:
				s.res.Notices = append(s.res.Notices, fmt.Sprintf("%s%s: left behind %v ago, removed", path, lockfile.Suffix, age.Round(time.Second)))
			}
		}()
	}
	wg.Wait()
	slices.Sort(s.res.Notices)
}

// lockable are the files of the ref stores that have locks now.
func (s *session) lockable() (paths []string) {
	for _, st := range s.stores {
		switch r := st.refs.(type) {
		case *Stack:
			paths = append(paths, s.locksIn(r.Dir, false)...)
		case *Loose:
			if path, err := lockfile.Resolve(s.o.FS, filepath.Join(r.Dir, "packed-refs")); err == nil && st.prefix == "" {
				paths = append(paths, path)
			}
			paths = append(paths, filepath.Join(r.Dir, "HEAD"))
			paths = append(paths, s.locksIn(filepath.Join(r.Dir, "refs"), true)...)
		}
	}
	return paths
}

// locksIn lists what is locked in a folder. A folder that can't be read has no locks that we could remove.
func (s *session) locksIn(dir string, deep bool) (paths []string) {
	names, err := s.o.FS.ReadDir(dir)
	if err != nil {
		return nil
	}
	for _, name := range names {
		path := filepath.Join(dir, name)
		if locked, ok := strings.CutSuffix(path, lockfile.Suffix); ok && !strings.HasSuffix(locked, "~pid") {
			paths = append(paths, locked)
			continue
		}
		if st, err := s.o.FS.Lstat(path); deep && err == nil && st.Mode.IsDir() {
			paths = append(paths, s.locksIn(path, true)...)
		}
	}
	return paths
}
