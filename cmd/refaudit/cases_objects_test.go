package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"refaudit/internal/gittest"
)

// dulwich PR 491, libgit2 PR 1039, gitoxide issue 603, collectd issue 2115: tags of the first years and of odd programs.
// Only what git needs to peel a tag decides.
func TestC39OddTagsAreNoPeelProblems(t *testing.T) {
	inFormats(t, gittest.AllFormats, func(t *testing.T, l *lab) {
		const who = "tagger A U Thor <author@example.com> 1700000000 +0000\n"
		first := "object " + l.A + "\ntype commit\n"
		peels := map[string]string{
			"no-tagger":          first + "tag x\n\nmsg\n",
			"three-lines":        first + "tag x\n",
			"no-blank-line":      first + "tag x\n" + who,
			"unterminated":       first + "tag x\n" + strings.TrimSuffix(who, "\n"),
			"cr-in-tag":          first + "tag x\r\n" + strings.TrimSuffix(who, "\n") + "\r\n\nmsg\r\n",
			"nul-in-header":      first + "tag x\ntagger A\x00 <a@x> 1700000000 +0000\n\nmsg\n",
			"nul-in-tag-line":    first + "tag x\x00y\n" + who + "\nmsg\n",
			"no-message":         first + "tag x\n" + who + "\n",
			"signed":             first + "tag x\n" + who + "\nmsg\n-----BEGIN PGP SIGNATURE-----\n\nabc\n-----END PGP SIGNATURE-----\n",
			"bad-date":           first + "tag x\ntagger A <a@x> 99999999999999999999 +9999\n\n",
			"extra-header":       first + "tag x\n" + who + "gpgsig abc\nencoding x\n\nmsg\n",
			"a-second-object-in": first + "tag x\n" + who + "\nobject " + l.B + "\ntype tree\n",
		}
		corrupt := map[string]string{
			"crlf":              strings.ReplaceAll(first, "\n", "\r\n") + "tag x\r\n" + who,
			"swapped":           "type commit\nobject " + l.A + "\ntag x\n" + who + "\nmsg\n",
			"type-unterminated": "object " + l.A + "\ntype commit",
			"unknown-type":      "object " + l.A + "\ntype commits\ntag x\n" + who + "\nmsg\n",
			"two-types":         first + "type commit\ntag x\n" + who,
			"no-type":           "object " + l.A + "\ntag x\n" + who + "\nmsg\n",
			"short-id":          "object " + l.A[1:] + "\ntype commit\ntag x\n" + who,
			"no-object":         "type commit\ntag x\n" + who,
			"empty":             "",
			"one-line":          "object " + l.A + "\n",
		}
		recs := l.records()
		for name, text := range peels {
			recs = append(recs, rec{"refs/tags/odd/" + name, l.WriteObject("tag", []byte(text)), l.A})
		}
		l.put(recs...)
		l.sees(0)
		if l.RefFormat == gittest.Files {
			gitPeels := l.Peels()
			for name := range peels {
				if got := gitPeels["refs/tags/odd/"+name].String(); got != l.A {
					t.Errorf("git peels %s to %s", name, got)
				}
			}
		}
		missing := slices.Clone(recs)
		var want []string
		for i := range missing {
			if strings.HasPrefix(missing[i].ref, "refs/tags/odd/") {
				missing[i].peel = ""
				want = append(want, "peelMissing "+missing[i].ref)
			}
		}
		l.put(missing...)
		l.sees(0, want...)
		l.fixes(0)
		l.holds(recs...)

		bad, bare := slices.Clone(recs), slices.Clone(recs)
		want = nil
		var left []string
		for name, text := range corrupt {
			ref, id := "refs/tags/worse/"+name, l.WriteObject("tag", []byte(text))
			bad, bare = append(bad, rec{ref, id, l.A}), append(bare, rec{ref, id, ""})
			want, left = append(want, "peelOfCorruptTag "+ref, "tagUnreadable "+ref), append(left, "tagUnreadable "+ref)
		}
		l.put(bad...)
		l.sees(1, want...)
		l.fixes(1)
		l.holds(bare...)
		l.sees(1, left...)
	})
}

