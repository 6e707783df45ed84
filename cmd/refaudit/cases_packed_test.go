package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"refaudit/internal/gittest"
)

var now = time.Now

// git commits 6ec4c0b45b and 7ec85185b1: a tag that calls a blob a commit looked healthy as soon as its peel was
// cached, and fatal as soon as it was not. Every false type, for every type of target.
func TestC01ACachedPeelHidesAFalseType(t *testing.T) {
	inFormats(t, gittest.AllFormats, func(t *testing.T, l *lab) {
		real := []struct{ kind, id string }{{"commit", l.A}, {"tree", l.Tree}, {"blob", l.Blob}, {"tag", l.V1}}
		recs, bare := l.records(), l.records()
		var lies, corrupt []string
		claimed := map[string][2]string{}
		for _, claim := range real {
			for _, is := range real {
				if claim.kind == is.kind {
					continue
				}
				ref := fmt.Sprintf("refs/tags/%s-is-%s", claim.kind, is.kind)
				tag := l.WriteTag(is.id, claim.kind, "lie")
				recs, bare = append(recs, rec{ref, tag, is.id}), append(bare, rec{ref, tag, ""})
				lies, corrupt = append(lies, "peelOfCorruptTag "+ref), append(corrupt, "tagTypeMismatch "+ref)
				claimed[ref] = [2]string{claim.kind, is.kind}
			}
		}
		outer := l.WriteTag(recs[len(recs)-1].id, "tag", "outer") // a sound tag of a lying one, and not below refs/tags/
		recs, bare = append(recs, rec{"refs/heads-not/outer", outer, recs[len(recs)-1].peel}), append(bare, rec{"refs/heads-not/outer", outer, ""})
		lies, corrupt = append(lies, "peelOfCorruptTag refs/heads-not/outer"), append(corrupt, "tagTypeMismatch refs/heads-not/outer")
		l.put(recs...)

		found := l.sees(1, append(slices.Clone(lies), corrupt...)...)
		for ref, kinds := range claimed {
			f := found["tagTypeMismatch "+ref]
			l.says(f, "'type "+kinds[0]+"'", "is a "+kinds[1])
			if cached := found["peelOfCorruptTag "+ref]; cached["cause"] != "false-type-line" || cached["expected"] != nil || cached["cached"] == nil {
				t.Errorf("%v", cached)
			}
		}
		for _, f := range found { // the innocent target is blamed nowhere
			for _, is := range real[:3] {
				if f["oid"] == is.id {
					t.Errorf("the target is accused: %v", f)
				}
			}
		}
		l.fixes(1)
		l.holds(bare...)
		l.sees(1, corrupt...)
		l.fixes(1)
		l.holds(bare...)
	})
	// and as real gits made it
	for _, o := range gittest.AllFormats {
		r, _ := gittest.FalseType(t, o)
		l := labOf(t, r)
		l.sees(1, "peelOfCorruptTag refs/tags/bad", "tagTypeMismatch refs/tags/bad")
		l.fixes(1)
		l.sees(1, "tagTypeMismatch refs/tags/bad")
	}
}

// git commit 705114772e, and libgit2 issue 1532 for who trusts the header: any rewrite since 2.53 writes the full
// header over a file that was not peeled, and adds no peel.
func TestC02AnUnpeeledFileBecomesFullyPeeled(t *testing.T) {
	for _, o := range filesFormats {
		r, _ := gittest.UnpeeledRewrite(t, o)
		l := labOf(t, r)
		l.sees(0, "peelMissing refs/tags/v1", "peelMissing refs/tags/v2")
		l.fixes(0)
		l.gitServes()
	}
	inFormats(t, filesFormats, func(t *testing.T, l *lab) {
		recs := l.records()
		bare := slices.Clone(recs)
		var below, elsewhere []string
		for i := range bare {
			switch {
			case bare[i].peel == "":
			case strings.HasPrefix(bare[i].ref, "refs/tags/"):
				below = append(below, "peelMissing "+bare[i].ref)
			default:
				elsewhere = append(elsewhere, "peelMissing "+bare[i].ref)
			}
			bare[i].peel = ""
		}
		for header, want := range map[string][]string{
			"":                                  nil,
			"# pack-refs with: sorted \n":       nil,
			"# pack-refs with: peeled \n":       below,
			"# pack-refs with: fully-peeled \n": append(slices.Clone(below), elsewhere...),
			fullHeader:                          append(slices.Clone(below), elsewhere...),
		} {
			l.WriteFile("packed-refs", []byte(header+packedLines(bare)))
			found := l.sees(0, want...)
			if _, told := found[elsewhere[0]]; strings.Contains(header, "peeled") != told {
				t.Errorf("%q: %v", header, found)
			}
			if len(want) > 0 {
				l.fixes(0)
				l.holds(recs...)
				l.sees(0)
			}
			// One wrong peel makes fix write the file anew: what the header says then must be true.
			wrong := slices.Clone(bare)
			wrong[len(wrong)-1].peel = l.A
			l.WriteFile("packed-refs", []byte(header+packedLines(wrong)))
			l.fixes(0)
			text := string(l.ReadFile("packed-refs"))
			if strings.Contains(text, " fully-peeled ") {
				l.holds(recs...)
			} else if !strings.HasPrefix(text, header) || !strings.HasSuffix(text, packedLines(recs[len(recs)-1:])) {
				t.Errorf("%q became %q", header, text)
			}
			l.sees(0)
		}
		l.gitServes()
	})
}

