package repair

import (
	"bytes"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"refaudit/finding"
	"refaudit/internal/crashfs"
	"refaudit/internal/journal"
	"refaudit/internal/lockfile"
	"refaudit/oid"
	"refaudit/reftable"
)

// writePath is one way in which this package writes to a repository.
type writePath struct {
	name  string
	world func(t *testing.T) *world // at rest, before it
	// do is what is to survive. It is done again when all is well.
	do func(w *world) (*Outcome, error)
	// state is what readers see.
	state func(w *world) (string, error)
	// steps tells whether a state between the first and the last is one that may be seen; nil: none is.
	steps func(now, before, after string) bool
	// limit is how many of the disks that a crash may leave are tried each time.
	limit int
}

// survives runs a write path with each kind of fault at each of its operations, and after each one
// with the disks that a crash then may leave: the state is always the old or the new one, what was
// reported is so, the next fix leaves nothing open, and the same thing can then be done to its end.
func (p *writePath) survives(t *testing.T) {
	first := p.world(t)
	before := must[string](t)(p.state(first))
	if _, err := p.do(first); err != nil {
		t.Fatal(err)
	}
	after := must[string](t)(p.state(first))
	if before == after {
		t.Fatal("it does nothing")
	}
	operations := 0
	for _, how := range []crashfs.Fault{crashfs.Fail, crashfs.FailDone, crashfs.Crash} {
		for n, fired := 1, true; fired; n++ {
			w := p.world(t)
			w.f.Settle()
			w.f.FailAt(n, how)
			out, err := p.do(w)
			fired = w.f.Fired()
			what := fmt.Sprintf("%v at no operation", how)
			if fired {
				what = fmt.Sprintf("fault %v at %q", how, w.f.Trace()[n-1])
				operations++
			}
			if how == crashfs.Crash {
				lockfile.RollbackAll()
			}
			w.f.FailAt(0, 0)
			if how != crashfs.Crash { // else only what survives can be read
				now, serr := p.state(w)
				if serr != nil || !p.may(now, before, after) || err == nil && now != after {
					t.Fatalf("%s (%v): %v\n%s", what, err, serr, now)
				}
				if now == before && len(out.Changes) > 0 {
					t.Fatalf("%s (%v): changes are reported and not made", what, err)
				}
			}
			w.f.Survivors(p.limit, func(lost string, disk *crashfs.FS) {
				c := w.after(disk)
				c.repo.Loose = w.repo.Loose
				where := what + ", then a crash (" + lost + ")"
				now, serr := p.state(c)
				if serr != nil || !p.may(now, before, after) || err == nil && now != after {
					t.Fatalf("%s: %v\n%s", where, serr, now)
				}
				p.recovers(t, c, where, before, after)
			})
		}
	}
	if operations < 20 {
		t.Errorf("only %d operations failed", operations)
	}
	t.Logf("%d faults", operations)
}

func (p *writePath) may(now, before, after string) bool {
	return now == before || now == after || p.steps != nil && p.steps(now, before, after)
}

// recovers is what has to work on the disk that a crash has left, stale locks taken away.
func (p *writePath) recovers(t *testing.T, c *world, where, before, after string) {
	t.Helper()
	unlock(c, "/r")
	if err := c.settleAll(); err != nil {
		t.Fatalf("%s: the next fix: %v", where, err)
	}
	now, err := p.state(c)
	if err != nil || !p.may(now, before, after) {
		t.Fatalf("%s, then a fix: %v\n%s", where, err, now)
	}
	if _, err := p.do(c); err != nil && (now == before || !errors.Is(err, ErrRefused)) {
		t.Fatalf("%s, then once more: %v", where, err)
	}
	if now, err := p.state(c); err != nil || now != after {
		t.Fatalf("%s, then once more: %v\n%s", where, err, now)
	}
	if err := c.settleAll(); err != nil {
		t.Fatal(err)
	}
	if ids, err := c.repo.Journal.List(journal.Open); err != nil || len(ids) > 0 {
		t.Fatalf("%s: entries stay open: %v %v", where, ids, err)
	}
	if left := c.strays(); len(left) > 0 {
		t.Fatalf("%s: left %q", where, left)
	}
}

// unlock removes every lock.
func unlock(w *world, dir string) {
	for _, name := range w.f.Names(dir) {
		if strings.HasSuffix(name, ".lock") {
			w.f.Remove(dir + "/" + name)
			continue
		}
		unlock(w, dir+"/"+name)
	}
}

