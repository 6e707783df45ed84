package fleet

import (
	"context"
	"sync"
	"time"
)

// Pacer holds a run to a rate of bytes that are read from the disks. It looks at what was read,
// now and then, and makes whoever asks wait until that much is due. It is safe for concurrent use.
type Pacer struct {
	rate  float64 // bytes a second
	read  func() (int64, error)
	now   func() time.Time
	sleep func(context.Context, time.Duration) error

	mu    sync.Mutex
	seen  int64
	when  time.Time
	spare float64 // bytes that may be read at once; negative: that were read too early
}

// NewPacer makes one for so many bytes a second; read tells how many were read so far.
func NewPacer(rate int64, read func() (int64, error)) (*Pacer, error) {
	seen, err := read()
	if err != nil {
		return nil, err
	}
	return &Pacer{rate: float64(rate), read: read, now: time.Now, sleep: Sleep, seen: seen, when: time.Now(), spare: float64(rate)}, nil
}

// maxPause is the longest that one Pause takes. What is not due by then is waited for by the next.
const maxPause = time.Hour

// Pause waits as long as it takes to get back to the rate. What was not used in a second is lost,
// so that a quiet hour does not end in a burst.
func (p *Pacer) Pause(ctx context.Context) error {
	p.mu.Lock()
	read, err := p.read()
	if err != nil {
		p.mu.Unlock()
		return err
	}
	now := p.now()
	p.spare = min(p.spare+now.Sub(p.when).Seconds()*p.rate, p.rate) - float64(read-p.seen)
	p.seen, p.when = read, now
	wait := time.Duration(min(-p.spare/p.rate, maxPause.Seconds()) * float64(time.Second))
	p.mu.Unlock()
	if wait <= 0 {
		return nil
	}
	return p.sleep(ctx, wait)
}

// Sleep waits, or gives the cause for which the context ended.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
