package usage

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"refaudit/internal/gittest"
	"refaudit/repo"
)

var (
	repos = flag.Int("usage.repos", 16, "how many random repositories to make")
	seed  = flag.Uint64("usage.seed", 1, "of the first one")
)

// Every figure, by each method, of random repositories: as it follows from git's lists of objects and
// the places of objects in packs, to the byte.
func TestRandomRepositories(t *testing.T) {
	gittest.Need(t, gittest.Newest)
	for i := range *repos {
		n := *seed + uint64(i)
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			g := &generator{t: t, rnd: rand.New(rand.NewPCG(n, 77))}
			r := g.repository()
			check(t, r, g.did)
		})
	}
}

// check compares what each method says with what git says.
func check(t *testing.T, r *gittest.Repo, did []string) {
	t.Helper()
	oracle := newOracle(t, r)
	all, without := oracle.figures(), oracle.figures("--exclude=refs/heads/*")
	s := NewSession(2)
	defer s.Close()
	for _, o := range []Options{{Method: Walk}, {Method: Bitmap}, {Method: Auto, ExcludeAlternates: true, Verify: true},
		{Method: Auto, By: ByType, Verify: true}, {Method: Walk, By: ByNamespace},
		{Method: Auto, Exclude: []string{"refs/heads/*"}, Verify: true}, {Method: Walk, Exclude: []string{"refs/heads/*"}, By: ByNamespace}} {
		want := all
		if len(o.Exclude) > 0 {
			want = without
		}
		u := measured(t, s, r, o)
		if !maps.Equal(u.Bytes, want) || len(u.Unknown) > 0 {
			t.Fatalf("%+v: %v %v\nwant %v\n%s: %s\n%v %v\nmade by: %s", o, u.Bytes, u.Unknown, want, u.Method, u.Reason, u.Notices, u.Findings, strings.Join(did, "\n  "))
		}
		if len(u.Findings) > 0 {
			t.Fatalf("findings: %v\nmade by: %s", u.Findings, strings.Join(did, "\n  "))
		}
		if o.By == ByNothing {
			continue
		}
		var reachable, own int64
		for _, share := range u.Shares {
			reachable += share.Reachable
			own += share.Own
		}
		if reachable != want[Reachable] || own != want[Own] {
			t.Fatalf("%+v: shares %v", o, u.Shares)
		}
	}
}

