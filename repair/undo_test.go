package repair

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"refaudit/internal/journal"
	"refaudit/oid"
)

func (w *world) entry(id string) *journal.Entry {
	w.t.Helper()
	e, _, err := w.repo.Journal.Load(id)
	if err != nil {
		w.t.Fatal(err)
	}
	return e
}

func TestPackedRefsComeBackByteForByte(t *testing.T) {
	for _, c := range packedCases {
		if c.after == "" {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, oid.SHA1)
			p := w.putPacked(c.before)
			before := w.get("/r/packed-refs")
			out, err := p.Fix(ctx, w.wantAll(), Whole, Brake{Tags: 3})
			if err != nil {
				t.Fatal(err)
			}
			back, err := w.repo.Undo(ctx, w.entry(out.Journal))
			if err != nil || w.get("/r/packed-refs") != before || len(back.Changes) == 0 {
				t.Fatalf("%v\n%s", err, w.get("/r/packed-refs"))
			}
			if _, state, _ := w.repo.Journal.Load(out.Journal); state != journal.Undone {
				t.Errorf("the entry is %s", state)
			}
			st, _ := w.f.Stat("/r/packed-refs")
			if _, err := w.repo.Undo(ctx, w.entry(out.Journal)); !errors.Is(err, ErrRefused) {
				t.Errorf("a second time: %v", err)
			}
			if now, _ := w.f.Stat("/r/packed-refs"); now != st {
				t.Error("the second undo wrote")
			}
			again, err := w.repo.Undo(ctx, w.entry(back.Journal))
			if err != nil || w.get("/r/packed-refs") != w.expand(c.after) || again.Journal == "" {
				t.Errorf("the undo of the undo: %v\n%s", err, w.get("/r/packed-refs"))
			}
		})
	}
}

func TestAnUndoBesideOtherChanges(t *testing.T) {
	w := newWorld(t, oid.SHA1)
	p := w.putPacked(fullHeader + "t1 refs/tags/v1\n^c2\nt2 refs/tags/v2\n^c1\nt3 refs/tags/v3\n^c1\n")
	out, err := p.Fix(ctx, w.wantAll(), Whole, Brake{Tags: 3})
	if err != nil {
		t.Fatal(err)
	}
	// A branch comes, v2 is moved, v3's peel is changed.
	w.putPacked(fullHeader + "c1 refs/heads/new\nt1 refs/tags/v1\n^c1\nt4 refs/tags/v2\n^c4\nt3 refs/tags/v3\n^c5\n")
	back, err := w.repo.Undo(ctx, w.entry(out.Journal))
	if err != nil || len(back.Changes) != 1 || len(back.Left) != 2 {
		t.Fatalf("%+v %v", back, err)
	}
	if got := w.get("/r/packed-refs"); got != w.expand(fullHeader+"c1 refs/heads/new\nt1 refs/tags/v1\n^c2\nt4 refs/tags/v2\n^c4\nt3 refs/tags/v3\n^c5\n") {
		t.Errorf("got\n%s", got)
	}
	out, err = p.Fix(ctx, w.wantAll(), Whole, Brake{Tags: 3})
	if err != nil {
		t.Fatal(err)
	}
	w.putPacked(fullHeader + "c1 refs/heads/only\n")
	before := w.get("/r/packed-refs")
	if _, err := w.repo.Undo(ctx, w.entry(out.Journal)); !errors.Is(err, ErrRefused) || w.get("/r/packed-refs") != before {
		t.Errorf("all has moved on: %v", err)
	}
}

func TestAStackGoesForwardToItsOldValues(t *testing.T) {
	for _, format := range formats {
		w := newWorld(t, format)
		w.putTable(1, "bad refs/tags/bad blob", "t1 refs/tags/v1 c2", "t2 refs/tags/v2")
		out, err := w.stack().Fix(ctx, []Wanted{w.want("refs/tags/bad", "bad", "blob"), w.want("refs/tags/v1", "t1", "c2"), w.want("refs/tags/v2", "t2", "")}, Brake{Tags: 3})
		if err != nil {
			t.Fatal(err)
		}
		mended := w.list()
		w.putTable(3, "c1 refs/heads/new", "t4 refs/tags/v2 c4")
		back, err := w.repo.Undo(ctx, w.entry(out.Journal))
		if err != nil || len(back.Changes) != 2 || len(back.Left) != 1 {
			t.Fatalf("%+v %v", back, err)
		}
		w.serves("refs/heads/new c1", "refs/tags/bad bad blob", "refs/tags/v1 t1 c2", "refs/tags/v2 t4 c4")
		if list := w.list(); !slices.Equal(list[:2], mended) || len(list) != 4 {
			t.Errorf("%v after %v", list, mended)
		}
		list := w.list()
		if _, err := w.repo.Undo(ctx, w.entry(out.Journal)); !errors.Is(err, ErrRefused) || !slices.Equal(w.list(), list) {
			t.Errorf("a second time: %v", err)
		}
	}
}

// A repair that was cut short is settled under the lock before it is taken back: what never happened is
// left alone, and that is said.
func TestARepairThatNeverHappenedIsNotTakenBack(t *testing.T) {
	w := newWorld(t, oid.SHA1)
	w.putTable(1, "c1 refs/heads/main", "t1 refs/tags/v1 c2")
	after := w.stopAt("rename /r/reftable/tables.list.lock /r/reftable/tables.list", []Wanted{w.want("refs/tags/v1", "t1", "c2")})
	after.f.Remove(stackDir + "/tables.list.lock")
	open, err := after.repo.Journal.List(journal.Open)
	if err != nil || len(open) != 1 {
		t.Fatal(open, err)
	}
	list := after.list()
	_, err = after.repo.Undo(ctx, after.entry(open[0]))
	if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "never happened") || !slices.Equal(after.list(), list) {
		t.Errorf("%v", err)
	}
	if _, state, err := after.repo.Journal.Load(open[0]); err != nil || state != journal.Void {
		t.Errorf("the entry is %s: %v", state, err)
	}
}
