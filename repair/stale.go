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

// lockedLong is when the lock of a table is told of. Younger ones belong to a compaction at work.
const lockedLong = time.Minute

// tellTableLocks names the locks of tables that seem to have been left behind. They keep nobody from
// reading and updating refs, so that nothing else tells of them.
func (s *session) tellTableLocks() {
	for _, st := range s.stores {
		if st.stack == nil {
			continue
		}
		names, err := s.o.FS.ReadDir(st.stack.Dir)
		if err != nil {
			continue // told of by the audit
		}
		for _, name := range names {
			table, locked := strings.CutSuffix(name, lockfile.Suffix)
			if !locked || !strings.HasSuffix(table, ".ref") {
				continue
			}
			info, err := s.o.FS.Lstat(filepath.Join(st.stack.Dir, name))
			if err != nil {
				continue // gone by now
			}
			age := s.now().Sub(info.ModTime).Round(time.Second)
			switch gone := !slices.Contains(names, table); {
			case gone:
				s.notice("%s/%s: the table that it locks is gone: unless a compaction is ending at this moment it was left behind, and refaudit fix --stale-locks --older-than=AGE removes it", st.label, name)
			case age >= lockedLong:
				s.notice("%s/%s has stood for %v, and keeps git from compacting that table: if no git runs here it was left behind, and refaudit fix --stale-locks --older-than=AGE removes it", st.label, name, age)
			}
		}
	}
}

func (s *session) notice(format string, args ...any) {
	s.res.Notices = append(s.res.Notices, fmt.Sprintf(format, args...))
}

func (s *session) now() time.Time {
	if s.o.Scan.Now == nil {
		return time.Now()
	}
	return s.o.Scan.Now()
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
			paths = append(paths, s.locksIn(filepath.Join(r.Dir, "logs"), true)...)
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
		if locked, ok := lockfile.Locked(path); ok {
			if !slices.Contains(paths, locked) {
				paths = append(paths, locked)
			}
			continue
		}
		if st, err := s.o.FS.Lstat(path); deep && err == nil && st.Mode.IsDir() {
			paths = append(paths, s.locksIn(path, true)...)
		}
	}
	return paths
}
