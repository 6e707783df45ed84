package reftable_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"refaudit/finding"
	"refaudit/internal/gittest"
	"refaudit/oid"
	"refaudit/reftable"
)

// setting is how git is told to write, and what that is to us.
type setting struct {
	name   string
	config [][2]string
	opts   reftable.Options
	refs   int
	each   bool // with each git in each format; else with the newest, SHA-1
}

// skipped tells that a setting is not tried with a git and a format.
func (s setting) skipped(o gittest.Options) bool {
	return !s.each && (o.Git != gittest.Newest || o.Format != oid.SHA1)
}

var settings = []setting{
	{name: "few refs", refs: 5},
	{name: "three blocks, no index", refs: 230},
	{name: "defaults", refs: 1500, each: true},
	{name: "small blocks, three levels", config: [][2]string{{"reftable.blockSize", "300"}}, opts: reftable.Options{BlockSize: 300}, refs: 1500, each: true},
	{name: "large blocks", config: [][2]string{{"reftable.blockSize", "65536"}}, opts: reftable.Options{BlockSize: 65536}, refs: 6000},
	{name: "restarts", config: [][2]string{{"reftable.restartInterval", "3"}}, opts: reftable.Options{RestartInterval: 3}, refs: 900},
	{name: "no objects", config: [][2]string{{"reftable.indexObjects", "false"}}, opts: reftable.Options{NoObjects: true}, refs: 900},
}

// fill makes a repository with n refs of every type, at update indexes from 1 on.
func fill(t *testing.T, o gittest.Options, s setting, logs bool) *gittest.Repo {
	r := gittest.New(t, o)
	for _, c := range s.config {
		r.Git("config", c[0], c[1])
	}
	if logs {
		r.Git("config", "core.logAllRefUpdates", "always")
	}
	rnd := rand.New(rand.NewSource(1))
	ids := make([]string, 200)
	var in strings.Builder
	for i := range ids { // objects enough for prefixes of more than two bytes
		content := fmt.Sprintf("blob %d\n", i)
		ids[i] = r.Format.Object("blob", []byte(content)).String()
		fmt.Fprintf(&in, "blob\ndata %d\n%s\n", len(content), content)
	}
	r.GitIn(in.String(), "fast-import", "--quiet")
	for part := range 3 {
		in.Reset()
		for i := part; i < s.refs; i += 3 {
			switch {
			case i%10 == 3:
				fmt.Fprintf(&in, "create refs/tags/v%d.%04d %s\n", i%7, i, r.V1)
			default:
				fmt.Fprintf(&in, "create refs/x/%d/%04d %s\n", i%13, i, ids[rnd.Intn(len(ids))])
			}
		}
		r.GitIn(in.String(), "update-ref", "--stdin")
	}
	r.Git("symbolic-ref", "refs/heads/s", "refs/heads/main")
	r.Git("update-ref", "-d", "refs/tags/v2")
	return r
}

// open opens a table, in which nothing may be wrong.
func open(t *testing.T, path string, f oid.Format) (*reftable.Table, []byte) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	tab, err := reftable.Open(bytes.NewReader(data), int64(len(data)), "reftable/"+filepath.Base(path), f)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range verify(t, tab) {
		t.Errorf("a sound table: %+v", f)
	}
	return tab, data
}

