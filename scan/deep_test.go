package scan_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"refaudit/finding"
	"refaudit/internal/gittest"
	"refaudit/oid"
	"refaudit/scan"
)

// What git itself writes has nothing in it for a deep look, in any format, with logs and several tables.
func TestADeepLookAtASoundRepositoryFindsNothing(t *testing.T) {
	for _, o := range formats() {
		t.Run(o.String(), func(t *testing.T) {
			r := gittest.New(t, o)
			r.Git("config", "core.logAllRefUpdates", "always")
			b := r.Git("rev-parse", "refs/heads/main")
			var in strings.Builder
			for i := range 300 {
				in.WriteString("create refs/heads/b" + strings.Repeat("x", i%90) + string(rune('a'+i%26)) + "/" + strings.Repeat("y", 1+i/26) + " " + b + "\n")
			}
			r.GitIn(in.String(), "update-ref", "--stdin")
			r.Git("pack-refs", "--all")
			r.Git("update-ref", "refs/heads/main", r.Git("rev-parse", "refs/heads/main^"))
			r.Git("worktree", "add", "-q", "--detach", r.Path+"-wt", b)
			res, found := audit(t, r.Path, scan.Deep)
			for i := range found {
				if found[i].Severity > finding.Info {
					t.Errorf("%s", describe(&found[i]))
				}
			}
			if res.State != scan.Clean || res.Refs < 300 {
				t.Errorf("%+v", res)
			}
		})
	}
}

func formats() (all []gittest.Options) {
	for _, refs := range []string{gittest.Files, gittest.Reftable} {
		for _, f := range []oid.Format{oid.SHA1, oid.SHA256} {
			all = append(all, gittest.Options{RefFormat: refs, Format: f})
		}
	}
	return all
}

// Files that writers leave behind are told of once they have settled.
func TestLeftovers(t *testing.T) {
	old := time.Now().Add(-2 * time.Hour)
	for _, c := range []struct {
		refs, file, text string
		want             finding.ID
		says             string
	}{
		{gittest.Files, "packed-refs.new", "junk", finding.LockLeftover, "2 hours ago"},
		{gittest.Files, "packed-refs.lock", "", finding.StaleLock, "2 hours"},
		{gittest.Files, "refs/heads/x.lock", "", finding.StaleLock, "2 hours"},
		{gittest.Files, "HEAD.lock", "", finding.StaleLock, "2 hours"},
		{gittest.Reftable, "reftable/tables.list.lock", "", finding.StaleLock, "2 hours"},
		{gittest.Reftable, "reftable/0x000000000001-0x000000000001-12345678.ref.lock", "", finding.StaleLock, "2 hours"},
		{gittest.Reftable, "reftable/0x000000000001-0x000000000001-12345678.ref", "x", finding.ReftableOrphanTable, "2 hours old"},
		{gittest.Reftable, "reftable/0x000000000001-0x000000000001-12345678.temp.abcdef", "x", finding.LockLeftover, "2 hours ago"},
	} {
		t.Run(c.file, func(t *testing.T) {
			r := gittest.New(t, gittest.Options{RefFormat: c.refs})
			r.WriteFile(c.file, []byte(c.text))
			if _, found := audit(t, r.Path, scan.Deep); len(found) > 0 {
				t.Errorf("a young one: %s", describe(&found[0]))
			}
			os.Chtimes(r.File(c.file), old, old)
			_, found := audit(t, r.Path, scan.Deep)
			if len(found) != 1 || found[0].ID != c.want || found[0].File != c.file || !strings.Contains(found[0].Message, c.says) {
				t.Errorf("%v", found)
			}
			if _, found := audit(t, r.Path, scan.Standard); len(found) > 0 {
				t.Errorf("at standard: %s", describe(&found[0]))
			}
		})
	}
}

func TestTheHolderOfALockIsNamed(t *testing.T) {
	r := gittest.New(t, gittest.Options{})
	old := time.Now().Add(-time.Hour)
	r.WriteFile("packed-refs.lock", nil)
	r.WriteFile("packed-refs~pid.lock", []byte("pid 4711\n"))
	for _, name := range []string{"packed-refs.lock", "packed-refs~pid.lock"} {
		os.Chtimes(r.File(name), old, old)
	}
	if _, found := audit(t, r.Path, scan.Deep); len(found) != 1 || !strings.Contains(found[0].Message, "process 4711") {
		t.Errorf("%v", found)
	}
}