// settleAll settles what earlier repairs have left, in every store that there is.
func (w *world) settleAll() error {
	var errs []error
	if _, packed := w.f.Get("/r/packed-refs"); packed {
		_, err := w.packed().Clear(ctx)
		errs = append(errs, err)
	}
	if list, stack := w.f.Get(stackDir + "/tables.list"); stack && len(list) > 0 {
		_, err := w.stack().Fix(ctx, nil, Brake{})
		errs = append(errs, err)
	}
	_, err := w.loose().settle(ctx)
	return errors.Join(append(errs, err)...)
}

// strays are files that belong to nothing. What was being written when the journal knew nothing of it yet is
// none: git ignores it, and it goes when it is old.
func (w *world) strays() (left []string) {
	for _, name := range w.f.Names("/r") {
		if strings.HasPrefix(name, "packed-refs") && name != "packed-refs" {
			left = append(left, name)
		}
	}
	list, _ := w.f.Get(stackDir + "/tables.list")
	for _, name := range w.f.Names(stackDir) {
		if name != "tables.list" && !strings.Contains(string(list), name+"\n") && !strings.Contains(name, tempMark) {
			left = append(left, name)
		}
	}
	return left
}

func filesState(w *world) (string, error) {
	rows := w.refs()
	for _, dir := range []string{"/r/logs/refs/tags", "/r/logs/refs/tags/deep"} {
		for _, name := range w.f.Names(dir) {
			if b, ok := w.f.Get(dir + "/" + name); ok && !strings.HasSuffix(name, ".lock") {
				rows = append(rows, fmt.Sprintf("log %s/%s %q", dir, name, b))
			}
		}
	}
	return strings.Join(rows, "\n"), nil
}

func packedState(w *world) (string, error) { return w.get("/r/packed-refs"), nil }

// stackState is what the stack serves, logs included.
func stackState(w *world) (string, error) {
	rows, err := w.served()
	if err != nil {
		return "", err
	}
	t, err := w.stack().load()
	if err != nil {
		return "", err
	}
	m := reftable.MergeLogs(t.open)
	m.Seek(nil)
	for m.Next() {
		if l := m.Log(); l.Type == reftable.LogUpdate {
			rows = append(rows, fmt.Sprintf("log %s %d", l.Name, l.UpdateIndex))
		}
	}
	return strings.Join(rows, "\n"), m.Err()
}

// tablesState is every record of every table.
func tablesState(w *world) (string, error) {
	if _, err := w.served(); err != nil {
		return "", err
	}
	return strings.Join(w.all(), "\n"), nil
}

// undoOf makes the world that fix leaves, and gives what takes that back.
func undoOf(t *testing.T, start func(t *testing.T) *world, fix func(w *world) (*Outcome, error)) (func(t *testing.T) *world, func(w *world) (*Outcome, error)) {
	t.Helper()
	return func(t *testing.T) *world {
			t.Helper()
			w := start(t)
			out, err := fix(w)
			if err != nil || out.Journal == "" {
				t.Fatal(out, err)
			}
			w.taken = out.Journal
			return w
		}, func(w *world) (*Outcome, error) {
			e, _, err := w.repo.Journal.Load(w.taken)
			if err != nil {
				return &Outcome{}, err
			}
			return w.repo.Undo(ctx, e)
		}
}

func wrongPacked(t *testing.T) *world {
	w := newWorld(t, oid.SHA1)
	w.putPacked(fullHeader + "c1 refs/heads/main\nt1 refs/tags/v1\n^c2\nt2 refs/tags/v2\n^c1\n")
	w.wanted = w.wantAll()
	return w
}

func fixPacked(w *world) (*Outcome, error) {
	return w.packed().Fix(ctx, w.wanted, Whole, Brake{Tags: 2})
}

func wrongStack(t *testing.T) *world {
	w := newWorld(t, oid.SHA1)
	w.putTable(1, "bad refs/tags/bad blob", "t1 refs/tags/v1 c2", "log refs/tags/bad")
	w.putTable(2, "c1 refs/heads/main", "t2 refs/tags/v2 c1", "log refs/heads/main", "log refs/tags/bad")
	return w
}

func fixStack(w *world) (*Outcome, error) {
	return w.stack().Fix(ctx, []Wanted{w.want("refs/tags/v1", "t1", "c2"), w.want("refs/tags/v2", "t2", "c1")}, Brake{Tags: 3})
}

func compactStack(w *world) (*Outcome, error) {
	return w.stack().Compact(ctx, Selection{}, Brake{Tags: 3})
}

