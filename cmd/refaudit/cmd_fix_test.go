package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"refaudit/finding"
	"refaudit/internal/gittest"
	"refaudit/oid"
)

// served is the cached peels that a git hands out.
func served(t testing.TB, r *gittest.Repo, p *gittest.Program) map[string]oid.ID {
	t.Helper()
	out := map[string]oid.ID{}
	for _, line := range strings.Split(p.Run(t, "", []string{"GIT_NO_REPLACE_OBJECTS=1"}, "", "--git-dir="+r.Path, "show-ref", "-d").Stdout, "\n") {
		id, ref, _ := strings.Cut(line, " ")
		if ref, ok := strings.CutSuffix(ref, "^{}"); ok {
			out[ref] = oid.MustParse(id)
		}
	}
	return out
}

// readers are the gits that can read a repository.
func readers(r *gittest.Repo) (all []*gittest.Program) {
	for _, w := range []gittest.Which{gittest.Newest, gittest.Mid, gittest.Old} {
		if p, _ := gittest.Find(w); p != nil && (r.RefFormat == gittest.Files || p.Reftable()) {
			all = append(all, p)
		}
	}
	return all
}

// cacheFindings are the ids that fix has to answer.
var cacheFindings = map[finding.ID]bool{finding.PeelMismatch: true, finding.PeelUnexpected: true, finding.PeelPartial: true, finding.PeelOrphan: true,
	finding.PeelOfCorruptTag: true, finding.PeelMissing: true}

func TestFixMendsWhatIsACacheAndUndoTakesItBack(t *testing.T) {
	gittest.EachFault(t, func(t *testing.T, r *gittest.Repo, want []gittest.Want) {
		vars := map[string]string{"XDG_STATE_HOME": t.TempDir()}
		fixable := 0
		for _, w := range want {
			if cacheFindings[w.ID] {
				fixable++
			}
		}
		before := command(t, nil, vars, "scan", "--format=jsonl", r.Path)
		gittest.Unchanged(t, r.Path, func() {
			for _, args := range [][]string{{"--dry-run"}, nil} {
				dry := command(t, nil, vars, append([]string{"fix", "--format=jsonl", r.Path}, args...)...)
				if n := len(dry.of(t, "repair")); (n > 0) != (fixable > 0) || dry.code != before.code {
					t.Errorf("fix %v plans %d repairs and gives %d; a scan gives %d\n%s%s", args, n, dry.code, before.code, dry.out, dry.err)
				}
			}
		})
		var refs map[string]oid.ID
		if _, _, code := r.Try("for-each-ref"); code == 0 {
			refs = r.Refs()
		}
		out := command(t, nil, vars, "fix", "--yes", "--format=jsonl", r.Path)
		done := out.of(t, "repair")
		if (len(done) > 0) != (fixable > 0) {
			t.Fatalf("%d repairs of %d faults\n%s%s", len(done), fixable, out.out, out.err)
		}
		after := command(t, nil, vars, "scan", "--format=jsonl", r.Path)
		if out.code != after.code {
			t.Errorf("fix gives %d, a scan %d\n%s%s", out.code, after.code, out.err, after.out)
		}
		for _, f := range after.of(t, "finding") {
			if id := finding.ID(f["id"].(string)); cacheFindings[id] && f["severity"] != "info" {
				t.Errorf("left: %v", f)
			}
		}
		if fixable == 0 {
			return
		}
		if got := r.Refs(); refs != nil && !reflect.DeepEqual(got, refs) {
			t.Errorf("refs were %v, are %v", refs, got)
		}
		peels := r.Peels()
		for _, p := range readers(r) {
			for ref, id := range served(t, r, p) {
				if right, ok := peels[ref]; ok && right != id {
					t.Errorf("git %s serves %v for %s, which peels to %v", p.Version, id, ref, right)
				}
			}
		}
		if p, _ := gittest.Find(gittest.Newest); p != nil {
			if v := p.Run(t, "", nil, "", "--git-dir="+r.Path, "refs", "verify"); v.Code != 0 {
				t.Errorf("git refs verify: %v", v)
			}
		}
		if again := command(t, nil, vars, "fix", "--yes", "--format=jsonl", r.Path); len(again.of(t, "repair")) > 0 {
			t.Errorf("a second fix: %s", again.out)
		}
		id := done[0]["journal"].(string)
		if undo := command(t, nil, vars, "undo", id); undo.code != 0 {
			t.Errorf("undo: %d %s", undo.code, undo.err)
		}
		if back := command(t, nil, vars, "scan", "--format=jsonl", r.Path); back.code != before.code || len(back.of(t, "finding")) != len(before.of(t, "finding")) {
			t.Errorf("after the undo a scan gives %d, before the fix %d\n%s", back.code, before.code, back.out)
		}
		gittest.Unchanged(t, r.Path, func() {
			if undo := command(t, nil, vars, "undo", id); undo.code != exitRefused {
				t.Errorf("a second undo: %d %s", undo.code, undo.err)
			}
		})
	})
}

