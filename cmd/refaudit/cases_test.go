package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"refaudit/internal/gittest"
	"refaudit/internal/vfs"
	"refaudit/oid"
	"refaudit/packed"
	"refaudit/reftable"
	"refaudit/repair"
	"refaudit/repo"
	"refaudit/scan"
)

// The tests in the files cases_*_test.go are damage that users of git, of its libraries and of hosting
// services have met and reported in public. Their numbers are those of the collection that the reports
// were gathered in. Each is held for its whole kind, in every format that it can be in.

// A lab is a repository for one case, and the environment in which commands run on it.
type lab struct {
	*gittest.Repo
	t    testing.TB
	vars map[string]string
}

// newLab gives a clean repository, from an archive: commits A and B with one tree and one blob, main at B, the
// tags v1 (of A), v2 (of B), of-tree, of-blob and of-tag (of v1), the lightweight tag light at A, and refs/other/v2.
func newLab(t testing.TB, o gittest.Options) *lab {
	t.Helper()
	a := archived(t, o)
	return labOf(t, named(a, a.Repo(t)))
}

// bareLab is one that no git is there for.
func bareLab(t testing.TB, o gittest.Options) *lab {
	t.Helper()
	a := archived(t, o)
	return labOf(t, named(a, a.Files(t)))
}

func archived(t testing.TB, o gittest.Options) *gittest.Archived {
	t.Helper()
	refs, format := gittest.Files, oid.SHA1
	if o.RefFormat != "" {
		refs = o.RefFormat
	}
	if o.Format != 0 {
		format = o.Format
	}
	return gittest.Archive(t, fmt.Sprintf("clean-2.55-%s-%s", refs, format))
}

// named fills in the ids of an archive's objects.
func named(a *gittest.Archived, r *gittest.Repo) *gittest.Repo {
	r.A, r.B = a.Refs["refs/tags/light"].String(), a.Refs["refs/heads/main"].String()
	r.V1, r.V2 = a.Refs["refs/tags/v1"].String(), a.Refs["refs/tags/v2"].String()
	r.Tree, r.Blob = a.Peels["refs/tags/of-tree"].String(), a.Peels["refs/tags/of-blob"].String()
	return r
}

func labOf(t testing.TB, r *gittest.Repo) *lab {
	t.Helper()
	return &lab{r, t, map[string]string{"XDG_STATE_HOME": t.TempDir()}}
}

// inFormats runs a case in formats, each with a repository of its own.
func inFormats(t *testing.T, formats []gittest.Options, fn func(t *testing.T, l *lab)) {
	t.Helper()
	for _, o := range formats {
		t.Run(o.String(), func(t *testing.T) { fn(t, newLab(t, o)) })
	}
}

var (
	filesFormats = gittest.AllFormats[:2]
	tableFormats = gittest.AllFormats[2:]
)

// A rec is a ref of a store and its cached peel; "": none.
type rec struct{ ref, id, peel string }

// records are what newLab has, as it is right.
func (l *lab) records() []rec {
	tree, blob, tag := l.WriteTag(l.Tree, "tree", "of-tree"), l.WriteTag(l.Blob, "blob", "of-blob"), l.WriteTag(l.V1, "tag", "of-tag")
	return []rec{{"refs/heads/main", l.B, ""}, {"refs/other/v2", l.V2, l.B}, {"refs/tags/light", l.A, ""}, {"refs/tags/of-blob", blob, l.Blob},
		{"refs/tags/of-tag", tag, l.A}, {"refs/tags/of-tree", tree, l.Tree}, {"refs/tags/v1", l.V1, l.A}, {"refs/tags/v2", l.V2, l.B}}
}

const fullHeader = "# pack-refs with: peeled fully-peeled sorted \n"

// put makes these the refs of the repository, whatever is true of them: a packed-refs file with the full header, or one table.
func (l *lab) put(recs ...rec) {
	l.t.Helper()
	recs = sorted(recs)
	if l.RefFormat == gittest.Files {
		for _, r := range recs {
			os.Remove(l.File(r.ref)) // a loose one would hide it
		}
		l.WriteFile("packed-refs", []byte(fullHeader+packedLines(recs)))
		return
	}
	l.putTable(recs)
}

func sorted(recs []rec) []rec {
	return slices.SortedStableFunc(slices.Values(recs), func(a, b rec) int { return strings.Compare(a.ref, b.ref) })
}

func packedLines(recs []rec) string {
	var b strings.Builder
	for _, r := range recs {
		fmt.Fprintf(&b, "%s %s\n", r.id, r.ref)
		if r.peel != "" {
			fmt.Fprintf(&b, "^%s\n", r.peel)
		}
	}
	return b.String()
}

