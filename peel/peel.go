// Package peel holds the rules: is this cached peeled value right?
//
// The truth is the raw objects; refs/replace and grafts are never applied. Of a tag its first
// two lines decide. A tag is sound if every link of its chain is there and has the kind that
// the link above claims; then its peel is the last object. Otherwise it is corrupt, and no peel is right.
package peel

import (
	"context"
	"errors"
	"fmt"

	"refaudit/finding"
	"refaudit/oid"
)

// Objects is what the rules need of an object database: what is known of each of ids[i], put into out[i].
type Objects interface {
	Look(ctx context.Context, ids []oid.ID, out []oid.Fact) error
}

// State says how an object stands as the value of a ref.
type State uint8

// The states of a verdict.
const (
	NotTag  State = iota + 1 // a commit, tree or blob: nothing to peel
	Sound                    // a tag that peels to Verdict.Peel
	Corrupt                  // a tag that doesn't peel: Verdict.Fault says which link is to blame
	Absent                   // the object itself is not there
	Damaged                  // the object itself can't be read, and so its kind is not known
	Unknown                  // what is not here may be elsewhere: nothing can be said
)

// Verdict is what the rules say of one object.
type Verdict struct {
	State State
	Kind  oid.Kind // of the object itself, if it is there
	Peel  oid.ID   // of a sound tag
	Fault Fault    // of a corrupt tag, of an object that can't be read or of which nothing can be said
	// Reason is why an object that is not here need not be lost, where State is Unknown.
	Reason string
}

// Fault names the link of a chain that is to blame.
type Fault struct {
	Why    Why
	Tag    oid.ID   // the tag whose line is wrong, or that is damaged
	Claims oid.Kind // what its type line says
	Target oid.ID   // what its object line names; zero where it couldn't be read
	Is     oid.Kind // what that is in truth
	Err    error    // why an object can't be read
}

// Why is the kind of a fault.
type Why uint8

// The kinds of fault.
const (
	TypeMismatch    Why = iota + 1 // the target is of another kind than the tag claims
	TargetMissing                  // the target is absent
	TagUnreadable                  // the tag can't be read or parsed, or doesn't hash to its name
	TargetElsewhere                // the target is absent, and may be elsewhere
	NotLooked                      // an object could not be looked at: no permission, a disk that fails
)

func (f *Fault) String() string {
	switch f.Why {
	case TypeMismatch:
		return fmt.Sprintf("tag %v says 'type %v' but its target %v is a %v", f.Tag, f.Claims, f.Target, f.Is)
	case TargetMissing:
		return fmt.Sprintf("tag %v says 'type %v' but its target %v is missing", f.Tag, f.Claims, f.Target)
	case TagUnreadable:
		return fmt.Sprintf("object %v can't be read: %v", f.Tag, f.Err)
	case TargetElsewhere:
		return fmt.Sprintf("the target %v of tag %v is not here", f.Target, f.Tag)
	case NotLooked:
		return fmt.Sprintf("object %v could not be looked at: %v", f.Tag, f.Err)
	}
	return "no fault"
}

// Why says why nothing, or nothing good, can be said of the object: "" where all is well.
func (v *Verdict) Why() string {
	switch {
	case v.Fault.Why == 0:
		return v.Reason
	case v.Reason == "":
		return v.Fault.String()
	}
	return v.Fault.String() + " (" + v.Reason + ")"
}

// Handle is an object that a Judge has learned. Handles are small numbers, from 0 up.
type Handle int32

// node is one object that was asked for. Its chain is followed once, and what came out is kept here.
type node struct {
	id     oid.ID
	state  oid.State
	kind   oid.Kind
	claims oid.Kind
	end    ending
	next   Handle // of a tag: its target
	last   Handle // of a tag with an ending: the object it peels to, or the tag at fault
}

// ending is how the chain below a tag ends.
type ending uint8

const (
	open ending = iota
	sound
	mismatch
	missing
	unreadable
	elsewhere
	notLooked
)

// unlooked is the state of an object that could not be looked at. That is not damage: damage
// is what a finding.Corrupt tells of.
const unlooked oid.State = 255

// A Judge knows every object that was asked for, and how each tag's chain ends. It looks at
// each object once. It is not safe for concurrent use.
type Judge struct {
	objects Objects
	nodes   nodes
	index   table
	errs    map[Handle]error // of unreadable objects
	// AbsenceUnknown tells why no absent object need be lost; "" if absent means gone. Set it before
	// Learn. Objects that know it of each object answer oid.Elsewhere instead.
	AbsenceUnknown string

	before *Judge // see Again

	ask   []oid.ID // scratch of Learn
	facts []oid.Fact
	at    []int32 // which of facts, or whose target, each of ask is
	next  []Handle
}

// NewJudge makes a judge that knows nothing yet.
func NewJudge(objects Objects) *Judge {
	return &Judge{objects: objects, index: newTable(), errs: map[Handle]error{}}
}

