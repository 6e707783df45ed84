package repair

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"refaudit/internal/crashfs"
	"refaudit/internal/journal"
	"refaudit/internal/lockfile"
	"refaudit/internal/vfs"
	"refaudit/oid"
	"refaudit/reftable"
)

// all is every record of every table, hidden ones too, and every log record.
func (w *world) all() (rows []string) {
	w.t.Helper()
	for _, name := range w.list() {
		table, err := reftable.OpenBytes([]byte(w.get(stackDir+"/"+name)), name, w.repo.Format)
		if err != nil {
			w.t.Fatal(err)
		}
		table.Refs(func(r *reftable.Ref) error {
			rec := recordOf(w.repo.Format, r)
			rows = append(rows, strings.TrimSpace(strings.Join([]string{decimal(int(rec.index)), string(r.Name), w.word(rec.value), w.word(rec.peel)}, " ")))
			return nil
		})
		table.Logs(func(l *reftable.Log) error {
			rows = append(rows, "log "+decimal(int(l.UpdateIndex))+" "+string(l.Name)+" "+string(l.Value))
			return nil
		})
	}
	return rows
}

func TestCompactRewritesTheTablesWithWrongRecords(t *testing.T) {
	for _, format := range formats {
		w := newWorld(t, format)
		w.putTable(1, "c1 refs/heads/main", "t1 refs/tags/v1 c2", "t2 refs/tags/v2 c1", "log refs/heads/main", "log refs/tags/v1")
		sound := w.putTable(2, "c2 refs/heads/main", "- refs/tags/v2")
		w.putTable(3, "bad refs/tags/bad blob", "t3 refs/tags/v3")
		before, rows := w.list(), w.all()
		out, err := w.stack().Compact(ctx, Selection{}, Brake{Tags: 4})
		if err != nil || len(out.Changes) != 4 {
			t.Fatalf("%+v %v", out, err)
		}
		w.serves("refs/heads/main c2", "refs/tags/bad bad", "refs/tags/v1 t1 c1", "refs/tags/v3 t3 c3")
		want := slices.Clone(rows)
		for i, r := range want {
			want[i] = strings.NewReplacer("refs/tags/v1 t1 c2", "refs/tags/v1 t1 c1", "refs/tags/v2 t2 c1", "refs/tags/v2 t2 c2", "bad bad blob", "bad bad", "v3 t3", "v3 t3 c3").Replace(r)
		}
		if got := w.all(); !slices.Equal(got, want) {
			t.Errorf("records\n%q\nwant\n%q", got, want)
		}
		list := w.list()
		if len(list) != 3 || list[1] != sound || list[0] == before[0] || list[2] == before[2] {
			t.Errorf("%v after %v", list, before)
		}
		if names := w.f.Names(stackDir); len(names) != 4 {
			t.Errorf("left %v", names)
		}
		again, err := w.stack().Compact(ctx, Selection{}, Brake{Tags: 4})
		if err != nil || again.Journal != "" || !slices.Equal(w.list(), list) {
			t.Errorf("a second time: %+v %v", again, err)
		}

		back, err := w.repo.Undo(ctx, w.entry(out.Journal))
		if err != nil || len(back.Changes) != 4 {
			t.Fatalf("%+v %v", back, err)
		}
		if got := w.all(); !slices.Equal(got, rows) {
			t.Errorf("after the undo\n%q\nwant\n%q", got, rows)
		}
		for _, name := range w.list() {
			if name != sound && (slices.Contains(before, name) || slices.Contains(list, name)) {
				t.Errorf("%s has come back", name)
			}
		}
		if _, err := w.repo.Undo(ctx, w.entry(out.Journal)); !errors.Is(err, ErrRefused) {
			t.Errorf("a second undo: %v", err)
		}
	}
}

// While the new tables are written others may add to the stack.
func TestCompactLetsOthersAdd(t *testing.T) {
	w := newWorld(t, oid.SHA1)
	w.putTable(1, "t1 refs/tags/v1 c2")
	added := ""
	w.repo.Step = func(step string) {
		if strings.HasPrefix(step, "write") && added == "" {
			if _, held := w.f.Get(stackDir + "/tables.list.lock"); held {
				t.Error("the list is locked while tables are written")
			}
			added = w.putTable(2, "c1 refs/heads/new")
		}
	}
	if _, err := w.stack().Compact(ctx, Selection{}, Brake{Tags: 1}); err != nil {
		t.Fatal(err)
	}
	w.serves("refs/heads/new c1", "refs/tags/v1 t1 c1")
	if list := w.list(); len(list) != 2 || list[1] != added {
		t.Errorf("%v, added %s", list, added)
	}
}

