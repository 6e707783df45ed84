package odb

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"refaudit/internal/gittest"
	"refaudit/oid"
)

// history makes commits that change files of a small tree, and tags of them, of each other, of a
// tree and of a blob. Its tags are alike enough for git to store some of them as deltas.
func history(r *gittest.Repo, commits int) {
	rnd := rand.New(rand.NewPCG(7, uint64(commits)))
	var s strings.Builder
	s.WriteString("feature done\n")
	for i := range commits {
		fmt.Fprintf(&s, "commit refs/heads/main\nmark :%d\ncommitter C <c@example.com> %d +0000\ndata 2\nx\n", i+1, 1500000000+i)
		var body strings.Builder
		for range 40 {
			fmt.Fprintf(&body, "line %d\n", rnd.IntN(99999))
		}
		fmt.Fprintf(&s, "M 100644 inline src%d/file%d.c\ndata %d\n%s\n", rnd.IntN(9), rnd.IntN(20), body.Len(), body.String())
		fmt.Fprintf(&s, "tag v%d\nfrom :%d\ntagger C O Mitter <c@example.com> %d +0000\ndata %d\n%s\n", i, i+1, 1600000000+i, 800, strings.Repeat("release notes are long. ", 40)[:800])
	}
	s.WriteString("done\n")
	r.GitIn(s.String(), "fast-import", "--quiet", "--force")
	r.Git("tag", "-a", "-m", "nested", "nested", "v1")
	r.Git("tag", "-a", "-m", "nested twice", "nested2", "nested")
	r.Git("tag", "-a", "-m", "tree", "tree", "v1^{tree}")
	r.Git("tag", "-a", "-m", "blob", "blob", r.Git("rev-parse", "v1:")+"")
}

// truth is what git says of every object of the repository, its alternates included.
func truth(t *testing.T, r *gittest.Repo) map[oid.ID]oid.Fact {
	t.Helper()
	facts := map[oid.ID]oid.Fact{}
	var tags []string
	for _, line := range strings.Split(r.Git("cat-file", "--batch-all-objects", "--batch-check=%(objectname) %(objecttype)"), "\n") {
		hex, word, _ := strings.Cut(line, " ")
		kind, ok := oid.ParseKind([]byte(word))
		if !ok {
			t.Fatalf("git says %q", line)
		}
		facts[oid.MustParse(hex)] = oid.Fact{State: oid.Present, Kind: kind}
		if kind == oid.Tag {
			tags = append(tags, hex)
		}
	}
	for _, text := range strings.Split(r.GitIn(strings.Join(tags, "\n"), "cat-file", "--batch=%%%(objectname)"), "%")[1:] {
		l := strings.SplitN(text, "\n", 4)
		if len(l) < 4 {
			continue // a % in a message
		}
		f := facts[oid.MustParse(l[0])]
		f.Target = oid.MustParse(strings.TrimPrefix(l[1], "object "))
		f.Claims, _ = oid.ParseKind([]byte(strings.TrimPrefix(l[2], "type ")))
		facts[oid.MustParse(l[0])] = f
	}
	return facts
}

