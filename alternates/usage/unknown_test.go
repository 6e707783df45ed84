package usage

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"refaudit/finding"
	"refaudit/internal/gittest"
	"refaudit/repo"
)

// What is harmed, which figures can't be known then, what the reason says, and which finding tells of it.
func TestWhatCanNotBeKnownHasNoNumber(t *testing.T) {
	gittest.Need(t, gittest.Newest)
	reach := []Figure{Reachable, Own, Borrowed, Unreachable, OwnStoredElsewhere}
	minus := []Figure{Own, Borrowed, OwnStoredElsewhere}
	with := func(more ...Figure) []Figure { return append(slices.Clone(minus), more...) }
	for name, c := range map[string]struct {
		make    func(t *testing.T) (*gittest.Repo, Options)
		unknown []Figure
		reason  string
		id      finding.ID
	}{
		"a ref to what is absent": {func(t *testing.T) (*gittest.Repo, Options) {
			r, _ := gittest.RefTargetMissing(t, gittest.Options{})
			return r, Options{}
		}, reach, `"refs/heads/gone" names`, ""},
		"an absent blob": {func(t *testing.T) (*gittest.Repo, Options) {
			r := plain(t)
			r.RemoveLoose(r.Blob)
			return r, Options{}
		}, reach, "is absent", ""},
		"an absent tree": {func(t *testing.T) (*gittest.Repo, Options) {
			r := plain(t)
			r.RemoveLoose(r.Tree)
			return r, Options{}
		}, reach, "is absent", ""},
		"an absent parent": {func(t *testing.T) (*gittest.Repo, Options) {
			r := plain(t)
			r.Git("update-ref", "-d", "refs/tags/v1")
			r.RemoveLoose(r.A)
			return r, Options{}
		}, reach, "is absent", ""},
		"a commit that only a commit-graph has": {func(t *testing.T) (*gittest.Repo, Options) {
			r := plain(t)
			r.Git("commit-graph", "write", "--reachable")
			r.Git("update-ref", "-d", "refs/tags/v1")
			r.RemoveLoose(r.A)
			return r, Options{}
		}, reach, "is absent", ""},
		"a tree that is a blob": {func(t *testing.T) (*gittest.Repo, Options) {
			r := plain(t)
			text := fmt.Sprintf("tree %s\nauthor A <a@b> 1 +0000\ncommitter A <a@b> 1 +0000\n\n", r.Blob)
			r.Git("update-ref", "refs/heads/odd", r.WriteObject("commit", []byte(text)))
			return r, Options{}
		}, reach, "is a blob, not a tree", ""},
		"a damaged tree": {func(t *testing.T) (*gittest.Repo, Options) {
			r := plain(t)
			r.WriteLoose(r.Tree, "tree", []byte("100644 file\x00short"))
			return r, Options{}
		}, reach, "a malformed tree", ""},
		"a truncated loose tree": {func(t *testing.T) (*gittest.Repo, Options) {
			r := plain(t)
			r.WriteFile(r.LooseName(r.Tree), r.ReadFile(r.LooseName(r.Tree))[:9])
			return r, Options{}
		}, reach, "unexpected EOF", ""},
		"a damaged pack": {func(t *testing.T) (*gittest.Repo, Options) {
			r := plain(t)
			r.Git("repack", "-adq")
			harm(t, r, "objects/pack/*.pack", -1)
			return r, Options{}
		}, append(slices.Clone(reach), Duplicate), "does not belong to its index", finding.AuditSkipped},
		"an index without its pack's offsets": {func(t *testing.T) (*gittest.Repo, Options) {
			r := plain(t)
			r.Git("-c", "pack.writeReverseIndex=false", "repack", "-adq")
			harm(t, r, "objects/pack/*.idx", -44) // the last offset
			return r, Options{}
		}, append(slices.Clone(reach), Duplicate), "idx: does not match its checksum", finding.AuditSkipped},
		"packed-refs that is none": {func(t *testing.T) (*gittest.Repo, Options) {
			r := plain(t)
			r.Git("pack-refs", "--all")
			r.WriteFile("packed-refs", []byte("<html>\n"))
			return r, Options{}
		}, reach, "refs can't be read", finding.BadPackedRefEntry},
		"a table that is gone": {func(t *testing.T) (*gittest.Repo, Options) {
			r, _ := gittest.TableMissing(t, gittest.Options{RefFormat: gittest.Reftable})
			return r, Options{}
		}, reach, "refs can't be read", finding.ReftableMissingTable},
		"an alternate that is gone": {func(t *testing.T) (*gittest.Repo, Options) {
			pool := plain(t)
			f := forkOf(t, pool)
			os.Rename(pool.Path, pool.Path+".away")
			return f, Options{}
		}, append(slices.Clone(reach), Duplicate), "absent", finding.AlternateMissing},
		"one alternate of two that is gone": {func(t *testing.T) (*gittest.Repo, Options) {
			f := forkOf(t, plain(t))
			f.WriteFile("objects/info/alternates", append(f.ReadFile("objects/info/alternates"), "/no/such/folder\n"...))
			return f, Options{}
		}, with(Duplicate), "/no/such/folder", finding.AlternateMissing},
		"an alternate's packed-refs": {func(t *testing.T) (*gittest.Repo, Options) {
			pool := plain(t)
			f := forkOf(t, pool)
			pool.WriteFile("packed-refs", []byte("<html>\n"))
			return f, Options{}
		}, minus, "its refs can't be read", finding.AlternateRefsUnreadable},
		"an alternate's stack": {func(t *testing.T) (*gittest.Repo, Options) {
			pool := gittest.New(t, gittest.Options{RefFormat: gittest.Reftable})
			f := forkOf(t, pool)
			os.Remove(pool.Tables()[0])
			return f, Options{}
		}, minus, "its refs can't be read", finding.AlternateRefsUnreadable},
		"an alternate that is only an object folder": {func(t *testing.T) (*gittest.Repo, Options) {
			pool := plain(t)
			f := forkOf(t, pool)
			os.RemoveAll(pool.File("refs"))
			return f, Options{}
		}, minus, "its repository can't be read", finding.AlternateRefsUnreadable},
		"an alternate of another name": {func(t *testing.T) (*gittest.Repo, Options) {
			pool := plain(t)
			f := forkOf(t, pool)
			os.Rename(pool.File("objects"), pool.File("store"))
			f.WriteFile("objects/info/alternates", []byte(pool.File("store")+"\n"))
			return f, Options{}
		}, minus, "is not the objects folder of a repository", finding.AlternateRefsUnreadable},
		"an alternate's ref to what is absent": {func(t *testing.T) (*gittest.Repo, Options) {
			pool, _ := gittest.RefTargetMissing(t, gittest.Options{})
			f := plain(t)
			f.WriteFile("objects/info/alternates", []byte(pool.File("objects")+"\n"))
			return f, Options{}
		}, minus, "what the refs of", ""},
		"a command that prints nothing":        command(`exit 0 #`, minus, "prints none", finding.AlternateExclusionEmpty),
		"a command that is empty":              command(``, minus, "set to nothing", finding.AlternateRefsUnreadable),
		"a command that fails":                 command(`exit 3 #`, minus, "exit status 3", finding.AlternateRefsUnreadable),
		"a command that prints rubbish":        command(`echo rubbish #`, minus, `"rubbish"`, finding.AlternateRefsUnreadable),
		"a command that prints what is absent": command(`echo 1111111111111111111111111111111111111111 #`, minus, "is absent", ""),
		"a command that prints NULs":           command(`head -c 99999 /dev/zero #`, minus, `no object id: line 1 begins with "\x00\x00`, finding.AlternateRefsUnreadable),
		"a command that prints a long line":    command(`head -c 99999 /dev/zero | tr "\\0" x #`, minus, `no object id: line 1 begins with "xxx`, finding.AlternateRefsUnreadable),
		"prefixes that match nothing": {func(t *testing.T) (*gittest.Repo, Options) {
			f := forkOf(t, plain(t))
			f.Git("config", "core.alternateRefsPrefixes", "refs/none refs/head")
			return f, Options{}
		}, minus, "core.alternateRefsPrefixes match none", finding.AlternateExclusionEmpty},
		"what nobody has promised, in a partial clone": {func(t *testing.T) (*gittest.Repo, Options) {
			r := partialClone(t)
			tree := r.GitIn("100644 blob "+strings.Repeat("1", 40)+"\tours\n", "mktree", "--missing")
			r.Git("update-ref", "refs/heads/own", r.Git("commit-tree", tree, "-m", "own"))
			return r, Options{}
		}, reach, strings.Repeat("1", 40), ""},
		"a dead worktree": {func(t *testing.T) (*gittest.Repo, Options) {
			return deadWorktreeRepo(t), Options{}
		}, reach, "worktrees/wt/HEAD", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, o := c.make(t)
			s := NewSession(2)
			defer s.Close()
			for range 2 { // a session remembers no answer that it didn't have
				u := measured(t, s, r, o)
				var got []Figure
				reasons := ""
				for _, f := range Figures {
					if why, ok := u.Unknown[f]; ok {
						got = append(got, f)
						reasons += why + "\n"
					} else if _, known := u.Bytes[f]; !known {
						t.Errorf("%s is neither known nor unknown", f)
					}
				}
				want := slices.Clone(c.unknown)
				slices.Sort(want)
				slices.Sort(got)
				if !slices.Equal(got, want) || !strings.Contains(reasons, c.reason) {
					t.Errorf("not known: %v\nwant %v; %q in %q", got, want, c.reason, reasons)
				}
				if c.id != "" && !slices.ContainsFunc(u.Findings, func(f finding.Finding) bool { return f.ID == c.id }) {
					t.Errorf("no %s: %v", c.id, u.Findings)
				}
				if c.id == "" && len(u.Findings) > 0 {
					t.Errorf("findings: %v", u.Findings)
				}
			}
		})
	}
}