// After a repair a clone sees the peels that the objects have, whichever git makes it.
func TestAClonesPeelsAreTrueAfterwards(t *testing.T) {
	for _, o := range gittest.AllFormats {
		t.Run(o.String(), func(t *testing.T) {
			r, _ := gittest.Mismatch(t, o)
			vars := map[string]string{"XDG_STATE_HOME": t.TempDir()}
			if out := command(t, nil, vars, "fix", "--yes", r.Path); out.code != 0 {
				t.Fatal(out)
			}
			want := r.Peels()
			for _, p := range readers(r) {
				clone := filepath.Join(t.TempDir(), "clone.git")
				if res := p.Run(t, "", nil, "", "clone", "-q", "--bare", "file://"+r.Path, clone); res.Code != 0 {
					t.Fatalf("git %s: %v", p.Version, res)
				}
				ls := p.Run(t, "", nil, "", "ls-remote", "file://"+r.Path)
				for ref, id := range want {
					if !strings.Contains(ls.Stdout, id.String()+"\t"+ref+"^{}\n") {
						t.Errorf("git %s: ls-remote does not say that %s peels to %v:\n%s", p.Version, ref, id, ls.Stdout)
					}
				}
			}
		})
	}
}

func TestFixExitCodes(t *testing.T) {
	state := map[string]string{"XDG_STATE_HOME": t.TempDir()}
	with := func(more ...string) map[string]string {
		m := map[string]string{"XDG_STATE_HOME": state["XDG_STATE_HOME"]}
		for _, kv := range more {
			k, v, _ := strings.Cut(kv, "=")
			m[k] = v
		}
		return m
	}
	bad := func() *gittest.Repo { r, _ := gittest.Mismatch(t, gittest.Options{}); return r }
	clean, _ := gittest.Clean(t, gittest.Options{})
	locked := bad()
	locked.WriteFile("packed-refs.lock", nil)
	hooked := bad()
	hooked.WriteFile("hooks/reference-transaction", []byte("#!/bin/sh\n"))
	os.Chmod(hooked.File("hooks/reference-transaction"), 0o755)
	pool := bad()
	pool.WriteFile("objects/info/alternates", []byte("/nonexistent/objects\n"))
	damaged := bad()
	damaged.EditPacked(func(s string) string { return s + "<html>\n" })
	table, _ := gittest.Mismatch(t, gittest.Options{RefFormat: gittest.Reftable})
	table.WriteFile("reftable/tables.list.lock", nil)
	stray, _ := gittest.DoublePeel(t, gittest.Options{})
	stray.WriteFile("packed-refs.lock", nil)
	for _, c := range []struct {
		name string
		vars map[string]string
		args string
		repo *gittest.Repo
		want int
		says string
	}{
		{"a stray line behind a lock", state, "--yes --lock-timeout=10ms", stray, exitLocked, "packed-refs.lock"},
		{"clean", state, "--yes", clean, 0, ""},
		{"a held lock", state, "--yes --lock-timeout=10ms", locked, exitLocked, "packed-refs.lock"},
		{"a held lock of a stack", state, "--yes --lock-timeout=10ms", table, exitLocked, "tables.list.lock"},
		{"a young lock", state, "--yes --lock-timeout=10ms --stale-locks --older-than=1h", locked, exitLocked, "packed-refs.lock"},
		{"a quarantine", with("GIT_QUARANTINE_PATH=/q"), "--yes", bad(), exitRefused, "quarantine"},
		{"another owner", with("GIT_TEST_ASSUME_DIFFERENT_OWNER=1"), "--yes", bad(), exitRefused, "somebody else"},
		{"a hook that counts", state, "--yes", hooked, exitRefused, "--yes-replicated"},
		{"a missing alternate", state, "--yes", pool, exitFindings, "alternate"},
		{"lost bytes", state, "--yes", damaged, exitBoth, "lost bytes"},
		{"no such id", state, "--yes --only=peelMissing", bad(), exitFindings, ""},
		{"no such ref", state, "--yes --ref=refs/tags/v2", bad(), exitFindings, ""},
		{"too many changes", state, "--yes --max-changes=1", func() *gittest.Repo { r, _ := gittest.UnpeeledRewrite(t, gittest.Options{}); return r }(), exitRefused, "--max-changes"},
		{"a usage error", state, "--yes --dry-run", clean, exitUsage, "exclude"},
		{"half an option", state, "--yes --stale-locks", clean, exitUsage, "--older-than"},
		{"an unknown id", state, "--yes --only=nonsense", clean, exitUsage, "nonsense"},
		{"no journal", nil, "--yes", clean, exitUsage, "journal"},
	} {
		if c.vars == nil && os.Geteuid() == 0 {
			continue // root's is always known
		}
		before := files(t, c.repo.Path)
		out := command(t, nil, c.vars, append([]string{"fix", c.repo.Path}, strings.Fields(c.args)...)...)
		if out.code != c.want || !strings.Contains(out.err, c.says) {
			t.Errorf("%s: exit %d, want %d, and %q in: %s%s", c.name, out.code, c.want, c.says, out.out, out.err)
		}
		if after := files(t, c.repo.Path); !reflect.DeepEqual(before, after) {
			t.Errorf("%s: files were %v, are %v", c.name, before, after)
		}
	}
	for args, want := range map[string]int{"--yes --detailed-exitcode": exitChanged, "--yes --yes-replicated": exitOK, "--yes --only=peelmismatch": exitOK, "--yes --ref=refs/tags/v1": exitOK, "--yes --ref refs/tags": exitOK} {
		r := bad()
		if strings.Contains(args, "replicated") {
			r = hooked
		}
		if out := command(t, nil, state, append([]string{"fix", r.Path}, strings.Fields(args)...)...); out.code != want {
			t.Errorf("%s: exit %d, want %d: %s%s", args, out.code, want, out.out, out.err)
		}
	}
	if r := bad(); strings.Contains(command(t, nil, state, "fix", r.Path, "--yes", "--summary").out, "refs/") {
		t.Error("a summary tells of each repair")
	}
	if out := command(t, nil, state, "undo", "20250101T000000Z-0000000000"); out.code != exitIncomplete {
		t.Errorf("undo of nothing: %d", out.code)
	}
	if out := command(t, nil, state, "undo"); out.code != exitUsage {
		t.Errorf("undo without id: %d", out.code)
	}
}

