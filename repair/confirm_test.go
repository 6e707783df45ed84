package repair

import (
	"context"
	"strings"
	"testing"

	"refaudit/oid"
)

// twoCopies is an object database in which the first copy of some objects lies about their kind, and another is sound.
type twoCopies struct {
	fakeObjects
	sound map[oid.ID]oid.Fact
}

func (o twoCopies) Confirm(ctx context.Context, id oid.ID) (oid.Fact, error) {
	if f, ok := o.sound[id]; ok {
		return f, nil
	}
	return o.fakeObjects.Confirm(ctx, id)
}

// A header that lies of a tag or of its target takes no peel away where another copy shows what the tag peels to.
func TestAPeelIsSetByTheSoundCopy(t *testing.T) {
	for _, format := range formats {
		w := newWorld(t, format)
		two := twoCopies{w.objects, map[oid.ID]oid.Fact{}}
		for name, seems := range map[string]oid.Kind{"c1": oid.Blob, "t2": oid.Tree} {
			two.sound[w.id(name)] = w.objects.facts[w.id(name)]
			w.objects.facts[w.id(name)] = oid.Fact{State: oid.Present, Kind: seems}
		}
		w.repo.Objects = func() (Objects, error) { return two, nil }
		w.putPacked(fullHeader + "c1 refs/heads/main\n^c2\nt1 refs/tags/v1\n^c3\nt2 refs/tags/v2\n^c3\nt3 refs/tags/v3\n^c3\n")
		wrong := []Wanted{w.want("refs/heads/main", "c1", "c2"), w.want("refs/tags/v1", "t1", "c3"), w.want("refs/tags/v2", "t2", "c3")}
		if _, err := w.packed().Fix(ctx, wrong, Whole, Brake{Tags: 3}); err != nil {
			t.Fatal(err)
		}
		want := w.expand("c1 refs/heads/main\nt1 refs/tags/v1\n^c1\nt2 refs/tags/v2\n^c2\nt3 refs/tags/v3\n^c3\n")
		if got := w.get("/r/packed-refs"); !strings.HasSuffix(got, "\n"+want) {
			t.Errorf("became\n%s", got)
		}
	}
}
