package peel

import (
	"context"

	"refaudit/oid"
)

// Confirmer is an object database that tells kinds from headers, and can hash an object of whatever kind.
type Confirmer interface {
	Objects
	// Confirm answers for one object as Look does, but has read and hashed it, from another copy if the first is damaged.
	Confirm(ctx context.Context, id oid.ID) (oid.Fact, error)
}

// Confirmed are objects that were hashed, all of them: for a Judge whose verdict rests on no header. A flipped bit in
// one must not make a sound tag corrupt, or a tag no tag. It is slow: ask it where Verdict.InDoubt says so.
type Confirmed struct {
	From Confirmer
	// Hashes tells of a tag that can't be read whether it hashes to its name: then it was written as no tag ought
	// to be, and is a tag all the same. nil: none does.
	Hashes func(oid.ID) bool
}

// Look is Objects' Look. Of an object that is damaged it knows no kind.
func (c Confirmed) Look(ctx context.Context, ids []oid.ID, out []oid.Fact) error {
	if err := c.From.Look(ctx, ids, out); err != nil {
		return err
	}
	for i := range out {
		f := &out[i]
		if f.State == oid.Present && f.Kind != oid.Tag {
			fact, err := c.From.Confirm(ctx, ids[i])
			if err != nil {
				return err
			}
			*f = fact
		}
		if f.State == oid.Unreadable && !(f.Kind == oid.Tag && c.Hashes != nil && c.Hashes(ids[i])) {
			f.Kind = 0
		}
	}
	return nil
}

// InDoubt tells whether the verdict rests on a kind that a header alone has told, and says that something is wrong
// or that the object is no tag.
func (v *Verdict) InDoubt() bool {
	return v.State == NotTag || v.State == Corrupt && v.Fault.Why == TypeMismatch
}
