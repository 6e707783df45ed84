package repair

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"refaudit/internal/crashfs"
	"refaudit/internal/journal"
	"refaudit/internal/lockfile"
	"refaudit/oid"
)

func (w *world) serves(want ...string) {
	w.t.Helper()
	if got, err := w.served(); err != nil || !slices.Equal(got, want) {
		w.t.Errorf("the stack serves %v %v\nwant %v", got, err, want)
	}
}

func (w *world) list() []string { return strings.Fields(w.get(stackDir + "/tables.list")) }

func TestRecordsAreMendedInANewTable(t *testing.T) {
	for _, format := range formats {
		w := newWorld(t, format)
		w.putTable(1, "c1 refs/heads/main", "bad refs/tags/bad blob", "t1 refs/tags/v1 c2", "t2 refs/tags/v2", "log refs/heads/main")
		w.putTable(2, "c2 refs/heads/main c1")
		before := w.list()
		old := map[string]string{}
		for _, name := range before {
			old[name] = w.get(stackDir + "/" + name)
		}
		out, err := w.stack().Fix(ctx, []Wanted{
			w.want("refs/tags/v2", "t2", ""), w.want("refs/heads/main", "c2", "c1"), w.want("refs/tags/bad", "bad", "blob"), w.want("refs/tags/v1", "t1", "c2"),
		}, Brake{Tags: 3})
		if err != nil || len(out.Changes) != 4 || len(out.Left) > 0 {
			t.Fatalf("%+v %v", out, err)
		}
		w.serves("refs/heads/main c2", "refs/tags/bad bad", "refs/tags/v1 t1 c1", "refs/tags/v2 t2 c2")
		list := w.list()
		if len(list) != 3 || !slices.Equal(list[:2], before) || !strings.HasPrefix(list[2], "0x000000000003-0x000000000003-") {
			t.Errorf("list %v after %v", list, before)
		}
		for name, data := range old {
			if w.get(stackDir+"/"+name) != data {
				t.Errorf("%s was edited", name)
			}
		}
		if names := w.f.Names(stackDir); len(names) != 4 {
			t.Errorf("left %v", names)
		}
		again, err := w.stack().Fix(ctx, nil, Brake{})
		if err != nil || again.Journal != "" || !slices.Equal(w.list(), list) {
			t.Errorf("a second time: %+v %v", again, err)
		}
		e, state, err := w.repo.Journal.Load(out.Journal)
		if err != nil || state != journal.Done || len(e.Records) != 4 || e.Records[3].Ref != "refs/tags/v2" || e.Records[3].Before != none || e.Records[3].After != w.id("c2") {
			t.Errorf("%v %v %+v", state, err, e)
		}
	}
}

func TestARecordThatHasChangedIsLeft(t *testing.T) {
	w := newWorld(t, oid.SHA1)
	w.putTable(1, "t1 refs/tags/v1 c2", "t2 refs/tags/v2 c1", "t3 refs/tags/v3 c1", "t4 refs/tags/v4 c1")
	wanted := []Wanted{w.want("refs/tags/v1", "t1", "c2"), w.want("refs/tags/v2", "t2", "c1"), w.want("refs/tags/v3", "t3", "c1"), w.want("refs/tags/v4", "t4", "c1"), w.want("refs/tags/v5", "t5", "c1")}
	var list []string
	w.repo.Step = func(step string) { // between the plan and the lock
		if step == "lock" && list == nil {
			w.putTable(2, "c6 refs/heads/new", "t5 refs/tags/v1 c5", "- refs/tags/v2", "t3 refs/tags/v3 c3")
			list = w.list()
		}
	}
	out, err := w.stack().Fix(ctx, wanted, Brake{Tags: 4})
	if err != nil || len(out.Changes) != 1 || len(out.Left) != 4 {
		t.Fatalf("%+v %v", out, err)
	}
	w.serves("refs/heads/new c6", "refs/tags/v1 t5 c5", "refs/tags/v3 t3 c3", "refs/tags/v4 t4 c4")
	if got := w.list(); !slices.Equal(got[:2], list) || len(got) != 3 {
		t.Errorf("a table that another has listed is lost: %v", got)
	}
}

