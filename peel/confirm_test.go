package peel

import (
	"context"
	"errors"
	"testing"

	"refaudit/finding"
	"refaudit/oid"
)

// hashed is a store whose headers lie: what it confirms stands in truth, where that is another thing.
type hashed struct {
	*store
	truth map[oid.ID]oid.Fact
}

func (s hashed) Confirm(_ context.Context, id oid.ID) (oid.Fact, error) {
	if f, ok := s.truth[id]; ok {
		return f, nil
	}
	return s.facts[id], nil
}

// What headers say falsely of a tag, or of a tag's target, is no fault of either, where a sound copy shows the truth;
// without one the object is damaged, and no kind of it is known.
func TestConfirmedBelievesNoHeader(t *testing.T) {
	damage := oid.Fact{State: oid.Unreadable, Kind: oid.Blob, Err: &finding.Corrupt{ID: finding.TagUnreadable, Err: errors.New("damaged")}}
	f := oid.SHA1
	s := hashed{newStore(), map[oid.ID]oid.Fact{}}
	for _, line := range []string{"commit blob", "tag tag commit commit", "asTree tree", "lost blob", "ofLost tag lost commit", "blob blob", "false tag blob commit",
		"unparsed damaged tag", "claims tag unparsed commit", "garbled damaged tag", "ofGarbled tag garbled commit"} {
		s.add(t, f, line)
	}
	id := func(name string) oid.ID { return s.named(f, name) }
	s.truth[id("commit")] = oid.Fact{State: oid.Present, Kind: oid.Commit}
	s.truth[id("asTree")] = oid.Fact{State: oid.Present, Kind: oid.Tag, Target: id("commit"), Claims: oid.Commit}
	s.truth[id("lost")] = damage
	sure := NewJudge(Confirmed{From: s, Hashes: func(o oid.ID) bool { return o == id("unparsed") }})
	rash := NewJudge(s)
	for _, c := range []struct {
		name  string
		doubt bool
		state State
		why   Why
	}{
		{"tag", true, Sound, 0},
		{"asTree", true, Sound, 0},
		{"blob", true, NotTag, 0},
		{"lost", true, Damaged, TagUnreadable},
		{"ofLost", true, Corrupt, TagUnreadable},
		{"false", true, Corrupt, TypeMismatch},
		{"claims", true, Corrupt, TypeMismatch},
		{"ofGarbled", true, Corrupt, TagUnreadable},
		{"unparsed", false, Corrupt, TagUnreadable},
	} {
		ids := []oid.ID{id(c.name)}
		h, err := rash.Learn(context.Background(), ids, nil)
		if err != nil {
			t.Fatal(err)
		}
		if v := rash.Verdict(h[0]); v.InDoubt() != c.doubt {
			t.Errorf("%s: %+v is in doubt: %v", c.name, v, v.InDoubt())
		}
		if h, err = sure.Learn(context.Background(), ids, nil); err != nil {
			t.Fatal(err)
		}
		if v := sure.Verdict(h[0]); v.State != c.state || v.Fault.Why != c.why || v.State == Sound && v.Peel != id("commit") {
			t.Errorf("%s: %+v", c.name, v)
		}
	}
}
