package repair

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"refaudit/internal/crashfs"
	"refaudit/internal/journal"
	"refaudit/internal/lockfile"
	"refaudit/oid"
)

func (w *world) loose() *Loose { return &Loose{Repo: w.repo, Dir: "/r"} }

func (w *world) putRef(name, id string) {
	w.f.Put("/r/"+name, []byte(w.id(id).String()+"\n"))
}

// refs is what a reader of the files store sees.
func (w *world) refs() (rows []string) {
	w.t.Helper()
	seen := map[string]bool{}
	add := func(name string, id oid.ID) {
		if !seen[name] {
			seen[name] = true
			rows = append(rows, name+" "+w.word(id))
		}
	}
	for _, dir := range []string{"refs/tags", "refs/tags/deep", "refs/heads"} {
		for _, base := range w.f.Names("/r/" + dir) {
			if b, ok := w.f.Get("/r/" + dir + "/" + base); ok && !strings.HasSuffix(base, ".lock") {
				add(dir+"/"+base, oid.MustParse(strings.TrimSpace(string(b))))
			}
		}
	}
	if b, ok := w.f.Get("/r/packed-refs"); ok {
		for _, line := range strings.Split(string(b), "\n") {
			if id, name, ok := strings.Cut(line, " "); ok && line[0] != '#' {
				add(name, oid.MustParse(id))
			}
		}
	}
	slices.Sort(rows)
	return rows
}

// corrupt is a files repository with corrupt tags that are loose, packed, and both.
func corrupt(t *testing.T) (*world, []Wanted) {
	w := newWorld(t, oid.SHA1)
	w.repo.Loose = "/r/objects"
	w.putPacked(fullHeader + "c1 refs/heads/main\nbad refs/tags/both\n^blob\nbad refs/tags/deep/packed\nt1 refs/tags/v1\n^c1\n")
	w.putRef("refs/tags/both", "bad")
	w.putRef("refs/tags/loose", "bad")
	w.putRef("refs/tags/v2", "t2")
	w.f.Put("/r/logs/refs/tags/loose", []byte("a log\n"))
	return w, []Wanted{w.want("refs/tags/loose", "bad", ""), w.want("refs/tags/both", "bad", "blob"), w.want("refs/tags/deep/packed", "bad", "")}
}

var corruptRefs = []string{"refs/heads/main c1", "refs/tags/both bad", "refs/tags/deep/packed bad", "refs/tags/loose bad", "refs/tags/v1 t1", "refs/tags/v2 t2"}
var soundRefs = []string{"refs/heads/main c1", "refs/tags/v1 t1", "refs/tags/v2 t2"}

func TestRefsOfCorruptTagsAreDroppedAndBroughtBack(t *testing.T) {
	w, wanted := corrupt(t)
	if got := w.refs(); !slices.Equal(got, corruptRefs) {
		t.Fatal(got)
	}
	out, err := w.loose().Drop(ctx, append(wanted, w.want("refs/tags/v2", "t2", "")), Brake{Tags: 3})
	if err != nil || len(out.Changes) != 3 || len(out.Left) != 1 {
		t.Fatalf("%+v %v", out, err)
	}
	if got := w.refs(); !slices.Equal(got, soundRefs) {
		t.Errorf("%v", got)
	}
	if got := w.get("/r/packed-refs"); got != w.expand(fullHeader+"c1 refs/heads/main\nt1 refs/tags/v1\n^c1\n") {
		t.Errorf("packed-refs is\n%s", got)
	}
	if _, there := w.f.Get("/r/logs/refs/tags/loose"); there {
		t.Error("the reflog is left")
	}
	if names := w.f.Names("/r/refs/tags"); !slices.Equal(names, []string{"v2"}) {
		t.Errorf("left %v", names)
	}
	e := w.entry(out.Journal)
	if string(e.Records[2].Object) != "content of "+w.id("bad").String() || string(e.Records[2].Log) != "a log\n" {
		t.Errorf("%+v", e.Records[2])
	}
	w.putRef("refs/tags/both", "t5") // taken again
	back, err := w.repo.Undo(ctx, e)
	if err != nil || len(back.Changes) != 2 || len(back.Left) != 1 {
		t.Fatalf("%+v %v", back, err)
	}
	want := slices.Clone(corruptRefs)
	want[1] = "refs/tags/both t5"
	if got := w.refs(); !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
	if log := w.get("/r/logs/refs/tags/loose"); log != "a log\n" {
		t.Errorf("the reflog is %q", log)
	}
	if _, err := w.repo.Undo(ctx, e); !errors.Is(err, ErrRefused) {
		t.Errorf("a second time: %v", err)
	}
}

