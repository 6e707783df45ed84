package main

import (
	"context"
	"sync"
)

// inOrder works on the targets, jobs at a time, and says what came of each in the order of the
// targets. work gets a channel that is closed once all targets before its own are done; say is
// called from one goroutine at a time. An error from say ends the run and is returned as it is;
// any other is of the arguments, of the list, or the context's.
func inOrder[R any](ctx context.Context, e env, t *targets, jobs int, work func(context.Context, target, <-chan struct{}) R, say func(R) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	slots := make(chan struct{}, jobs)
	turn := make(chan struct{})
	close(turn)
	var wg sync.WaitGroup
	var failed error // of say
	err := t.each(ctx, e, func(one target) error {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		mine, next := turn, make(chan struct{})
		turn = next
		wg.Go(func() {
			defer func() { <-slots }()
			r := work(ctx, one, mine)
			<-mine
			if err := say(r); err != nil && failed == nil {
				failed = err
				cancel(err)
			}
			close(next)
		})
		return nil
	})
	wg.Wait()
	if failed != nil {
		return failed
	}
	return err
}