// commandCase is a core.alternateRefsCommand in the command line's configuration.
type commandCase = struct {
	make    func(t *testing.T) (*gittest.Repo, Options)
	unknown []Figure
	reason  string
	id      finding.ID
}

func command(text string, unknown []Figure, reason string, id finding.ID) commandCase {
	return commandCase{func(t *testing.T) (*gittest.Repo, Options) { return forkOf(t, plain(t)), withCommand(text) }, unknown, reason, id}
}

func withCommand(text string) Options {
	env := map[string]string{"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.alternateRefsCommand", "GIT_CONFIG_VALUE_0": text, "PATH": os.Getenv("PATH")}
	return Options{Repo: repo.Options{Env: func(name string) (string, bool) { v, ok := env[name]; return v, ok }}}
}

func deadWorktreeRepo(t *testing.T) *gittest.Repo {
	r := plain(t)
	dir := filepath.Join(t.TempDir(), "wt")
	r.Git("worktree", "add", "-q", "--detach", "--no-checkout", dir, r.A)
	os.RemoveAll(dir)
	r.WriteFile("worktrees/wt/HEAD", []byte(strings.Repeat("1", 40)+"\n"))
	return r
}

// What is left out on purpose is said, and the rest is git's number.
func TestNotices(t *testing.T) {
	gittest.Need(t, gittest.Newest)
	for name, c := range map[string]struct {
		make   func(t *testing.T) (*gittest.Repo, Options)
		notice string
		args   []string // of rev-list
		env    string   // of git
	}{
		"shallow": {func(t *testing.T) (*gittest.Repo, Options) {
			r := plain(t)
			addCommit(r, "C")
			path := filepath.Join(t.TempDir(), "shallow.git")
			r.Git("clone", "-q", "--bare", "--depth=1", "--no-local", "--no-tags", "file://"+r.Path, path)
			s := *r
			s.Path = path
			return &s, Options{}
		}, "the parents of 1 shallow commit are left out", nil, ""},
		"grafts": {func(t *testing.T) (*gittest.Repo, Options) {
			r := plain(t)
			r.Git("tag", "-d", "v1")
			r.WriteFile("info/grafts", []byte(r.B+"\nrubbish\n"))
			return r, Options{}
		}, "1 graft is honoured", nil, ""},
		"grafts that reach further": {func(t *testing.T) (*gittest.Repo, Options) {
			pool := plain(t)
			f := forkOf(t, pool)
			lost := f.Git("commit-tree", f.Tree, "-m", "named by a graft alone")
			f.WriteFile("info/grafts", []byte(f.B+" "+f.A+" "+lost+"\n"))
			return f, Options{}
		}, "1 graft is honoured", nil, ""},
		"partial clone": {func(t *testing.T) (*gittest.Repo, Options) {
			return partialClone(t), Options{}
		}, "promised objects are not here and not counted", []string{"--missing=allow-promisor"}, "GIT_NO_LAZY_FETCH=1"},
		"partial clone with commits of its own": {func(t *testing.T) (*gittest.Repo, Options) {
			r := partialClone(t)
			tree := r.GitIn(r.Git("ls-tree", "refs/heads/main")+"\n100644 blob "+r.WriteObject("blob", []byte("own"))+"\town\n", "mktree", "--missing")
			r.Git("update-ref", "refs/heads/own", r.Git("commit-tree", tree, "-p", "refs/heads/main", "-m", "own"))
			return r, Options{}
		}, "promised objects are not here and not counted", []string{"--missing=allow-promisor"}, "GIT_NO_LAZY_FETCH=1"},
		"what only we name, and the remote too": {func(t *testing.T) (*gittest.Repo, Options) {
			r := partialClone(t)
			old := r.Git("rev-parse", "refs/heads/main~1:file")
			tree := r.GitIn("100644 blob "+old+"\tours\n", "mktree", "--missing")
			c := r.Git("commit-tree", tree, "-m", "own")
			for _, ref := range strings.Fields(r.Git("for-each-ref", "--format=%(refname)")) {
				r.Git("update-ref", "-d", ref)
			}
			r.Git("update-ref", "refs/heads/main", c)
			return r, Options{}
		}, "1 promised object is not here and not counted", []string{"--missing=allow-promisor"}, "GIT_NO_LAZY_FETCH=1"},
		"replacements": {func(t *testing.T) (*gittest.Repo, Options) {
			r := plain(t)
			r.Git("tag", "-d", "v1")
			r.Git("replace", r.B, r.Git("commit-tree", r.Tree, "-m", "in its place"))
			return r, Options{}
		}, "1 replacement is not followed", nil, "GIT_NO_REPLACE_OBJECTS=1"},
		"a command of the repository's own": {func(t *testing.T) (*gittest.Repo, Options) {
			f := forkOf(t, plain(t))
			f.Git("config", "core.alternateRefsCommand", "touch "+f.File("pwned")+"; exit 0 #")
			t.Cleanup(func() {
				if _, err := os.Stat(f.File("pwned")); err == nil {
					t.Error("the command was run")
				}
			})
			return f, Options{}
		}, "core.alternateRefsCommand in", nil, "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.alternateRefsCommand GIT_CONFIG_VALUE_0="},
		"a commit-graph that is damaged": {func(t *testing.T) (*gittest.Repo, Options) {
			r := plain(t)
			r.Git("commit-graph", "write", "--reachable")
			harm(t, r, "objects/info/commit-graph", 60)
			return r, Options{}
		}, "a commit-graph can't be believed", []string{"-c", "core.commitGraph=false"}, ""},
		"what is no worktree to git": {func(t *testing.T) (*gittest.Repo, Options) {
			r := deadWorktreeRepo(t)
			os.Remove(r.File("worktrees/wt/gitdir"))
			r.WriteFile("worktrees/wt/HEAD", []byte(r.Git("commit-tree", r.Tree, "-m", "of no worktree")+"\n"))
			return r, Options{}
		}, "worktrees/wt/HEAD is left out: git takes that for no worktree", nil, ""},
		"a dead worktree that is left out": {func(t *testing.T) (*gittest.Repo, Options) {
			return deadWorktreeRepo(t), Options{IgnoreDeadWorktrees: true}
		}, "worktrees/wt/HEAD is left out", []string{"--exclude-dead"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, o := c.make(t)
			before := tree(t, r.Path)
			s := NewSession(2)
			defer s.Close()
			var all []*Usage
			for _, method := range []Method{Walk, Auto} {
				o.Method = method
				u := measured(t, s, r, o)
				all = append(all, u)
				if len(u.Unknown) > 0 || len(u.Findings) > 0 {
					t.Fatalf("%v %v", u.Unknown, u.Findings)
				}
				if !slices.ContainsFunc(u.Notices, func(n string) bool { return strings.Contains(n, c.notice) }) {
					t.Errorf("notices: %q, want %q", u.Notices, c.notice)
				}
				if u.Bytes[Reachable] == 0 {
					t.Error("nothing is reachable")
				}
			}
			if tree(t, r.Path) != before {
				t.Error("the repository was changed")
			}
			for _, u := range all {
				compareWithGit(t, r, u, c.args, c.env)
			}
		})
	}
}