// git commit 3ab3d5077d: `git refs migrate` forgets the peels, in both directions, and JGit takes a record without
// one for no tag. Exactly one finding a tag.
func TestC03MigrationForgetsPeels(t *testing.T) {
	inFormats(t, filesFormats, func(t *testing.T, l *lab) {
		l.Use(gittest.Newest)
		recs := l.records()
		var tags []string
		for _, r := range recs {
			if r.peel != "" {
				tags = append(tags, "peelMissing "+r.ref)
			}
		}
		l.sees(0)
		l.Git("refs", "migrate", "--ref-format=reftable")
		l.RefFormat = gittest.Reftable
		l.sees(0, tags...)
		l.Git("pack-refs", "--all") // heals nothing
		l.sees(0, tags...)
		l.fixes(0)
		l.holds(recs...)
		l.sees(0)
		l.gitServes()

		l.Git("refs", "migrate", "--ref-format=files")
		l.RefFormat = gittest.Files
		l.sees(0, tags...)
		l.fixes(0)
		l.holds(recs...)
		l.sees(0)
		l.gitServes()
	})
}

// libgit2 issue 4355: a cached peel that is just wrong. Everything believes it, nothing looks.
func TestC04AWrongPeelIsBelieved(t *testing.T) {
	inFormats(t, gittest.AllFormats, func(t *testing.T, l *lab) {
		recs := l.records()
		wrong := map[string]string{ // by the tag that has it
			"refs/tags/v1":      l.B,
			"refs/tags/v2":      l.missing(),
			"refs/other/v2":     l.zero(),
			"refs/tags/of-blob": l.Tree,
			"refs/tags/of-tree": flipHex(l.Tree),
			"refs/tags/of-tag":  l.V2,
		}
		bad := slices.Clone(recs)
		var want []string
		for i := range bad {
			if peel := wrong[bad[i].ref]; peel != "" {
				bad[i].peel = peel
				want = append(want, "peelMismatch "+bad[i].ref)
			}
		}
		l.put(bad...)
		found := l.sees(1, want...)
		for _, r := range recs {
			if f := found["peelMismatch "+r.ref]; f != nil && (f["expected"] != r.peel || f["oid"] != r.id || f["cached"] != wrong[r.ref] || f["fixable"] != true) {
				t.Errorf("%v", f)
			}
		}
		if f := found["peelMismatch refs/tags/of-tree"]; f["cause"] != "hex-flip" {
			t.Errorf("the flipped digit is not told: %v", f)
		}
		l.Git("pack-refs", "--all") // keeps it
		l.sees(1, want...)
		l.fixes(0)
		l.holds(recs...)
		l.sees(0)
		l.gitServes()

		partial := slices.Clone(recs)
		i := slices.IndexFunc(partial, func(r rec) bool { return r.ref == "refs/tags/of-tag" })
		for _, peel := range []string{partial[i].id, l.V1} { // the tag itself, and the one in between
			partial[i].peel = peel
			l.put(partial...)
			l.sees(1, "peelPartial refs/tags/of-tag")
			l.fixes(0)
			l.holds(recs...)
		}
	})
}

// flipHex changes one digit of an id.
func flipHex(id string) string {
	d := "0"
	if id[7] == '0' {
		d = "1"
	}
	return id[:7] + d + id[8:]
}

// libgit2 PR 1531: a ^ line below a ref that is no tag. Old readers refuse the file, new ones believe it.
func TestC06APeelAtARefThatIsNoTag(t *testing.T) {
	inFormats(t, gittest.AllFormats, func(t *testing.T, l *lab) {
		recs := append(l.records(), rec{"refs/trees/t", l.Tree, ""}, rec{"refs/blobs/b", l.Blob, ""}, rec{"refs/heads/two", l.A, ""})
		bad := slices.Clone(recs)
		var want []string
		for i := range bad {
			if bad[i].peel != "" {
				continue
			}
			bad[i].peel = l.A
			if bad[i].ref == "refs/blobs/b" {
				bad[i].peel = l.Blob // itself
			}
			want = append(want, "peelUnexpected "+bad[i].ref)
		}
		l.put(bad...)
		found := l.sees(1, want...)
		if f := found["peelUnexpected refs/heads/main"]; f["expected"] != nil || f["cached"] != l.A || f["oid"] != l.B {
			t.Errorf("%v", f)
		}
		l.fixes(0)
		l.holds(recs...)
		l.sees(0)
		l.gitServes()
	})
}