// Again makes a judge for another look. It takes over what j knows of objects that are there,
// since they can't change under their names; whatever was absent, damaged or not to be looked at is
// asked for afresh, of objects. j must not learn any more.
func (j *Judge) Again(objects Objects) *Judge {
	next := NewJudge(objects)
	next.before = j
	return next
}

// known gives what a judge before this one knows of an object that is there.
func (j *Judge) known(id *oid.ID, f *oid.Fact) bool {
	if j.before == nil {
		return false
	}
	h, ok := j.before.index.get(&j.before.nodes, id)
	if !ok {
		return false
	}
	n := j.before.nodes.at(h)
	if n.state != oid.Present {
		return false
	}
	*f = oid.Fact{State: oid.Present, Kind: n.kind, Claims: n.claims}
	if n.next >= 0 {
		f.Target = j.before.nodes.at(n.next).id
	}
	return true
}

// Learn looks at the objects and, of tags, at the whole chain; it appends their handles to out.
// Objects that were learned before are not looked at again.
func (j *Judge) Learn(ctx context.Context, ids []oid.ID, out []Handle) ([]Handle, error) {
	first := j.nodes.count
	out = j.index.putAll(&j.nodes, ids, out)
	for from := first; from < j.nodes.count; {
		to := j.nodes.count
		if err := j.look(ctx, from, to); err != nil {
			j.forget(first)
			return nil, err
		}
		j.targets(from, to)
		from = to
	}
	for h := first; h < j.nodes.count; h++ {
		j.follow(h)
	}
	return out, nil
}

// Ask learns one object and gives what the rules say of it.
func (j *Judge) Ask(ctx context.Context, id oid.ID) (Handle, Verdict, error) {
	handles, err := j.Learn(ctx, []oid.ID{id}, nil)
	if err != nil {
		return 0, Verdict{}, err
	}
	return handles[0], j.Verdict(handles[0]), nil
}

// targets gives nodes to the targets of the tags among the nodes that facts are about: those not met yet are the
// next round.
func (j *Judge) targets(from, to Handle) {
	j.ask, j.at = j.ask[:0], j.at[:0]
	for h := from; h < to; h++ {
		if j.isTag(h) {
			j.ask, j.at = append(j.ask, j.facts[h-from].Target), append(j.at, int32(h))
		}
	}
	j.next = j.index.putAll(&j.nodes, j.ask, j.next[:0])
	for i, h := range j.at {
		j.nodes.at(Handle(h)).next = j.next[i]
	}
}

// forget takes back the nodes from first on: an audit that was stopped half-way knows nothing of them.
func (j *Judge) forget(first Handle) {
	j.nodes.cut(first)
	j.index.rebuild(&j.nodes)
}

func (j *Judge) look(ctx context.Context, from, to Handle) error {
	if n := int(to - from); cap(j.facts) < n {
		j.facts = make([]oid.Fact, n)
	} else {
		j.facts = j.facts[:n]
	}
	clear(j.facts)
	if err := j.askAll(ctx, from); err != nil {
		return err
	}
	for i := range j.facts {
		f, n := &j.facts[i], j.nodes.at(from+Handle(i))
		n.state, n.kind, n.claims = f.State, f.Kind, f.Claims
		switch f.State {
		case oid.Elsewhere:
			j.errs[from+Handle(i)] = f.Err
		case oid.Unreadable:
			j.errs[from+Handle(i)] = f.Err
			if damage := (*finding.Corrupt)(nil); !errors.As(f.Err, &damage) {
				n.state = unlooked
			}
		case oid.Unasked:
			return fmt.Errorf("object %v: the object database gave no answer", n.id)
		}
	}
	return nil
}

// askAll fills facts, for the nodes from from on: from the judge before, or from the objects.
func (j *Judge) askAll(ctx context.Context, from Handle) error {
	j.ask, j.at = j.ask[:0], j.at[:0]
	for i := range j.facts {
		if id := &j.nodes.at(from + Handle(i)).id; !j.known(id, &j.facts[i]) {
			j.ask, j.at = append(j.ask, *id), append(j.at, int32(i))
		}
	}
	if len(j.ask) == len(j.facts) {
		return j.objects.Look(ctx, j.ask, j.facts)
	}
	if len(j.ask) == 0 {
		return nil
	}
	facts := make([]oid.Fact, len(j.ask))
	if err := j.objects.Look(ctx, j.ask, facts); err != nil {
		return err
	}
	for k, i := range j.at {
		j.facts[i] = facts[k]
	}
	return nil
}