func measured(t testing.TB, s *Session, r *gittest.Repo, o Options) *Usage {
	t.Helper()
	at, err := repo.Open(r.Path, o.Repo)
	if err != nil {
		t.Fatal(err)
	}
	u, err := s.Measure(context.Background(), at, o)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// generator makes a repository of a random history, stored in a random way, perhaps on a pool.
type generator struct {
	t    *testing.T
	rnd  *rand.Rand
	did  []string
	n    int
	opts gittest.Options
}

func (g *generator) one(of int) bool { return g.rnd.IntN(of) == 0 }

// do runs git, and remembers it.
func (g *generator) do(r *gittest.Repo, args ...string) string {
	g.did = append(g.did, filepath.Base(r.Path)+": git "+strings.Join(args, " "))
	return r.Git(args...)
}

func (g *generator) repository() *gittest.Repo {
	g.opts = gittest.AllFormats[g.rnd.IntN(len(gittest.AllFormats))]
	g.opts.Git = gittest.Newest
	dir := g.t.TempDir()
	r := gittest.InitAt(g.t, g.opts, filepath.Join(dir, "r.git"))
	pools := []int{0, 1, 1, 1, 2, 2}[g.rnd.IntN(6)]
	below := ""
	for i := range pools {
		p := gittest.InitAt(g.t, g.opts, filepath.Join(dir, fmt.Sprintf("pool%d.git", i)))
		if below != "" && g.one(2) {
			g.borrow(p, below)
		}
		g.fill(p)
		g.borrow(r, p.Path)
		below = p.Path
	}
	g.fill(r)
	if g.one(3) {
		g.shareMore(r)
	}
	if g.one(3) {
		g.packTwice(r)
	}
	return r
}

// borrow makes r see the objects of another repository, and start from its refs.
func (g *generator) borrow(r *gittest.Repo, pool string) {
	line := filepath.Join(pool, "objects")
	if g.one(3) {
		line = "../../" + filepath.Base(pool) + "/objects"
	}
	old, _ := os.ReadFile(r.File("objects/info/alternates"))
	r.WriteFile("objects/info/alternates", append(old, line+"\n"...))
	g.did = append(g.did, filepath.Base(r.Path)+" borrows from "+line)
	refs := strings.Fields(r.Git("--git-dir="+pool, "for-each-ref", "--format=%(objectname) %(refname)"))
	for i := 0; i+1 < len(refs); i += 2 {
		if g.one(2) {
			r.Git("update-ref", strings.Replace(refs[i+1], "refs/", "refs/from/"+filepath.Base(pool)+"/", 1), refs[i])
		}
	}
}

// fill adds history, and stores it, several times.
func (g *generator) fill(r *gittest.Repo) {
	for range 1 + g.rnd.IntN(3) {
		g.history(r)
		if g.one(3) {
			g.oddities(r)
		}
		g.store(r)
	}
	if g.one(2) {
		g.do(r, [][]string{{"commit-graph", "write", "--reachable"}, {"commit-graph", "write", "--reachable", "--split=no-merge"}, {"pack-refs", "--all"}}[g.rnd.IntN(3)]...)
	}
	if g.one(4) {
		g.history(r)
	}
}

// history makes commits with files in folders, branches and merges.
func (g *generator) history(r *gittest.Repo) {
	var s strings.Builder
	commits := strings.Fields(strings.ReplaceAll(r.Git("for-each-ref", "--format=%(if:equals=commit)%(objecttype)%(then)%(objectname)%(end)", "refs/heads", "refs/from"), "\n", " "))
	branches := 1 + g.rnd.IntN(3)
	for range branches {
		ref := fmt.Sprintf("refs/heads/b%d", g.rnd.IntN(6))
		from := ""
		if len(commits) > 0 && !g.one(5) {
			from = commits[g.rnd.IntN(len(commits))]
		}
		for i := range 1 + g.rnd.IntN(30) {
			g.n++
			fmt.Fprintf(&s, "commit %s\nmark :%d\ncommitter C <c@example.com> %d +0000\ndata 1\nx\n", ref, g.n, 1600000000+g.n*100)
			if i == 0 && from != "" {
				fmt.Fprintf(&s, "from %s\n", from)
			}
			if len(commits) > 1 && g.one(8) {
				fmt.Fprintf(&s, "merge %s\n", commits[g.rnd.IntN(len(commits))])
			}
			for range g.rnd.IntN(4) {
				path := fmt.Sprintf("f%d", g.rnd.IntN(9))
				for range g.rnd.IntN(4) {
					path = fmt.Sprintf("d%d/", g.rnd.IntN(4)) + path
				}
				body := strings.Repeat(fmt.Sprintf("%d line\n", g.rnd.IntN(500)), 1+g.rnd.IntN(20))
				fmt.Fprintf(&s, "M 100644 inline %s\ndata %d\n%s\n", path, len(body), body)
			}
			if g.one(12) {
				fmt.Fprintf(&s, "M 160000 %s sub\n", strings.Repeat("1", r.Format.HexLen()))
			}
			if g.one(15) {
				s.WriteString("deleteall\n")
			}
			s.WriteString("\n")
		}
		commits = append(commits, fmt.Sprintf(":%d", g.n))
	}
	r.GitIn(s.String(), "-c", fmt.Sprintf("fastimport.unpackLimit=%d", g.rnd.IntN(2)*100000), "fast-import", "--quiet", "--force")
	g.did = append(g.did, fmt.Sprintf("%s: %d branches", filepath.Base(r.Path), branches))
}

// oddities are tags of everything, refs of trees and blobs, a detached HEAD, a worktree, an object
// that nobody names.
func (g *generator) oddities(r *gittest.Repo) {
	g.n++
	name := fmt.Sprint("t", g.n)
	commit := r.Git("for-each-ref", "--format=%(objectname)", "--count=1", "refs/heads")
	if commit == "" {
		return
	}
	switch g.rnd.IntN(7) {
	case 0:
		g.do(r, "tag", "-a", "-m", "x", name, commit)
		g.do(r, "tag", "-a", "-m", "y", name+"of", name)
	case 1:
		g.do(r, "update-ref", "refs/trees/"+name, r.Git("rev-parse", commit+"^{tree}"))
	case 2:
		g.do(r, "update-ref", "refs/blobs/"+name, r.WriteObject("blob", []byte(strings.Repeat(name, 50))))
	case 3:
		g.do(r, "update-ref", "--no-deref", "HEAD", commit)
	case 4:
		g.do(r, "worktree", "add", "--detach", "-q", "--no-checkout", filepath.Join(filepath.Dir(r.Path), filepath.Base(r.Path)+name), commit)
	case 5:
		r.WriteObject("blob", []byte(strings.Repeat("lost"+name, 30)))
	case 6:
		tree := r.GitIn("", "mktree")
		g.do(r, "update-ref", "refs/heads/empty", r.Git("commit-tree", tree, "-p", commit, "-m", "empty"))
	}
}

// store packs what there is, in one of many ways.
func (g *generator) store(r *gittest.Repo) {
	ways := [][]string{
		{"repack", "-q", "-d"},
		{"repack", "-q", "-d", "-l"},
		{"repack", "-q", "-a", "-d"},
		{"repack", "-q", "-a", "-d", "-l"},
		{"repack", "-q", "-a", "-d", "-b"},
		{"-c", "pack.writeBitmapLookupTable=true", "repack", "-q", "-a", "-d", "-b"},
		{"-c", "pack.writeReverseIndex=false", "repack", "-q", "-A", "-d"},
		{"repack", "-q", "--cruft", "-d"},
		{"repack", "-q", "-d", "--write-midx"},
		{"repack", "-q", "-d", "--geometric=2", "--write-midx", "-b"},
		{"multi-pack-index", "write", "--bitmap"},
		{"multi-pack-index", "write", "--incremental", "--bitmap"},
		{"-c", "bitmapPseudoMerge.all.pattern=refs/", "-c", "bitmapPseudoMerge.all.threshold=now", "-c", "bitmapPseudoMerge.all.stableThreshold=now",
			"-c", "bitmapPseudoMerge.all.stableSize=2", "repack", "-q", "-a", "-d", "-b"},
		{"gc", "-q"},
		{"repack", "-q", "-a", "-F"},
		{"-c", "pack.depth=1", "-c", "repack.useDeltaBaseOffset=false", "repack", "-q", "-a", "-d", "-F"},
		nil,
	}
	way := ways[g.rnd.IntN(len(ways))]
	if way == nil {
		return
	}
	// a bitmap needs all that is reachable in the packs, which a repository on a pool may not have
	if _, errs, code := r.Try(way...); code != 0 {
		g.did = append(g.did, fmt.Sprintf("%s: git %s failed: %s", filepath.Base(r.Path), strings.Join(way, " "), errs))
	} else {
		g.did = append(g.did, filepath.Base(r.Path)+": git "+strings.Join(way, " "))
	}
}

// shareMore copies packs of a pool into our own folder: everything lies twice.
func (g *generator) shareMore(r *gittest.Repo) {
	packs, _ := filepath.Glob(filepath.Join(filepath.Dir(r.Path), "pool*.git", "objects", "pack", "pack-*"))
	for _, path := range packs {
		data, err := os.ReadFile(path)
		if err != nil {
			g.t.Fatal(err)
		}
		r.WriteFile("objects/pack/"+filepath.Base(path), data)
	}
	g.did = append(g.did, fmt.Sprintf("%d files of pools are copied", len(packs)))
}

// packTwice packs what is reachable once more, in the opposite order: what was a base is a delta of what was a delta of it.
func (g *generator) packTwice(r *gittest.Repo) {
	packBackwards(r)
	g.did = append(g.did, filepath.Base(r.Path)+": packed once more, backwards")
}

func packBackwards(r *gittest.Repo) {
	ids := strings.Fields(r.Git("rev-list", "--objects", "--no-object-names", "--all"))
	slices.Reverse(ids)
	r.GitIn(strings.Join(ids, "\n"), "pack-objects", "-q", "--no-reuse-delta", r.File("objects/pack/pack"))
}

// Trees that are deltas of each other, in two packs: none may be left to the other.
func TestTreesThatAreDeltasOfEachOther(t *testing.T) {
	for _, o := range gittest.AllFormats {
		r := gittest.New(t, o)
		blob := r.WriteObject("blob", []byte("in all trees\n"))
		parent := ""
		for i := range 6 {
			var b strings.Builder
			for k := range 20 {
				fmt.Fprintf(&b, "100644 blob %s\tc%d\n", blob, k)
			}
			fmt.Fprintf(&b, "100644 blob %s\tf\n", r.WriteObject("blob", []byte(strings.Repeat(fmt.Sprintln("line", i), 30))))
			args := []string{"commit-tree", "-m", "x", r.GitIn(b.String(), "mktree")}
			if parent != "" {
				args = append(args, "-p", parent)
			}
			parent = r.Git(args...)
		}
		r.Git("update-ref", "refs/heads/main", parent)
		r.Git("-c", "repack.writeBitmaps=false", "repack", "-adq")
		packBackwards(r)
		check(t, r, nil)
	}
}
