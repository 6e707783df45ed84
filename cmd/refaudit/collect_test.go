package main

import (
	"math"
	"runtime"
	"runtime/debug"
	"sync"
	"testing"
	"time"
)

func none(string) (string, bool) { return "", false }

// collecting gives the settings of the collection of garbage.
func collecting() (percent int, limit int64) {
	percent = debug.SetGCPercent(-1)
	debug.SetGCPercent(percent)
	return percent, debug.SetMemoryLimit(-1)
}

func TestCollectLate(t *testing.T) {
	percent, limit := collecting()
	if percent < 0 || limit != math.MaxInt64 {
		t.Skip("garbage is collected by other rules here")
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	collectLate(none, int64(before.Sys)+64<<20)
	for range 32 {
		garbage = make([]byte, 1<<20)
	}
	runtime.ReadMemStats(&after)
	if after.NumGC != before.NumGC {
		t.Errorf("%d collections", after.NumGC-before.NumGC)
	}
	collectLate(none, 1<<40) // while it is on
	for range 1000 {
		garbage = make([]byte, 1<<20)
		if gotPercent, gotLimit := collecting(); gotPercent == percent && gotLimit == limit {
			return
		}
		time.Sleep(time.Millisecond)
	}
	gotPercent, gotLimit := collecting()
	t.Errorf("after 1 GB of garbage: %d %d, not %d %d", gotPercent, gotLimit, percent, limit)
}

var garbage []byte

func TestCollectLateObeys(t *testing.T) {
	percent, limit := collecting()
	for _, name := range []string{"GOGC", "GOMEMLIMIT"} {
		collectLate(func(n string) (string, bool) { return "100", n == name }, 1<<20)
		if gotPercent, gotLimit := collecting(); gotPercent != percent || gotLimit != limit {
			t.Errorf("%s: %d %d, not %d %d", name, gotPercent, gotLimit, percent, limit)
		}
	}
}

// However many commands run in one program, garbage is collected in the end as at the start.
func TestCollectLateSideBySide(t *testing.T) {
	percent, limit := collecting()
	if percent < 0 || limit != math.MaxInt64 {
		t.Skip("garbage is collected by other rules here")
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				collectLate(none, 1<<20)
				runtime.GC()
			}
		})
	}
	wg.Wait()
	for range 1000 {
		runtime.GC()
		collection.Lock()
		late := collection.late
		collection.Unlock()
		if !late {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if gotPercent, gotLimit := collecting(); gotPercent != percent || gotLimit != limit {
		t.Errorf("%d %d, not %d %d", gotPercent, gotLimit, percent, limit)
	}
}