// follow finds how the chain from h ends, and notes it at every tag on the way.
func (j *Judge) follow(h Handle) {
	if j.nodes.at(h).end != open || !j.isTag(h) {
		return
	}
	at, steps := h, 0
	for j.nodes.at(at).end == open {
		n := j.nodes.at(at)
		t := j.nodes.at(n.next)
		switch {
		case t.state == oid.Elsewhere, t.state == oid.Absent && j.AbsenceUnknown != "":
			n.end, n.last = elsewhere, at
		case t.state == oid.Absent:
			n.end, n.last = missing, at
		case t.state == unlooked:
			n.end, n.last = notLooked, n.next
		case t.state == oid.Unreadable && t.kind == 0 || t.state == oid.Unreadable && t.kind == n.claims:
			n.end, n.last = unreadable, n.next
		case t.kind != n.claims:
			n.end, n.last = mismatch, at
		case t.kind != oid.Tag:
			n.end, n.last = sound, n.next
		default:
			at = n.next
			if steps++; steps > int(j.nodes.count) { // a chain of real objects can't come back to itself
				n.end, n.last = unreadable, at
				j.errs[at] = errors.New("a chain of tags that leads back to itself")
			}
		}
	}
	end, last := j.nodes.at(at).end, j.nodes.at(at).last
	for at = h; j.nodes.at(at).end == open; at = j.nodes.at(at).next {
		j.nodes.at(at).end, j.nodes.at(at).last = end, last
	}
}

func (j *Judge) isTag(h Handle) bool {
	return j.nodes.at(h).state == oid.Present && j.nodes.at(h).kind == oid.Tag
}

// ID is the object behind a handle.
func (j *Judge) ID(h Handle) oid.ID { return j.nodes.at(h).id }

// Len is how many objects were looked at.
func (j *Judge) Len() int { return int(j.nodes.count) }

// Right tells at once whether the cached peel (raw, nil for none) is what h's object ought to
// have: it is the answer for nearly every ref, and costs no allocation. On false, ask Verdict.
func (j *Judge) Right(h Handle, cached []byte) bool {
	n := j.nodes.at(h)
	switch {
	case n.state != oid.Present:
		return false
	case n.kind != oid.Tag:
		return cached == nil
	case n.end != sound || cached == nil:
		return false
	}
	return string(j.nodes.at(n.last).id.Bytes()) == string(cached)
}

// IsTag tells whether the object is there and is a tag.
func (j *Judge) IsTag(h Handle) bool { return j.isTag(h) }

// Kind is the kind of an object that is there; 0 if it isn't.
func (j *Judge) Kind(h Handle) oid.Kind {
	if j.nodes.at(h).state != oid.Present {
		return 0
	}
	return j.nodes.at(h).kind
}

// Verdict is what the rules say of an object.
func (j *Judge) Verdict(h Handle) Verdict {
	n := j.nodes.at(h)
	switch n.state {
	case oid.Absent:
		if j.AbsenceUnknown != "" {
			return Verdict{State: Unknown, Reason: j.AbsenceUnknown}
		}
		return Verdict{State: Absent}
	case oid.Elsewhere:
		return Verdict{State: Unknown, Reason: j.reason(h)}
	case unlooked:
		return Verdict{State: Unknown, Fault: Fault{Why: NotLooked, Tag: n.id, Err: j.errs[h]}}
	case oid.Unreadable:
		v := Verdict{State: Damaged, Kind: n.kind, Fault: Fault{Why: TagUnreadable, Tag: n.id, Err: j.errs[h]}}
		if n.kind == oid.Tag {
			v.State = Corrupt
		}
		return v
	}
	if n.kind != oid.Tag {
		return Verdict{State: NotTag, Kind: n.kind}
	}
	v := Verdict{State: Corrupt, Kind: oid.Tag}
	at := j.nodes.at(n.last)
	if n.end == sound {
		v.State, v.Peel = Sound, at.id
		return v
	}
	v.Fault = Fault{Tag: at.id, Claims: at.claims}
	if at.next >= 0 {
		t := j.nodes.at(at.next)
		v.Fault.Target, v.Fault.Is = t.id, t.kind
	}
	switch n.end {
	case mismatch:
		v.Fault.Why = TypeMismatch
	case missing:
		v.Fault.Why = TargetMissing
	case elsewhere:
		v.State, v.Fault.Why, v.Reason = Unknown, TargetElsewhere, j.reason(at.next)
	case notLooked:
		v.State, v.Fault.Why, v.Fault.Err = Unknown, NotLooked, j.errs[n.last]
	default:
		v.Fault.Why, v.Fault.Err = TagUnreadable, j.errs[n.last]
	}
	return v
}

// reason is why an object that is not here need not be lost.
func (j *Judge) reason(h Handle) string {
	if err := j.errs[h]; err != nil {
		return err.Error()
	}
	return j.AbsenceUnknown
}

// OnChain tells whether id is one of the tags on the way from h, h itself included.
func (j *Judge) OnChain(h Handle, id oid.ID) bool {
	for steps := 0; h >= 0 && j.isTag(h) && steps <= int(j.nodes.count); steps++ {
		if j.nodes.at(h).id == id {
			return true
		}
		h = j.nodes.at(h).next
	}
	return false
}

// Depth is how many tags the chain from h has, h counted, at most limit.
func (j *Judge) Depth(h Handle, limit int) int {
	n := 0
	for n < limit && h >= 0 && j.isTag(h) {
		n++
		h = j.nodes.at(h).next
	}
	return n
}
