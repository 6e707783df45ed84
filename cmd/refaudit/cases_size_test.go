package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"refaudit/internal/gittest"
	"refaudit/oid"
)

// noise is bytes that no compression makes smaller.
func noise(seed uint64, n int) []byte {
	r := rand.New(rand.NewPCG(seed, 0))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// commit writes a commit with one file of its own.
func (l *lab) commit(content []byte, parents ...string) string {
	l.t.Helper()
	blob := l.WriteObject("blob", content)
	args := []string{"commit-tree", l.GitIn("100644 blob "+blob+"\tfile\n", "mktree"), "-m", "a commit"}
	for _, p := range parents {
		args = append(args, "-p", p)
	}
	return l.Git(args...)
}

// forked gives a pool with some history in one pack, and a fork of it that borrows everything and has two commits of its own.
func forked(t *testing.T, o gittest.Options) (pool, fork *lab) {
	t.Helper()
	pool = newLab(t, o)
	at := pool.B
	for i := range 6 {
		at = pool.commit(noise(uint64(i), 3000), at)
	}
	pool.Git("update-ref", "refs/heads/main", at)
	pool.Git("repack", "-adbq")
	path := filepath.Join(filepath.Dir(pool.Path), "fork.git")
	args := []string{"clone", "-q", "--bare", "--shared"}
	if pool.Program.Reftable() {
		args = append(args, "--ref-format="+pool.RefFormat)
	}
	if res := pool.Program.Run(t, "", nil, "", append(args, pool.Path, path)...); res.Code != 0 {
		t.Fatal(res)
	}
	fork = labOf(t, &gittest.Repo{})
	*fork.Repo = *pool.Repo
	fork.Path = path
	tip := fork.commit(noise(100, 5000), at)
	fork.Git("update-ref", "refs/heads/mine", fork.commit(noise(101, 7000), tip))
	return pool, fork
}

const ownQuestion = "rev-list --not --alternate-refs --not --all --objects --disk-usage"

// figures are what size prints of one repository, which must give this exit code.
func (l *lab) figures(code int, args ...string) map[string]any {
	l.t.Helper()
	out := l.run(append([]string{"size"}, args...)...)
	u := out.of(l.t, "usage")
	if out.code != code || len(u) != 1 {
		l.t.Fatalf("size %v: exit %d, want %d\n%s%s", args, out.code, code, out.out, out.err)
	}
	return u[0]
}

func number(v any) string {
	if v == nil {
		return "unknown"
	}
	return fmt.Sprintf("%.0f", v)
}

// gitaly merge request 4657: with exclusion only the pool's bitmap was there, which can hold only what is to be left
// out, and using it made the call ten times slower.
func TestC46ThePoolsBitmap(t *testing.T) {
	for _, o := range gittest.AllFormats {
		t.Run(o.String(), func(t *testing.T) {
			pool, fork := forked(t, o)
			want := fork.Git(strings.Fields(ownQuestion)...)
			said := map[string]string{}
			see := func(what string) {
				t.Helper()
				for _, method := range []string{"auto", "walk", "bitmap"} {
					u := fork.figures(0, "--exclude-alternates", "--method="+method, "--verify-method")
					if number(u["own"]) != want {
						t.Errorf("%s, %s: own %v, git says %s", what, method, number(u["own"]), want)
					}
					if method == "auto" {
						said[what] = fmt.Sprintf("%v, %v", u["method"], u["reason"])
					}
				}
			}
			see("pool")
			if !strings.HasPrefix(said["pool"], "walk") || !strings.Contains(said["pool"], "pool") || !strings.Contains(said["pool"], ".bitmap") {
				t.Errorf("the pool's bitmap alone: %s", said["pool"])
			}
			fork.Git("repack", "-adbq") // not -l: its bitmap covers all that the fork reaches
			want = fork.Git(strings.Fields(ownQuestion)...)
			see("both")
			for _, b := range bitmaps(t, pool) {
				os.Remove(b)
			}
			see("own")
			if !strings.HasPrefix(said["own"], "bitmap") {
				t.Errorf("an own bitmap: %s", said["own"])
			}
			for _, b := range bitmaps(t, fork) {
				os.Remove(b)
			}
			see("none")
			if !strings.HasPrefix(said["none"], "walk") {
				t.Errorf("no bitmap: %s", said["none"])
			}
		})
	}
}

func bitmaps(t testing.TB, l *lab) []string {
	t.Helper()
	found, _ := filepath.Glob(l.File("objects/pack/*.bitmap"))
	if len(found) == 0 {
		t.Fatal("there is no bitmap")
	}
	return found
}

// gitlab issue 562003: the pool is gone, and forks still name it. Nothing that lay there is lost for sure.
func TestC47ThePoolIsGone(t *testing.T) {
	for _, o := range gittest.AllFormats {
		t.Run(o.String(), func(t *testing.T) {
			pool, fork := forked(t, o)
			tagged := fork.WriteTag(fork.missing(), "blob", "nowhere")
			recs := append(fork.records(), rec{"refs/tags/nowhere", tagged, fork.missing()}, rec{"refs/heads/mine", fork.Git("rev-parse", "refs/heads/mine"), ""})
			for i := range recs {
				if recs[i].ref == "refs/tags/of-tag" {
					recs[i].peel = fork.B // wrong, but who can tell
				}
			}
			pool.Path += ".away"
			if err := os.Rename(fork.File("../repo.git"), pool.Path); err != nil {
				t.Fatal(err)
			}
			for _, text := range []string{string(fork.ReadFile("objects/info/alternates")), pool.File("objects") + "/none\n" + fork.File("none") + "\n"} {
				fork.WriteFile("objects/info/alternates", []byte(text))
				fork.put(recs...)
				n := strings.Count(text, "\n")
				found := fork.sees(1, slices.Repeat([]string{"alternateMissing"}, n)...)
				fork.says(found["alternateMissing"], "is not there")
				for _, ref := range []string{"refs/tags/nowhere", "refs/tags/of-tag", "refs/heads/main"} {
					if f := found["peelUnverifiable "+ref]; f == nil || f["severity"] != "info" {
						t.Errorf("%s: %v", ref, f)
					}
				}
				fork.refuses(1)
				u := fork.figures(7, "--exclude-alternates")
				if u["own"] != nil || u["borrowed"] != nil || u["reachable"] != nil || u["files"] == nil {
					t.Errorf("%v", u)
				}
			}
			// Beside one that has everything it is a finding all the same, and what can be known is known.
			fork.WriteFile("objects/info/alternates", []byte(pool.File("objects")+"\n"+fork.File("none")+"\n"))
			fork.put(recs[:len(recs)-2]...)
			found := fork.sees(1, "alternateMissing", "peelMismatch refs/tags/of-tag")
			if found["alternateMissing"]["line"] != 2.0 {
				t.Errorf("%v", found["alternateMissing"])
			}
			fork.refuses(1)
			if u := fork.figures(7); u["own"] != nil || number(u["reachable"]) != fork.Git("rev-list", "--all", "--objects", "--disk-usage") {
				t.Errorf("%v", u)
			}
		})
	}
}

// gitlab issue 368150: where the pool's refs can't be read git excludes nothing, says nothing, and bills the whole
// pool to the fork.
func TestC48ThePoolsRefsCanNotBeRead(t *testing.T) {
	for _, o := range gittest.AllFormats {
		t.Run(o.String(), func(t *testing.T) {
			pool, fork := forked(t, o)
			own := fork.Git(strings.Fields(ownQuestion)...)
			if got := number(fork.figures(0, "--exclude-alternates")["own"]); got != own {
				t.Fatalf("own is %s, git says %s", got, own)
			}
			keep := t.TempDir()
			copyTree(t, pool.Path, keep)
			restore := func() {
				os.RemoveAll(pool.Path)
				copyTree(t, keep, pool.Path)
				os.MkdirAll(pool.File("refs/heads"), 0o755)
			}
			unknown := func(what string, vars map[string]string) {
				t.Helper()
				fork.vars = vars
				out := fork.run("size", "--exclude-alternates")
				u := out.of(t, "usage")
				if out.code != 3 && out.code != 7 || len(u) != 1 || u[0]["own"] != nil || u[0]["borrowed"] != nil || u[0]["reachable"] == nil {
					t.Errorf("%s: exit %d, %v", what, out.code, u)
				}
				fork.vars = nil
			}
			if o.RefFormat == gittest.Files {
				pool.WriteFile("packed-refs", []byte("garbage\n"))
			} else {
				os.Remove(pool.Tables()[0])
			}
			unknown("the refs are damaged", nil)
			restore()
			for _, name := range []string{"HEAD", "refs", "reftable", "packed-refs", "config"} {
				os.RemoveAll(pool.File(name))
			}
			unknown("only an object folder", nil)
			restore()
			if o.RefFormat == gittest.Reftable {
				pool.WriteFile("config", nil)
				unknown("a stub of which the configuration is lost", nil)
				restore()
			}
			pool.put(append(pool.records(), rec{"refs/heads/gone", pool.missing(), ""})...)
			unknown("a ref whose object is gone", nil)
			restore()

			config := func(key, value string) map[string]string {
				return map[string]string{"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": key, "GIT_CONFIG_VALUE_0": value, "PATH": os.Getenv("PATH")}
			}
			for what, command := range map[string]string{"fails": "exit 1 #", "fails after some": "echo " + pool.B + "; exit 3 #", "prints rubbish": "echo rubbish #",
				"prints nothing": "exit 0 #", "prints what is gone": "echo " + pool.missing() + " #", "dies": "kill -9 $$ #"} {
				unknown("core.alternateRefsCommand "+what, config("core.alternateRefsCommand", command))
			}
			unknown("core.alternateRefsPrefixes match nothing", config("core.alternateRefsPrefixes", "refs/nothing/"))

			// The repository's own setting of a command is not run.
			mark := filepath.Join(t.TempDir(), "mark")
			fork.Git("config", "core.alternateRefsCommand", "touch "+mark+"; exit 0 #")
			u := fork.figures(0, "--exclude-alternates")
			if _, err := os.Stat(mark); err == nil || number(u["own"]) != own {
				t.Errorf("the repository's own command: run %v, own %v", err == nil, u["own"])
			}
		})
	}
}

// sourcegraph issue 40448 and gitaly merge request 5544: what lies in the pool is not what is reachable from it.
func TestC49WhatLiesInThePoolIsNotReachableFromIt(t *testing.T) {
	for _, o := range gittest.AllFormats {
		t.Run(o.String(), func(t *testing.T) {
			pool, fork := forked(t, o)
			content := noise(7, 50_000)
			blob := pool.WriteObject("blob", content)
			main := fork.Git("rev-parse", "refs/heads/mine")
			tree := fork.GitIn("100644 blob "+blob+"\tbig\n", "mktree")
			fork.Git("update-ref", "refs/heads/mine", fork.Git("commit-tree", tree, "-p", main, "-m", "big"))
			if _, err := os.Stat(fork.File(fork.LooseName(blob))); err == nil {
				t.Fatal("the blob was copied")
			}
			want := fork.Git(strings.Fields(ownQuestion)...)
			st, err := os.Stat(pool.File(pool.LooseName(blob)))
			if err != nil {
				t.Fatal(err)
			}
			u := fork.figures(0, "--exclude-alternates")
			if number(u["own"]) != want || number(u["own_stored_elsewhere"]) != fmt.Sprint(st.Size()) {
				t.Errorf("own %v (git %s), of which %v are stored elsewhere (%d)", number(u["own"]), want, number(u["own_stored_elsewhere"]), st.Size())
			}
			if text := command(t, nil, nil, "size", fork.Path).out; !strings.Contains(text, "own_stored_elsewhere") {
				t.Errorf("the text does not name it:\n%s", text)
			}
		})
	}
}

// go-git issues 1006 and 1002: alternates of alternates, relative ones in nested files, links. As deep as git goes, and
// what lies beyond is told as such.
func TestC51DepthAndRelativePaths(t *testing.T) {
	for _, o := range []gittest.Options{gittest.AllFormats[0], gittest.AllFormats[3]} {
		t.Run(o.String(), func(t *testing.T) {
			r0 := newLab(t, o)
			dir := filepath.Dir(r0.Path)
			chain := []*lab{r0}
			for i := 1; i <= 8; i++ {
				next := labOf(t, &gittest.Repo{})
				*next.Repo = *r0.Repo
				next.Path = filepath.Join(dir, fmt.Sprintf("r%d.git", i))
				copyTree(t, r0.Path, next.Path)
				os.MkdirAll(next.File("refs/heads"), 0o755)
				os.RemoveAll(next.File("objects"))
				next.WriteFile("objects/info/alternates", []byte(chain[i-1].File("objects")+"\n"))
				chain = append(chain, next)
			}
			for i, l := range chain {
				_, _, code := l.Try("cat-file", "-e", l.V1)
				out := l.run("scan")
				size := l.run("size")
				u := size.of(t, "usage")[0]
				switch {
				case i <= 6:
					if code != 0 || out.code != 0 || size.code != 0 || u["reachable"] == nil {
						t.Errorf("r%d: git %d, scan %d, size %d: %s%s", i, code, out.code, size.code, out.out, size.out)
					}
				default:
					if code == 0 || out.code == 0 || strings.Contains(out.out, "refTargetMissing") || strings.Contains(out.out, "Corrupt") || u["reachable"] != nil || size.code == 0 {
						t.Errorf("r%d: git %d, scan %d, size %d: %s%s", i, code, out.code, size.code, out.out, size.out)
					}
				}
			}
			// A path counts from the folder whose file names it.
			sub := labOf(t, &gittest.Repo{})
			*sub.Repo = *r0.Repo
			sub.Path = filepath.Join(dir, "sub", "r1.git")
			os.Mkdir(filepath.Join(dir, "sub"), 0o755)
			copyTree(t, chain[1].Path, sub.Path)
			os.MkdirAll(sub.File("refs/heads"), 0o755)
			sub.WriteFile("objects/info/alternates", []byte("../../../repo.git/objects\n"))
			two := chain[2]
			two.WriteFile("objects/info/alternates", []byte("# a comment\n../../sub/r1.git/objects\n"))
			two.sees(0)
			two.figures(0)
			two.WriteFile("objects/info/alternates", []byte(`"../../sub/r1\056git/objects"`+"\n"))
			two.sees(0)
			// Through a link they count from where it leads.
			away := filepath.Join(dir, "far", "away", "objects")
			os.MkdirAll(filepath.Dir(away), 0o755)
			if err := os.Rename(two.File("objects"), away); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(away, two.File("objects")); err != nil {
				t.Skip("NOT TESTED, this needs symbolic links:", err)
			}
			_, _, code := two.Try("cat-file", "-e", two.V1)
			if out := two.run("scan"); (out.code == 0) != (code == 0) || !strings.Contains(out.out, "alternateMissing") {
				t.Errorf("git %d, scan %d: %s", code, out.code, out.out)
			}
		})
	}
}

// git commit 756f1bcd29, dulwich PR 2289, gitgitgadget PR 1512: readers trust bitmaps and reverse indexes, and one
// flipped byte gives another number with exit code 0.
func TestC54OneByteOfABitmapOrReverseIndex(t *testing.T) {
	for _, o := range []gittest.Options{gittest.AllFormats[0], gittest.AllFormats[1]} {
		t.Run(o.String(), func(t *testing.T) {
			pool, fork := forked(t, o)
			poolAll, own := number(pool.figures(0)["reachable"]), number(fork.figures(0, "--exclude-alternates")["own"])
			if want := pool.Git("rev-list", "--all", "--objects", "--disk-usage"); poolAll != want {
				t.Fatalf("reachable %s, git says %s", poolAll, want)
			}
			bitmap := bitmaps(t, pool)[0]
			reverse := strings.TrimSuffix(bitmap, ".bitmap") + ".rev"
			for _, path := range []string{bitmap, reverse} {
				name, _ := filepath.Rel(pool.Path, path)
				sound := pool.ReadFile(name)
				try := func(what string, bad []byte) {
					t.Helper()
					pool.WriteFile(name, bad)
					out := pool.run("size", "--method=bitmap")
					if u := out.of(t, "usage"); out.code != 0 || number(u[0]["reachable"]) != poolAll || !strings.Contains(out.out, "bitmapUnusable") {
						t.Errorf("%s: %d, not %s, or nothing said: %s", what, out.code, poolAll, out.out)
					}
					if u := fork.figures(0, "--exclude-alternates"); number(u["own"]) != own {
						t.Errorf("%s: own %v, not %s", what, number(u["own"]), own)
					}
				}
				step := 1 + len(sound)/13
				for at := 0; at < len(sound); at += step {
					bad := slices.Clone(sound)
					bad[at] ^= 0x41
					try(fmt.Sprintf("%s flipped at %d", filepath.Ext(name), at), bad)
				}
				for _, n := range []int{0, 1, 11, 12, 32, len(sound) / 2, len(sound) - 1} {
					try(fmt.Sprintf("%s cut at %d", filepath.Ext(name), n), sound[:n])
				}
				try(filepath.Ext(name)+" and more", append(slices.Clone(sound), 0))
				pool.WriteFile(name, sound)
			}
			os.Remove(reverse) // it can be made from the index
			u := pool.figures(0)
			if number(u["reachable"]) != poolAll || u["method"] != "bitmap" {
				t.Errorf("without a .rev: %v", u)
			}
		})
	}
}

// gitgitgadget PR 2207 and git commit 06f3867865: objects that a repack moves are not lost; those of a pack that a
// multi-pack-index still names, and that is gone, are.
func TestC55PacksThatVanish(t *testing.T) {
	for _, o := range gittest.AllFormats {
		t.Run(o.String(), func(t *testing.T) {
			l := newLab(t, o)
			l.Git("repack", "-adq")
			first, _ := filepath.Glob(l.File("objects/pack/*.pack"))
			extra := l.commit(noise(1, 4000), l.B)
			tag := l.WriteTag(extra, "commit", "late")
			l.Git("update-ref", "refs/tags/late", tag)
			l.Git("repack", "-dq")
			all, _ := filepath.Glob(l.File("objects/pack/*.pack"))
			second := slices.DeleteFunc(all, func(p string) bool { return p == first[0] })
			if len(second) != 1 {
				t.Fatalf("%v, %v", first, all)
			}
			l.Git("multi-pack-index", "write", "--bitmap")
			l.sees(0)
			stem := strings.TrimSuffix(second[0], ".pack")
			move := func(from, to string) {
				for _, ext := range []string{".rev", ".pack", ".idx"} {
					os.Rename(from+ext, to+ext)
				}
			}
			reachable := number(l.figures(0)["reachable"])

			// A race: the pack goes by one name and then by the other.
			stop := make(chan struct{})
			var wg sync.WaitGroup
			wg.Go(func() {
				names := [2]string{stem, filepath.Join(filepath.Dir(stem), "pack-"+strings.Repeat("ab", l.Format.Size()))}
				for i := 0; ; i++ {
					select {
					case <-stop:
						move(names[1], names[0])
						return
					default:
					}
					from, to := names[i%2], names[1-i%2]
					os.Link(from+".pack", to+".pack") // as a repack does it: the new one is there before the old one goes
					os.Link(from+".idx", to+".idx")
					time.Sleep(time.Millisecond)
					os.Remove(from + ".idx")
					os.Remove(from + ".rev")
					os.Remove(from + ".pack")
					time.Sleep(time.Millisecond)
				}
			})
			for end := time.Now().Add(400 * time.Millisecond); time.Now().Before(end) && !t.Failed(); {
				l.sees(0)
			}
			close(stop)
			wg.Wait()

			if _, err := os.Stat(stem + ".pack"); err != nil {
				t.Fatal(err)
			}
			away := t.TempDir() + "/pack"
			move(stem, away)
			l.sees(1, "refTargetMissing refs/tags/late")
			l.refuses(1)
			if u := l.figures(3); u["reachable"] != nil {
				t.Errorf("%v", u)
			}
			move(away, stem)
			l.sees(0)

			// A target that seemed to be missing when it was looked at is there again under the lock: its peel stays.
			bad := append(l.records(), rec{"refs/tags/late", tag, extra})
			bad[slices.IndexFunc(bad, func(r rec) bool { return r.ref == "refs/tags/v1" })].peel = l.B
			l.put(bad...)
			lock := "packed-refs.lock"
			if l.RefFormat == gittest.Reftable {
				lock = "reftable/tables.list.lock"
			}
			blobs := bytes.Clone(must1(t)(os.ReadFile(stem + ".pack")))
			move(stem, away)
			l.WriteObject("tag", fmt.Appendf(nil, "object %s\ntype commit\ntag late\ntagger C O Mitter <committer@example.com> %s\n\nlate\n", extra, gittest.Date))
			l.sees(1, "peelOfCorruptTag refs/tags/late", "tagTargetMissing refs/tags/late", "peelMismatch refs/tags/v1")
			l.fixWhile(lock, func() { move(away, stem) })
			if got := l.stored(); got["refs/tags/late"].peel != extra || got["refs/tags/v1"].peel != l.A {
				t.Errorf("%v", got)
			}
			if len(blobs) == 0 || number(l.figures(0)["reachable"]) == "unknown" || reachable == "unknown" {
				t.Error("the size is unknown")
			}
		})
	}
}

// git PR 1897: a clone with --bundle-uri keeps each ref of the bundle below refs/bundles/, also of branches that the
// server has deleted.
func TestC61RefsOfBundles(t *testing.T) {
	for _, o := range gittest.AllFormats {
		t.Run(o.String(), func(t *testing.T) {
			l := newLab(t, o)
			l.Use(gittest.Newest)
			l.Git("update-ref", "refs/heads/gone", l.commit(noise(3, 6000), l.B))
			bundle := filepath.Join(t.TempDir(), "all.bundle")
			l.Git("bundle", "create", "-q", bundle, "--all")
			l.Git("update-ref", "-d", "refs/heads/gone")
			path := filepath.Join(filepath.Dir(l.Path), "clone.git")
			if res := l.Program.Run(t, "", nil, "", "clone", "-q", "--bare", "--bundle-uri="+bundle, "--ref-format="+l.RefFormat, "file://"+l.Path, path); res.Code != 0 {
				t.Fatal(res)
			}
			c := labOf(t, &gittest.Repo{})
			*c.Repo = *l.Repo
			c.Path = path
			refs := c.Refs()
			if (refs["refs/bundles/heads/gone"] == oid.ID{}) || (refs["refs/bundles/tags/v1"] == oid.ID{}) {
				t.Skipf("git %s keeps no refs of bundles: %v", c.Program.Version, refs)
			}
			if c.RefFormat == gittest.Files {
				c.Git("pack-refs", "--all")
			}
			c.sees(0)
			u := c.figures(0, "--by=ref-namespace")
			if want := c.Git("rev-list", "--all", "--objects", "--disk-usage"); number(u["reachable"]) != want {
				t.Errorf("reachable %v, git says %s", number(u["reachable"]), want)
			}
			kept := -1.0
			for _, part := range u["by"].([]any) {
				if p := part.(map[string]any); p["ref-namespace"] == "refs/bundles" {
					kept = p["reachable"].(float64)
				}
			}
			if kept < 6000 {
				t.Errorf("kept alive by refs/bundles alone: %v of %v", kept, u["by"])
			}
			if w := c.figures(0, "--exclude=refs/bundles/*"); number(w["reachable"]) != number(u["reachable"].(float64)-kept) {
				t.Errorf("without them %v, not %v", w["reachable"], u["reachable"].(float64)-kept)
			}

			all := c.stored()
			bad := slices.Collect(func(yield func(rec) bool) {
				for _, r := range all {
					if r.ref == "refs/bundles/tags/v1" {
						r.peel = c.B
					}
					if r.ref != "HEAD" && !yield(r) {
						return
					}
				}
			})
			c.put(bad...)
			c.sees(1, "peelMismatch refs/bundles/tags/v1")
			c.fixes(0)
			c.gitServes()
		})
	}
}