// compareWithGit compares the figures with the oracle's, with arguments and variables for git.
func compareWithGit(t *testing.T, r *gittest.Repo, u *Usage, args []string, env string) {
	t.Helper()
	git := *r
	for _, kv := range strings.Fields(env) {
		if kv == "GIT_CONFIG_VALUE_0=" {
			kv += "git --git-dir=\"$1\" for-each-ref --format='%(objectname)' #"
		}
		git.ExtraEnv = append(git.ExtraEnv, kv)
	}
	if len(args) == 1 && args[0] == "--exclude-dead" {
		os.RemoveAll(r.File("worktrees"))
		args = nil
	}
	if len(args) == 2 && args[0] == "-c" {
		os.Remove(r.File("objects/info/commit-graph"))
		args = nil
	}
	want := newOracle(t, &git).figures(args...)
	for _, f := range Figures {
		if f != Files && u.Bytes[f] != want[f] {
			t.Errorf("%s: %d, want %d", f, u.Bytes[f], want[f])
		}
	}
}

// tree is what lies below a folder: names, sizes and times.
func tree(t *testing.T, dir string) string {
	var all strings.Builder
	filepath.Walk(dir, func(path string, st os.FileInfo, err error) error {
		if err == nil {
			fmt.Fprintln(&all, path, st.Size(), st.ModTime())
		}
		return nil
	})
	return all.String()
}