func verify(t *testing.T, tab *reftable.Table) (found []finding.Finding) {
	t.Helper()
	err := reftable.Verify(tab, reftable.VerifyOptions{}, func(f finding.Finding) error {
		found = append(found, f)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// copyTable writes a table again, record by record.
func copyTable(t *testing.T, tab *reftable.Table, o reftable.Options) []byte {
	t.Helper()
	var out bytes.Buffer
	o.Format, o.Version, o.Min, o.Max = tab.Format, tab.Version, tab.Min, tab.Max
	w, err := reftable.NewWriter(&out, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(tab.Refs(w.AddRef), tab.Logs(w.AddLog), w.Close()); err != nil {
		t.Fatal(err)
	}
	if int64(out.Len()) != w.Stats().Size {
		t.Errorf("wrote %d bytes, counted %d", out.Len(), w.Stats().Size)
	}
	return out.Bytes()
}

// each runs fn for both hashes, with each git that writes tables.
func each(t *testing.T, fn func(t *testing.T, o gittest.Options)) {
	for name, git := range map[string]gittest.Which{"middle": gittest.Mid, "newest": gittest.Newest} {
		for _, f := range []oid.Format{oid.SHA1, oid.SHA256} {
			t.Run(fmt.Sprintf("%s/%v", name, f), func(t *testing.T) {
				fn(t, gittest.Options{Format: f, RefFormat: gittest.Reftable, Git: git})
			})
		}
	}
}

func TestTablesOfGitAreReadAndWrittenByteForByte(t *testing.T) {
	each(t, func(t *testing.T, o gittest.Options) {
		for _, s := range settings {
			if s.skipped(o) {
				continue
			}
			t.Run(s.name, func(t *testing.T) {
				r := fill(t, o, s, false)
				for _, path := range r.Tables() { // as they came, a deletion among them
					tab, data := open(t, path, o.Format)
					same(t, copyTable(t, tab, s.opts), data)
				}
				r.Git("pack-refs", "--all")
				if n := len(r.Tables()); n != 1 {
					t.Fatalf("%d tables after packing", n)
				}
				tab, data := open(t, r.Tables()[0], o.Format)
				if got, want := list(t, tab), listOfGit(r); got != want {
					t.Errorf("read\n%s\ngit lists\n%s", got, want)
				}
				same(t, copyTable(t, tab, s.opts), data)
			})
		}
	})
}

func same(t *testing.T, got, want []byte) {
	t.Helper()
	if bytes.Equal(got, want) {
		return
	}
	i := 0
	for i < len(got) && i < len(want) && got[i] == want[i] {
		i++
	}
	t.Errorf("%d bytes written, git wrote %d; first difference at %d", len(got), len(want), i)
}

func list(t *testing.T, tab *reftable.Table) string {
	var b strings.Builder
	err := tab.Refs(func(r *reftable.Ref) error {
		if string(r.Name) == "HEAD" || r.Type == reftable.Deletion {
			return nil
		}
		fmt.Fprintf(&b, "%s %x %x %s\n", r.Name, r.Value, r.Peel, r.Target)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func listOfGit(r *gittest.Repo) string {
	out := r.Git("for-each-ref", "--format=%(refname) %(if)%(symref)%(then)%(else)%(objectname)%(end) %(if)%(symref)%(then)%(else)%(*objectname)%(end) %(symref)")
	if out == "" {
		return ""
	}
	return out + "\n"
}

func TestLogsAreKeptToTheBit(t *testing.T) {
	each(t, func(t *testing.T, o gittest.Options) {
		for _, s := range settings {
			if s.skipped(o) {
				continue
			}
			t.Run(s.name, func(t *testing.T) {
				r := fill(t, o, s, true)
				r.Git("update-ref", "refs/heads/main", r.A)
				r.Git("reflog", "delete", "refs/heads/main@{0}")
				r.Git("pack-refs", "--all")
				path := r.Tables()[0]
				tab, data := open(t, path, o.Format)
				out := copyTable(t, tab, s.opts)
				again, err := reftable.OpenBytes(out, "again", o.Format)
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range verify(t, again) {
					t.Errorf("our own table: %+v", f)
				}
				same(t, out[:again.Log], data[:tab.Log])
				if got, want := logs(t, again), logs(t, tab); got != want || want == "" {
					t.Errorf("logs differ:\n%.2000s\nwant\n%.2000s", got, want)
				}
				same(t, copyTable(t, again, s.opts), out)

				before := gitsView(r)
				os.Chmod(path, 0o644)
				if err := os.WriteFile(path, out, 0o644); err != nil {
					t.Fatal(err)
				}
				if after := gitsView(r); after != before {
					t.Errorf("git reads our table differently:\n%.2000s\nwas\n%.2000s", after, before)
				}
			})
		}
	})
}

// logs are the log records as they are grouped into blocks; where a block lies depends on how well it was deflated.
func logs(t *testing.T, tab *reftable.Table) string {
	var b strings.Builder
	last := int64(-1)
	err := tab.Logs(func(l *reftable.Log) error {
		if l.Block != last {
			b.WriteString("block\n")
			last = l.Block
		}
		fmt.Fprintf(&b, "%d+%d %q %d %d %x\n", l.Offset, l.Length, l.Name, l.UpdateIndex, l.Type, l.Value)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// gitsView is all that git says of refs and logs. It must find nothing wrong.
func gitsView(r *gittest.Repo) string {
	var b strings.Builder
	b.WriteString(r.Git("show-ref", "--head", "-d"))
	for _, ref := range []string{"refs/heads/main", "refs/tags/v1", "refs/x/0/0000", "refs/x/1/0001"} {
		out, _, _ := r.Try("reflog", "show", "--date=raw", ref)
		b.WriteString(out)
	}
	b.WriteString(r.Git("fsck", "--no-dangling"))
	return b.String()
}

func TestUnpaddedTablesAreReadByGit(t *testing.T) {
	each(t, func(t *testing.T, o gittest.Options) {
		r := fill(t, o, settings[2], true)
		r.Git("pack-refs", "--all")
		path := r.Tables()[0]
		before := gitsView(r)
		for _, opts := range []reftable.Options{{Unpadded: true}, {Unpadded: true, BlockSize: 500}, {BlockSize: 16 << 20 >> 4}, {BlockSize: 1 << 10, RestartInterval: 1}} {
			tab, data := open(t, path, o.Format)
			out := copyTable(t, tab, opts)
			os.Chmod(path, 0o644)
			if err := os.WriteFile(path, out, 0o644); err != nil {
				t.Fatal(err)
			}
			if after := gitsView(r); after != before {
				t.Errorf("%+v: git reads our table differently:\n%.2000s\nwas\n%.2000s", opts, after, before)
			}
			again, _ := open(t, path, o.Format)
			if list(t, again) != list(t, tab) || again.BlockSize != opts.BlockSize && !opts.Unpadded || opts.Unpadded && again.BlockSize != 0 {
				t.Errorf("%+v: we read our table differently, block size %d", opts, again.BlockSize)
			}
			if err := os.WriteFile(path, data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// Every name that a scan gives, a search finds too: also with a root index of several blocks,
// as long names make it.
func TestSearchAgreesWithScan(t *testing.T) {
	each(t, func(t *testing.T, o gittest.Options) {
		r := gittest.New(t, o)
		var in strings.Builder
		for i := range 1800 {
			fmt.Fprintf(&in, "create refs/heads/%0128x %s\n", i*7, r.A)
		}
		r.GitIn(in.String(), "update-ref", "--stdin")
		r.Git("pack-refs", "--all")
		tab, _ := open(t, r.Tables()[0], o.Format)
		n := 0
		one := tab.Iter()
		err := tab.Refs(func(ref *reftable.Ref) error {
			n++
			for _, it := range []*reftable.RefIter{tab.Seek(ref.Name), one} {
				it.Seek(ref.Name)
				if !it.Next() || !bytes.Equal(it.Ref().Name, ref.Name) || it.Ref().Offset != ref.Offset {
					t.Fatalf("%q is not found: %v", ref.Name, it.Err())
				}
				it.Seek(append(bytes.Clone(ref.Name), 0))
				if it.Next() && bytes.Compare(it.Ref().Name, ref.Name) <= 0 || it.Err() != nil {
					t.Fatalf("behind %q comes %q, %v", ref.Name, it.Ref().Name, it.Err())
				}
			}
			return nil
		})
		if err != nil || n != 1804 {
			t.Fatalf("%d refs, %v", n, err)
		}
		for _, id := range []string{r.A, r.B, r.V1, r.V2} {
			if o, err := tab.FindObj(oid.MustParse(id).AppendTo(nil)); err != nil || o == nil {
				t.Errorf("object %s: %v %v", id, o, err)
			}
		}
	})
}

// A repair in place, as nobody should do it, leaves a stale object record.
func TestVerifySeesAnEditedPeel(t *testing.T) {
	each(t, func(t *testing.T, o gittest.Options) {
		r := fill(t, o, settings[2], false)
		r.Git("pack-refs", "--all")
		r.PatchTables(r.V1+r.A, r.V1+r.B)
		data, err := os.ReadFile(r.Tables()[0])
		if err != nil {
			t.Fatal(err)
		}
		tab, err := reftable.OpenBytes(data, "t", o.Format)
		if err != nil {
			t.Fatal(err)
		}
		stale, lacks := 0, 0
		for _, f := range verify(t, tab) {
			switch {
			case f.ID == finding.ReftableObjIndexStale && strings.Contains(f.Message, "is stale"):
				stale++
			case f.ID == finding.ReftableObjIndexStale && strings.Contains(f.Message, "lack"):
				lacks++
			default:
				t.Errorf("%+v", f)
			}
		}
		if stale == 0 || lacks == 0 {
			t.Errorf("%d stale, %d lacking", stale, lacks)
		}
	})
}

// A stack of many tables, with deletions, is read as git reads it.
func TestStacksOfGitAreMergedAsGitDoes(t *testing.T) {
	each(t, func(t *testing.T, o gittest.Options) {
		r := gittest.New(t, o)
		r.Git("config", "core.logAllRefUpdates", "always")
		r.ExtraEnv = append(r.ExtraEnv, "GIT_TEST_REFTABLE_AUTOCOMPACTION=false")
		rnd := rand.New(rand.NewSource(3))
		ids := []string{r.A, r.B, r.V1, r.V2, strings.Repeat("0", o.Format.HexLen())}
		for range 20 {
			var in strings.Builder
			for i := range 30 {
				if rnd.Intn(3) == 0 {
					fmt.Fprintf(&in, "update refs/x/%02d %s\n", i, ids[rnd.Intn(len(ids))])
				}
			}
			r.GitIn(in.String(), "update-ref", "--stdin")
		}
		r.Git("reflog", "delete", "refs/x/03@{0}")
		var tables []*reftable.Table
		for _, path := range r.Tables() {
			tab, _ := open(t, path, o.Format)
			tables = append(tables, tab)
		}
		if len(tables) < 20 {
			t.Fatalf("%d tables", len(tables))
		}
		if err := reftable.CheckStack(tables, o.Format, func(f finding.Finding) error { return errors.New(f.Message) }); err != nil {
			t.Error(err)
		}
		var refs strings.Builder
		m := reftable.Merge(tables)
		for m.Next() {
			e := m.Entries()[0]
			if e.Type != reftable.Deletion && string(e.Name) != "HEAD" {
				fmt.Fprintf(&refs, "%s %x %x %s\n", e.Name, e.Value, e.Peel, e.Target)
			}
			if _, same := m.JGit(); !same {
				t.Errorf("%s: JGit reads another record", e.Name)
			}
		}
		if got, want := refs.String(), listOfGit(r); got != want || m.Err() != nil {
			t.Errorf("merged\n%s%v\ngit lists\n%s", got, m.Err(), want)
		}
		logs := map[string][]string{} // new ids, the newest first
		l := reftable.MergeLogs(tables)
		for l.Next() {
			if e := l.Log(); e.Type == reftable.LogUpdate {
				logs[string(e.Name)] = append(logs[string(e.Name)], fmt.Sprintf("%x", e.New))
			}
		}
		if l.Err() != nil {
			t.Error(l.Err())
		}
		compared := 0
		for ref := range r.Refs() { // git shows the logs of refs that are there
			for n, id := range logs[ref] {
				if n == 0 { // that is the ref itself to git, whatever the log says
					continue
				}
				if got, stderr, _ := r.Try("rev-parse", fmt.Sprintf("%s@{%d}", ref, n)); strings.TrimSpace(got) != id {
					t.Errorf("%s@{%d} is %s, git says %s %s", ref, n, id, got, stderr)
				}
				compared++
			}
		}
		if compared < 30 {
			t.Errorf("only %d log records compared", compared)
		}
	})
}
