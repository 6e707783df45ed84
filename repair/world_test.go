package repair

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"refaudit/finding"
	"refaudit/internal/crashfs"
	"refaudit/internal/journal"
	"refaudit/oid"
	"refaudit/packed"
	"refaudit/reftable"
)

// world is a repository in memory, on a disk that can fail and crash.
type world struct {
	t       testing.TB
	f       *crashfs.FS
	repo    *Repo
	objects fakeObjects
	taken   string   // the id of a repair that is to be taken back
	wanted  []Wanted // what is to be mended
}

// fakeObjects is an object database in memory. What it doesn't have is absent.
type fakeObjects struct {
	facts   map[oid.ID]oid.Fact
	absence string
	opened  *int
	fail    error
	misread map[oid.ID]bool // their kind, as facts have it, is not what they hash to
	content []byte          // of every object; nil: something
}

func (o fakeObjects) Look(_ context.Context, ids []oid.ID, out []oid.Fact) error {
	for i, id := range ids {
		f, ok := o.facts[id]
		switch {
		case !ok && o.absence != "":
			f.State, f.Err = oid.Elsewhere, errors.New(o.absence)
		case !ok:
			f.State = oid.Absent
		}
		out[i] = f
	}
	return o.fail
}

func (o fakeObjects) Confirm(_ context.Context, id oid.ID) (oid.Fact, error) {
	if o.misread[id] {
		return oid.Fact{State: oid.Unreadable, Err: errors.New("does not hash to its name")}, nil
	}
	return o.facts[id], nil
}

func (o fakeObjects) Content(id oid.ID) (oid.Kind, []byte, error) {
	f, ok := o.facts[id]
	if !ok {
		return 0, nil, errors.New("absent")
	}
	if o.content != nil {
		return f.Kind, o.content, nil
	}
	return f.Kind, []byte("content of " + id.String()), nil
}

func (o fakeObjects) Close() error { return nil }

// The ids of a world: commits and tags. t1 leads to c1 and so on; bad claims a commit and leads to the blob.
func (w *world) id(name string) oid.ID { return w.repo.Format.Object("test", []byte(name)) }

func newWorld(t testing.TB, format oid.Format) *world {
	opened := 0
	w := &world{t: t, f: crashfs.New(), objects: fakeObjects{facts: map[oid.ID]oid.Fact{}, opened: &opened}}
	w.use(format)
	commit := oid.Fact{State: oid.Present, Kind: oid.Commit}
	for n := range 9 {
		c, tag := w.id(fmt.Sprint("c", n)), w.id(fmt.Sprint("t", n))
		w.objects.facts[c] = commit
		w.objects.facts[tag] = oid.Fact{State: oid.Present, Kind: oid.Tag, Claims: oid.Commit, Target: c}
	}
	w.objects.facts[w.id("blob")] = oid.Fact{State: oid.Present, Kind: oid.Blob}
	w.objects.facts[w.id("bad")] = oid.Fact{State: oid.Present, Kind: oid.Tag, Claims: oid.Commit, Target: w.id("blob")}
	w.objects.facts[w.id("dangling")] = oid.Fact{State: oid.Present, Kind: oid.Tag, Claims: oid.Commit, Target: w.id("gone")}
	w.f.PutDir("/state")
	return w
}

// use makes the program's view of the repository; after a crash it is made anew.
func (w *world) use(format oid.Format) {
	w.repo = &Repo{
		FS: w.f, Journal: journal.New(w.f, "/state/journal"), GitDir: "/r", Format: format,
		Objects: func() (Objects, error) { *w.objects.opened++; return w.objects, nil },
	}
}

// after is the same world on the disk that a crash has left.
func (w *world) after(f *crashfs.FS) *world {
	c := *w
	c.f = f
	c.use(w.repo.Format)
	return &c
}

const fullHeader = "# pack-refs with: peeled fully-peeled sorted \n"

// expand writes ids for names: "t1 refs/tags/v1" and "^c1" become lines of packed-refs.
func (w *world) expand(text string) string {
	var b strings.Builder
	for _, line := range strings.SplitAfter(text, "\n") {
		name, rest, _ := strings.Cut(line, " ")
		switch {
		case line == "" || line[0] == '#' || line[0] == '!':
			b.WriteString(strings.TrimPrefix(line, "!"))
		case line[0] == '^':
			id, nl := strings.CutSuffix(line[1:], "\n")
			b.WriteString("^" + w.id(id).String())
			if nl {
				b.WriteByte('\n')
			}
		default:
			b.WriteString(w.id(name).String() + " " + rest)
		}
	}
	return b.String()
}

func (w *world) putPacked(text string) *Packed {
	w.f.Put("/r/packed-refs", []byte(w.expand(text)))
	return w.packed()
}