// partialClone lacks the blobs that are not in the newest tree.
func partialClone(t *testing.T) *gittest.Repo {
	r := plain(t)
	for i := range 4 {
		blob := r.WriteObject("blob", []byte(strings.Repeat(fmt.Sprint(i), 99)))
		tree := r.GitIn("100644 blob "+blob+"\tfile\n", "mktree")
		r.Git("update-ref", "refs/heads/main", r.Git("commit-tree", tree, "-p", "refs/heads/main", "-m", fmt.Sprint(i)))
	}
	r.Git("config", "uploadpack.allowFilter", "true")
	path := filepath.Join(t.TempDir(), "partial.git")
	r.Git("clone", "-q", "--bare", "--filter=blob:none", "--no-local", "file://"+r.Path, path)
	p := *r
	p.Path = path
	return &p
}

// Where no ref counts, nothing is reached, however it is to be split.
func TestWithoutAnyRef(t *testing.T) {
	for _, o := range gittest.AllFormats {
		pool := gittest.New(t, o)
		fork := gittest.New(t, o)
		fork.WriteFile("objects/info/alternates", []byte(pool.File("objects")+"\n"))
		for _, r := range []*gittest.Repo{pool, fork} {
			for _, by := range []By{ByNothing, ByType, ByNamespace} {
				for _, method := range []Method{Auto, Walk, Bitmap} {
					s := NewSession(2)
					u := measured(t, s, r, Options{By: by, Method: method, Exclude: []string{"*"}})
					s.Close()
					if reached, known := u.Bytes[Reachable]; reached != 0 || !known {
						t.Errorf("%v by %s, %s: %v, unknown %v", o, by, method, u.Bytes, u.Unknown)
					}
					if len(u.Shares) > 0 && by == ByNamespace {
						t.Errorf("%v: shares %v", o, u.Shares)
					}
				}
			}
		}
	}
}
