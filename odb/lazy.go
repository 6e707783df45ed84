package odb

import (
	"sync"
	"sync/atomic"
)

// lazy is a value that is made when it is first needed, once, or the error that it could not be.
type lazy[T any] struct {
	once  sync.Once
	done  atomic.Bool
	value T
	err   error
}

func (l *lazy[T]) get(make func() (T, error)) (T, error) {
	l.once.Do(func() {
		l.value, l.err = make()
		l.done.Store(true)
	})
	return l.value, l.err
}

// failed is the error, if the value was needed and could not be made.
func (l *lazy[T]) failed() error {
	if l.done.Load() {
		return l.err
	}
	return nil
}
