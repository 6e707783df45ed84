package main

import (
	"context"
	"errors"
	"sync"
)

// inOrder works on the targets, jobs at a time, and says what came of each in the order of the
// targets. work gets a channel that is closed once all targets before its own are done; say is
// called from one goroutine at a time. An error from say ends the run and is a *writeError; any
// other is of the arguments, of the list, or the context's.
func inOrder[R any](ctx context.Context, e env, t *targets, jobs int, work func(context.Context, target, <-chan struct{}) R, say func(R) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	slots := make(chan struct{}, jobs)
	turn := make(chan struct{})
	close(turn)
	var wg sync.WaitGroup
	var failed error // of say
	err := t.each(ctx, e, func(one target) error {
		if t.skip != nil && t.skip(one) {
			return nil
		}
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
	if t.known != nil {
		t.known()
	}
	wg.Wait()
	if failed != nil {
		return &writeError{failed}
	}
	return err
}

// writeError is a report that could not be written: there is no use in going on with it.
type writeError struct{ err error }

func (e *writeError) Error() string { return e.err.Error() }
func (e *writeError) Unwrap() error { return e.err }

func cantWrite(err error) bool {
	_, ok := errors.AsType[*writeError](err)
	return ok
}