func TestABrokenStackIsRefused(t *testing.T) {
	for name, spoil := range map[string]func(w *world, tables []string){
		"a table is gone":   func(w *world, tables []string) { w.f.Remove(stackDir + "/" + tables[0]) },
		"a table is cut":    func(w *world, tables []string) { w.cut(tables[0], 10) },
		"a table is empty":  func(w *world, tables []string) { w.f.Put(stackDir+"/"+tables[0], nil) },
		"a checksum is off": func(w *world, tables []string) { w.flip(tables[0], -1) },
		"the list is empty": func(w *world, tables []string) { w.f.Put(stackDir+"/tables.list", nil) },
		"the list is cut":   func(w *world, tables []string) { w.f.Put(stackDir+"/tables.list", []byte(tables[0])) },
		"the list is gone":  func(w *world, tables []string) { w.f.Remove(stackDir + "/tables.list") },
		"a name leads out":  func(w *world, tables []string) { w.f.Put(stackDir+"/tables.list", []byte("../"+tables[0]+"\n")) },
		"a name stands twice": func(w *world, tables []string) {
			w.f.Put(stackDir+"/tables.list", []byte(tables[0]+"\n"+tables[0]+"\n"))
		},
		"a record is damaged": func(w *world, tables []string) { w.flip(tables[0], 29) },
		"another hash":        func(w *world, tables []string) { w.repo.Format = oid.SHA256 },
		"no index is left": func(w *world, tables []string) {
			w.putTable(maxUpdateIndex, "c1 refs/heads/x")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, oid.SHA1)
			w.putTable(1, "t1 refs/tags/v1 c2")
			wanted := []Wanted{w.want("refs/tags/v1", "t1", "c2")}
			spoil(w, w.list())
			names := w.f.Names(stackDir)
			list, _ := w.f.Get(stackDir + "/tables.list")
			out, err := w.stack().Fix(ctx, wanted, Brake{Tags: 1})
			if !errors.Is(err, ErrRefused) || out.Journal != "" {
				t.Errorf("not refused: %v", err)
			}
			if now, _ := w.f.Get(stackDir + "/tables.list"); !slices.Equal(w.f.Names(stackDir), names) || string(now) != string(list) {
				t.Errorf("it was written: %v", w.f.Names(stackDir))
			}
		})
	}
}

func (w *world) cut(table string, n int) {
	b := w.get(stackDir + "/" + table)
	w.f.Put(stackDir+"/"+table, []byte(b[:len(b)-n]))
}

func (w *world) flip(table string, at int) {
	b := []byte(w.get(stackDir + "/" + table))
	if at < 0 {
		at += len(b)
	}
	b[at] ^= 0xff
	w.f.Put(stackDir+"/"+table, b)
}

func TestAHeldListLock(t *testing.T) {
	w := newWorld(t, oid.SHA1)
	w.putTable(1, "t1 refs/tags/v1 c2")
	w.f.Put(stackDir+"/tables.list.lock", nil)
	if _, err := w.stack().Fix(ctx, []Wanted{w.want("refs/tags/v1", "t1", "c2")}, Brake{Tags: 1}); !errors.Is(err, lockfile.ErrHeld) {
		t.Errorf("%v", err)
	}
	if names := w.f.Names(stackDir); len(names) != 3 {
		t.Errorf("written beside a held lock: %v", names)
	}
}