// Who can read HEAD and no table sees a repository without refs.
func TestTablesThatOthersCannotOpen(t *testing.T) {
	r := gittest.New(t, gittest.Options{RefFormat: gittest.Reftable})
	os.Chmod(r.File("HEAD"), 0o644)
	os.Chmod(r.Tables()[0], 0o600)
	_, found := audit(t, r.Path, scan.Deep)
	if len(found) != 1 || found[0].ID != finding.PermissionMode || found[0].Severity != finding.Error {
		t.Errorf("%v", found)
	}
}

// A record that is hidden is never worse than a note, and only a deep look reads it.
func TestHiddenRecordsAreNotes(t *testing.T) {
	for _, refs := range []string{gittest.Files, gittest.Reftable} {
		r, _ := gittest.Mismatch(t, gittest.Options{RefFormat: refs})
		r.Git("config", "core.logAllRefUpdates", "false")
		r.Git("-c", "gc.auto=0", "tag", "-f", "-a", "-m", "newer", "v1", "refs/heads/main")
		if _, found := audit(t, r.Path, scan.Standard); len(found) > 0 {
			t.Errorf("%s, standard: %s", refs, describe(&found[0]))
		}
		_, found := audit(t, r.Path, scan.Deep)
		for i := range found {
			if found[i].Severity > finding.Info {
				t.Errorf("%s: %s", refs, describe(&found[i]))
			}
		}
		if refs == gittest.Files && (len(found) != 1 || found[0].ID != finding.PackedRefShadowed) {
			t.Errorf("%s: %v", refs, found)
		}
	}
}

// What is not told of a record that is served is not told of a hidden one: an id that is ignored, and what the skip list has.
func TestHiddenRecordsKeepToThePolicy(t *testing.T) {
	for _, refs := range []string{gittest.Files, gittest.Reftable} {
		r := gittest.New(t, gittest.Options{RefFormat: refs})
		r.Git("-c", "gc.auto=0", "tag", "-a", "-m", "one", "one", "refs/heads/main")
		r.Git("update-ref", "refs/tags/other", r.Git("rev-parse", "refs/tags/one"))
		r.Git("pack-refs", "--all")
		r.Git("update-ref", "refs/tags/other", "refs/heads/main")
		for _, severity := range []string{"ignore", "warn"} {
			want := severity == "warn"
			r.Git("config", "refaudit.tagNameMismatch", severity)
			_, found := audit(t, r.Path, scan.Deep)
			told := slices.ContainsFunc(found, func(f finding.Finding) bool { return strings.Contains(f.Message, "tagNameMismatch in a record") })
			if told != want && (refs == gittest.Files || !want) {
				t.Errorf("%s, severity %s: %v", refs, severity, found)
			}
		}
	}
}

// git fsck's judgement of tags, with the name of the ref.
func TestTagTextsAreJudgedDeep(t *testing.T) {
	r := gittest.New(t, gittest.Options{})
	target := r.Git("rev-parse", "refs/heads/main")
	id := r.WriteObject("tag", []byte("object "+target+"\ntype commit\ntag a..b\n\n"))
	r.Git("update-ref", "refs/tags/odd", id)
	_, found := audit(t, r.Path, scan.Deep)
	var ids []string
	for _, f := range found {
		ids = append(ids, string(f.ID)+" "+string(f.Ref)+" "+f.Severity.String())
	}
	if got := strings.Join(ids, ", "); got != "badTagName refs/tags/odd info, missingTaggerEntry refs/tags/odd info" {
		t.Errorf("%s", got)
	}
}

func TestADeadWorktreeIsNamed(t *testing.T) {
	for _, refs := range []string{gittest.Files, gittest.Reftable} {
		r := gittest.New(t, gittest.Options{RefFormat: refs})
		r.Git("worktree", "add", "-q", "--detach", r.Path+"-wt3", "refs/heads/main")
		gone := r.Git("commit-tree", "-m", "gone", r.Git("rev-parse", "refs/heads/main^{tree}"))
		r.Program.Run(t, r.Path+"-wt3", nil, "", "update-ref", "--no-deref", "HEAD", gone)
		r.RemoveLoose(gone)
		os.RemoveAll(r.Path + "-wt3")
		_, found := audit(t, r.Path, scan.Standard)
		if len(found) != 1 || found[0].ID != finding.WorktreeHeadMissing || !strings.Contains(found[0].Message, "prunable") {
			t.Errorf("%s: %v", refs, found)
		}
	}
}