func TestADroppedRefThatHasChangedIsLeft(t *testing.T) {
	w, wanted := corrupt(t)
	w.putRef("refs/tags/loose", "t3")
	w.f.Remove("/r/refs/tags/both")
	w.f.PutLink("/r/refs/tags/both", "v2")
	out, err := w.loose().Drop(ctx, wanted, Brake{Tags: 3})
	if err != nil || len(out.Changes) != 1 || len(out.Left) != 2 {
		t.Fatalf("%+v %v", out, err)
	}
	for _, path := range []string{"/r/refs/heads/x", "/r/packed-refs"} {
		w, wanted := corrupt(t)
		w.f.Put(path+".lock", nil)
		w.f.Put("/r/refs/tags/loose.lock", nil)
		if _, err := w.loose().Drop(ctx, wanted, Brake{Tags: 3}); !errors.Is(err, lockfile.ErrHeld) || !slices.Equal(w.refs(), corruptRefs) {
			t.Errorf("%v %v", err, w.refs())
		}
	}
	w, _ = corrupt(t)
	if _, err := w.loose().Drop(ctx, []Wanted{w.want("refs/tags/../../../etc/x", "bad", "")}, Brake{}); !errors.Is(err, ErrRefused) {
		t.Errorf("a name that leads out: %v", err)
	}
}

func TestTheTagComesBackFromTheJournal(t *testing.T) {
	w, wanted := corrupt(t)
	content := []byte("object 1234\ntype commit\ntag x\n")
	out, err := w.loose().Drop(ctx, wanted[:1], Brake{Tags: 3})
	if err != nil {
		t.Fatal(err)
	}
	e := w.entry(out.Journal)
	delete(w.objects.facts, w.id("bad"))
	if _, err := w.repo.Undo(ctx, e); err == nil || len(w.refs()) != len(corruptRefs)-1 {
		t.Errorf("a ref came back without its object: %v %v", err, w.refs())
	}
	e.Records[0].Object, e.Records[0].OID = content, w.repo.Format.Object("tag", content)
	if err := w.repo.restoreTag(&e.Records[0]); err != nil {
		t.Fatal(err)
	}
	hex := e.Records[0].OID.String()
	if names := w.f.Names("/r/objects/" + hex[:2]); !slices.Equal(names, []string{hex[2:]}) {
		t.Errorf("%v", names)
	}
}

// A tag that is not here but may be elsewhere, or where nobody can look, comes back too; where the journal doesn't have
// it, its ref does.
func TestATagThatMayBeElsewhereComesBack(t *testing.T) {
	content := []byte("object 1234\ntype commit\ntag x\n")
	for name, hide := range map[string]func(w *world, id oid.ID){
		"elsewhere": func(w *world, _ oid.ID) { w.objects.absence = "an alternate is missing" },
		"not looked": func(w *world, id oid.ID) {
			w.objects.facts[id] = oid.Fact{State: oid.Unreadable, Err: errors.New("no permission")}
		},
	} {
		w, _ := corrupt(t)
		rec := journal.Record{OID: w.repo.Format.Object("tag", content)}
		hide(w, rec.OID)
		hex := rec.OID.String()
		if err := w.repo.restoreTag(&rec); err != nil || len(w.f.Names("/r/objects/"+hex[:2])) > 0 {
			t.Errorf("%s, not in the journal: %v", name, err)
		}
		rec.Object = content
		if err := w.repo.restoreTag(&rec); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if names := w.f.Names("/r/objects/" + hex[:2]); !slices.Equal(names, []string{hex[2:]}) {
			t.Errorf("%s: %v", name, names)
		}
	}
}

// A disk that keeps something else than packed-refs without the entries gets it once more, before any
// ref file goes; one that never keeps it loses none.
func TestADropThatReadsBackWronglyIsMendedForward(t *testing.T) {
	for _, times := range []int{1, 2} {
		w, wanted := corrupt(t)
		left := times
		w.repo.FS = &spoiler{w.f, func(name string) {
			if name == "/r/packed-refs" && left > 0 {
				left--
				w.f.Put(name, []byte("spoilt"))
			}
		}}
		out, err := w.loose().Drop(ctx, wanted, Brake{Tags: 3})
		if times == 1 {
			if err != nil || !slices.Equal(w.refs(), soundRefs) || len(out.Notices) != 2 {
				t.Errorf("%v, %v, %q", err, w.refs(), out.Notices)
			}
			continue
		}
		for _, name := range []string{"both", "loose"} {
			if _, there := w.f.Get("/r/refs/tags/" + name); err == nil || !there {
				t.Errorf("spoilt twice: %v; %s is there: %v", err, name, there)
			}
		}
	}
}