// go-git issue 386: deleting a packed tag leaves its ^ line. It stands below another one, or below no ref at all,
// and git dies of the whole file.
func TestC07OrphanPeelLines(t *testing.T) {
	inFormats(t, filesFormats, func(t *testing.T, l *lab) {
		recs := l.records()
		sound := fullHeader + packedLines(recs)
		last := recs[len(recs)-1]
		unsorted := strings.Replace(packedLines(recs), packedLines(recs[:1]), "", 1) + packedLines(recs[:1])
		for name, c := range map[string]struct {
			text string
			rows []string
		}{
			"double":          {sound + "^" + l.A + "\n", []string{"peelOrphan"}},
			"triple":          {sound + "^" + l.B + "\n^" + l.A + "\n", []string{"peelOrphan", "peelOrphan"}},
			"leading":         {strings.Replace(sound, fullHeader, fullHeader+"^"+l.A+"\n", 1), []string{"peelOrphan"}},
			"leading, double": {strings.Replace(sound, fullHeader, fullHeader+"^"+l.A+"\n^"+l.A+"\n", 1), []string{"peelOrphan", "peelOrphan"}},
			"no header":       {"^" + l.A + "\n" + packedLines(recs), []string{"peelOrphan"}},
			"after a deleted": {strings.Replace(sound, packedLines(recs[1:2])[:2*l.Format.Size()+len(" refs/other/v2\n")], "", 1), []string{"peelUnexpected refs/heads/main"}},
			// Of one fault git says nothing more: what comes behind it stays hidden until it is mended.
			"and disorder": {fullHeader + "^" + l.A + "\n" + unsorted, []string{"peelOrphan", "headerTraitFalse"}},
		} {
			t.Run(name, func(t *testing.T) {
				l := &lab{l.Repo, t, l.vars}
				l.WriteFile("packed-refs", []byte(c.text))
				want := c.rows
				if c.rows[0] == "peelOrphan" {
					want = append(slices.Clone(c.rows), "badPackedRefEntry") // once: of two git takes the second for the peel of the first
				}
				l.sees(1, want...)
				kept := recs
				if name == "after a deleted" {
					kept = append(recs[:1:1], recs[2:]...)
				}
				l.fixes(0)
				l.holds(kept...)
				if text := string(l.ReadFile("packed-refs")); text != fullHeader+packedLines(kept) {
					t.Errorf("the file is\n%s", text)
				}
				l.sees(0)
				l.gitServes()
			})
		}
		// The line is named, and what follows is read on.
		l.WriteFile("packed-refs", []byte(strings.Replace(sound, fullHeader, fullHeader+"^"+l.A+"\n", 1)+"^"+last.peel+"\n"))
		lines := map[float64]bool{}
		for _, f := range l.run("scan").of(t, "finding") {
			if f["id"] == "peelOrphan" {
				lines[f["line"].(float64)] = true
			}
		}
		if n := float64(strings.Count(sound, "\n") + 2); len(lines) != 2 || !lines[2] || !lines[n] {
			t.Errorf("orphans in lines %v, not 2 and %v", lines, n)
		}
	})
}

// publishing-bot PR 438: a filter that keeps the first of two ^ lines without asking the objects. Whatever their
// order and number, the file becomes the same one.
func TestC08TwoPeelLinesAreNotPairedByOrder(t *testing.T) {
	inFormats(t, filesFormats, func(t *testing.T, l *lab) {
		recs := l.records()
		want := fullHeader + packedLines(recs)
		for _, at := range []string{"refs/tags/v1", "refs/heads/main"} {
			i := slices.IndexFunc(recs, func(r rec) bool { return r.ref == at })
			entry := recs[i].id + " " + at + "\n"
			for _, peels := range [][]string{{l.A, l.B}, {l.B, l.A}, {l.B, l.B}, {l.A, l.A}, {l.B, l.A, l.Tree}, {l.missing(), l.B, l.A}, {l.A, l.B, l.A}} {
				text := fullHeader + packedLines(recs[:i]) + entry + "^" + strings.Join(peels, "\n^") + "\n" + packedLines(recs[i+1:])
				l.WriteFile("packed-refs", []byte(text))
				if out := l.run("scan"); out.code != 1 || strings.Count(out.out, `"peelOrphan"`) < len(peels)-1 {
					t.Errorf("%s with %v: %d %s", at, peels, out.code, out.out)
				}
				l.fixes(0)
				if got := string(l.ReadFile("packed-refs")); got != want {
					t.Errorf("%s with %v became\n%s", at, peels, got)
				}
			}
		}
		l.sees(0)
	})
}