// The same, of a tag with a message of 40 MB: it is read as a stream, in little memory.
func TestC39ATagOf40Megabytes(t *testing.T) {
	if testing.Short() {
		t.Skip("NOT TESTED: it takes a while")
	}
	l := newLab(t, filesFormats[0])
	id := l.WriteObject("tag", append([]byte("object "+l.A+"\ntype commit\ntag big\ntagger A <a@x> 1 +0000\n\n"), bytes.Repeat([]byte("large\n"), 40<<20/6)...))
	l.put(append(l.records(), rec{"refs/tags/big", id, l.A})...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	l.sees(0)
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 24<<20 { // half a megabyte, and 17 where races are looked for
		t.Errorf("%d bytes are allocated", n)
	}
}

// gitea PR 29295 and libgit2 issue 6275: tags of trees and blobs, and tags that are not below refs/tags/.
func TestC40TagsOfTreesAndBlobsAnywhere(t *testing.T) {
	inFormats(t, gittest.AllFormats, func(t *testing.T, l *lab) {
		recs := l.records()
		blob, tree := l.stored()["refs/tags/of-blob"].id, l.stored()["refs/tags/of-tree"].id
		recs = append(recs, rec{"refs/blobs/x", blob, l.Blob}, rec{"refs/trees/x", tree, l.Tree}, rec{"refs/merge-requests/1/head", l.V1, l.A})
		l.put(recs...)
		l.sees(0)
		l.gitServes()
		bare := slices.Clone(recs)
		var below, all []string
		for i := range bare {
			if bare[i].peel == "" {
				continue
			}
			bare[i].peel = ""
			all = append(all, "peelMissing "+bare[i].ref)
			if strings.HasPrefix(bare[i].ref, "refs/tags/") {
				below = append(below, "peelMissing "+bare[i].ref)
			}
		}
		if l.RefFormat == gittest.Files {
			l.WriteFile("packed-refs", []byte("# pack-refs with: peeled \n"+packedLines(sorted(bare))))
			if found := l.sees(0, below...); found["peelMissing refs/blobs/x"]["severity"] != "info" {
				t.Errorf("%v", found["peelMissing refs/blobs/x"])
			}
		}
		l.put(bare...)
		l.sees(0, all...)
		l.fixes(0)
		l.holds(recs...)
		l.gitServes()
	})
}

// gittuf issue 133 and libgit2 issue 1730: refs/replace/ poisons the cache, and clients don't have it. A loop of tags
// that only a replacement makes hangs git.
func TestC42ReplacementsPoisonTheCache(t *testing.T) {
	inFormats(t, gittest.AllFormats, func(t *testing.T, l *lab) {
		l.Git("replace", l.V1, l.V2)
		l.Git("replace", l.B, l.A) // of a commit: it changes no peel
		recs := append(l.records(), rec{"refs/replace/" + l.V1, l.V2, l.B}, rec{"refs/replace/" + l.B, l.A, ""})
		bad := slices.Clone(recs)
		i := slices.IndexFunc(bad, func(r rec) bool { return r.ref == "refs/tags/v1" })
		bad[i].peel = l.B
		j := slices.IndexFunc(bad, func(r rec) bool { return r.ref == "refs/tags/v2" })
		bad[j].peel = l.A // through the replaced commit, though no git does that
		k := slices.IndexFunc(bad, func(r rec) bool { return r.ref == "refs/tags/of-blob" })
		bad[k].peel = l.Tree
		os.RemoveAll(l.File("refs/replace"))
		l.put(bad...)
		found := l.sees(1, "peelMismatch refs/tags/v1", "peelMismatch refs/tags/v2", "peelMismatch refs/tags/of-blob")
		if f := found["peelMismatch refs/tags/v1"]; f["cause"] != "replace-refs" || f["expected"] != l.A {
			t.Errorf("%v", f)
		}
		if f := found["peelMismatch refs/tags/of-blob"]; f["cause"] == "replace-refs" {
			t.Errorf("%v", f)
		}
		out := l.fixes(0)
		if !strings.Contains(fmt.Sprint(out.of(t, "notice")), "refs/replace/") {
			t.Errorf("nothing is said of the cause, which is still there: %s", out.out)
		}
		l.holds(recs...)
		l.sees(0)

		// b is a tag of a, and stands for a: neither a scan nor a fix nor size goes round in it.
		loop := l.WriteTag(l.V1, "tag", "b")
		recs = append(recs, rec{"refs/tags/b", loop, l.A})
		recs[slices.IndexFunc(recs, func(r rec) bool { return r.ref == "refs/replace/"+l.V1 })] = rec{"refs/replace/" + l.V1, loop, l.A}
		l.put(recs...)
		begin := time.Now()
		l.sees(0)
		l.seesAt([]string{"--level=deep"}, 0)
		l.fixes(0)
		if size := l.run("size"); size.code != 0 {
			t.Errorf("size: %d %s", size.code, size.out)
		}
		if took := time.Since(begin); took > 20*time.Second {
			t.Errorf("it takes %v", took)
		}
	})
}

// git commit 8c4cc32689 and git PR 2224: what is missing on purpose is neither lost nor to be fetched.
func TestC43PromisedObjects(t *testing.T) {
	inFormats(t, gittest.AllFormats, func(t *testing.T, l *lab) {
		l.Use(gittest.Newest)
		for i := range 3 {
			blob := l.WriteObject("blob", bytes.Repeat([]byte(fmt.Sprint("content ", i, "\n")), 100))
			tree := l.GitIn("100644 blob "+blob+"\tfile\n", "mktree")
			l.Git("update-ref", fmt.Sprintf("refs/heads/b%d", i), l.Git("commit-tree", tree, "-m", "x"))
		}
		l.Git("config", "uploadpack.allowFilter", "true")
		l.Git("config", "uploadpack.allowAnySHA1InWant", "true")
		path := filepath.Join(filepath.Dir(l.Path), "partial.git")
		clone := []string{"clone", "-q", "--bare", "--filter=blob:none", "--ref-format=" + l.RefFormat, "file://" + l.Path, path}
		if res := l.Program.Run(t, "", nil, "", clone...); res.Code != 0 {
			t.Fatal(res)
		}
		p := labOf(t, &gittest.Repo{})
		*p.Repo = *l.Repo
		p.Path = path
		p.ExtraEnv = []string{"GIT_NO_LAZY_FETCH=1"}
		p.sees(0)

		// A tag of a blob that is promised and absent: with a peel, without one, and a ref that names the blob itself.
		absent := l.Format.Object("blob", bytes.Repeat([]byte("content 1\n"), 100)).String()
		if _, _, code := p.Try("cat-file", "-e", absent); code == 0 {
			t.Fatal("the blob is not absent")
		}
		tag := p.WriteTag(absent, "blob", "promised")
		recs := append(p.records(), rec{"refs/tags/promised", tag, absent}, rec{"refs/tags/bare", tag, ""}, rec{"refs/blobs/it", absent, ""})
		p.put(recs...)
		list := func() (names []string) {
			filepath.WalkDir(p.File("objects"), func(path string, d fs.DirEntry, err error) error {
				names = append(names, path)
				return err
			})
			return names
		}
		objects := list()
		found := p.sees(0)
		for _, ref := range []string{"refs/tags/promised", "refs/tags/bare", "refs/blobs/it"} {
			if f := found["peelUnverifiable "+ref]; f == nil || f["severity"] != "info" {
				t.Errorf("%s: %v", ref, found)
			}
		}
		p.refuses(0)
		p.holds(recs...)
		size := p.run("size")
		u := size.of(t, "usage")[0]
		if size.code != 0 || u["reachable"] == nil || !strings.Contains(fmt.Sprint(size.of(t, "notice")), "promised") {
			t.Errorf("size: %d %s%s", size.code, size.out, size.err)
		}
		if now := list(); !slices.Equal(now, objects) {
			t.Errorf("objects were fetched: %v, then %v", objects, now)
		}
		want := p.Git("rev-list", "--all", "--objects", "--disk-usage", "--missing=allow-promisor")
		if fmt.Sprintf("%.0f", u["reachable"]) != want {
			t.Errorf("reachable %v, git says %s", u["reachable"], want)
		}
	})
}

// bit-vcs issue 188 and artifact-fs issue 49: beyond a shallow boundary nothing is lost, and grafts change only
// what a walk sees.
func TestC44ShallowRepositoriesAndGrafts(t *testing.T) {
	inFormats(t, gittest.AllFormats, func(t *testing.T, l *lab) {
		l.Use(gittest.Newest)
		path := filepath.Join(filepath.Dir(l.Path), "shallow.git")
		clone := []string{"clone", "-q", "--bare", "--depth=1", "--ref-format=" + l.RefFormat, "file://" + l.Path, path}
		if res := l.Program.Run(t, "", nil, "", clone...); res.Code != 0 {
			t.Fatal(res)
		}
		s := labOf(t, &gittest.Repo{})
		*s.Repo = *l.Repo
		s.Path = path
		if _, _, code := s.Try("cat-file", "-e", l.A); code == 0 {
			t.Fatal("the boundary's parent is there")
		}
		s.sees(0)
		behind := s.WriteTag(l.A, "commit", "behind")
		recs := []rec{{"refs/heads/main", l.B, ""}, {"refs/tags/behind", behind, l.A}, {"refs/tags/bare", behind, ""}}
		s.put(recs...)
		found := s.sees(0)
		if found["peelUnverifiable refs/tags/behind"] == nil || found["peelUnverifiable refs/tags/bare"] == nil {
			t.Errorf("%v", found)
		}
		s.refuses(0)

		s.put(recs[0])
		sound := s.run("size").of(t, "usage")[0]["reachable"]
		if want := s.Git("rev-list", "--all", "--objects", "--disk-usage"); fmt.Sprintf("%.0f", sound) != want {
			t.Errorf("size says %v, git %s", sound, want)
		}
		boundary := s.ReadFile("shallow")
		s.WriteFile("shallow", append([]byte(s.missing()+"\n"), boundary...)) // an id that nobody has is passed over
		if u := s.run("size").of(t, "usage")[0]["reachable"]; u != sound {
			t.Errorf("with an unknown id in shallow: %v, not %v", u, sound)
		}
		s.sees(0)
		os.Remove(s.File("shallow"))
		if size := s.run("size"); size.code != 3 || size.of(t, "usage")[0]["reachable"] != nil {
			t.Errorf("without shallow: %d %s", size.code, size.out)
		}
		s.put(recs...)
		s.sees(1, "tagTargetMissing refs/tags/behind", "peelOfCorruptTag refs/tags/behind", "tagTargetMissing refs/tags/bare")

		// Grafts cut history, not peels.
		l.WriteFile("info/grafts", []byte(l.B+"\n"))
		l.sees(0)
		size := l.run("size")
		if want := l.Git("rev-list", "--all", "--objects", "--disk-usage"); fmt.Sprintf("%.0f", size.of(t, "usage")[0]["reachable"]) != want {
			t.Errorf("grafts: size says %v, git %s", size.out, want)
		}
		if !strings.Contains(fmt.Sprint(size.of(t, "notice")), "graft") {
			t.Errorf("nothing is said of grafts: %s", size.out)
		}
	})
}

// gitlab-foss issue 44100: a worktree that is long gone names a commit that was pruned, and blocks the size of the
// whole repository.
func TestC45ADeadWorktree(t *testing.T) {
	inFormats(t, gittest.AllFormats, func(t *testing.T, l *lab) {
		tree := filepath.Join(filepath.Dir(l.Path), "wt3")
		l.Git("worktree", "add", "-q", "--detach", tree, "refs/heads/main")
		gone := l.Git("commit-tree", "-m", "gone", l.Tree)
		if res := l.Program.Run(t, tree, nil, "", "update-ref", "--no-deref", "HEAD", gone); res.Code != 0 {
			t.Fatal(res)
		}
		l.sees(0)
		if l.RefFormat == gittest.Files { // git says nothing of a worktree without a HEAD
			head := l.ReadFile("worktrees/wt3/HEAD")
			os.Remove(l.File("worktrees/wt3/HEAD"))
			l.says(l.sees(1, "worktreeHeadMissing worktrees/wt3/HEAD")["worktreeHeadMissing worktrees/wt3/HEAD"], "has no HEAD")
			l.WriteFile("worktrees/wt3/locked", []byte("initializing\n")) // as while git makes it
			l.sees(0)
			os.Remove(l.File("worktrees/wt3/locked"))
			l.WriteFile("worktrees/wt3/HEAD", head)
		} else {
			list := l.ReadFile("worktrees/wt3/reftable/tables.list")
			l.WriteFile("worktrees/wt3/reftable/tables.list", nil)
			if out := l.run("scan"); out.code != 7 || !strings.Contains(out.out, "worktrees/wt3/reftable/tables.list names no table") {
				t.Errorf("an empty list: %d %s", out.code, out.out)
			}
			l.WriteFile("worktrees/wt3/reftable/tables.list", list)
		}
		l.RemoveLoose(gone)
		f := l.sees(1, "worktreeHeadMissing worktrees/wt3/HEAD")["worktreeHeadMissing worktrees/wt3/HEAD"]
		l.says(f, "wt3", gone)
		os.RemoveAll(tree)
		f = l.sees(1, "worktreeHeadMissing worktrees/wt3/HEAD")["worktreeHeadMissing worktrees/wt3/HEAD"]
		l.says(f, "prunable")
		l.refuses(1) // it prunes nothing
		size := l.run("size")
		if u := size.of(t, "usage")[0]; size.code != 3 || u["reachable"] != nil || !strings.Contains(fmt.Sprint(u["unknown"]), "wt3") {
			t.Errorf("size: %d %s", size.code, size.out)
		}
		ignoring := l.run("size", "--ignore-dead-worktrees")
		os.RemoveAll(l.File("worktrees"))
		without := l.run("size")
		if got, want := ignoring.of(t, "usage")[0]["reachable"], without.of(t, "usage")[0]["reachable"]; ignoring.code != 0 || want == nil || got != want {
			t.Errorf("--ignore-dead-worktrees: %d, %v, and without the worktree %v: %s", ignoring.code, got, want, ignoring.out)
		}
	})
}

// The kind of an object stands in the header of its pack entry, which has no checksum. A flipped bit there makes a commit
// of a tag: its cached peel is not to blame for that, and fix must not drop it, also where it writes the whole file anew.
func TestAFlippedKindInAPackIsNoWrongPeel(t *testing.T) {
	inFormats(t, gittest.AllFormats, func(t *testing.T, l *lab) {
		recs := l.records()
		l.put(recs...)
		l.Git("repack", "-adq")
		pack, _ := filepath.Glob(l.File("objects/pack/*.pack"))
		name, _ := filepath.Rel(l.Path, pack[0])
		index := strings.TrimSuffix(pack[0], ".pack") + ".idx"
		at := int64(-1)
		for _, line := range strings.Split(l.Program.Run(t, "", nil, string(must1(t)(os.ReadFile(index))), "show-index", "--object-format="+l.Format.String()).Stdout, "\n") {
			if f := strings.Fields(line); len(f) > 1 && f[1] == l.V1 {
				fmt.Sscan(f[0], &at)
			}
		}
		if at < 0 {
			t.Fatal("the tag is not in the index")
		}
		data := l.ReadFile(name)
		sound := fingerprintOf(l.run("fingerprint"))
		if sound == "" {
			t.Fatal("no fingerprint")
		}
		for _, kind := range []byte{1, 2, 3} {
			data[at] = data[at]&^0x70 | kind<<4
			l.WriteFile(name, data)
			if print := fingerprintOf(l.run("fingerprint")); print != "" && print != sound {
				t.Errorf("kind %d: the fingerprint is another", kind)
			}
			out := l.run("scan")
			if out.code != 1 || strings.Contains(out.out, "peelUnexpected") || !strings.Contains(out.out, `"ref":"refs/tags/v1"`) {
				t.Errorf("kind %d: %d %s", kind, out.code, out.out)
			}
			l.run("fix", "--yes")
			if got := l.stored()["refs/tags/v1"]; got.peel != l.A && !strings.Contains(out.out, "peelOfCorruptTag") {
				t.Errorf("kind %d: fix has made %v of it; a scan said %s", kind, got, out.out)
			}
			l.put(recs...)
			if l.RefFormat == gittest.Files {
				l.WriteFile("packed-refs", []byte("# a comment\n"+packedLines(recs)))
				l.run("fix", "--yes")
				if got := l.stored()["refs/tags/v1"]; got.peel != l.A {
					t.Errorf("kind %d: with a new header fix has made %v of it:\n%s", kind, got, l.ReadFile("packed-refs"))
				}
				l.put(recs...)
			}
		}
	})
}
