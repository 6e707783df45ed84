package scan

import (
	"context"
	"testing"

	"refaudit/internal/gittest"
	"refaudit/oid"
	"refaudit/repo"
)

func TestObjectsAreReadAfresh(t *testing.T) {
	r := gittest.New(t, gittest.Options{})
	target, err := Open(r.Path, ByPath, repo.Options{})
	if err != nil {
		t.Fatal(err)
	}
	look := func() (oid.State, error) {
		db, err := target.Objects(1)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		var fact [1]oid.Fact
		if err := db.Look(context.Background(), []oid.ID{oid.MustParse(r.V1)}, fact[:]); err != nil {
			t.Fatal(err)
		}
		return fact[0].State, fact[0].Err
	}
	if state, absence := look(); state != oid.Present || absence != nil {
		t.Errorf("%v %v", state, absence)
	}
	r.RemoveLoose(r.V1)
	if state, absence := look(); state != oid.Absent || absence != nil {
		t.Errorf("once it is gone: %v %v", state, absence)
	}
	r.WriteFile("objects/info/alternates", []byte("/nonexistent/objects\n"))
	if state, absence := look(); state != oid.Elsewhere || absence == nil {
		t.Errorf("once it is gone and an alternate is missing: %v %v", state, absence)
	}
}