// putTable makes one table of records the whole stack.
func (l *lab) putTable(recs []rec) (name string) {
	l.t.Helper()
	var b bytes.Buffer
	w, err := reftable.NewWriter(&b, reftable.Options{Format: l.Format, Min: 1, Max: 1})
	if err == nil {
		err = l.writeRecords(w, recs)
	}
	if err != nil {
		l.t.Fatal(err)
	}
	for _, path := range l.Tables() {
		os.Remove(path)
	}
	name = "reftable/" + reftable.FormatTableName(1, 1, 0x1234abcd)
	l.WriteFile(name, b.Bytes())
	l.WriteFile("reftable/tables.list", []byte(strings.TrimPrefix(name, "reftable/")+"\n"))
	return name
}

// writeRecords writes a table of HEAD and records.
func (l *lab) writeRecords(w *reftable.Writer, recs []rec) error {
	err := w.AddRef(&reftable.Ref{Name: []byte("HEAD"), Type: reftable.Symref, Target: []byte("refs/heads/main"), UpdateIndex: 1})
	for _, r := range sorted(recs) {
		ref := reftable.Ref{Name: []byte(r.ref), Type: reftable.Direct, Value: l.raw(r.id), UpdateIndex: 1}
		if r.peel != "" {
			ref.Type, ref.Peel = reftable.Peeled, l.raw(r.peel)
		}
		err = errors.Join(err, w.AddRef(&ref))
	}
	return errors.Join(err, w.Close())
}

// raw is an id's bytes. The zero id is one too here.
func (l *lab) raw(hex string) []byte {
	if strings.Trim(hex, "0") == "" {
		return make([]byte, len(hex)/2)
	}
	return oid.MustParse(hex).AppendTo(nil)
}

func (l *lab) zero() string { return strings.Repeat("0", 2*l.Format.Size()) }

// missing is the id of an object that is nowhere.
func (l *lab) missing() string { return l.Format.Object("blob", []byte("never written")).String() }

// stored reads the store with our codecs: what each ref says, and what it caches.
func (l *lab) stored() map[string]rec {
	l.t.Helper()
	out := map[string]rec{}
	hex := func(b []byte) string {
		if b == nil {
			return ""
		}
		return oid.FromBytes(l.Format, b).String()
	}
	if l.RefFormat == gittest.Files {
		text := l.ReadFile("packed-refs")
		_, err := packed.Read(bytes.NewReader(text), int64(len(text)), l.Format, packed.Options{}, nil, func(e *packed.Entry) error {
			out[string(e.Name)] = rec{string(e.Name), hex(e.OID), hex(e.Peel)}
			return nil
		})
		if err != nil {
			l.t.Fatal(err)
		}
		return out
	}
	var tables []*reftable.Table
	for _, path := range l.Tables() {
		data, err := os.ReadFile(path)
		if err != nil {
			l.t.Fatal(err)
		}
		table, err := reftable.OpenBytes(data, path, l.Format)
		if err != nil {
			l.t.Fatal(err)
		}
		tables = append(tables, table)
	}
	m := reftable.Merge(tables)
	for m.Next() {
		if e := m.Entries()[0]; e.Type == reftable.Direct || e.Type == reftable.Peeled {
			out[string(e.Name)] = rec{string(e.Name), hex(e.Value), hex(e.Peel)}
		}
	}
	if m.Err() != nil {
		l.t.Fatal(m.Err())
	}
	return out
}

// holds compares the store with records, whose order doesn't matter.
func (l *lab) holds(want ...rec) {
	l.t.Helper()
	all := map[string]rec{}
	for _, r := range want {
		all[r.ref] = r
	}
	if got := l.stored(); !maps.Equal(got, all) {
		l.t.Errorf("the store holds\n%v\nwant\n%v", got, all)
	}
}

// run runs a command on the repository.
func (l *lab) run(args ...string) ran {
	l.t.Helper()
	return command(l.t, nil, l.vars, append([]string{args[0], "--format=jsonl", l.Path}, args[1:]...)...)
}

// sees scans, and wants this exit code and these findings of severity warn and above: "id ref" each, in any
// order; "id" where there is no ref. It gives all findings by these words.
func (l *lab) sees(code int, rows ...string) map[string]map[string]any {
	l.t.Helper()
	return l.seesAt(nil, code, rows...)
}