// files are the files of a repository with the times of their last change. A lock that comes and goes
// changes the time of its folder, and nothing else.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		st, err := os.Lstat(path)
		if err == nil {
			out[path] = fmt.Sprint(st.Mode(), st.Size(), st.ModTime())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// The plan is an exact diff: patch makes the mended file of it.
func TestTheDiffIsExact(t *testing.T) {
	r, _ := gittest.Mismatch(t, gittest.Options{})
	vars := map[string]string{"XDG_STATE_HOME": t.TempDir()}
	dry := command(t, nil, vars, "fix", "--dry-run", r.Path)
	dir := t.TempDir()
	os.WriteFile(filepath.Join(dir, "packed-refs"), r.ReadFile("packed-refs"), 0o644)
	diff := dry.out[strings.Index(dry.out, "--- a/"):]
	diff = diff[:strings.Index(diff, "\n  ")+1]
	if res := gittest.Need(t, gittest.Any).Run(t, dir, nil, diff, "apply"); res.Code != 0 {
		t.Fatalf("git apply: %v\n%s", res, diff)
	}
	patched, _ := os.ReadFile(filepath.Join(dir, "packed-refs"))
	command(t, nil, vars, "fix", "--yes", r.Path)
	if string(patched) != string(r.ReadFile("packed-refs")) {
		t.Errorf("the diff makes\n%s\nfix makes\n%s", patched, r.ReadFile("packed-refs"))
	}
}

// A staging file that a dead writer left blocks every rewrite by git; fix takes it away, whatever else there is to do.
func TestADeadStagingFileIsTakenAway(t *testing.T) {
	vars := map[string]string{"XDG_STATE_HOME": t.TempDir()}
	for _, packed := range []bool{true, false} {
		r := gittest.New(t, gittest.Options{})
		if packed {
			r.Git("pack-refs", "--all")
		}
		r.WriteFile("packed-refs.new", []byte("junk"))
		if _, _, code := r.Try("pack-refs", "--all"); code == 0 {
			t.Fatal("git does not mind the file")
		}
		if dry := command(t, nil, vars, "fix", "--dry-run", r.Path); dry.code != 0 || len(r.ReadFile("packed-refs.new")) == 0 {
			t.Errorf("dry run: %d", dry.code)
		}
		if out := command(t, nil, vars, "fix", "--yes", r.Path); out.code != 0 || !strings.Contains(out.out, "packed-refs.new") {
			t.Errorf("%d %s%s", out.code, out.out, out.err)
		}
		r.Git("pack-refs", "--all")
	}
}

func TestACauseThatIsStillThereIsTold(t *testing.T) {
	for _, o := range gittest.AllFormats {
		r, _ := gittest.Replaced(t, o)
		vars := map[string]string{"XDG_STATE_HOME": t.TempDir()}
		if out := command(t, nil, vars, "fix", "--yes", "--format=jsonl", r.Path); !strings.Contains(fmt.Sprint(out.of(t, "notice")), "refs/replace/") {
			t.Errorf("%v: nothing is said of the replacement: %s", o, out.out)
		}
	}
}

func TestTagsThatBreakClonesAreDropped(t *testing.T) {
	for _, o := range gittest.AllFormats {
		r, _ := gittest.FalseType(t, o)
		vars := map[string]string{"XDG_STATE_HOME": t.TempDir()}
		before := r.Refs()
		out := command(t, nil, vars, "fix", "--yes", "--drop-corrupt-tags", "--format=jsonl", r.Path)
		if out.code != 0 {
			t.Errorf("%v: %d %s%s", o, out.code, out.out, out.err)
		}
		clone := filepath.Join(t.TempDir(), "clone.git")
		if res := r.Program.Run(t, "", nil, "", "clone", "-q", "--bare", "file://"+r.Path, clone); res.Code != 0 {
			t.Errorf("%v: clone: %v", o, res)
		}
		if undo := command(t, nil, vars, "undo", out.of(t, "repair")[0]["journal"].(string)); undo.code != 0 {
			t.Errorf("%v: undo: %s", o, undo.err)
		}
		if after := r.Refs(); !reflect.DeepEqual(before, after) {
			t.Errorf("%v: refs were %v, are %v", o, before, after)
		}
	}
}

// The stacks of worktrees are mended too, each under its own lock.
func TestAWorktreesStackIsMended(t *testing.T) {
	r := gittest.New(t, gittest.Options{RefFormat: gittest.Reftable})
	tree := filepath.Join(t.TempDir(), "wt")
	r.Git("worktree", "add", "-q", tree, "main")
	r.Program.Run(t, tree, nil, "", "update-ref", "refs/worktree/t", r.V1)
	stack := filepath.Join(r.Path, "worktrees", "wt", "reftable")
	list, err := os.ReadFile(filepath.Join(stack, "tables.list"))
	if err != nil {
		t.Fatal(err)
	}
	right, wrong := oid.MustParse(r.A), oid.MustParse(r.B)
	spoilt := false
	for _, name := range strings.Fields(string(list)) {
		path := filepath.Join(stack, name)
		data, _ := os.ReadFile(path)
		if at := strings.Index(string(data), string(right.Bytes())); at >= 0 {
			copy(data[at:], wrong.Bytes())
			os.Chmod(path, 0o644)
			os.WriteFile(path, data, 0o644)
			spoilt = true
		}
	}
	if !spoilt {
		t.Fatal("no peel in the worktree's stack")
	}
	vars := map[string]string{"XDG_STATE_HOME": t.TempDir()}
	out := command(t, nil, vars, "fix", "--yes", "--format=jsonl", r.Path)
	done := out.of(t, "repair")
	if out.code != 0 || len(done) != 1 || done[0]["ref"] != "worktrees/wt/refs/worktree/t" || done[0]["file"] != "worktrees/wt/reftable" {
		t.Fatalf("%d %s%s", out.code, out.out, out.err)
	}
	if scan := command(t, nil, vars, "scan", r.Path); scan.code != 0 {
		t.Errorf("a scan gives %d: %s", scan.code, scan.out)
	}
	if undo := command(t, nil, vars, "undo", done[0]["journal"].(string)); undo.code != 0 {
		t.Errorf("undo: %s", undo.err)
	}
}

func TestALostTablesListIsRebuilt(t *testing.T) {
	for _, o := range gittest.AllFormats[2:] {
		r, _ := gittest.TableListEmpty(t, o)
		vars := map[string]string{"XDG_STATE_HOME": t.TempDir()}
		if out := command(t, nil, vars, "fix", "--yes", r.Path); out.code != exitBoth || len(r.ReadFile("reftable/tables.list")) > 0 {
			t.Errorf("without being asked to: %d", out.code)
		}
		out := command(t, nil, vars, "fix", "--yes", "--rebuild-tables-list", r.Path)
		if out.code != 0 || len(r.Refs()) == 0 {
			t.Errorf("%v: %d %s%s", o, out.code, out.out, out.err)
		}
		if offered(out.out) != nil || !strings.Contains(out.out, "there is no undo of this") {
			t.Errorf("%v: an undo is offered, or nothing is said of there being none:\n%s", o, out.out)
		}
	}
}

// offered are the commands to undo something that a text report gives.
func offered(out string) (ids []string) {
	for _, m := range regexp.MustCompile(`refaudit undo (\S+?)\)`).FindAllStringSubmatch(out, -1) {
		if !slices.Contains(ids, m[1]) {
			ids = append(ids, m[1])
		}
	}
	return ids
}

// Whatever fix and undo offer to take back can be taken back, and the undo of an undo as well.
func TestEveryUndoThatIsOfferedWorks(t *testing.T) {
	for _, o := range gittest.AllFormats {
		for _, flags := range []string{"", "--compact", "--drop-corrupt-tags"} {
			r, _ := gittest.FalseType(t, o)
			r.SetPeel("refs/tags/v1", r.V1, r.A, r.B)
			vars := map[string]string{"XDG_STATE_HOME": t.TempDir()}
			out := command(t, nil, vars, append([]string{"fix", "--yes", r.Path}, strings.Fields(flags)...)...)
			ids := offered(out.out)
			if len(ids) == 0 {
				t.Fatalf("%v: fix %s offers no undo: %s%s", o, flags, out.out, out.err)
			}
			for _, id := range slices.Backward(ids) {
				for depth := 1; id != "" && depth < 4; depth++ {
					undo := command(t, nil, vars, "undo", id)
					if undo.code != 0 {
						t.Errorf("%v: fix %s, undo %d deep: exit %d: %s", o, flags, depth, undo.code, undo.err)
					}
					id = ""
					if again := offered(undo.out); len(again) > 0 {
						id = again[0]
					} else if !strings.Contains(undo.out, "there is no undo of this") {
						t.Errorf("%v: fix %s, undo %d deep: it is not said why that can't be taken back:\n%s", o, flags, depth, undo.out)
					}
				}
			}
		}
	}
}

// Where something else keeps account of the files, taking a repair back needs the same word as making it.
func TestUndoWhereSomethingKeepsAccount(t *testing.T) {
	inFormats(t, gittest.AllFormats, func(t *testing.T, l *lab) {
		recs := l.records()
		wrong := slices.Clone(recs)
		for i := range wrong {
			if wrong[i].ref == "refs/tags/v1" {
				wrong[i].peel = l.B
			}
		}
		l.put(wrong...)
		l.WriteFile("hooks/reference-transaction", []byte("#!/bin/sh\nexit 0\n"))
		if err := os.Chmod(l.File("hooks/reference-transaction"), 0o755); err != nil {
			t.Fatal(err)
		}
		state := map[string]string{"XDG_STATE_HOME": t.TempDir()}
		out := command(t, nil, state, "fix", l.Path, "--yes", "--yes-replicated")
		_, rest, found := strings.Cut(out.out, "undo: refaudit undo ")
		id, _, _ := strings.Cut(rest, ")")
		if !found || out.code != exitOK {
			t.Fatalf("%d %s%s", out.code, out.out, out.err)
		}
		if out := command(t, nil, state, "undo", id); out.code != exitRefused || !strings.Contains(out.err, "--yes-replicated") || l.stored()["refs/tags/v1"].peel != l.A {
			t.Errorf("%d %s%s", out.code, out.out, out.err)
		}
		if out := command(t, nil, state, "undo", "--yes-replicated", id); out.code != exitOK || l.stored()["refs/tags/v1"].peel != l.B {
			t.Errorf("%d %s%s", out.code, out.out, out.err)
		}
	})
}