func TestASecondAdditionInTheProcess(t *testing.T) {
	w := newWorld(t, oid.SHA1)
	w.putTable(1, "t1 refs/tags/v1 c2")
	wanted := []Wanted{w.want("refs/tags/v1", "t1", "c2")}
	var second error
	w.repo.Step = func(step string) {
		if strings.HasPrefix(step, "write") {
			w.repo.Step = nil
			_, second = w.stack().Fix(ctx, wanted, Brake{Tags: 1})
		}
	}
	if _, err := w.stack().Fix(ctx, wanted, Brake{Tags: 1}); err != nil || !errors.Is(second, lockfile.ErrHeld) {
		t.Errorf("%v, the second %v", err, second)
	}
	w.serves("refs/tags/v1 t1 c1")
}

// A list that can't be renamed leaves the folder as it was, at once, and an entry that says so.
func TestATableThatIsNotListedIsTakenBack(t *testing.T) {
	for n := 1; ; n++ {
		w := newWorld(t, oid.SHA1)
		first := w.putTable(1, "c1 refs/heads/main", "t1 refs/tags/v1 c2")
		w.f.FailAt(n, crashfs.Fail)
		out, err := w.stack().Fix(ctx, []Wanted{w.want("refs/tags/v1", "t1", "c2")}, Brake{Tags: 1})
		if !w.f.Fired() {
			t.Fatal("no list was renamed")
		}
		if !strings.HasPrefix(w.f.Trace()[n-1], "rename "+stackDir+"/tables.list.lock") {
			continue
		}
		if names := w.f.Names(stackDir); err == nil || out.Journal != "" || !slices.Equal(names, []string{first, "tables.list"}) {
			t.Errorf("%v, entry %q: left %v", err, out.Journal, names)
		}
		open, _ := w.repo.Journal.List(journal.Open)
		if void, err := w.repo.Journal.List(journal.Void); err != nil || len(void) != 1 || len(open) > 0 {
			t.Errorf("void %v, open %v: %v", void, open, err)
		}
		return
	}
}

// spoiler is a disk that writes other bytes than it was given.
type spoiler struct {
	*crashfs.FS
	spoil func(name string) // called after a file got its name
}

func (s *spoiler) Rename(from, to string) error {
	err := s.FS.Rename(from, to)
	s.spoil(to)
	return err
}

func TestATableThatReadsBackWronglyIsMendedForward(t *testing.T) {
	w := newWorld(t, oid.SHA1)
	first := w.putTable(1, "c1 refs/heads/main", "t1 refs/tags/v1 c2")
	spoilt := ""
	w.repo.FS = &spoiler{w.f, func(name string) {
		if strings.HasSuffix(name, ".ref") && spoilt == "" {
			spoilt = strings.TrimPrefix(name, stackDir+"/")
			w.cut(spoilt, 5)
		}
	}}
	out, err := w.stack().Fix(ctx, []Wanted{w.want("refs/tags/v1", "t1", "c2")}, Brake{Tags: 1})
	if err != nil {
		t.Fatal(err)
	}
	w.serves("refs/heads/main c1", "refs/tags/v1 t1 c1")
	list := w.list()
	if len(list) != 2 || list[0] != first || list[1] == spoilt || slices.Contains(w.f.Names(stackDir), spoilt) {
		t.Errorf("%v; the spoilt table was %s", list, spoilt)
	}
	if len(out.Notices) != 2 {
		t.Errorf("%v", out.Notices)
	}
}

func TestATableWithAnotherRecordIsMendedForward(t *testing.T) {
	w := newWorld(t, oid.SHA1)
	w.putTable(1, "t1 refs/tags/v1 c2")
	done := false
	w.repo.FS = &spoiler{w.f, func(name string) {
		if strings.HasSuffix(name, ".ref") && !done {
			done = true
			list := w.get(stackDir + "/tables.list")
			other := w.putTable(2, "t1 refs/tags/v1 c3")
			w.f.Put(name, []byte(w.get(stackDir+"/"+other)))
			w.f.Put(stackDir+"/tables.list", []byte(list))
			w.f.Remove(stackDir + "/" + other)
		}
	}}
	if _, err := w.stack().Fix(ctx, []Wanted{w.want("refs/tags/v1", "t1", "c2")}, Brake{Tags: 1}); err != nil {
		t.Fatal(err)
	}
	w.serves("refs/tags/v1 t1 c1")
}