// libgit2 issue 1262: packed-refs is cut off. git refuses the file, libraries read it.
func TestC09EveryWayToCutPackedRefs(t *testing.T) {
	inFormats(t, filesFormats, func(t *testing.T, l *lab) {
		whole := fullHeader + packedLines(l.records())
		step := 1
		if l.Format != 1 {
			step = 7
		}
		mended := 0
		for n := 1; n < len(whole); n += step {
			cut := whole[:n]
			l.WriteFile("packed-refs", []byte(cut))
			scan := l.run("scan")
			ends := strings.HasSuffix(cut, "\n")
			if !ends && (scan.code == 0 || !strings.Contains(scan.out, "packedRefEntryNotTerminated")) {
				t.Errorf("cut at %d: exit %d %s", n, scan.code, scan.out)
			}
			if ends {
				continue // whole lines are missing: nothing in the file says so
			}
			last := cut[strings.LastIndex(cut, "\n")+1:]
			if len(last) < 2*l.Format.Size() && n%17 != 0 {
				continue // in an id
			}
			out := l.run("fix", "--yes")
			got := string(l.ReadFile("packed-refs"))
			switch {
			case got == cut:
				if out.code == 0 {
					t.Errorf("cut at %d: fix gives 0 and leaves it", n)
				}
			case strings.HasPrefix(last, "^"):
				// A whole ^ line lacks its newline and nothing else.
				mended++
				if len(last) != 1+2*l.Format.Size() || got != cut+"\n" || out.code != 0 {
					t.Errorf("cut at %d: %d, became\n%s", n, out.code, got)
				}
			default:
				// A name may have been longer: nothing shows that, as long as it could be one.
				mended++
				lines := strings.SplitAfter(got, "\n")
				before := cut[:len(cut)-len(last)]
				prev := before[strings.LastIndex(strings.TrimSuffix(before, "^"), " ")+1:]
				if prev, _, _ = strings.Cut(prev, "\n"); !strings.HasPrefix(got, cut+"\n") || len(lines) > strings.Count(cut, "\n")+3 || strings.HasSuffix(last, "/") ||
					strings.HasPrefix(prev, "refs/") && last[2*l.Format.Size()+1:] <= prev {
					t.Errorf("cut at %d (%q): became\n%s", n, last, got)
				}
			}
		}
		if mended < 3 {
			t.Errorf("%d mended", mended)
		}
	})
}

// functionalscript PR 2024: a name that is there twice. No rule says which one counts, git's bisection lands on
// any of them.
func TestC11TheSameRefTwice(t *testing.T) {
	inFormats(t, filesFormats, func(t *testing.T, l *lab) {
		recs := l.records()
		v1 := slices.IndexFunc(recs, func(r rec) bool { return r.ref == "refs/tags/v1" })
		for _, header := range []string{fullHeader, "# pack-refs with: peeled fully-peeled \n", ""} {
			for _, copies := range []int{2, 3, 4, 5, 7} {
				same, other := slices.Clone(recs), slices.Clone(recs)
				for range copies - 1 {
					same = slices.Insert(same, v1, recs[v1])
					other = slices.Insert(other, v1+1, rec{"refs/tags/v1", l.V2, l.B})
				}
				l.WriteFile("packed-refs", []byte(header+packedLines(same)))
				found := l.run("scan")
				if found.code != 1 || !strings.Contains(found.out, "packedRefDuplicate") {
					t.Errorf("%q, %d equal copies: %d %s", header, copies, found.code, found.out)
				}
				l.fixes(0)
				l.holds(recs...)
				if text := string(l.ReadFile("packed-refs")); strings.Count(text, " refs/tags/v1\n") != 1 {
					t.Errorf("%d copies became\n%s", copies, text)
				}

				l.WriteFile("packed-refs", []byte(header+packedLines(other)))
				found = l.run("scan")
				if found.code != 1 || !strings.Contains(found.out, "packedRefDuplicate") {
					t.Errorf("%q, %d differing copies: %d %s", header, copies, found.code, found.out)
				}
				if out := l.refuses(1); !strings.Contains(out.err+out.out, "refs/tags/v1") {
					t.Errorf("the name is not told: %s%s", out.out, out.err)
				}
			}
		}
	})
	inFormats(t, tableFormats, func(t *testing.T, l *lab) {
		name := l.putTable(append(l.records(), rec{"refs/zz/a", l.A, ""}, rec{"refs/zz/b", l.B, ""}))
		data := l.ReadFile(name)
		at := strings.Index(string(data), "b\x00"+string(l.raw(l.B))) // the suffix of the second name, and its update index
		if at < 0 {
			t.Fatal("no record of refs/zz/b")
		}
		data[at] = 'a'
		l.WriteFile(name, data)
		if out := l.run("scan", "--level=deep"); out.code == 0 || !strings.Contains(out.out, "reftableDuplicate") {
			t.Errorf("%d %s", out.code, out.out)
		}
		l.refuses(l.run("scan").code)
	})
}

