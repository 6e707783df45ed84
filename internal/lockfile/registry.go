package lockfile

import (
	"errors"
	"sync"

	"refaudit/internal/vfs"
)

// errOurs tells that this process holds the lock already.
var errOurs = errors.New("this process holds the lock")

type key struct {
	fsys vfs.FS
	path string
}

// registry is every lock that this process holds or is about to make. A second writer in the
// process is refused here, also if somebody has removed the first one's lock file.
var registry = struct {
	sync.Mutex
	held map[key]*Lock
}{held: map[key]*Lock{}}

func register(l *Lock) error {
	registry.Lock()
	defer registry.Unlock()
	k := key{l.fsys, l.path}
	if registry.held[k] != nil {
		return errOurs
	}
	registry.held[k] = l
	return nil
}

func forget(l *Lock) {
	registry.Lock()
	defer registry.Unlock()
	if k := (key{l.fsys, l.path}); registry.held[k] == l {
		delete(registry.held, k)
	}
}

// RollbackAll gives back every lock of this process; for a program about to end on a signal. A
// commit that is under way is waited for.
func RollbackAll() error {
	registry.Lock()
	locks := make([]*Lock, 0, len(registry.held))
	for _, l := range registry.held {
		locks = append(locks, l)
	}
	registry.Unlock()
	var errs []error
	for _, l := range locks {
		errs = append(errs, l.Rollback())
	}
	return errors.Join(errs...)
}
