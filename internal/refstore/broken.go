package refstore

import (
	"strings"

	"refaudit/internal/refname"
	"refaudit/loose"
)

// The ways in which a ref is broken.
const (
	noValue = "git reads no value from it"
	zeroID  = "its object id is all zeros"
	noName  = "git refuses the name"
	gone    = "it is gone"
)

// brokenRef gives a ref that git knows of and can take no object from, if that is asked for.
func (v *visit) brokenRef(r *Ref, why string) error {
	if !v.o.Broken {
		return nil
	}
	r.OID, r.Target, r.Broken = nil, nil, why
	return v.give(r)
}

// brokenLoose tells why git can take no object from the value of a loose ref; "" if it can, or the ref is
// a symref, or git passes over it.
func (v *visit) brokenLoose(l *looseRef, root bool) string {
	why := ""
	switch {
	case l.value.Kind == loose.Broken:
		why = noValue
	case l.value.Kind == loose.Object && l.value.OID.IsZero():
		why = zeroID
	}
	if why != "" && !root && v.passedOver(l) {
		return ""
	}
	return why
}

// misnamed gives a loose ref whose name git refuses, whatever it holds.
func (v *visit) misnamed(l *looseRef) error {
	if v.passedOver(l) {
		return nil
	}
	return v.brokenRef(&Ref{Name: []byte(l.name), Source: Loose, Pos: l.pos}, noName)
}

// passedOver tells whether git takes a file below refs/ for no ref at all: what is no file, hidden files and locks,
// and in a worktree what lies outside the namespaces that worktrees have of their own.
func (v *visit) passedOver(l *looseRef) bool {
	return l.unread || !listed(l.name) || v.misplaced(l)
}

// listed tells whether git's listing of folders comes by a file.
func listed(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if strings.HasPrefix(part, ".") || strings.HasSuffix(part, ".lock") {
			return false
		}
	}
	return true
}

// misplaced tells whether a loose ref lies in a worktree's folder though it would be one for all worktrees. git
// looks for those in the main folder alone. (Of a stack it lists whatever a worktree's own holds.)
func (v *visit) misplaced(l *looseRef) bool {
	kind, _, _ := refname.SplitWorktree([]byte(l.name))
	return !v.place.main && kind == refname.Shared
}