// A thread on git's list, and commit 5637d55420: a fault of the system has put zeros into the file, and names
// that are compared as C strings end there.
func TestC12ZerosInPackedRefs(t *testing.T) {
	inFormats(t, filesFormats, func(t *testing.T, l *lab) {
		recs := l.records()
		sound := fullHeader + packedLines(recs)
		main := strings.Index(sound, l.B+" refs/heads/main\n")
		for n := range len(l.B) + len(" refs/heads/main\n") { // one at each byte of a line
			text := []byte(sound)
			text[main+n] = 0
			l.WriteFile("packed-refs", text)
			scan := l.run("scan")
			if scan.code != 7 || !strings.Contains(scan.out, "badPackedRefEntry") || strings.Contains(scan.out, "\x00") {
				t.Errorf("a zero at %d: %d %s", n, scan.code, scan.out)
			}
		}
		l.WriteFile("packed-refs", []byte(fullHeader+l.B+" refs/heads/main\x00x\n"+l.A+" refs/heads/other\n"))
		for _, f := range l.run("scan").of(t, "finding") {
			if f["ref"] == "refs/heads/main" {
				t.Errorf("a name with a zero is taken for what stands before it: %v", f)
			}
		}
		l.refuses(7)

		var many []rec
		for i := range 300 {
			many = append(many, rec{fmt.Sprintf("refs/heads/b%03d", i), l.A, ""})
		}
		text := []byte(fullHeader + packedLines(many))
		clear(text[len(text)/2-2048 : len(text)/2+2048])
		l.WriteFile("packed-refs", text)
		scan := l.run("scan")
		refs := scan.of(t, "summary")[0]["refs"].(float64)
		if scan.code != 7 || !strings.Contains(scan.out, "badPackedRefEntry") || refs < 200 || refs >= 300 {
			t.Errorf("4096 zeros: %d, %v refs: %s", scan.code, refs, scan.out)
		}
		l.refuses(7)
	})
}

// git commit 784ceccb91 and GitTools issue 45: the file is empty, or something else altogether.
func TestC14AnEmptyFileAndAWebPage(t *testing.T) {
	inFormats(t, filesFormats, func(t *testing.T, l *lab) {
		l.WriteFile("packed-refs", nil)
		empty := func(code int, says string) {
			t.Helper()
			if found := l.sees(code); found["emptyPackedRefsFile"] == nil {
				t.Errorf("%v", found)
			}
			if out := l.refuses(code); !strings.Contains(out.out, says) {
				t.Errorf("no %q in %s", says, out.out)
			}
		}
		empty(3, "refs/heads/main, which HEAD leads to")
		l.WriteFile("refs/heads/main", []byte(l.B+"\n"))
		empty(0, "")
		l.WriteFile("logs/refs/heads/main", []byte("x\n"))
		l.WriteFile("logs/refs/heads/topic/a", []byte("x\n"))
		empty(3, "refs/heads/topic/a, which has a reflog")
		l.WriteFile("refs/heads/topic/a", []byte(l.A+"\n"))
		empty(0, "")
		l.WriteFile("packed-refs", []byte("# <html>\n"+packedLines(l.records()))) // a comment, and refs below it
		if out := l.run("scan"); out.code != 7 || !strings.Contains(out.out, "badPackedRefHeader") {
			t.Errorf("a comment for a header: %d %s", out.code, out.out)
		}
		l.fixes(0)
		l.holds(l.records()...)
		for name, text := range map[string]string{
			"a page":               "<!DOCTYPE html>\n<html>\n</html>\n",
			"a page behind a line": fullHeader + l.B + " refs/heads/main\n</script>\n",
			"no text":              "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR",
		} {
			l.WriteFile("packed-refs", []byte(text))
			if out := l.run("scan"); out.code != 7 || !strings.Contains(out.out, "badPackedRef") {
				t.Errorf("%s: %d %s", name, out.code, out.out)
			}
			l.refuses(7)
		}
	})
}

