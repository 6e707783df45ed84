package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"refaudit/repair"
)

// signals ends a context at the first signal, so that the summary can still be written, and the program at
// the second. They are caught from uncaught on after the start, or when arm is called: to catch one the runtime
// has to talk to a thread of its own, and for four that takes longer than many a run that only reads. Whoever
// writes, be it to standard output, has them caught first, unless what he writes is all that there will be.
type signals struct {
	needed sync.Once
	need   chan struct{} // closed: somebody waits for armed
	armed  chan struct{} // closed: they are caught
}

// uncaught is how long a signal ends a run that has written nothing as if it had never begun.
const uncaught = 5 * time.Millisecond

func withSignals(parent context.Context) (context.Context, *signals) {
	ctx, cancel := context.WithCancelCause(parent)
	s := &signals{need: make(chan struct{}), armed: make(chan struct{})}
	signal.Ignore(syscall.SIGQUIT) // until it is caught: the runtime answers it with all its stacks and exit code 2
	go s.catch(cancel)
	return ctx, s
}

// arm waits until signals are caught.
func (s *signals) arm() {
	s.needed.Do(func() { close(s.need) })
	<-s.armed
}

func (s *signals) catch(cancel context.CancelCauseFunc) {
	select {
	case <-s.need:
	case <-time.After(uncaught):
	}
	ch := make(chan os.Signal, 2)
	caught := []os.Signal{syscall.SIGTERM, syscall.SIGQUIT}
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGHUP} {
		if !signal.Ignored(sig) { // as under nohup, or behind a & of a script
			caught = append(caught, sig)
		}
	}
	signal.Notify(ch, caught...)
	close(s.armed)
	cancel(&signalError{<-ch})
	sig := <-ch
	repair.Abandon()
	os.Exit((&signalError{sig}).code())
}