func dropStack(w *world) (*Outcome, error) {
	return w.stack().Drop(ctx, []Wanted{w.want("refs/tags/bad", "bad", "blob")}, Brake{Tags: 3})
}

// corruptIn is a files repository with one corrupt tag that is loose, one that is packed, or one that is both.
func corruptIn(places string) func(t *testing.T) *world {
	return func(t *testing.T) *world {
		w := newWorld(t, oid.SHA1)
		w.repo.Loose = "/r/objects"
		packed := fullHeader + "c1 refs/heads/main\n"
		if strings.Contains(places, "packed") {
			packed += "bad refs/tags/deep/x\n^blob\n"
		}
		w.putPacked(packed + "t1 refs/tags/v1\n^c1\n")
		if strings.Contains(places, "loose") {
			w.putRef("refs/tags/deep/x", "bad")
		}
		w.f.Put("/r/logs/refs/tags/deep/x", []byte("a log\n"))
		if strings.Contains(places, "two") {
			w.putRef("refs/tags/y", "bad")
			w.f.Put("/r/logs/refs/tags/y", []byte("another log\n"))
		}
		return w
	}
}

func dropFiles(w *world) (*Outcome, error) {
	wanted := w.wanted
	if wanted == nil {
		wanted = []Wanted{w.want("refs/tags/deep/x", "bad", "")}
	}
	if _, two := w.f.Get("/r/refs/tags/y"); two {
		wanted = append(wanted, w.want("refs/tags/y", "bad", ""))
	}
	return w.loose().Drop(ctx, wanted, Brake{Tags: 3})
}

// tagOfContent is a repository with a corrupt tag of which the bytes are known.
func tagOfContent(t *testing.T) *world {
	w := newWorld(t, oid.SHA1)
	w.repo.Loose = "/r/objects"
	id := w.repo.Format.Object("tag", tagBytes)
	w.objects.facts[id] = w.objects.facts[w.id("bad")]
	w.objects.content = tagBytes
	w.wanted = []Wanted{{Ref: "refs/tags/deep/x", ID: finding.TagTypeMismatch, OID: id}}
	w.f.Put("/r/refs/tags/deep/x", []byte(id.String()+"\n"))
	return w
}

var tagBytes = []byte("object 1234\ntype commit\ntag x\n")

// tagState is whether the tag is there, and whether a ref names it. An object under its name is whole.
func tagState(w *world) (string, error) {
	hex := w.wanted[0].OID.String()
	state := "no object"
	if b, there := w.f.Get("/r/objects/" + hex[:2] + "/" + hex[2:]); there {
		z, err := zlib.NewReader(bytes.NewReader(b))
		if err != nil {
			return "", err
		}
		text, err := io.ReadAll(z)
		if err != nil || !bytes.HasSuffix(text, tagBytes) {
			return "", fmt.Errorf("the object is %q: %w", text, err)
		}
		state = "object whole"
	}
	b, there := w.f.Get("/r/refs/tags/deep/x")
	switch {
	case there && (state == "no object" || string(b) != hex+"\n"):
		return "", fmt.Errorf("%s, and the ref is %q", state, b)
	case there:
		state += ", and a ref"
	}
	return state, nil
}

// littered is a repository in which a fix was killed, in both stores, just before it published.
func littered(t *testing.T) *world {
	w := wrongStack(t)
	w.putPacked(fullHeader + "c1 refs/heads/main\nt1 refs/tags/v1\n^c2\n")
	seen := must[string](t)(stackState(w)) + w.get("/r/packed-refs")
	w.f.Settle()
	for n := 1; ; n++ {
		disk := w.disk()
		c := w.after(disk)
		disk.FailAt(n, crashfs.Crash)
		fixStack(c)
		lockfile.RollbackAll()
		if !disk.Fired() {
			t.Fatal("a list is never renamed")
		}
		if strings.HasPrefix(disk.Trace()[n-1], "rename "+stackDir+"/tables.list.lock") {
			disk.Survivors(1<<20, func(_ string, up *crashfs.FS) { c = w.after(up) }) // the last one has lost nothing
			unlock(c, "/r")
			c.f.Put("/r/packed-refs.new", []byte("half"))
			c.taken = seen
			return c
		}
	}
}

// disk is a copy of the disk at rest.
func (w *world) disk() (same *crashfs.FS) {
	w.f.Survivors(2, func(_ string, up *crashfs.FS) { same = up })
	return same
}

