package fleet

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestWithin(t *testing.T) {
	ctx := context.Background()
	never := func() { t.Error("abandoned") }
	ran := false
	if err := Within(ctx, 0, never, func(context.Context) { ran = true }); err != nil || !ran {
		t.Error(err, ran)
	}
	// One that heeds its context has the time to say what it has found.
	var cause error
	if err := Within(ctx, 10*time.Millisecond, never, func(ctx context.Context) { <-ctx.Done(); cause = context.Cause(ctx) }); err != nil || !errors.Is(cause, ErrTimeout) {
		t.Error(err, cause)
	}
}

func TestADeadDiskStopsNobody(t *testing.T) {
	dead := make(chan struct{})
	defer close(dead)
	abandoned := false
	began := time.Now()
	err := Within(context.Background(), 10*time.Millisecond, func() { abandoned = true }, func(context.Context) { <-dead })
	if !errors.Is(err, ErrTimeout) || !abandoned || time.Since(began) > 10*grace {
		t.Error(err, abandoned, time.Since(began))
	}
}
