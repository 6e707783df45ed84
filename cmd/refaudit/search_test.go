package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"refaudit/internal/gittest"
)

// foundBelow is what a recursive scan finds, below root.
func foundBelow(t *testing.T, root string, paths ...string) string {
	t.Helper()
	r := command(t, nil, nil, append([]string{"scan", "--recursive", "--format=jsonl"}, paths...)...)
	var all []string
	for _, m := range r.of(t, "repository") {
		all = append(all, strings.TrimPrefix(m["repo"].(string), root+"/"))
	}
	return strings.Join(all, " ")
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestRepositoriesInRepositoriesAreFound(t *testing.T) {
	root := t.TempDir()
	at := func(path string) *gittest.Repo {
		return gittest.InitAt(t, gittest.Options{}, filepath.Join(root, filepath.FromSlash(path)))
	}
	for _, path := range []string{"a/.git", "a/nested/r/.git", "a/nested/bare.git", "a/nested/bare.git/inner.git", "a/.git/modules/lib", "a/.git/modules/lib/modules/deep/er", "z.git"} {
		at(path)
	}
	for _, path := range []string{"z.git/objects/no.git", "z.git/refs/no.git", "a/.git/objects/no.git"} {
		at(path)
	}
	put(t, filepath.Join(root, "a/lib/.git"), "gitdir: ../.git/modules/lib\n")
	want := "a a/.git/modules/lib a/.git/modules/lib/modules/deep/er a/nested/bare.git a/nested/bare.git/inner.git a/nested/r z.git"
	if got := foundBelow(t, root, root); got != want {
		t.Errorf("found %s\nnot   %s", got, want)
	}
	if got := foundBelow(t, root, root, filepath.Join(root, "a", "nested"), filepath.Join(root, "a")); got != want {
		t.Errorf("folders in folders: found %s\nnot                      %s", got, want)
	}
}

// A finding in a repository inside another is one of the run.
func TestDamageInsideARepositoryIsFound(t *testing.T) {
	root := t.TempDir()
	gittest.InitAt(t, gittest.Options{}, filepath.Join(root, ".git"))
	inner := gittest.InitAt(t, gittest.Options{}, filepath.Join(root, "nested", "r", ".git"))
	inner.WriteFile("refs/heads/gone", []byte(strings.Repeat("1", 40)+"\n"))
	if r := command(t, nil, nil, "scan", "--recursive", root); r.code != exitFindings {
		t.Errorf("exit %d: %s%s", r.code, r.out, r.err)
	}
}

// A repository is audited once, under its own name, however many worktrees lie beside it.
func TestARepositoryIsAuditedOnce(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	main := gittest.InitAt(t, gittest.Options{}, filepath.Join(root, "main", ".git"))
	other := gittest.InitAt(t, gittest.Options{}, filepath.Join(outside, "other.git"))
	for _, r := range []*gittest.Repo{main, other} {
		tree := r.Git("hash-object", "-t", "tree", "-w", "/dev/null")
		r.Git("update-ref", "refs/heads/main", strings.TrimSpace(r.Git("commit-tree", "-m", "x", strings.TrimSpace(tree))))
	}
	main.Git("worktree", "add", "-q", "--detach", filepath.Join(root, "a-wt"), "main")
	main.Git("worktree", "add", "-q", "--detach", filepath.Join(root, "z-wt"), "main")
	other.Git("worktree", "add", "-q", "--detach", filepath.Join(root, "b-wt"), "main")
	other.Git("worktree", "add", "-q", "--detach", filepath.Join(root, "c-wt"), "main")
	gittest.InitAt(t, gittest.Options{}, filepath.Join(root, "a-wt", "nested.git"))
	gittest.InitAt(t, gittest.Options{}, filepath.Join(main.File("worktrees/z-wt"), "modules", "lib"))
	put(t, filepath.Join(root, "dead", ".git"), "gitdir: /no/such/repository\n")
	put(t, filepath.Join(root, "strange", ".git"), "nothing\n")
	got := strings.Split(foundBelow(t, root, root), " ")
	want := []string{"a-wt/nested.git", "dead", "main", "main/.git/worktrees/z-wt/modules/lib", "strange", "b-wt"}
	if !slices.Equal(got, want) {
		t.Errorf("found %s\nnot   %s", got, want)
	}
	for _, one := range []string{"a-wt", "b-wt"} { // alone, it stands for its repository
		dir := filepath.Join(root, one)
		if got := foundBelow(t, root, dir); !strings.Contains(" "+got+" ", " "+one+" ") {
			t.Errorf("%s: found %s", one, got)
		}
	}
}

// No syntax hides a repository: a line that leads to nothing is incomplete, and what lists don't have is said.
func TestAListHasNoComments(t *testing.T) {
	root := t.TempDir()
	gittest.InitAt(t, gittest.Options{}, filepath.Join(root, "a.git"))
	a := filepath.Join(root, "a.git")
	for _, line := range []string{"# all of them", "  " + a, a + " ", a + "\r"} {
		r := command(t, strings.NewReader(line+"\n"+a+"\n"), nil, "scan", "--repos-from=-", "--format=jsonl")
		if r.code != exitIncomplete || len(r.of(t, "repository")) != 2 || !strings.Contains(r.out+r.err, "no comments") {
			t.Errorf("%q: exit %d, %s%s", line, r.code, r.out, r.err)
		}
	}
	gittest.InitAt(t, gittest.Options{}, filepath.Join(root, "#odd"))
	if err := (&targets{}).noPath(root, "#odd"); err != nil {
		t.Errorf("a path that begins with #: %v", err)
	}
}