// someRows allows a state of which every row is one of the first or the last state: refs go, and come
// back, one by one.
func someRows(now, before, after string) bool {
	both := strings.Split(before+"\n"+after, "\n")
	for _, row := range strings.Split(now, "\n") {
		if !slices.Contains(both, row) {
			return false
		}
	}
	return true
}

func lostList(t *testing.T) *world {
	w := newWorld(t, oid.SHA1)
	w.putTable(1, "c1 refs/heads/main")
	w.putTable(2, "t1 refs/tags/v1 c1")
	w.f.Put(stackDir+"/tables.list", nil)
	return w
}

func TestEveryWritePathSurvives(t *testing.T) {
	undonePacked, undoPacked := undoOf(t, wrongPacked, fixPacked)
	undoneStack, undoStack := undoOf(t, wrongStack, fixStack)
	undoneCompact, undoCompact := undoOf(t, wrongStack, compactStack)
	undoneDropStack, undoDropStack := undoOf(t, wrongStack, dropStack)
	besideOthers := func(t *testing.T) *world {
		w := undonePacked(t)
		w.f.Put("/r/packed-refs", []byte(strings.Replace(w.get("/r/packed-refs"), "refs/heads/main", "refs/heads/more", 1)))
		return w
	}
	paths := []writePath{
		{name: "packed-refs", world: wrongPacked, do: fixPacked, state: packedState, limit: 60},
		{name: "packed-refs as a whole", world: func(t *testing.T) *world {
			w := newWorld(t, oid.SHA1)
			w.putPacked("^c3\nt2 refs/tags/v2\n^c1\nc1 refs/heads/main\nt1 refs/tags/v1\nt1 refs/tags/v1")
			w.wanted = w.wantAll()
			return w
		}, do: fixPacked, state: packedState},
		{name: "undo of packed-refs", world: undonePacked, do: undoPacked, state: packedState},
		{name: "undo of packed-refs beside others", world: besideOthers, do: undoPacked, state: packedState},
		{name: "stack", world: wrongStack, do: fixStack, state: stackState, limit: 30},
		{name: "undo of a stack", world: undoneStack, do: undoStack, state: stackState},
		{name: "compact", world: wrongStack, do: compactStack, state: tablesState, limit: 3},
		{name: "undo of compact", world: undoneCompact, do: undoCompact, state: tablesState, limit: 3},
		{name: "drop from a stack", world: wrongStack, do: dropStack, state: stackState},
		{name: "undo of a drop from a stack", world: undoneDropStack, do: undoDropStack, state: stackState},
		{name: "tables.list", world: lostList, do: func(w *world) (*Outcome, error) { return w.stack().Rebuild(ctx) }, state: func(w *world) (string, error) {
			if list, there := w.f.Get(stackDir + "/tables.list"); !there || len(list) == 0 {
				return "lost", nil
			}
			return stackState(w)
		}},
	}
	lostTag, bringTag := undoOf(t, tagOfContent, dropFiles)
	paths = append(paths, writePath{name: "a tag that is gone", world: func(t *testing.T) *world {
		w := lostTag(t)
		delete(w.objects.facts, w.wanted[0].OID)
		return w
	}, do: bringTag, state: tagState, steps: func(now, _, _ string) bool { return strings.HasPrefix(now, "object whole") }})
	paths = append(paths, writePath{name: "leftovers", world: littered, do: func(w *world) (*Outcome, error) { return &Outcome{}, w.settleAll() }, state: func(w *world) (string, error) {
		seen, err := stackState(w)
		if err == nil && seen+w.get("/r/packed-refs") != w.taken {
			err = errors.New("what readers see has changed")
		}
		if slices.ContainsFunc(w.strays(), func(n string) bool { return !strings.HasSuffix(n, ".lock") }) {
			return "littered", err
		}
		return "clean", err
	}})
	for _, places := range []string{"loose", "packed", "loose and packed", "loose and packed, two"} {
		undone, undo := undoOf(t, corruptIn(places), dropFiles)
		paths = append(paths,
			writePath{name: "drop of " + places, world: corruptIn(places), do: dropFiles, state: filesState, steps: someRows},
			writePath{name: "undo of a drop of " + places, world: undone, do: undo, state: filesState, steps: someRows})
	}
	for _, p := range paths {
		t.Run(p.name, func(t *testing.T) {
			if p.limit == 0 {
				p.limit = 10
			}
			if os.Getenv("REFAUDIT_LONG_TESTS") != "" {
				p.limit = 400
			}
			p.survives(t)
		})
	}
}
