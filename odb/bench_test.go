package odb

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"refaudit/internal/gittest"
	"refaudit/oid"
)

// benchDir keeps the repositories of benchmarks, which take longer to make than to read.
var benchDir string

func TestMain(m *testing.M) {
	code := m.Run()
	if benchDir != "" {
		os.RemoveAll(benchDir)
	}
	os.Exit(code)
}

type benchRepo struct {
	objects string
	tags    []oid.ID
	all     []oid.ID
}

var benchRepos = map[string]benchRepo{}

// manyTags is a repository with annotated tags on 10,000 commits, in a pack or loose.
func manyTags(b *testing.B, tags int, layout func(*gittest.Repo)) benchRepo {
	name := fmt.Sprint(b.Name()[:strings.Index(b.Name(), "/")], tags)
	if made, ok := benchRepos[name]; ok {
		return made
	}
	if benchDir == "" {
		var err error
		if benchDir, err = os.MkdirTemp("", "odb-bench"); err != nil {
			b.Fatal(err)
		}
	}
	r := gittest.InitAt(b, gittest.Options{Format: oid.SHA1}, filepath.Join(benchDir, name))
	var s strings.Builder
	s.WriteString("feature done\nblob\nmark :1\ndata 6\nhello\n\n")
	const commits = 10000
	for i := range commits {
		fmt.Fprintf(&s, "commit refs/heads/main\nmark :%d\ncommitter C <c@example.com> %d +0000\ndata 9\nmsg%06d\n", i+2, 1500000000+i, i)
		fmt.Fprintf(&s, "M 100644 :1 file%d\n\n", i%500)
	}
	for i := range tags {
		fmt.Fprintf(&s, "tag v%07d\nfrom :%d\ntagger C O Mitter <c@example.com> %d +0000\ndata 15\nrelease %07d\n", i, i*7919%commits+2, 1600000000+i, i)
	}
	s.WriteString("done\n")
	r.GitIn(s.String(), "fast-import", "--quiet", "--force")
	layout(r)
	made := benchRepo{objects: r.File("objects"), tags: idsOf(r.Git("for-each-ref", "--format=%(objectname)", "refs/tags")),
		all: idsOf(r.Git("cat-file", "--batch-all-objects", "--batch-check=%(objectname)"))}
	benchRepos[name] = made
	return made
}

func idsOf(text string) (ids []oid.ID) {
	for _, line := range strings.Split(text, "\n") {
		ids = append(ids, oid.MustParse(line))
	}
	return ids
}

// benchLook opens the objects and asks for the ids, each time anew.
func benchLook(b *testing.B, objects string, ids []oid.ID) {
	for _, workers := range []int{1, 2} {
		b.Run(fmt.Sprint("workers=", workers), func(b *testing.B) {
			out := make([]oid.Fact, len(ids))
			b.ReportAllocs()
			for b.Loop() {
				db, _, err := Open(objects, oid.SHA1, Options{Workers: workers})
				if err != nil {
					b.Fatal(err)
				}
				if err := db.Look(context.Background(), ids, out); err != nil {
					b.Fatal(err)
				}
				if err := db.Close(); err != nil {
					b.Fatal(err)
				}
			}
			for i, f := range out {
				if f.State != oid.Present {
					b.Fatalf("%v: %+v", ids[i], f)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(ids)), "ns/object")
		})
	}
}

func BenchmarkTagsOfOnePack(b *testing.B) {
	b.Run("50000", func(b *testing.B) {
		r := manyTags(b, 50000, func(r *gittest.Repo) { r.Git("repack", "-adq") })
		benchLook(b, r.objects, r.tags)
	})
}

func BenchmarkKindsThroughDeltas(b *testing.B) {
	b.Run("all", func(b *testing.B) {
		r := manyTags(b, 1, func(r *gittest.Repo) { r.Git("repack", "-adfq", "--depth=50", "--window=50") })
		ids := slices.Clone(r.all)
		rand.New(rand.NewPCG(1, 2)).Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
		benchLook(b, r.objects, ids)
	})
}

func BenchmarkLoose(b *testing.B) {
	b.Run("tags", func(b *testing.B) {
		r := manyTags(b, 2000, unpack)
		benchLook(b, r.objects, r.tags)
	})
}

// BenchmarkOpen asks for one object of a repository that was just opened.
func BenchmarkOpen(b *testing.B) {
	b.Run("50000", func(b *testing.B) {
		r := manyTags(b, 50000, func(r *gittest.Repo) { r.Git("repack", "-adq") })
		benchLook(b, r.objects, r.tags[:1])
	})
}

// BenchmarkReal looks at a repository that $REFAUDIT_BENCH_OBJECTS names: at its ids on $REFAUDIT_BENCH_IDS, a file with one on each line.
func BenchmarkReal(b *testing.B) {
	text, err := os.ReadFile(os.Getenv("REFAUDIT_BENCH_IDS"))
	if err != nil {
		b.Skip("no repository is named")
	}
	benchLook(b, os.Getenv("REFAUDIT_BENCH_OBJECTS"), idsOf(strings.TrimSpace(string(text))))
}
