package scan_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"refaudit/finding"
	"refaudit/internal/gittest"
	"refaudit/oid"
	"refaudit/repo"
	"refaudit/scan"
)

// audit scans a repository in a clean environment.
func audit(t testing.TB, path string, level scan.Level) (scan.Result, []finding.Finding) {
	t.Helper()
	target, err := scan.Open(path, scan.ByPath, repo.Options{Env: repo.EmptyEnv})
	if err != nil {
		t.Fatal(err)
	}
	policy, err := scan.NewPolicy(target.Repo, false, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	var found []finding.Finding
	res, err := scan.Repository(context.Background(), target, policy, scan.Options{Level: level, Now: time.Now}, func(f *finding.Finding) error {
		found = append(found, *f)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return res, found
}

func describe(f *finding.Finding) string {
	return fmt.Sprintf("%s %q oid=%v cached=%v expected=%v cause=%s at %v: %s", f.ID, f.Ref, f.OID, f.Cached, f.Expected, f.Cause, f.Pos, f.Message)
}

// meets tells whether the finding is the one that is wanted.
func meets(f *finding.Finding, w *gittest.Want) bool {
	same := f.ID == w.ID && (w.Ref == "" || f.Ref == w.Ref)
	return same && (w.OID.IsZero() || f.OID == w.OID) && (w.Cached.IsZero() || f.Cached == w.Cached) &&
		(w.Expected.IsZero() || f.Expected == w.Expected) && (w.Cause == "" || f.Cause == w.Cause) && (w.Line == 0 || f.Line == w.Line)
}

// Each fault gives the findings that it has to, once each, no stranger, and leaves every byte as it was.
func TestEachFaultIsFoundAndNothingElse(t *testing.T) {
	gittest.EachFault(t, func(t *testing.T, r *gittest.Repo, want []gittest.Want) {
		var found []finding.Finding
		gittest.Unchanged(t, r.Path, func() { _, found = audit(t, r.Path, scan.Standard) })
		expect(t, r, found, want)
	})
}

// What the three gits make of a repository by themselves, as they left it.
func TestArchives(t *testing.T) {
	gittest.EachArchive(t, func(t *testing.T, a *gittest.Archived) {
		_, found := audit(t, a.Path, scan.Standard)
		expect(t, a.Repo(t), found, a.Want)
	})
}

func expect(t *testing.T, r *gittest.Repo, found []finding.Finding, want []gittest.Want) {
	t.Helper()
	met := make([]int, len(want))
	for i := range found {
		f := &found[i]
		if f.Severity < finding.Warn || f.ID == finding.BadPackedRefEntry && orphanAt(found, f.Line) {
			continue
		}
		k := slices.IndexFunc(want, func(w gittest.Want) bool { return meets(f, &w) })
		if k < 0 {
			t.Errorf("a stranger: %s", describe(f))
			continue
		}
		met[k]++
		placed(t, r, f)
	}
	for k, n := range met {
		if n != 1 {
			t.Errorf("%+v: found %d times", want[k], n)
		}
	}
}

// orphanAt tells whether a line is a ^ line that belongs to no ref: git has its own id for that too.
func orphanAt(found []finding.Finding, line int) bool {
	return slices.ContainsFunc(found, func(f finding.Finding) bool { return f.ID == finding.PeelOrphan && f.Line == line })
}

// placed checks that a finding about a peel points at the bytes that hold it.
func placed(t *testing.T, r *gittest.Repo, f *finding.Finding) {
	t.Helper()
	if !strings.HasPrefix(string(f.ID), "peel") {
		return
	}
	text := r.ReadFile(f.File)
	if !f.Placed || f.Length == 0 || f.Offset+f.Length > int64(len(text)) {
		t.Errorf("no place: %s", describe(f))
		return
	}
	part, id := string(text[f.Offset:f.Offset+f.Length]), f.Cached
	if id.IsZero() {
		id = f.OID
	}
	if !strings.Contains(part, id.String()) && !strings.Contains(part, string(id.Bytes())) {
		t.Errorf("%v is not in %q: %s", id, part, describe(f))
	}
}

func TestAStoreThatCannotBeReadIsNeverClean(t *testing.T) {
	for _, c := range []struct {
		name   string
		format string
		harm   func(*gittest.Repo)
	}{
		{"packed-refs is a web page", gittest.Files, func(r *gittest.Repo) { r.WriteFile("packed-refs", []byte("<html>\n")) }},
		{"packed-refs leads nowhere", gittest.Files, func(r *gittest.Repo) { os.Symlink("nowhere", r.Packed()) }},
		{"packed-refs is a folder", gittest.Files, func(r *gittest.Repo) { os.Mkdir(r.Packed(), 0o755) }},
		{"tables.list is gone", gittest.Reftable, func(r *gittest.Repo) { os.Remove(r.File("reftable/tables.list")) }},
		{"tables.list is empty", gittest.Reftable, func(r *gittest.Repo) { os.Truncate(r.File("reftable/tables.list"), 0) }},
		{"a table is cut", gittest.Reftable, func(r *gittest.Repo) { os.Truncate(r.Tables()[0], 60) }},
		{"a table is empty", gittest.Reftable, func(r *gittest.Repo) { os.Truncate(r.Tables()[0], 0) }},
		{"packed-refs is gone", gittest.Files, func(r *gittest.Repo) { r.Git("pack-refs", "--all"); os.Remove(r.Packed()) }},
		{"a name has lost its refs/", gittest.Reftable, func(r *gittest.Repo) { r.PatchTables("726566732f68656164732f", "736566732f68656164732f") }},
		{"HEAD has another name", gittest.Reftable, func(r *gittest.Repo) { r.PatchTables("48454144", "49454144") }},
		{"nobody is told of a missing alternate", gittest.Files, func(r *gittest.Repo) {
			os.Rename(r.File("objects"), r.File("objects.away"))
			os.Mkdir(r.File("objects"), 0o755)
			r.WriteFile("objects/info/alternates", []byte("/nonexistent/objects\n"))
			r.Git("config", "refaudit.alternateMissing", "ignore")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := gittest.New(t, gittest.Options{RefFormat: c.format})
			c.harm(r)
			res, found := audit(t, r.Path, scan.Standard)
			if res.State != scan.Incomplete || len(res.Unread) == 0 || len(found) == 0 {
				t.Errorf("%+v %v", res, found)
			}
		})
	}
}

// A multi-pack-index that has lost an object is told of: git finds the object no more, we do, in the pack's own index.
func TestADamagedMultiPackIndexIsToldOf(t *testing.T) {
	for _, level := range []scan.Level{scan.Standard, scan.Deep} {
		r := gittest.New(t, gittest.Options{})
		r.Git("pack-refs", "--all")
		r.Git("repack", "-adq")
		r.Git("multi-pack-index", "write")
		text := r.ReadFile("objects/pack/multi-pack-index")
		id := oid.MustParse(r.V1)
		at := strings.Index(string(text), string(id.Bytes()))
		text[at+19] ^= 1
		r.WriteFile("objects/pack/multi-pack-index", text)
		_, found := audit(t, r.Path, level)
		if len(found) != 1 || found[0].ID != finding.BitmapUnusable || found[0].Severity != finding.Warn {
			t.Errorf("%v: %v", level, found)
		}
	}
}

// A flipped bit in the header of a pack's entry makes a commit a blob to a reader that believes it: then the object is
// damaged, and no tag is to blame.
func TestAFlippedKindBlamesNoTag(t *testing.T) {
	for _, f := range []oid.Format{oid.SHA1, oid.SHA256} {
		r := gittest.New(t, gittest.Options{Format: f})
		r.Git("pack-refs", "--all")
		r.Git("repack", "-adfq", "--depth=0")
		flipKind(t, r, r.A)
		_, found := audit(t, r.Path, scan.Standard)
		var ids []string
		for i := range found {
			if found[i].Severity > finding.Info {
				ids = append(ids, string(found[i].ID)+" "+string(found[i].Ref))
			}
		}
		if got := strings.Join(ids, ", "); got != "tagUnreadable refs/tags/v1, peelOfCorruptTag refs/tags/v1" {
			t.Errorf("%v: %s", f, got)
		}
		for i := range found {
			if strings.Contains(found[i].Message, "is a blob") {
				t.Errorf("the tag is blamed: %s", found[i].Message)
			}
		}
	}
}

// In a partial clone what a remote has promised may be absent; anything else that is absent is gone.
func TestOnlyWhatIsPromisedMayBeAbsent(t *testing.T) {
	for _, f := range []oid.Format{oid.SHA1, oid.SHA256} {
		src := gittest.New(t, gittest.Options{Format: f})
		src.Git("config", "uploadpack.allowFilter", "true")
		src.Git("pack-refs", "--all")
		clone := filepath.Join(t.TempDir(), "clone.git")
		src.Git("clone", "-q", "--bare", "--filter=blob:none", "--no-local", "file://"+src.Path, clone)
		tag := src.Program.Run(t, clone, []string{"GIT_NO_LAZY_FETCH=1"}, "object "+src.Blob+"\ntype blob\ntag b\n\n", "hash-object", "-t", "tag", "-w", "--stdin", "--literally").Stdout
		os.WriteFile(filepath.Join(clone, "refs", "tags", "b"), []byte(tag), 0o644)
		res, found := audit(t, clone, scan.Standard)
		for i := range found {
			if found[i].Severity > finding.Info {
				t.Errorf("%v: promised: %s", f, describe(&found[i]))
			}
		}
		if res.State != scan.Clean || len(found) == 0 || found[0].ID != finding.PeelUnverifiable {
			t.Errorf("%v: %+v %v", f, res, found)
		}
		text, err := os.ReadFile(filepath.Join(clone, "packed-refs"))
		if err != nil {
			t.Fatal(err)
		}
		stray := f.Object("blob", []byte("nobody promised this")).String()
		os.WriteFile(filepath.Join(clone, "packed-refs"), append(text, stray+" refs/tags/zzz\n"...), 0o644)
		_, found = audit(t, clone, scan.Standard)
		var ids []string
		for i := range found {
			if found[i].Severity > finding.Info {
				ids = append(ids, string(found[i].ID)+" "+string(found[i].Ref))
			}
		}
		if got := strings.Join(ids, ", "); got != "refTargetMissing refs/tags/zzz" {
			t.Errorf("%v: %s", f, got)
		}
	}
}