// stopAt is a disk that stops at the first operation that matches, as if the program were killed there.
func (w *world) stopAt(operation string, wanted []Wanted) *world {
	w.t.Helper()
	clean := w.f
	for n := 1; ; n++ {
		disk := crashfs.New()
		if err := copyDisk(disk, clean); err != nil {
			w.t.Fatal(err)
		}
		c := w.after(disk)
		disk.FailAt(n, crashfs.Crash)
		c.stack().Fix(ctx, wanted, Brake{Tags: 1})
		lockfile.RollbackAll()
		if !disk.Fired() {
			w.t.Fatalf("no operation %q", operation)
		}
		if matched, err := filepath.Match(operation, disk.Trace()[n-1]); matched && err == nil {
			var up *crashfs.FS
			disk.Survivors(1<<20, func(_ string, after *crashfs.FS) { up = after }) // the last one has lost nothing
			return w.after(up)
		}
	}
}

func copyDisk(to, from *crashfs.FS) error {
	for _, dir := range []string{stackDir, "/r"} {
		for _, name := range from.Names(dir) {
			if data, ok := from.Get(dir + "/" + name); ok {
				to.Put(dir+"/"+name, data)
			}
		}
	}
	to.PutDir("/state")
	return nil
}

func TestUnfinishedTablesGoWhenTheyAreOld(t *testing.T) {
	w := newWorld(t, oid.SHA1)
	table := w.putTable(1, "t1 refs/tags/v1 c1")
	for _, name := range []string{"a.temp.refaudit-1", "b.temp.refaudit-2", "c.temp.XyZ123"} {
		w.f.Put(stackDir+"/"+name, nil)
		if name[0] != 'b' {
			w.f.Chtimes(stackDir+"/"+name, time.Unix(1_600_000_000, 0))
		}
	}
	if _, err := w.stack().Fix(ctx, nil, Brake{}); err != nil {
		t.Fatal(err)
	}
	if names := w.f.Names(stackDir); !slices.Equal(names, []string{table, "b.temp.refaudit-2", "c.temp.XyZ123", "tables.list"}) {
		t.Errorf("%v", names)
	}
}

func TestARepairThatWasCutShortIsExplained(t *testing.T) {
	for at, want := range map[string]struct {
		state journal.State
		words string
	}{
		"rename /r/reftable/*.temp.* /r/reftable/*.ref":               {journal.Void, "had not happened"},
		"syncdir /r/reftable":                                         {journal.Void, "had not happened, and 1 file"},
		"rename /r/reftable/tables.list.lock /r/reftable/tables.list": {journal.Void, "had not happened"},
		"rename /state/journal/*.open /state/journal/*.done":          {journal.Done, "was done all the same"},
	} {
		w := newWorld(t, oid.SHA1)
		w.putTable(1, "c1 refs/heads/main", "t1 refs/tags/v1 c2")
		wanted := []Wanted{w.want("refs/tags/v1", "t1", "c2")}
		after := w.stopAt(at, wanted)
		after.f.Remove(stackDir + "/tables.list.lock")
		out, err := after.stack().Fix(ctx, wanted, Brake{Tags: 1})
		if err != nil {
			t.Fatal(err)
		}
		if len(out.Notices) != 1 || !strings.Contains(out.Notices[0], want.words) {
			t.Errorf("%s: %v", at, out.Notices)
		}
		if ids, _ := after.repo.Journal.List(want.state); len(ids) == 0 {
			t.Errorf("%s: no entry is %s", at, want.state)
		}
		after.serves("refs/heads/main c1", "refs/tags/v1 t1 c1")
	}
}

