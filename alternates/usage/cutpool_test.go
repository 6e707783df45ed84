package usage

import (
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"refaudit/internal/gittest"
)

// history is a repository with a few commits, each with a tree and a blob of its own.
func historyOf(t *testing.T, o gittest.Options) *gittest.Repo {
	r := gittest.New(t, o)
	for i := range 5 {
		blob := r.WriteObject("blob", []byte(strings.Repeat(fmt.Sprintln("line of", i), 20)))
		tree := r.GitIn(fmt.Sprintf("100644 blob %s\tf\n", blob), "mktree")
		r.Git("update-ref", "refs/heads/main", r.Git("commit-tree", tree, "-p", "refs/heads/main", "-m", fmt.Sprint(i)))
	}
	r.Git("config", "uploadpack.allowFilter", "true")
	return r
}

// cloneOf is a clone, made with more arguments for git.
func cloneOf(t *testing.T, r *gittest.Repo, args ...string) *gittest.Repo {
	c := *r
	c.Path = filepath.Join(t.TempDir(), "clone.git")
	r.Git(append(append([]string{"clone", "-q", "--bare", "--no-local"}, args...), "file://"+r.Path, c.Path)...)
	return &c
}

// cuts are the ways in which a pool sees less of its history than those who borrow from it.
var cuts = map[string]func(t *testing.T, src *gittest.Repo) *gittest.Repo{
	"shallow": func(t *testing.T, src *gittest.Repo) *gittest.Repo { return cloneOf(t, src, "--depth=2") },
	"partial": func(t *testing.T, src *gittest.Repo) *gittest.Repo { return cloneOf(t, src, "--filter=blob:none") },
	"without trees": func(t *testing.T, src *gittest.Repo) *gittest.Repo {
		return cloneOf(t, src, "--filter=tree:0")
	},
	"grafted": func(t *testing.T, src *gittest.Repo) *gittest.Repo {
		p := cloneOf(t, src)
		p.WriteFile("info/grafts", []byte(src.Git("rev-parse", "refs/heads/main~1")+"\n"))
		return p
	},
	"whole": func(t *testing.T, src *gittest.Repo) *gittest.Repo { return cloneOf(t, src) },
}

// git walks from an alternate's refs with our objects and our boundary, whatever that alternate lacks or leaves out itself.
func TestPoolsThatAreCut(t *testing.T) {
	gittest.Need(t, gittest.Newest)
	for _, o := range gittest.AllFormats {
		for name, cut := range cuts {
			t.Run(o.String()+" "+name, func(t *testing.T) {
				t.Parallel()
				src := historyOf(t, o)
				pool := cut(t, src)
				fork := cloneOf(t, src)
				fork.WriteFile("objects/info/alternates", []byte(pool.File("objects")+"\n"))
				second := *fork // which has nothing that the first one has
				second.Path = cloneOf(t, src).Path
				second.WriteFile("objects/info/alternates", []byte(pool.File("objects")+"\n"))
				for _, repack := range [][]string{nil, {"repack", "-adbq"}, {"repack", "-adlq"}} {
					s := NewSession(2)
					for _, r := range []*gittest.Repo{fork, &second} {
						if repack != nil {
							r.Git(repack...)
						}
						r.Git("update-ref", "refs/heads/own", addTo(r, r.Path))
						want := newOracle(t, r).figures()
						for _, o := range []Options{{Method: Walk}, {Method: Bitmap}, {Method: Auto, Verify: true}, {Method: Walk, By: ByType}, {By: ByNamespace}} {
							if u := measured(t, s, r, o); !maps.Equal(u.Bytes, want) || !u.Complete() || len(u.Findings) > 0 {
								t.Errorf("%v, %+v: %v, want %v; %v %v", repack, o, u.Bytes, want, u.Unknown, u.Findings)
							}
						}
					}
					s.Close()
				}
			})
		}
	}
}

// addTo makes a commit on top of main, with a message of its own.
func addTo(r *gittest.Repo, message string) string {
	return r.Git("commit-tree", "refs/heads/main^{tree}", "-p", "refs/heads/main", "-m", message)
}

// What a remote has promised to a pool alone is nowhere for who borrows from it: git dies of it.
func TestWhatIsPromisedToAPoolAlone(t *testing.T) {
	gittest.Need(t, gittest.Newest)
	for _, o := range gittest.AllFormats {
		src := historyOf(t, o)
		pool := cuts["partial"](t, src)
		fork := gittest.InitAt(t, o, filepath.Join(t.TempDir(), "fork.git"))
		fork.WriteFile("objects/info/alternates", []byte(pool.File("objects")+"\n"))
		fork.Git("update-ref", "refs/heads/main", src.Git("rev-parse", "refs/heads/main"))
		if _, _, code := fork.Try("rev-list", "--all", "--objects"); code == 0 {
			t.Fatalf("%v: git finds everything", o)
		}
		both := cloneOf(t, src, "--filter=blob:none")
		both.WriteFile("objects/info/alternates", []byte(pool.File("objects")+"\n"))
		for _, method := range []Method{Walk, Auto} {
			s := NewSession(2)
			if u := measured(t, s, fork, Options{Method: method}); u.Unknown[Reachable] == "" || u.Unknown[Own] == "" {
				t.Errorf("%v, %s: %v", o, method, u.Bytes)
			}
			u := measured(t, s, both, Options{Method: method})
			if !u.Complete() || !strings.Contains(strings.Join(u.Notices, "\n"), "promised objects are not here") {
				t.Errorf("%v, %s: a partial clone on another: %v, notices %q", o, method, u.Unknown, u.Notices)
			}
			s.Close()
		}
	}
}