func (w *world) packed() *Packed {
	return &Packed{Repo: w.repo, Path: "/r/packed-refs", Label: "packed-refs"}
}

func (w *world) get(path string) string {
	w.t.Helper()
	b, ok := w.f.Get(path)
	if !ok {
		w.t.Fatalf("%s is gone", path)
	}
	return string(b)
}

// want is a record as a scan would have it mended.
func (w *world) want(ref, id, cached string) Wanted {
	out := Wanted{Ref: finding.RefName(ref), ID: finding.PeelMismatch, OID: w.id(id)}
	if cached != "" {
		out.Cached = w.id(cached)
	}
	return out
}

// wantAll is every record of the file that is not right, as a scan would find them.
func (w *world) wantAll() (all []Wanted) {
	w.t.Helper()
	src, err := openSource(w.f, "/r/packed-refs")
	if err != nil {
		w.t.Fatal(err)
	}
	defer src.Close()
	packed.Read(src.at(), src.info.Size, w.repo.Format, packed.Options{}, nil, func(e *packed.Entry) error {
		var p place
		p.take(w.repo.Format, e)
		d, err := w.repo.judged(context.Background(), []subject{{p.name, p.oid, p.peel}})
		if err != nil {
			w.t.Fatal(err)
		}
		if d[0].known && d[0].peel != p.peel && !slices.ContainsFunc(all, func(o Wanted) bool { return string(o.Ref) == p.name }) {
			all = append(all, Wanted{Ref: finding.RefName(p.name), ID: finding.PeelMismatch, OID: p.oid, Cached: p.peel})
		}
		return nil
	})
	return all
}

const stackDir = "/r/reftable"

func (w *world) stack() *Stack { return &Stack{Repo: w.repo, Dir: stackDir, Label: "reftable"} }

// putTable writes a table of records "t1 refs/tags/v1 c1" on top of the stack; "-" deletes. Later rows may hold logs: "log refs/heads/main".
func (w *world) putTable(index uint64, rows ...string) string {
	w.t.Helper()
	var b strings.Builder
	tw, err := reftable.NewWriter(&b, reftable.Options{Format: w.repo.Format, Min: index, Max: index})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, row := range rows {
		f := strings.Fields(row)
		ref := reftable.Ref{Name: []byte(f[1]), UpdateIndex: index, Type: reftable.Direct}
		switch {
		case f[0] == "log":
			l := reftable.Log{Name: []byte(f[1]), UpdateIndex: index, Type: reftable.LogUpdate, Old: w.id("c0").AppendTo(nil), New: w.id("c1").AppendTo(nil),
				Committer: []byte("A"), Email: []byte("a@x"), Time: 1700000000, Zone: 100, Message: []byte("message\n")}
			err = tw.AddLog(&l)
		case f[0] == "-":
			ref.Type = reftable.Deletion
			err = tw.AddRef(&ref)
		default:
			ref.Value = w.id(f[0]).AppendTo(nil)
			if len(f) > 2 {
				ref.Type, ref.Peel = reftable.Peeled, w.id(f[2]).AppendTo(nil)
			}
			err = tw.AddRef(&ref)
		}
		if err != nil {
			w.t.Fatal(err)
		}
	}
	if err := tw.Close(); err != nil {
		w.t.Fatal(err)
	}
	name := tableName(index, index)
	w.f.Put(stackDir+"/"+name, []byte(b.String()))
	list, _ := w.f.Get(stackDir + "/tables.list")
	w.f.Put(stackDir+"/tables.list", append(slices.Clone(list), name+"\n"...))
	return name
}

// served is what a reader of the stack sees: "refs/tags/v1 t1 c1" a record, by the names of a world's ids.
func (w *world) served() (rows []string, err error) {
	s := w.stack()
	t, err := s.load()
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, table := range t.open {
		if err := table.Refs(func(r *reftable.Ref) error { names[string(r.Name)] = true; return nil }); err != nil {
			return nil, err
		}
	}
	for name := range names {
		r, found, err := t.newest(w.repo.Format, []byte(name))
		if err != nil {
			return nil, err
		}
		if found && r.typ != reftable.Deletion {
			rows = append(rows, strings.TrimSpace(fmt.Sprintf("%s %s %s", name, w.word(r.value), w.word(r.peel))))
		}
	}
	slices.Sort(rows)
	return rows, nil
}

func (w *world) word(id oid.ID) string {
	if id == none {
		return ""
	}
	for n := range 9 {
		for _, kind := range []string{"c", "t"} {
			if w.id(fmt.Sprint(kind, n)) == id {
				return fmt.Sprint(kind, n)
			}
		}
	}
	for _, word := range []string{"blob", "bad", "dangling", "gone"} {
		if w.id(word) == id {
			return word
		}
	}
	return id.String()
}

// formats are both object formats.
var formats = []oid.Format{oid.SHA1, oid.SHA256}

func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
