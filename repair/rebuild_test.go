package repair

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"refaudit/oid"
	"refaudit/reftable"
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

// putRange writes a table of any range, and no list: rows are as putTable has them, with "@N" in front for their update
// index.
func (w *world) putRange(lo, hi uint64, rows ...string) string {
	w.t.Helper()
	var b strings.Builder
	tw, err := reftable.NewWriter(&b, reftable.Options{Format: w.repo.Format, Min: lo, Max: hi})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, row := range rows {
		f := strings.Fields(row)
		index, err := strconv.ParseUint(f[0][1:], 10, 64)
		if err != nil {
			w.t.Fatal(err)
		}
		ref := reftable.Ref{Name: []byte(f[2]), UpdateIndex: index, Type: reftable.Deletion}
		log := reftable.Log{Name: ref.Name, UpdateIndex: index, Type: reftable.LogDeletion}
		switch f[1] {
		case "-":
			err = tw.AddRef(&ref)
		case "unlog":
			err = tw.AddLog(&log)
		case "log":
			log.Type, log.Old, log.New, log.Committer, log.Email = reftable.LogUpdate, w.id("c0").AppendTo(nil), w.id("c1").AppendTo(nil), []byte("A"), []byte("a@x")
			log.Message = []byte(strings.Join(f[3:], " ") + "\n")
			err = tw.AddLog(&log)
		default:
			ref.Type, ref.Value = reftable.Direct, w.id(f[1]).AppendTo(nil)
			err = tw.AddRef(&ref)
		}
		if err != nil {
			w.t.Fatal(err)
		}
	}
	if err := tw.Close(); err != nil {
		w.t.Fatal(err)
	}
	name := tableName(lo, hi)
	w.f.Put(stackDir+"/"+name, []byte(b.String()))
	return name
}

// A table is left out only if no record of it is lost by that, and nothing that it deleted comes back.
func TestWhatIsLeftOutLosesNothing(t *testing.T) {
	type table struct {
		lo, hi uint64
		rows   []string
	}
	base := table{1, 2, []string{"@1 c1 refs/heads/main", "@2 c1 refs/heads/x2", "@1 log refs/heads/main m"}}
	for what, c := range map[string]struct {
		tables []table
		listed []int // of them; nil: refused
	}{
		"compacted":                                  {[]table{base, {3, 4, []string{"@4 - refs/heads/x2", "@3 c2 refs/heads/x3"}}, {3, 3, []string{"@3 c2 refs/heads/x3"}}, {4, 4, []string{"@4 - refs/heads/x2"}}}, []int{0, 1}},
		"superseded":                                 {[]table{base, {3, 4, []string{"@4 c3 refs/heads/x3"}}, {3, 3, []string{"@3 c2 refs/heads/x3"}}}, []int{0, 1}},
		"superseded by what is left out too":         {[]table{base, {3, 5, []string{"@4 c3 refs/heads/x3"}}, {3, 3, []string{"@3 c2 refs/heads/x3"}}, {4, 4, []string{"@4 c3 refs/heads/x3"}}}, []int{0, 1}},
		"at the bottom no deletion is kept":          {[]table{{1, 4, []string{"@1 c1 refs/heads/main", "@1 log refs/heads/main m"}}, base, {3, 4, []string{"@4 - refs/heads/x2"}}}, []int{0}},
		"a ref would be lost":                        {[]table{base, {3, 5, []string{"@5 c2 refs/heads/x5"}}, {3, 3, []string{"@3 c2 refs/heads/x3"}}, {4, 4, []string{"@4 - refs/heads/x2"}}}, nil},
		"a deletion would be lost":                   {[]table{base, {3, 4, []string{"@3 c2 refs/heads/x3"}}, {3, 3, []string{"@3 c2 refs/heads/x3"}}, {4, 4, []string{"@4 - refs/heads/x2"}}}, nil},
		"a deleted ref would come back":              {[]table{base, {3, 5, []string{"@3 c2 refs/heads/x3"}}, {4, 4, []string{"@4 - refs/heads/x3"}}}, nil},
		"an older value would come back":             {[]table{base, {3, 5, []string{"@3 c2 refs/heads/x3"}}, {4, 4, []string{"@4 c3 refs/heads/x3"}}}, nil},
		"another value":                              {[]table{base, {3, 3, []string{"@3 c2 refs/heads/x3"}}, {3, 3, []string{"@3 c3 refs/heads/x3"}}}, nil},
		"another ref":                                {[]table{base, {3, 3, []string{"@3 c2 refs/heads/a"}}, {3, 3, []string{"@3 c2 refs/heads/b"}}}, nil},
		"equal":                                      {[]table{base, {3, 3, []string{"@3 c2 refs/heads/a"}}, {3, 3, []string{"@3 c2 refs/heads/a"}}}, []int{0, 2}},
		"a log is kept":                              {[]table{base, {3, 4, []string{"@3 log refs/heads/main n", "@1 unlog refs/heads/main"}}, {3, 3, []string{"@3 log refs/heads/main n"}}, {4, 4, []string{"@1 unlog refs/heads/main"}}}, []int{0, 1}},
		"a log would be lost":                        {[]table{base, {3, 4, []string{"@4 c2 refs/heads/x4"}}, {3, 3, []string{"@3 log refs/heads/main n"}}}, nil},
		"a log would be another":                     {[]table{base, {3, 4, []string{"@3 log refs/heads/main n"}}, {3, 3, []string{"@3 log refs/heads/main o"}}}, nil},
		"a deleted log would come back":              {[]table{{1, 4, []string{"@1 c1 refs/heads/main", "@2 c1 refs/heads/x2", "@1 log refs/heads/main m"}}, {3, 4, []string{"@1 unlog refs/heads/main"}}}, nil},
		"at the bottom no deletion of a log is kept": {[]table{{1, 4, []string{"@1 c1 refs/heads/main", "@2 c1 refs/heads/x2"}}, base, {3, 4, []string{"@1 unlog refs/heads/main"}}}, []int{0}},
		"a deletion of a log would be lost":          {[]table{base, {3, 4, []string{"@4 c2 refs/heads/x4"}}, {3, 3, []string{"@1 unlog refs/heads/main"}}}, nil},
	} {
		w := newWorld(t, oid.SHA1)
		w.f.Remove(stackDir + "/tables.list")
		var names []string
		for _, tab := range c.tables {
			names = append(names, w.putRange(tab.lo, tab.hi, tab.rows...))
		}
		plan, err := w.stack().planRebuild()
		if c.listed == nil {
			var refused *Refused
			if !errors.As(err, &refused) || !strings.Contains(refused.Reason, "move the one") {
				t.Errorf("%s: %+v, %v", what, plan, err)
			}
			if _, err := w.stack().Rebuild(ctx); !errors.Is(err, ErrRefused) {
				t.Errorf("%s: %v", what, err)
			}
			continue
		}
		var want []string
		for _, i := range c.listed {
			want = append(want, names[i])
		}
		if err != nil || !slices.Equal(plan.list, want) {
			t.Errorf("%s: %+v, %v, want %v", what, plan, err, want)
		}
	}
}