func TestPackedRefsThatReadBackWronglyAreMendedForward(t *testing.T) {
	w := newWorld(t, oid.SHA1)
	p := w.putPacked(fullHeader + "t1 refs/tags/v1\n^c2\n")
	times := 0
	w.repo.FS = &spoiler{w.f, func(name string) {
		if name == "/r/packed-refs" && times == 0 {
			times++
			w.f.Put(name, []byte("spoilt"))
		}
	}}
	out, err := p.Fix(ctx, w.wantAll(), Whole, Brake{Tags: 1})
	if err != nil || w.get("/r/packed-refs") != w.expand(fullHeader+"t1 refs/tags/v1\n^c1\n") || len(out.Notices) != 2 {
		t.Errorf("%v %v\n%s", err, out.Notices, w.get("/r/packed-refs"))
	}
}

func TestADeadStagingFileGoesAlsoWhereNothingIsWrong(t *testing.T) {
	w := newWorld(t, oid.SHA1)
	p := w.putPacked(fullHeader + "t1 refs/tags/v1\n^c1\n")
	w.f.Put("/r/packed-refs.new", []byte("junk"))
	out, err := p.Fix(ctx, nil, Whole, Brake{})
	if err != nil || len(out.Notices) != 1 || !slices.Equal(w.f.Names("/r"), []string{"packed-refs"}) {
		t.Errorf("%v %v %v", err, out.Notices, w.f.Names("/r"))
	}
}

// One peel among many refs takes a handful of bytes in the journal, not the whole file.
func TestTheJournalIsSmall(t *testing.T) {
	w := newWorld(t, oid.SHA1)
	var text strings.Builder
	text.WriteString(fullHeader)
	for i := range 2000 {
		text.WriteString("t1 refs/tags/" + string(rune('a'+i/100)) + string(rune('a'+i/10%10)) + string(rune('a'+i%10)) + "\n")
		if i != 700 {
			text.WriteString("^c1\n")
		}
	}
	p := w.putPacked(text.String())
	out, err := p.Fix(ctx, w.wantAll(), Whole, Brake{Tags: 2000})
	if err != nil {
		t.Fatal(err)
	}
	e, _, err := w.repo.Journal.Load(out.Journal)
	if err != nil || len(e.Pieces) != 2 || len(e.Records) != 1 {
		t.Errorf("%d pieces, %d records, %v", len(e.Pieces), len(e.Records), err)
	}
}

// Under the lock the number of operations and of bytes written doesn't depend on the size of the stack.
func TestACostThatDoesNotGrowWithTheStack(t *testing.T) {
	var ops, size []int
	for _, refs := range []int{1, 1000, 50000} {
		w := newWorld(t, oid.SHA1)
		rows := make([]string, 0, refs+1)
		for i := range refs {
			rows = append(rows, "t1 refs/tags/a"+decimal(i)+" c1")
		}
		rows = append(rows, "t1 refs/tags/v1 c2")
		w.putTable(1, rows...)
		w.f.FailAt(0, 0)
		under := 0
		w.repo.Step = func(step string) {
			if step == "lock" {
				under = w.f.Ops()
			}
		}
		if _, err := w.stack().Fix(ctx, []Wanted{w.want("refs/tags/v1", "t1", "c2")}, Brake{Tags: 1}); err != nil {
			t.Fatal(err)
		}
		ops = append(ops, w.f.Ops()-under)
		list := w.list()
		size = append(size, len(w.get(stackDir+"/"+list[len(list)-1])))
	}
	if ops[0] != ops[1] || ops[0] != ops[2] || size[0] != size[1] || size[0] != size[2] {
		t.Errorf("operations %v, bytes %v", ops, size)
	}
}

func decimal(i int) string {
	s := []byte("00000")
	for k := 4; k >= 0; k-- {
		s[k], i = byte('0'+i%10), i/10
	}
	return string(s)
}
