package main

import (
	"math"
	"runtime"
	"runtime/debug"
	"sync"
)

// firstCollection is how many bytes of memory a command may take before garbage is collected for the first time.
const firstCollection = 64 << 20

// collectLate puts the first collection of garbage off until the program has so many bytes of memory; from then
// on it is collected as ever. The runtime would begin at 4 MB, which a command has passed before there is any garbage, and again
// at each doubling: for a run that is over before the memory is worth having that is work for nothing. Whoever has
// set GOGC or GOMEMLIMIT is obeyed.
func collectLate(getenv func(string) (string, bool), bytes int64) {
	for _, name := range []string{"GOGC", "GOMEMLIMIT"} {
		if _, set := getenv(name); set {
			return
		}
	}
	collection.Lock()
	defer collection.Unlock()
	if collection.late {
		return
	}
	percent, limit := debug.SetGCPercent(-1), debug.SetMemoryLimit(bytes)
	restore := func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	}
	if percent < 0 || limit != math.MaxInt64 {
		restore()
		return
	}
	collection.late = true
	runtime.SetFinalizer(&firstGarbage{}, func(*firstGarbage) { // is found by the first collection
		collection.Lock()
		defer collection.Unlock()
		restore()
		collection.late = false
	})
}

// collection tells whether the first one is put off.
var collection struct {
	sync.Mutex
	late bool
}

// firstGarbage is large enough not to share its place with anything that lives.
type firstGarbage struct{ _ [2]*byte }
