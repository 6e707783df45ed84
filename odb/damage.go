package odb

import (
	"errors"
	"fmt"
	"io/fs"

	"refaudit/finding"
	"refaudit/internal/vfs"
)

// Two things can keep an object from being read. Its bytes may be wrong: that is damage, a
// *finding.Corrupt. Or they could not be had, which says nothing of them: any other error.

// damaged places an error that is about an object.
func damaged(at finding.Pos, err error) error {
	if _, ok := errors.AsType[*finding.Corrupt](err); ok {
		return err
	}
	if !isDamage(err) {
		return fmt.Errorf("%v: %w", at, err)
	}
	return &finding.Corrupt{ID: finding.TagUnreadable, Pos: at, Err: err}
}

// isDamage tells bytes that are wrong from bytes that could not be had.
func isDamage(err error) bool {
	_, path := errors.AsType[*fs.PathError](err)
	return !path && !errors.Is(err, vfs.ErrFault) && !errors.Is(err, ErrTooLarge)
}

// notLooked says why nothing can be said of an object. The reason may be damage to a file, but
// that is no damage to the object.
func notLooked(reason error) error { return fmt.Errorf("%w: %v", ErrNotLooked, reason) }