func TestStackDropsRefsAndLogs(t *testing.T) {
	w := newWorld(t, oid.SHA1)
	w.putTable(1, "bad refs/tags/bad blob", "t1 refs/tags/v1 c1", "log refs/tags/bad", "log refs/tags/v1")
	w.putTable(2, "c1 refs/heads/main", "log refs/tags/bad")
	logs := func() (n int) {
		t.Helper()
		h := &holding{Stack: w.stack()}
		h.stack = must[*tables](t)(w.stack().load())
		list, err := h.logsOf([]byte("refs/tags/bad"))
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	out, err := w.stack().Drop(ctx, []Wanted{w.want("refs/tags/bad", "bad", "blob"), w.want("refs/tags/v1", "t1", "c1")}, Brake{Tags: 2})
	if err != nil || len(out.Changes) != 1 || len(out.Left) != 1 {
		t.Fatalf("%+v %v", out, err)
	}
	w.serves("refs/heads/main c1", "refs/tags/v1 t1 c1")
	if n := logs(); n != 0 {
		t.Errorf("%d log records are left", n)
	}
	if _, err := w.repo.Undo(ctx, w.entry(out.Journal)); err != nil {
		t.Fatal(err)
	}
	w.serves("refs/heads/main c1", "refs/tags/bad bad", "refs/tags/v1 t1 c1")
	if n := logs(); n != 2 {
		t.Errorf("%d log records came back", n)
	}
}

func TestADropSurvivesACrashAtEachOperation(t *testing.T) {
	for n, fired := 1, true; fired; n++ {
		w, wanted := corrupt(t)
		w.f.FailAt(n, crashfs.Crash)
		_, err := w.loose().Drop(ctx, wanted, Brake{Tags: 3})
		fired = w.f.Fired()
		lockfile.RollbackAll()
		w.f.Survivors(30, func(lost string, disk *crashfs.FS) {
			c := w.after(disk)
			for _, ref := range c.refs() {
				if !slices.Contains(corruptRefs, ref) {
					t.Fatalf("operation %d, then a crash (%s): %s", n, lost, ref)
				}
			}
			if err == nil && !slices.Equal(c.refs(), soundRefs) {
				t.Fatalf("done, then a crash (%s): %v", lost, c.refs())
			}
			for _, path := range []string{"packed-refs", "refs/tags/both", "refs/tags/loose", "refs/tags/deep/packed"} {
				disk.Remove("/r/" + path + ".lock")
			}
			if _, err := c.loose().settle(ctx); err != nil {
				t.Fatal(err)
			}
			ids, err := c.repo.Journal.List(journal.Open)
			if err != nil || len(ids) > 0 {
				t.Fatalf("operation %d: entries stay open: %v %v", n, ids, err)
			}
			done, _ := c.repo.Journal.List(journal.Done)
			if slices.Equal(c.refs(), corruptRefs) != (len(done) == 0) {
				t.Fatalf("operation %d, then a crash (%s): %v, and %d entries are done", n, lost, c.refs(), len(done))
			}
			for _, id := range done { // whatever was deleted can be brought back
				if _, err := c.repo.Undo(ctx, c.entry(id)); err != nil {
					t.Fatalf("operation %d, then a crash (%s): undo: %v", n, lost, err)
				}
				if !slices.Equal(c.refs(), corruptRefs) {
					t.Fatalf("operation %d, then a crash (%s), then an undo: %v", n, lost, c.refs())
				}
			}
		})
	}
}

func TestACutReaderReadsAroundTheCuts(t *testing.T) {
	text := "0123456789"
	c := newCutReader(strings.NewReader(text), 10, []place{{offset: 0, length: 1}, {offset: 3, length: 2}, {offset: 9, length: 1}})
	if c.size != 6 {
		t.Fatal(c.size)
	}
	for off := range 8 {
		for n := range 9 {
			p := make([]byte, n)
			k, err := c.ReadAt(p, int64(off))
			want := "125678"[min(off, 6):]
			if len(want) > n {
				want = want[:n]
			}
			if string(p[:k]) != want || (err != nil) != (k < n) {
				t.Errorf("%d at %d: %q %v", n, off, p[:k], err)
			}
		}
	}
}