// git commit 198b808e20: packed-refs is a link. git locks, stages and renames where it leads, and the link stays.
func TestC15PackedRefsIsALink(t *testing.T) {
	inFormats(t, filesFormats, func(t *testing.T, l *lab) {
		recs := l.records()
		bad := slices.Clone(recs)
		bad[len(bad)-1].peel = l.A
		store := filepath.Join(filepath.Dir(l.Path), "store")
		if err := os.Mkdir(store, 0o755); err != nil {
			t.Fatal(err)
		}
		real := filepath.Join(store, "pr")
		link := func() {
			t.Helper()
			os.Remove(l.Packed())
			l.put(bad...)
			if err := os.Rename(l.Packed(), real); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink("../store/pr", l.Packed()); err != nil {
				t.Skip("NOT TESTED, this needs symbolic links:", err)
			}
		}
		link()
		l.sees(1, "badRefFiletype", "peelMismatch refs/tags/v2")
		os.WriteFile(real+".lock", nil, 0o644)
		if out := l.refuses(exitFindings, "--lock-timeout=10ms"); !strings.Contains(out.err, "pr.lock") {
			t.Errorf("the lock is not named: %s", out.err)
		}
		os.Remove(real + ".lock")
		l.WriteFile("packed-refs.lock", nil) // stops nobody
		l.fixes(1)                           // the link itself is left
		if to, err := os.Readlink(l.Packed()); err != nil || to != "../store/pr" {
			t.Errorf("the link leads to %q: %v", to, err)
		}
		l.holds(recs...)
		l.sees(1, "badRefFiletype")
		os.Remove(l.File("packed-refs.lock"))
		if left, _ := filepath.Glob(store + "/*"); len(left) != 1 {
			t.Errorf("left %v", left)
		}

		os.Remove(real)
		if out := l.run("scan"); out.code != 7 || !strings.Contains(out.out, "leads to no file") {
			t.Errorf("a link that leads nowhere: %d %s", out.code, out.out)
		}
		os.Remove(l.Packed())
		os.Mkdir(l.Packed(), 0o755)
		if out := l.run("scan"); out.code != 7 || !strings.Contains(out.out, "packed-refs is no file") {
			t.Errorf("a folder: %d %s", out.code, out.out)
		}
	})
}

// firstmate PR 453, gitaly issue 987, jj issue 6203: locks that are left behind, and tools that remove them by
// their size. git's own is always empty.
func TestC16ALockIsJudgedByItsAge(t *testing.T) {
	inFormats(t, filesFormats, func(t *testing.T, l *lab) {
		bad := l.records()
		bad[len(bad)-1].peel = l.A
		l.put(bad...)
		l.WriteFile("packed-refs.lock", nil)
		l.seesAt([]string{"--level=deep"}, 1, "peelMismatch refs/tags/v2")
		l.Git("config", "core.packedRefsTimeout", "50")
		begin := time.Now()
		l.refuses(exitLocked)
		if took := time.Since(begin); took < 50*time.Millisecond {
			t.Errorf("gave up after %v", took)
		}
		old := time.Now().Add(-3 * time.Hour)
		os.Chtimes(l.File("packed-refs.lock"), old, old)
		found := l.seesAt([]string{"--level=deep"}, 1, "peelMismatch refs/tags/v2", "staleLock")
		l.says(found["staleLock"], "3 hours")
		l.refuses(exitLocked)
		os.Remove(l.File("packed-refs.lock"))

		// Somebody takes our lock for a stale one and removes it: we don't rename.
		text := l.ReadFile("packed-refs")
		res := l.fixWhile("packed-refs.new", func() { os.Remove(l.File("packed-refs.lock")) })
		if len(res.Refused) != 1 || string(l.ReadFile("packed-refs")) != string(text) {
			t.Errorf("%+v\n%s", res, l.ReadFile("packed-refs"))
		}
		res = l.fixWhile("packed-refs.new", func() { // and takes it
			os.Remove(l.File("packed-refs.lock"))
			l.WriteFile("packed-refs.lock", nil)
		})
		if _, err := os.Stat(l.File("packed-refs.lock")); err != nil || len(res.Refused) != 1 || string(l.ReadFile("packed-refs")) != string(text) {
			t.Errorf("another's lock: %v %+v", err, res)
		}
		os.Remove(l.File("packed-refs.lock"))
		l.fixes(0)
	})
}

// gitaly's housekeeping: a packed-refs.new that a crash has left blocks every rewrite, with no lock in sight.
func TestC17AStagingFileIsLeftBehind(t *testing.T) {
	inFormats(t, filesFormats, func(t *testing.T, l *lab) {
		old := time.Now().Add(-2 * time.Hour)
		junk := func() {
			l.WriteFile("packed-refs.new", []byte("junk\n"))
			os.Chtimes(l.File("packed-refs.new"), old, old)
		}
		junk()
		if _, errs, code := l.Try("pack-refs", "--all"); code == 0 {
			t.Errorf("git packs beside it: %s", errs)
		}
		found := l.seesAt([]string{"--level=deep"}, 0, "lockLeftover")
		l.says(found["lockLeftover"], "2 hours", "5 bytes")
		l.WriteFile("packed-refs.lock", nil) // while a lock is held it may be in use
		l.refuses(0, "--lock-timeout=10ms")
		os.Remove(l.File("packed-refs.lock"))
		l.fixes(0)
		if _, err := os.Stat(l.File("packed-refs.new")); !os.IsNotExist(err) {
			t.Errorf("it is still there: %v", err)
		}
		l.Git("pack-refs", "--all")

		bad := l.records()
		bad[len(bad)-1].peel = l.A
		l.put(bad...)
		junk()
		l.fixes(0)
		l.holds(l.records()...)
	})
}

