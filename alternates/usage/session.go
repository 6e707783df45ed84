package usage

import (
	"errors"
	"path/filepath"
	"runtime"
	"slices"
	"sync"

	"refaudit/finding"
	"refaudit/odb"
	"refaudit/oid"
)

// A Session measures any number of repositories. What it has learned of an object folder that is
// borrowed from it keeps, so that for many forks of one pool the pool is read and walked once.
// It is safe for concurrent use.
type Session struct {
	workers int

	mu       sync.Mutex
	pools    map[string]*folder // by path
	idle     []*folder          // pools that nobody uses, the longest unused first
	twins    map[[2]*store]*twinsOf
	closures closureCache
	sets     lender
}

// keepIdle is how many pools a session keeps that nobody uses at the moment.
const keepIdle = 8

// NewSession starts a session. workers is how many goroutines one repository may take; 0: one a processor.
func NewSession(workers int) *Session {
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	return &Session{workers: workers, pools: map[string]*folder{}, twins: map[[2]*store]*twinsOf{}}
}

// Close gives back what the session keeps. Nobody may be measuring any more.
func (s *Session) Close() error {
	var errs []error
	for _, p := range s.pools {
		errs = append(errs, p.close())
	}
	s.pools, s.idle = nil, nil
	return errors.Join(errs...)
}

// folder is an object folder that is open: a repository's own, or a pool.
type folder struct {
	path  string
	label string // before file names in messages
	once  sync.Once
	db    *odb.DB
	found []finding.Finding // about how it borrows
	store *store
	files folderScan
	err   error

	users int  // of a pool
	stale bool // a pool that is not to be used again

	mu      sync.Mutex
	reached map[string]*poolReach // what its refs reach, by which refs count
	nested  []*folder             // the pools that were needed for it
}

// open lists what an object folder has. all asks for the size of every file in it.
func (f *folder) open(format oid.Format, environment string, all bool, workers int) {
	f.db, f.found, f.err = odb.Open(f.path, format, odb.Options{Workers: workers, Alternates: environment, Alone: true, Label: f.label})
	if f.err == nil {
		own := f.db.Stores()[0]
		f.files = scanLoose(own.Dir(), format, all, own.PackFolder())
	}
}

// number opens the packs and numbers the objects. ahead is as in openStore.
func (f *folder) number(format oid.Format, workers int, ahead bool) {
	f.store, f.err = openStore(f.db.Stores()[0], format, f.label, f.files.loose, f.files.err, workers, ahead)
}

func (f *folder) close() error {
	var errs []error
	if f.store != nil {
		errs = append(errs, f.store.maps.close())
	}
	if f.db != nil {
		errs = append(errs, f.db.Close())
	}
	f.store, f.db = nil, nil
	return errors.Join(errs...)
}

// pool takes the pool at path, an object folder's without symbolic links. The caller gives it back. ahead
// is as in openStore.
func (s *Session) pool(path string, format oid.Format, ahead bool) (*folder, error) {
	s.mu.Lock()
	p := s.pools[path]
	if p == nil {
		p = &folder{path: path, label: path + string(filepath.Separator)}
		s.pools[path] = p
	}
	if p.users++; p.users == 1 {
		s.idle = slices.DeleteFunc(s.idle, func(q *folder) bool { return q == p })
	}
	s.mu.Unlock()
	p.once.Do(func() {
		if p.open(format, "", false, s.workers); p.err == nil {
			p.number(format, s.workers, ahead)
		}
	})
	if p.err != nil {
		s.expire(p)
		s.release(p)
		return nil, p.err
	}
	return p, nil
}

// expire makes sure that a pool is opened anew when it is next asked for.
func (s *Session) expire(p *folder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pools[p.path] == p {
		delete(s.pools, p.path)
	}
	p.stale = true
}

// release gives a pool back.
func (s *Session) release(p *folder) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.releaseLocked(p)
}

func (s *Session) releaseLocked(p *folder) error {
	if p.users--; p.users > 0 {
		return nil
	}
	if !p.stale {
		s.idle = append(s.idle, p)
		if len(s.idle) <= keepIdle {
			return nil
		}
		p = s.idle[0]
		s.idle = s.idle[1:]
		delete(s.pools, p.path)
	}
	for pair := range s.twins {
		if pair[0] == p.store || pair[1] == p.store {
			delete(s.twins, pair)
		}
	}
	s.closures.drop(p.store)
	var errs []error
	for _, q := range p.nested {
		errs = append(errs, s.releaseLocked(q))
	}
	p.nested = nil
	return errors.Join(append(errs, p.close())...)
}

// twinsOf is what two pools share.
type twinsOf struct {
	once sync.Once
	all  []twin
	err  error
}

// meet is what two stores share. Of pools it is remembered.
func (s *Session) meet(shared map[*store]bool) meeting {
	return func(a, b *store) ([]twin, error) {
		if !shared[a] || !shared[b] {
			return meet(a, b, s.workers)
		}
		s.mu.Lock()
		t := s.twins[[2]*store{a, b}]
		if t == nil {
			t = &twinsOf{}
			s.twins[[2]*store{a, b}] = t
		}
		s.mu.Unlock()
		t.once.Do(func() { t.all, t.err = meet(a, b, s.workers) })
		return t.all, t.err
	}
}
