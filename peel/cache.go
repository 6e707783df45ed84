package peel

import (
	"context"
	"fmt"

	"refaudit/finding"
	"refaudit/oid"
)

// Promise is what a store promises of the peels that it caches.
type Promise uint8

// The promises: what it means when a tag has no cached peel.
const (
	NoPromise  Promise = iota // nothing: readers peel for themselves
	JGitReads                 // JGit takes the tag for "not a tag", git does not (header `peeled`, outside refs/tags/)
	AllReaders                // readers take the tag for "not a tag"
)

// Wrong is what is wrong with one cached peel. The zero Wrong is nothing.
type Wrong struct {
	ID       finding.ID
	Severity finding.Severity
	Expected oid.ID // zero: no peel is right
	Cause    finding.Cause
	Message  string
	// Mend tells that a repair may set the peel to Expected (zero: drop it).
	Mend bool
}

// Cached compares what a store caches (zero: nothing) with what the rules say.
func (j *Judge) Cached(h Handle, v *Verdict, cached oid.ID, p Promise) Wrong {
	none := cached == oid.ID{}
	w := Wrong{Mend: true}
	switch v.State {
	case Absent:
		return Wrong{} // the missing object is the finding; that its peel is left alone is said there
	case Unknown, Damaged:
		if none {
			return Wrong{}
		}
		w = Wrong{ID: finding.PeelUnverifiable, Message: fmt.Sprintf("caches the peel %v, which can't be verified: %s", cached, whyUnknown(v))}
	case NotTag:
		if none {
			return Wrong{}
		}
		w.ID, w.Message = finding.PeelUnexpected, fmt.Sprintf("caches a peel %v, but %v is a %v and peels to nothing", cached, j.ID(h), v.Kind)
	case Corrupt:
		if none {
			return Wrong{}
		}
		w.ID, w.Message = finding.PeelOfCorruptTag, fmt.Sprintf("caches a peel for tag %v, which %s", j.ID(h), j.blame(h, v))
		if v.Fault.Why == TypeMismatch {
			w.Cause = finding.CauseFalseTypeLine
		}
	case Sound:
		w.Expected = v.Peel
		switch {
		case cached == v.Peel:
			return Wrong{}
		case none && p == NoPromise:
			return Wrong{}
		case none:
			w.ID, w.Message = finding.PeelMissing, fmt.Sprintf("has no cached peel, so readers that trust the file take tag %v for no tag; it peels to %v", j.ID(h), v.Peel)
			if p == JGitReads {
				w.Severity = finding.Info
			}
		case j.OnChain(h, cached):
			w.ID, w.Message = finding.PeelPartial, fmt.Sprintf("caches the peel %v, a tag on the way; it peels to %v", cached, v.Peel)
		default:
			w.ID, w.Message = finding.PeelMismatch, fmt.Sprintf("caches the peel %v; it peels to %v", cached, v.Peel)
			if d := cached.HexDistance(v.Peel); d == 1 || d == 2 {
				w.Cause = finding.CauseHexFlip
			}
		}
	}
	if w.Severity == finding.Ignore {
		w.Severity = finding.Default(w.ID)
	}
	return w
}

// blame says what a corrupt tag does wrong; where the tag itself is at fault, without naming it twice.
func (j *Judge) blame(h Handle, v *Verdict) string {
	f := &v.Fault
	if f.Tag != j.ID(h) {
		return "leads to a corrupt link: " + f.String()
	}
	switch f.Why {
	case TypeMismatch:
		return fmt.Sprintf("says 'type %v' but its target %v is a %v", f.Claims, f.Target, f.Is)
	case TargetMissing:
		return fmt.Sprintf("says 'type %v' but its target %v is missing", f.Claims, f.Target)
	}
	return fmt.Sprintf("can't be read: %v", f.Err)
}

func whyUnknown(v *Verdict) string {
	switch v.Fault.Why {
	case TargetElsewhere:
		return v.Fault.String() + " (" + v.Reason + ")"
	case 0:
		return "the object is not here (" + v.Reason + ")"
	}
	return v.Fault.String()
}

// Replacements maps an object to what refs/replace puts in its place.
type Replacements map[oid.ID]oid.ID

// replaceHops bounds the links followed through replacements, which can lead in a circle.
const replaceHops = 64

// ThroughReplacements tells whether cached is what id peels to when refs/replace is applied,
// as git does when it packs refs: then the replacement is the cause of the wrong value. An object that is
// replaced keeps its name: where the last one is, that name is the peel, and only its type is the other's.
func (j *Judge) ThroughReplacements(ctx context.Context, id, cached oid.ID, r Replacements) (bool, error) {
	replaced := false
	for hop := 0; len(r) > 0 && hop < replaceHops; hop++ {
		name := id
		for other, ok := r[id]; ok && hop < replaceHops; other, ok = r[id] {
			id, replaced = other, true
			hop++
		}
		hs, err := j.Learn(ctx, []oid.ID{id}, nil)
		if err != nil {
			return false, err
		}
		if !j.isTag(hs[0]) {
			return replaced && name == cached, nil
		}
		id = j.nodes.at(j.nodes.at(hs[0]).next).id
	}
	return false, nil
}

// CorruptTag is the finding id for a corrupt tag.
func (v *Verdict) CorruptTag() finding.ID {
	switch v.Fault.Why {
	case TypeMismatch:
		return finding.TagTypeMismatch
	case TargetMissing:
		return finding.TagTargetMissing
	}
	return finding.TagUnreadable
}