// git commit ce54672f9b and GitLab's runbook: after a power cut refs are empty, full of zeros, or name nothing.
func TestC18AfterAPowerCut(t *testing.T) {
	inFormats(t, filesFormats, func(t *testing.T, l *lab) {
		for name, text := range map[string][]byte{"empty": nil, "zeros": make([]byte, 41), "one zero": {0}, "cut": []byte(l.A[:17]), "a line of zeros": make([]byte, 4096)} {
			l.WriteFile("refs/heads/main", text)
			found := l.sees(1, "badRefContent refs/heads/main")
			if hidden := found["packedRefShadowed refs/heads/main"]; hidden == nil || hidden["oid"] != l.B {
				t.Errorf("%s: nothing is said of the packed value that it hides: %v", name, found)
			}
			l.refuses(1)
		}
		os.Remove(l.File("refs/heads/main"))
	})
	inFormats(t, gittest.AllFormats, func(t *testing.T, l *lab) {
		recs := append(l.records(), rec{"refs/heads/gone", l.missing(), ""}, rec{"refs/tags/zero", l.zero(), ""})
		l.put(recs...)
		l.sees(1, "badRefOid refs/tags/zero", "refTargetMissing refs/heads/gone")
		quick := []string{"badRefOid refs/tags/zero"}
		code := 1
		if l.RefFormat == gittest.Files {
			quick, code = nil, 0 // git checks it in reftables alone
		}
		l.seesAt([]string{"--level=quick"}, code, quick...)
		l.refuses(1)
	})
}

// Reports of refs that went back or away (git's list in 2012, jgit issues 152 and 281): a copy of the file from
// before the lock was written. Between our plan and our lock another moves refs.
func TestC20AnotherWritesBetweenPlanAndLock(t *testing.T) {
	inFormats(t, filesFormats, func(t *testing.T, l *lab) {
		recs := append(l.records(), rec{"refs/heads/x", l.A, ""}, rec{"refs/heads/y", l.A, ""})
		bad := slices.Clone(recs)
		i := slices.IndexFunc(bad, func(r rec) bool { return r.ref == "refs/tags/v2" })
		bad[i].peel = l.A
		l.put(bad...)
		res := l.fixWhile("packed-refs.lock", func() {
			l.Git("update-ref", "refs/heads/x", l.B)
			l.Git("pack-refs", "--all")
			l.Git("update-ref", "-d", "refs/heads/y")
		})
		want := slices.DeleteFunc(recs, func(r rec) bool { return r.ref == "refs/heads/y" })
		want[slices.IndexFunc(want, func(r rec) bool { return r.ref == "refs/heads/x" })].id = l.B
		l.holds(want...)
		if len(res.Done) != 1 || len(res.Left) != 0 {
			t.Errorf("%+v", res)
		}
		l.gitServes()

		// and takes away what was to be mended
		l.put(bad...)
		res = l.fixWhile("packed-refs.lock", func() { l.Git("update-ref", "-d", "refs/tags/v2") })
		if refs := l.values(); refs["refs/tags/v2"] != "" || len(res.Done) != 0 {
			t.Errorf("%v %+v", refs, res)
		}
	})
}

