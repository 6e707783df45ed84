package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrTimeout is the cause of a context that Within has ended.
var ErrTimeout = errors.New("it took too long")

// grace is how long one that was told to stop may take to do so.
const grace = 2 * time.Second

// Within runs fn with a time limit; 0 is none. fn is told by its context. If it doesn't heed that,
// because a disk or a server of files doesn't answer, Within goes on without it and gives the cause: abandon
// is called first, and has to see to it that nothing of what fn does from then on has an effect.
func Within(ctx context.Context, limit time.Duration, abandon func(), fn func(context.Context)) error {
	cancel := func() {}
	if limit > 0 {
		ctx, cancel = context.WithTimeoutCause(ctx, limit, fmt.Errorf("%w: more than %v", ErrTimeout, limit))
	}
	defer cancel()
	done := make(chan struct{})
	go func() { defer close(done); fn(ctx) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-done:
			return nil
		case <-timer.C:
			abandon()
			return context.Cause(ctx)
		}
	}
}
