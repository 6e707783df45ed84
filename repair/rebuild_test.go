package repair

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"refaudit/oid"
)

func TestALostListIsPutTogether(t *testing.T) {
	for name, lose := range map[string]func(w *world){
		"absent": func(w *world) { w.f.Remove(stackDir + "/tables.list") },
		"empty":  func(w *world) { w.f.Put(stackDir+"/tables.list", nil) },
		"blank":  func(w *world) { w.f.Put(stackDir+"/tables.list", []byte("\n")) },
	} {
		w := newWorld(t, oid.SHA1)
		for i, row := range []string{"c1 refs/heads/main", "t1 refs/tags/v1 c1", "c2 refs/heads/main"} {
			w.putTable(uint64(i+1), row)
		}
		list := w.list()
		lose(w)
		plan, err := w.stack().planRebuild()
		if err != nil || !slices.Equal(plan.list, list) || len(plan.reads) != 2 || plan.reads[0].Action != "read as "+w.id("c2").String() {
			t.Fatalf("%s: %+v %v", name, plan, err)
		}
		out, err := w.stack().Rebuild(ctx)
		if err != nil || out.Journal == "" || !slices.Equal(w.list(), list) {
			t.Errorf("%s: %v", name, err)
		}
		w.serves("refs/heads/main c2", "refs/tags/v1 t1 c1")
		if _, err := w.stack().Rebuild(ctx); !errors.Is(err, ErrRefused) {
			t.Errorf("%s, a second time: %v", name, err)
		}
		if _, err := w.repo.Undo(ctx, w.entry(out.Journal)); !errors.Is(err, ErrRefused) {
			t.Errorf("%s, undo: %v", name, err)
		}
	}
}

// A writer that died left what it had compacted, or the table that it had replaced.
func TestTablesThatOthersStandForAreLeftOut(t *testing.T) {
	w := newWorld(t, oid.SHA1)
	a := w.putTable(1, "c1 refs/heads/main")
	b := w.putTable(2, "t1 refs/tags/v1 c2")
	again := w.putTable(2, "t1 refs/tags/v1 c1")
	c := w.putTable(5, "c3 refs/heads/new")
	w.f.Remove(stackDir + "/tables.list")
	plan, err := w.stack().planRebuild()
	if err != nil || !slices.Equal(plan.list, []string{a, again, c}) || len(plan.notices) != 2 || !strings.Contains(plan.notices[0], b) || !strings.Contains(plan.notices[1], "3 to 4") {
		t.Errorf("%+v %v", plan, err)
	}
}

func TestAListThatNobodyCanTell(t *testing.T) {
	w := newWorld(t, oid.SHA1)
	first := w.putTable(1, "c1 refs/heads/main")
	w.cut(first, 5)
	w.f.Remove(stackDir + "/tables.list")
	if _, err := w.stack().Rebuild(ctx); !errors.Is(err, ErrRefused) {
		t.Errorf("a table that can't be read: %v", err)
	}
	w.f.Remove(stackDir + "/" + first)
	if _, err := w.stack().Rebuild(ctx); !errors.Is(err, ErrRefused) {
		t.Errorf("no table: %v", err)
	}
	if _, there := w.f.Get(stackDir + "/tables.list"); there {
		t.Error("a list was written")
	}
}