func sameAsGit(t *testing.T, r *gittest.Repo) {
	t.Helper()
	want := truth(t, r)
	ids := slices.SortedFunc(maps.Keys(want), func(a, b oid.ID) int { return a.Compare(b) })
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	ids = append(ids, ids[0], oid.FromBytes(r.Format, make([]byte, 32)), r.Format.Object("blob", []byte("not there")))
	want[ids[len(ids)-1]], want[ids[len(ids)-2]] = oid.Fact{State: oid.Absent}, oid.Fact{State: oid.Absent}
	db, findings, err := Open(r.File("objects"), r.Format, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for i, got := range lookAll(t, db, ids) {
		if got != want[ids[i]] {
			t.Fatalf("%v: %+v, git says %+v", ids[i], got, want[ids[i]])
		}
	}
	for _, f := range append(findings, db.Problems()...) {
		t.Errorf("%s %s: %s", f.Pos, f.ID, f.Message)
	}
	for _, id := range ids[:20] {
		kind, content, err := db.Read(id, 1<<20)
		if err != nil || kind != want[id].Kind || r.Format.Object(kind.String(), content) != id {
			t.Errorf("read %v: %v %v", id, kind, err)
		}
		if got, err := db.Confirm(context.Background(), id); got != want[id] || err != nil {
			t.Errorf("confirm %v: %+v %v", id, got, err)
		}
	}
}

// layouts are the ways in which git may store one history.
var layouts = map[string]func(t *testing.T, r *gittest.Repo){
	"loose":    func(t *testing.T, r *gittest.Repo) { unpack(r) },
	"pack":     func(t *testing.T, r *gittest.Repo) { r.Git("repack", "-adfq", "--depth=40", "--window=40") },
	"bitmap":   func(t *testing.T, r *gittest.Repo) { r.Git("repack", "-adfqb") },
	"index v1": func(t *testing.T, r *gittest.Repo) { r.Git("-c", "pack.indexVersion=1", "repack", "-adfq") },
	"ref delta": func(t *testing.T, r *gittest.Repo) {
		r.Git("-c", "repack.useDeltaBaseOffset=false", "repack", "-adfq", "--depth=40", "--window=40")
	},
	"midx":  func(t *testing.T, r *gittest.Repo) { manyPacks(r); r.Git("multi-pack-index", "write") },
	"packs": func(t *testing.T, r *gittest.Repo) { manyPacks(r) },
	"midx and more": func(t *testing.T, r *gittest.Repo) {
		manyPacks(r)
		r.Git("multi-pack-index", "write")
		r.Git("tag", "-a", "-m", "loose", "loose", "v2")
		r.GitIn(r.Git("rev-parse", "loose"), "pack-objects", "-q", r.File("objects/pack/pack"))
		r.Git("tag", "-a", "-m", "loose", "loose2", "v2")
	},
	"pool":                                func(t *testing.T, r *gittest.Repo) { lend(r, 1) },
	"pool of a pool, as deep as git goes": func(t *testing.T, r *gittest.Repo) { lend(r, 6) },
	"cruft pack": func(t *testing.T, r *gittest.Repo) {
		r.Git("update-ref", "-d", "refs/tags/v3")
		r.Git("update-ref", "-d", "refs/tags/v4")
		r.Git("repack", "-dq", "--cruft")
	},
	"midx chain": func(t *testing.T, r *gittest.Repo) {
		for i := range 3 {
			r.Git("tag", "-a", "-m", "layer", fmt.Sprint("layer", i), "v2")
			r.Git("repack", "-dq")
			if _, stderr, code := r.Try("multi-pack-index", "write", "--incremental", "--bitmap"); code == 129 {
				t.Skipf("git %s writes no chains", r.MadeBy)
			} else if code != 0 {
				t.Fatal(stderr)
			}
		}
	},
}

func unpack(r *gittest.Repo) {
	packs, _ := filepath.Glob(r.File("objects/pack/*"))
	for _, p := range packs {
		data := r.ReadFile("objects/pack/" + filepath.Base(p))
		os.Remove(p)
		if strings.HasSuffix(p, ".pack") {
			r.GitIn(string(data), "unpack-objects", "-q")
		}
	}
}

// lend moves all packs into a pool, hops away, and makes a few objects of its own.
func lend(r *gittest.Repo, hops int) {
	r.Git("repack", "-adq")
	at := r.File("objects")
	for i := range hops {
		pool := r.File(fmt.Sprintf("pool%d/objects", i))
		os.MkdirAll(filepath.Join(pool, "info"), 0o755)
		os.WriteFile(filepath.Join(at, "info", "alternates"), []byte("# a pool\n"+pool+"\n"), 0o644)
		at = pool
	}
	os.Rename(r.File("objects/pack"), filepath.Join(at, "pack"))
	r.Git("tag", "-a", "-m", "own", "own", "v1")
}

func manyPacks(r *gittest.Repo) {
	r.Git("repack", "-dq")
	for i := range 3 {
		commit := r.Git("commit-tree", "-m", fmt.Sprint("more ", i), "v1^{tree}")
		r.Git("tag", "-a", "-m", "more", fmt.Sprint("more", i), commit)
		r.Git("repack", "-dq")
	}
}

func TestEveryLayoutReadsAsInGit(t *testing.T) {
	for _, f := range []oid.Format{oid.SHA1, oid.SHA256} {
		for name, layout := range layouts {
			t.Run(f.String()+"/"+name, func(t *testing.T) {
				r := gittest.Init(t, gittest.Options{Format: f})
				history(r, 120)
				layout(t, r)
				gittest.Unchanged(t, r.Path, func() { sameAsGit(t, r) })
			})
		}
	}
}