// git commit a613d4f817, jgit issue 271, gitaly issue 1339: the file was replaced, and its stat data say no.
func TestC21SameSizeSameInodeSameTime(t *testing.T) {
	inFormats(t, filesFormats, func(t *testing.T, l *lab) {
		recs := l.records()
		bad := slices.Clone(recs)
		i := slices.IndexFunc(bad, func(r rec) bool { return r.ref == "refs/tags/v2" })
		j := slices.IndexFunc(bad, func(r rec) bool { return r.ref == "refs/tags/light" })
		bad[i].peel = l.A
		l.put(bad...)
		res := l.fixWhile("packed-refs.lock", func() {
			before, err := os.Stat(l.Packed())
			if err != nil {
				t.Fatal(err)
			}
			bad[j].id, recs[j].id = l.B, l.B
			f, err := os.OpenFile(l.Packed(), os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			f.WriteString(fullHeader + packedLines(bad))
			f.Close()
			os.Chtimes(l.Packed(), before.ModTime(), before.ModTime())
			if after, err := os.Stat(l.Packed()); err != nil || !os.SameFile(before, after) || before.Size() != after.Size() || !before.ModTime().Equal(after.ModTime()) {
				t.Fatalf("%v %v %v", before, after, err)
			}
		})
		l.holds(recs...)
		if len(res.Done) != 1 {
			t.Errorf("%+v", res)
		}
	})
	// Nor does an audit that passes over what has not changed: what was written in the last two seconds may have.
	inFormats(t, gittest.AllFormats, func(t *testing.T, l *lab) {
		args := []string{"scan", "--state=" + t.TempDir(), "--max-age=1h"}
		recs := l.records()
		l.put(recs...)
		if out := l.run(args...); out.code != 0 {
			t.Fatal(out)
		}
		path := l.Packed()
		if l.RefFormat == gittest.Reftable {
			path = l.Tables()[0]
		}
		before, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		data := must1(t)(os.ReadFile(path))
		from, to := "refs/tags/v2\n^"+l.B, "refs/tags/v2\n^"+l.A
		if l.RefFormat == gittest.Reftable {
			from, to = string(l.raw(l.V1))+string(l.raw(l.A)), string(l.raw(l.V1))+string(l.raw(l.B))
		}
		bad := strings.Replace(string(data), from, to, 1)
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil || bad == string(data) {
			t.Fatal(err)
		}
		f.WriteString(bad)
		f.Close()
		os.Chtimes(path, before.ModTime(), before.ModTime())
		if out := l.run(args...); out.code != 1 || !strings.Contains(out.out, "peelMismatch") {
			t.Errorf("passed over: %d %s", out.code, out.out)
		}
	})
	inFormats(t, tableFormats, func(t *testing.T, l *lab) { // what NFS keeps of a file that was removed while open
		l.WriteFile("reftable/.nfs00000000012345", []byte("REFT"))
		old := time.Now().Add(-time.Hour)
		os.Chtimes(l.File("reftable/.nfs00000000012345"), old, old)
		l.seesAt([]string{"--level=deep"}, 0)
	})
}

// git-for-windows issue 5962: names that differ in case alone, which no Windows or macOS disk can hold as files.
func TestC23NamesThatDifferOnlyInCase(t *testing.T) {
	inFormats(t, gittest.AllFormats, func(t *testing.T, l *lab) {
		recs := append(l.records(), rec{"refs/heads/Foo", l.A, ""}, rec{"refs/heads/foo", l.B, ""}, rec{"refs/tags/V1", l.V2, l.A})
		l.put(recs...)
		found := l.run("scan")
		conflicts := 0
		for _, f := range found.of(t, "finding") {
			switch f["id"] {
			case "refNameConflict":
				conflicts++
				if f["severity"] != "warn" {
					t.Errorf("%v", f)
				}
			case "peelMismatch":
				if f["ref"] != "refs/tags/V1" || f["expected"] != l.B {
					t.Errorf("%v", f)
				}
			}
		}
		if found.code != 1 || conflicts != 2 {
			t.Errorf("%d conflicts: %s", conflicts, found.out)
		}
		l.fixes(0)
		recs[len(recs)-1].peel = l.B
		l.holds(recs...)
		if l.RefFormat == gittest.Files {
			if loose, _ := filepath.Glob(l.File("refs/*/*")); len(loose) != 0 {
				t.Errorf("unpacked: %v", loose)
			}
		}
		l.gitServes()
	})
}

// jj PR 10147: a rewrite for each of 40,000 deletions, and the file built in memory. One rewrite answers all, and memory doesn't grow with the file.
func TestC25ManyRefs(t *testing.T) {
	if testing.Short() {
		t.Skip("NOT TESTED: it takes a while")
	}
	l := newLab(t, filesFormats[0])
	const n = 50_000
	var b strings.Builder
	b.WriteString(fullHeader)
	for i := range n {
		fmt.Fprintf(&b, "%s refs/changes/%02d/%06d/1\n", l.B, i/(n/100), i)
	}
	recs := l.records()
	for i := range recs {
		if recs[i].peel != "" {
			recs[i].peel = l.V2
		}
	}
	b.WriteString(packedLines(recs))
	l.WriteFile("packed-refs", []byte(b.String()))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	out := l.run("scan")
	runtime.ReadMemStats(&after)
	if got := out.of(t, "summary")[0]; out.code != 1 || got["refs"] != float64(n+len(recs)) {
		t.Errorf("%d %v", out.code, got)
	}
	if all := after.TotalAlloc - before.TotalAlloc; all > 32<<20 {
		t.Errorf("%d bytes are allocated", all)
	}
	renames := 0
	res := l.fixWhile("packed-refs.new", func() { renames++ })
	if len(res.Done) != 6 || renames != 1 {
		t.Errorf("%d rewrites, %+v", renames, res.Done)
	}
	l.sees(0)
	if text := string(l.ReadFile("packed-refs")); !strings.HasSuffix(text, packedLines(l.records())) || strings.Count(text, "\n") != n+1+len(strings.Split(packedLines(l.records()), "\n"))-1 {
		t.Errorf("the file ends in %s", text[len(text)-800:])
	}
}