// Between the plan and the lock another compacts the stack: the plan is made again.
func TestCompactPlansAgain(t *testing.T) {
	w := newWorld(t, oid.SHA1)
	w.putTable(1, "t1 refs/tags/v1 c2")
	once := false
	w.repo.Step = func(step string) {
		if step == "lock" && !once {
			once = true
			w.f.Remove(stackDir + "/tables.list")
			w.putTable(1, "c3 refs/heads/main", "t1 refs/tags/v1 c2")
		}
	}
	if _, err := w.stack().Compact(ctx, Selection{}, Brake{Tags: 1}); err != nil {
		t.Fatal(err)
	}
	w.serves("refs/heads/main c3", "refs/tags/v1 t1 c1")
}

func TestCompactRespectsTheLockOfATable(t *testing.T) {
	w := newWorld(t, oid.SHA1)
	first := w.putTable(1, "t1 refs/tags/v1 c2")
	second := w.putTable(2, "t2 refs/tags/v2 c1")
	w.f.Put(stackDir+"/"+first+".lock", nil)
	if _, err := w.stack().Compact(ctx, Selection{}, Brake{Tags: 2}); !errors.Is(err, lockfile.ErrHeld) {
		t.Errorf("%v", err)
	}
	want := []string{first, first + ".lock", second, "tables.list"}
	if names := w.f.Names(stackDir); !slices.Equal(names, want) {
		t.Errorf("%v", names)
	}
	// An append needs the list's lock only.
	if _, err := w.stack().Fix(ctx, []Wanted{w.want("refs/tags/v1", "t1", "c2")}, Brake{Tags: 2}); err != nil {
		t.Errorf("append: %v", err)
	}
}

func TestACompactionOfDamageIsRefused(t *testing.T) {
	w := newWorld(t, oid.SHA1)
	table := w.putTable(1, "c1 refs/heads/main", "t1 refs/tags/v1 c2")
	w.flip(table, 29)
	before := w.list()
	if _, err := w.stack().Compact(ctx, Selection{}, Brake{Tags: 1}); !errors.Is(err, ErrRefused) || !slices.Equal(w.list(), before) {
		t.Errorf("%v", err)
	}
}

func TestOtherThanPeelsIsNoticed(t *testing.T) {
	w := newWorld(t, oid.SHA1)
	open := func(rows ...string) *reftable.Table {
		name := w.putTable(1, rows...)
		table, err := reftable.OpenBytes([]byte(w.get(stackDir+"/"+name)), name, oid.SHA1)
		if err != nil {
			t.Fatal(err)
		}
		return table
	}
	a := open("c1 refs/heads/main", "t1 refs/tags/v1 c2", "log refs/heads/main")
	records := map[string]journal.Record{"refs/tags/v1": {Ref: "refs/tags/v1", OID: w.id("t1"), Before: w.id("c2"), After: w.id("c1")}}
	if err := sameButPeels(oid.SHA1, a, open("c1 refs/heads/main", "t1 refs/tags/v1 c1", "log refs/heads/main"), records); err != nil {
		t.Error(err)
	}
	for _, rows := range [][]string{
		{"c2 refs/heads/main", "t1 refs/tags/v1 c1", "log refs/heads/main"},
		{"c1 refs/heads/main", "t2 refs/tags/v1 c1", "log refs/heads/main"},
		{"c1 refs/heads/main", "t1 refs/tags/v1 c3", "log refs/heads/main"},
		{"t1 refs/tags/v1 c1", "log refs/heads/main"},
		{"c1 refs/heads/main", "c1 refs/heads/other", "t1 refs/tags/v1 c1", "log refs/heads/main"},
		{"c1 refs/heads/main", "t1 refs/tags/v1 c1"},
		{"c1 refs/heads/main", "t1 refs/tags/v1 c1", "log refs/heads/main", "log refs/heads/more"},
		{"c1 refs/heads/main", "t1 refs/tags/v1 c1", "log refs/heads/other"},
	} {
		if err := sameButPeels(oid.SHA1, a, open(rows...), records); !errors.Is(err, errNotSame) {
			t.Errorf("%q: %v", rows, err)
		}
	}
}

// swapper is a disk that gives other bytes for tables that are being written.
type swapper struct {
	*crashfs.FS
	other string // the path of what it gives
}