func (l *lab) seesAt(args []string, code int, rows ...string) map[string]map[string]any {
	l.t.Helper()
	out := l.run(append([]string{"scan"}, args...)...)
	found := map[string]map[string]any{}
	var got []string
	for _, f := range out.of(l.t, "finding") {
		row := fmt.Sprint(f["id"])
		if f["ref"] != nil {
			row += " " + fmt.Sprint(f["ref"])
		}
		found[row] = f
		if f["severity"] != "info" {
			got = append(got, row)
		}
	}
	slices.Sort(got)
	rows = slices.Sorted(slices.Values(rows))
	if out.code != code || !slices.Equal(got, rows) {
		l.t.Errorf("scan %v: exit %d, want %d; found\n  %s\nwant\n  %s\n%s%s", args, out.code, code, strings.Join(got, "\n  "), strings.Join(rows, "\n  "), out.out, out.err)
	}
	return found
}

// says wants a finding's message to contain words.
func (l *lab) says(f map[string]any, words ...string) {
	l.t.Helper()
	for _, w := range words {
		if !strings.Contains(fmt.Sprint(f["message"]), w) {
			l.t.Errorf("no %q in %v", w, f)
		}
	}
}

// fixes runs fix --yes and wants this exit code, and no ref to have another value afterwards.
func (l *lab) fixes(code int, args ...string) ran {
	l.t.Helper()
	before := l.values()
	out := l.run(append([]string{"fix", "--yes"}, args...)...)
	if out.code != code {
		l.t.Errorf("fix %v: exit %d, want %d\n%s%s", args, out.code, code, out.out, out.err)
	}
	if after := l.values(); !maps.Equal(before, after) {
		l.t.Errorf("the refs were\n%v\nand are\n%v", before, after)
	}
	return out
}

func (l *lab) values() map[string]string {
	l.t.Helper()
	out := map[string]string{}
	for name, r := range l.stored() {
		out[name] = r.id
	}
	return out
}

// refuses runs fix --yes, which must leave every byte of the repository alone.
func (l *lab) refuses(code int, args ...string) (out ran) {
	l.t.Helper()
	gittest.Unchanged(l.t, l.Path, func() { out = l.run(append([]string{"fix", "--yes"}, args...)...) })
	if out.code != code {
		l.t.Errorf("fix %v: exit %d, want %d\n%s%s", args, out.code, code, out.out, out.err)
	}
	return out
}

// gitServes wants git to hand out the peels that the objects have, and `git refs verify` to be content.
func (l *lab) gitServes() {
	l.t.Helper()
	right := l.Peels()
	for _, p := range readers(l.Repo) {
		if got := served(l.t, l.Repo, p); !maps.Equal(got, right) {
			l.t.Errorf("git %s serves %v\nwant %v", p.Version, got, right)
		}
	}
	l.verifies()
}

func (l *lab) verifies() {
	l.t.Helper()
	if p, _ := gittest.Find(gittest.Newest); p != nil {
		if v := p.Run(l.t, "", nil, "", "--git-dir="+l.Path, "refs", "verify"); v.Code != 0 {
			l.t.Errorf("git refs verify: %v", v)
		}
	}
}

// fixWhile is fix --yes on a file system that calls fn once, before the lock file of that name is made.
func (l *lab) fixWhile(lock string, fn func()) *repair.Result {
	l.t.Helper()
	target, err := scan.Open(l.Path, scan.ByPath, repo.Options{Env: repo.EmptyEnv})
	if err != nil {
		l.t.Fatal(err)
	}
	policy, err := scan.NewPolicy(target.Repo, false, now())
	if err != nil {
		l.t.Fatal(err)
	}
	journal, err := repair.OpenJournal(vfs.OS{}, l.t.TempDir(), func(string) string { return "" }, false)
	if err != nil {
		l.t.Fatal(err)
	}
	disk := &interrupted{lock: l.File(lock), fn: fn}
	res, err := repair.Fix(l.t.Context(), target, policy, repair.Options{FS: disk, Journal: journal, Scan: scan.Options{Level: scan.Standard, Now: now}})
	if err != nil {
		l.t.Fatal(err)
	}
	if disk.fn != nil {
		l.t.Errorf("%s was never made", lock)
	}
	return res
}

// interrupted is the machine's file system, on which another process does something at the worst moment.
type interrupted struct {
	vfs.OS
	lock string
	fn   func()
}

func (d *interrupted) Create(path string, perm fs.FileMode) (vfs.File, error) {
	if fn := d.fn; fn != nil && path == d.lock {
		d.fn = nil
		fn()
	}
	return d.OS.Create(path, perm)
}

// copyTree copies a folder of regular files and folders.
func copyTree(t testing.TB, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	filepath.WalkDir(to, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			os.Chmod(path, 0o644)
		}
		return nil
	})
}
