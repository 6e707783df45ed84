package fleet

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestAPacerKeepsTheRate(t *testing.T) {
	var read int64
	now := time.Unix(0, 0)
	slept := time.Duration(0)
	p, err := NewPacer(1000, func() (int64, error) { return read, nil })
	if err != nil {
		t.Fatal(err)
	}
	p.when, p.now = now, func() time.Time { return now }
	p.sleep = func(_ context.Context, d time.Duration) error { slept += d; now = now.Add(d); return nil }
	ctx := context.Background()
	pause := func(bytes int64, after time.Duration, want time.Duration) {
		t.Helper()
		read += bytes
		now = now.Add(after)
		slept = 0
		if err := p.Pause(ctx); err != nil || (slept-want).Abs() > time.Millisecond {
			t.Errorf("slept %v, want %v; %v", slept, want, err)
		}
	}
	pause(0, 0, 0)
	pause(1000, 0, 0)                               // a second's worth may come at once
	pause(500, 0, 500*time.Millisecond)             // and no more
	pause(2000, time.Second, time.Second)           // half of it was due
	pause(0, time.Hour, 0)                          // what was not read in an hour
	pause(3000, 0, 2*time.Second)                   // is not read in one go
	pause(100, 50*time.Millisecond, time.Second/20) // steady from then on
	pause(1000, 1000*time.Millisecond, 0*time.Second)
}

func TestAPauseEndsWithItsContext(t *testing.T) {
	var read int64
	p, err := NewPacer(1, func() (int64, error) { return read, nil })
	if err != nil {
		t.Fatal(err)
	}
	read = 1 << 40
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("why")
	cancel(why)
	if err := p.Pause(ctx); !errors.Is(err, why) {
		t.Error(err)
	}
	cant := errors.New("can't tell")
	if _, err := NewPacer(1, func() (int64, error) { return 0, cant }); !errors.Is(err, cant) {
		t.Error(err)
	}
}