func (s *swapper) Map(name string) (vfs.Mapped, vfs.Info, error) {
	if strings.Contains(name, tempMark) {
		name = s.other
	}
	return s.FS.Map(name)
}

// A table that was not copied to the last record takes nothing's place.
func TestABadCopyIsNotListed(t *testing.T) {
	w := newWorld(t, oid.SHA1)
	first := w.putTable(1, "c1 refs/heads/main", "t1 refs/tags/v1 c2", "log refs/heads/main")
	list := w.get(stackDir + "/tables.list")
	other := w.putTable(1, "c1 refs/heads/main", "t1 refs/tags/v1 c1")
	w.f.Put(stackDir+"/tables.list", []byte(list))
	w.f.Rename(stackDir+"/"+other, "/r/other")
	w.repo.FS = &swapper{w.f, "/r/other"}
	if _, err := w.stack().Compact(ctx, Selection{}, Brake{Tags: 1}); !errors.Is(err, errNotSame) {
		t.Errorf("%v", err)
	}
	if names := w.f.Names(stackDir); !slices.Equal(names, []string{first, "tables.list"}) || w.get(stackDir+"/tables.list") != list {
		t.Errorf("%v", names)
	}
}

// unlockTables takes away the locks of tables that are left. A fix leaves none of a table that is
// gone, and names the others where an entry that it settles knows them.
func (w *world) unlockTables(what string, notices []string) {
	w.t.Helper()
	said := strings.Join(notices, "\n")
	for _, name := range w.f.Names(stackDir) {
		table, locked := strings.CutSuffix(name, ".lock")
		if !locked {
			continue
		}
		if !slices.Contains(w.list(), table) {
			w.t.Fatalf("%s: a fix leaves %s, of a table that is gone; %q", what, name, notices)
		}
		if strings.Contains(said, "had not happened") && !strings.Contains(said, name) {
			w.t.Fatalf("%s: a fix does not name %s: %q", what, name, notices)
		}
		if _, err := (lockfile.Stale{Path: stackDir + "/" + table, Older: 1, Watch: time.Microsecond}).RemoveStale(ctx, w.f); err != nil {
			w.t.Fatal(err)
		}
	}
}

func TestACompactionSurvivesAFaultAtEachOperation(t *testing.T) {
	old, mended := []string{"refs/heads/main c1", "refs/tags/v1 t1 c2"}, []string{"refs/heads/main c1", "refs/tags/v1 t1 c1"}
	for _, how := range []crashfs.Fault{crashfs.Fail, crashfs.Crash} {
		for n, fired := 1, true; fired; n++ {
			w := newWorld(t, oid.SHA1)
			w.putTable(1, "t1 refs/tags/v1 c2")
			w.putTable(2, "c1 refs/heads/main", "t1 refs/tags/v1 c2")
			w.f.FailAt(n, how)
			_, err := w.stack().Compact(ctx, Selection{}, Brake{Tags: 1})
			fired = w.f.Fired()
			what := "none"
			if fired {
				what = w.f.Trace()[n-1]
			}
			if how == crashfs.Crash {
				lockfile.RollbackAll()
			}
			w.f.FailAt(0, 0)
			w.f.Survivors(10, func(lost string, disk *crashfs.FS) {
				c := w.after(disk)
				got, serr := c.served()
				if serr != nil || !slices.Equal(got, old) && !slices.Equal(got, mended) || err == nil && !slices.Equal(got, mended) {
					t.Fatalf("%s (%v), then a crash (%s): the stack serves %v %v", what, how, lost, got, serr)
				}
				where := what + ", then a crash (" + lost + ")"
				disk.Remove(stackDir + "/tables.list.lock")
				fixed, err := c.stack().Fix(ctx, nil, Brake{Tags: 1})
				if err != nil {
					t.Fatalf("%s: fix: %v", where, err)
				}
				c.unlockTables(where, fixed.Notices)
				if _, err := c.stack().Compact(ctx, Selection{}, Brake{Tags: 1}); err != nil {
					t.Fatalf("%s, then a crash (%s): %v", what, lost, err)
				}
				c.serves(mended...)
				listed := c.list()
				for _, name := range disk.Names(stackDir) {
					if name != "tables.list" && !slices.Contains(listed, name) && !strings.Contains(name, ".temp.") {
						t.Fatalf("%s (%v), then a crash (%s): left %s", what, how, lost, name)
					}
				}
			})
		}
	}
}
