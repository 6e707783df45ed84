package usage

import (
	"sync"

	"refaudit/internal/bitmap"
)

// lender keeps the memory of bit sets for the next repository. Sets of a pool's size are large, fresh
// memory costs a page fault every few of their words, and a fork needs a dozen of them. It is safe for
// concurrent use.
type lender struct {
	mu    sync.Mutex
	free  map[int][]bitmap.Set // by capacity, in grains
	bytes int                  // of all that are free
}

const (
	grain     = 1024 // words: forks of one pool differ in size by less than they have in common
	lendBytes = 64 << 20
)

func grains(words int) int { return (words + grain - 1) / grain }

// loan is the sets that one look at a repository has borrowed. It is for one goroutine. Of nil, sets
// are made anew, for those who keep them.
type loan struct {
	from  *lender
	taken []bitmap.Set
}

// set is an empty set of n positions, valid until end.
func (l *loan) set(n int) bitmap.Set {
	if l == nil {
		return bitmap.NewSet(n)
	}
	words := (n + 63) >> 6
	s := l.from.take(grains(words))
	l.taken = append(l.taken, s)
	s = s[:words]
	s.Clear()
	return s
}

// end gives all back. Nobody may be using them any more.
func (l *loan) end() {
	if l == nil {
		return
	}
	l.from.giveBack(l.taken)
	l.taken = nil
}

func (l *lender) take(size int) bitmap.Set {
	l.mu.Lock()
	defer l.mu.Unlock()
	free := l.free[size]
	if len(free) == 0 {
		return make(bitmap.Set, size*grain)
	}
	s := free[len(free)-1]
	l.free[size] = free[:len(free)-1]
	l.bytes -= 8 * len(s)
	return s
}

func (l *lender) giveBack(sets []bitmap.Set) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.free == nil {
		l.free = map[int][]bitmap.Set{}
	}
	for _, s := range sets {
		if l.bytes+8*len(s) > lendBytes {
			return
		}
		l.bytes += 8 * len(s)
		l.free[len(s)/grain] = append(l.free[len(s)/grain], s)
	}
}
