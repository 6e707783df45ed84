package repo

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"refaudit/internal/gittest"
)

func TestRefStorageWithAPayload(t *testing.T) {
	p := gittest.Need(t, gittest.Newest)
	for _, backend := range []string{"files", "reftable"} {
		h := newHome(t)
		h.env["GIT_AUTHOR_NAME"], h.env["GIT_AUTHOR_EMAIL"] = "A", "a@example.com"
		h.env["GIT_COMMITTER_NAME"], h.env["GIT_COMMITTER_EMAIL"] = "A", "a@example.com"
		os.Mkdir(h.path("store"), 0o755)
		h.env["GIT_REFERENCE_BACKEND"] = backend + "://" + h.path("store")
		h.must(p, ".", "init", "-q", "-b", "main", "r")
		delete(h.env, "GIT_REFERENCE_BACKEND")
		h.must(p, "r", "commit", "-q", "--allow-empty", "-m", "x")
		h.must(p, "r", "worktree", "add", "-q", h.path("wt"))
		h.must(p, "wt", "update-ref", "refs/worktree/mine", "HEAD")
		r, err := Open(h.path("r"), h.options())
		if err != nil {
			t.Fatal(err)
		}
		if r.Refs.Backend != backend || r.Refs.Dir != h.path("store") || !r.Refs.Payload || r.Refs.FromEnv || r.Refs.Root.Root() != r.Refs.Dir {
			t.Errorf("%+v", r.Refs)
		}
		trees, err := r.Worktrees()
		if err != nil || len(trees) != 2 || trees[0].RefDir != h.path("store") || trees[1].RefDir != h.path("store/worktrees/wt") {
			t.Errorf("%+v %v", trees, err)
		}
		own := "refs/worktree/mine"
		if backend == "reftable" {
			own = "reftable/tables.list"
		}
		if isMissing(filepath.Join(trees[1].RefDir, own)) {
			t.Errorf("%s: no %s in %s", backend, own, trees[1].RefDir)
		}
		wt, err := Open(h.path("wt"), h.options())
		if err != nil || wt.Refs.Dir != h.path("store") {
			t.Errorf("from the worktree: %+v %v", wt, err)
		}

		text, _ := os.ReadFile(h.path("r/.git/config"))
		relative := strings.Replace(string(text), h.path("store"), "../../store", 1)
		if relative == string(text) {
			t.Fatalf("no payload in %s", text)
		}
		h.write("r/.git/config", relative)
		if r, err = Open(h.path("wt"), h.options()); err != nil || r.Refs.Dir != h.path("store") {
			t.Errorf("relative: %v", err)
		}
		for _, gone := range []string{"empty", "missing"} {
			os.Mkdir(h.path("empty"), 0o755)
			h.env["GIT_REFERENCE_BACKEND"] = backend + "://" + h.path(gone)
			if _, err := Open(h.path("r"), h.options()); err == nil || !strings.Contains(err.Error(), gone) {
				t.Errorf("%s: %v", gone, err)
			}
		}
		h.env["GIT_REFERENCE_BACKEND"] = backend
		if r, err = Open(h.path("r"), h.options()); err != nil || r.Refs.Payload || !r.Refs.FromEnv || r.Refs.Dir != h.path("r/.git") {
			t.Errorf("the environment wins: %v", err)
		}
	}
}

func TestWorktreesAsGitListsThem(t *testing.T) {
	gits(t, func(t *testing.T, p *gittest.Program) {
		for _, bare := range []bool{false, true} {
			h := newHome(t)
			h.env["GIT_AUTHOR_NAME"], h.env["GIT_AUTHOR_EMAIL"] = "A", "a@example.com"
			h.env["GIT_COMMITTER_NAME"], h.env["GIT_COMMITTER_EMAIL"] = "A", "a@example.com"
			h.must(p, ".", "init", "-q", "r")
			h.must(p, "r", "commit", "-q", "--allow-empty", "-m", "x")
			dir := "r"
			if bare {
				h.must(p, ".", "clone", "-q", "--bare", "r", "b.git")
				dir = "b.git"
			}
			for _, name := range []string{"one", "two", "locked", "reason", "gone", "gonelocked", "nofile", "emptyfile", "nofolder"} {
				h.must(p, dir, "worktree", "add", "-q", "--detach", h.path("trees/"+name))
			}
			h.must(p, dir, "worktree", "lock", h.path("trees/locked"))
			h.must(p, dir, "worktree", "lock", "--reason", "on a \tstick", h.path("trees/reason"))
			h.must(p, dir, "worktree", "lock", h.path("trees/gonelocked"))
			os.RemoveAll(h.path("trees/gone"))
			os.RemoveAll(h.path("trees/gonelocked"))
			admin := dir + "/.git/worktrees/"
			if bare {
				admin = dir + "/worktrees/"
			}
			os.Remove(h.path(admin + "nofile/gitdir"))
			h.write(admin+"emptyfile/gitdir", "")
			os.RemoveAll(h.path(admin + "nofolder"))
			h.write(admin+"nofolder", "")
			if p.Version > "2.48" {
				h.must(p, dir, "-c", "worktree.useRelativePaths=true", "worktree", "add", "-q", "--detach", h.path("trees/relative"))
			}
			for _, from := range []string{dir, "trees/one"} {
				r, err := Open(h.path(from), h.options())
				if err != nil {
					t.Fatal(err)
				}
				all, err := r.Worktrees()
				if err != nil {
					t.Fatal(err)
				}
				ours := map[string]string{}
				for _, w := range all {
					if w.Ignored != "" {
						continue
					}
					ours[w.Path] = fmt.Sprint(w.Bare, w.Locked, w.LockReason, w.Prunable)
					if w.Current != (w.GitDir == r.GitDir) {
						t.Errorf("%s: current %v", w.ID, w.Current)
					}
				}
				git := listedWorktrees(h.must(p, from, "worktree", "list", "--porcelain"))
				if fmt.Sprint(ours) != fmt.Sprint(git) {
					t.Errorf("from %s: %v\ngit: %v", from, ours, git)
				}
				if len(all) != len(ours)+3 {
					t.Errorf("%d worktrees, %d of them seen by git", len(all), len(ours))
				}
			}
			if !bare || p.Version < "2.5" {
				continue // the older gits don't look there
			}
			h.must(p, dir, "config", "extensions.worktreeConfig", "true")
			h.must(p, dir, "config", "--unset", "core.bare")
			h.write(dir+"/config.worktree", "[core]\nbare = true\n")
			r, err := Open(h.path("trees/one"), h.options())
			if err != nil {
				t.Fatal(err)
			}
			all, err := r.Worktrees()
			git := listedWorktrees(h.must(p, "trees/one", "worktree", "list", "--porcelain"))[h.path(dir)]
			if err != nil || !all[0].Bare || !strings.HasPrefix(git, "true") {
				t.Errorf("bare by config.worktree: %+v %v, git: %s", all[0], err, git)
			}
		}
	})
}

// listedWorktrees reads git worktree list --porcelain.
func listedWorktrees(text string) map[string]string {
	all := map[string]string{}
	for _, block := range strings.Split(text, "\n\n") {
		var path, reason, prunable string
		var bare, locked bool
		for line := range strings.Lines(block) {
			word, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
			switch word {
			case "worktree":
				path = rest
			case "bare":
				bare = true
			case "locked":
				locked, reason = true, strings.ReplaceAll(strings.Trim(rest, `"`), `\t`, "\t")
			case "prunable":
				prunable = rest
			}
		}
		all[path] = fmt.Sprint(bare, locked, reason, prunable)
	}
	return all
}
