package repo

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"refaudit/internal/gittest"
	"refaudit/internal/vfs"
	"refaudit/oid"
)

// seen is what git says of the repository that a folder lies in, and what we say.
func (h *home) seen(p *gittest.Program, dir string) (git, ours string, err error) {
	h.t.Helper()
	args := []string{"rev-parse", "--path-format=absolute", "--git-dir", "--git-common-dir", "--git-path", "objects", "--show-object-format", "--is-bare-repository"}
	if p.Reftable() {
		args = append(args, "--show-ref-format")
	}
	if r := h.git(p, dir, args...); r.Code == 0 {
		git = strings.TrimSuffix(r.Stdout, "\n")
		if tree := h.git(p, dir, "rev-parse", "--show-toplevel"); tree.Code == 0 {
			git += "\n" + strings.TrimSuffix(tree.Stdout, "\n")
		}
	}
	r, err := Discover(h.path(dir), h.options())
	if err != nil {
		return git, "", err
	}
	ours = fmt.Sprintf("%s\n%s\n%s\n%s\n%v", r.GitDir, r.CommonDir, r.ObjectDir, r.Format, r.Bare)
	if p.Reftable() {
		ours += "\n" + r.Refs.Backend
	}
	if r.WorkTree != "" {
		ours += "\n" + r.WorkTree
	}
	return git, ours, nil
}

// same compares the two. git inside a git dir has no working tree to show.
func (h *home) same(p *gittest.Program, dir string) {
	h.t.Helper()
	git, ours, err := h.seen(p, dir)
	if _, set := h.env["GIT_DIR"]; set { // for git the working tree is where we stand then
		git, ours = withoutTree(p, git), withoutTree(p, ours)
	}
	if git != ours && !strings.HasPrefix(ours, git+"\n"+h.dir) || (git == "") != (err != nil) {
		h.t.Errorf("in %s:\n%s (%v)\ngit:\n%s", dir, ours, err, git)
	}
}

func withoutTree(p *gittest.Program, text string) string {
	n := 5
	if p.Reftable() {
		n++
	}
	lines := strings.Split(text, "\n")
	return strings.Join(lines[:min(n, len(lines))], "\n")
}

func TestDiscoverAsGitDoes(t *testing.T) {
	gits(t, func(t *testing.T, p *gittest.Program) {
		h := newHome(t)
		h.env["GIT_AUTHOR_NAME"], h.env["GIT_AUTHOR_EMAIL"] = "A", "a@example.com"
		h.env["GIT_COMMITTER_NAME"], h.env["GIT_COMMITTER_EMAIL"] = "A", "a@example.com"
		h.must(p, ".", "init", "-q", "r")
		h.must(p, "r", "commit", "-q", "--allow-empty", "-m", "x")
		h.must(p, "r", "worktree", "add", "-q", h.path("wt"))
		h.must(p, ".", "clone", "-q", "--bare", "r", "bare.git")
		h.must(p, ".", "init", "-q", "--object-format=sha256", "s256")
		h.must(p, ".", "init", "-q", "--separate-git-dir", h.path("away.git"), "away")
		h.must(p, ".", "init", "-q", "r/inner")
		h.must(p, "bare.git", "worktree", "add", "-q", "--detach", h.path("barewt"))
		for _, dir := range []string{"r/a/b", "bare.git/refs/heads/x", "wt/a", "away/a", "none"} {
			os.MkdirAll(h.path(dir), 0o755)
		}
		os.Symlink(h.path("r/a"), h.path("link"))
		dirs := []string{
			".", "r", "r/a/b", "r/inner", "r/.git", "r/.git/refs", "bare.git", "bare.git/refs/heads/x", "wt", "wt/a", "r/.git/worktrees/wt", "s256", "away", "away/a", "away.git", "none", "link", "link/b", "barewt",
		}
		each := func(what string) {
			t.Helper()
			for _, dir := range dirs {
				if _, err := os.Stat(h.path(dir)); err == nil {
					h.same(p, dir)
				}
			}
			if t.Failed() {
				t.Fatal(what)
			}
		}
		each("as they are")
		for _, ceiling := range []string{h.path("r"), h.path("r/a"), h.dir, h.path("link") + ":/", "relative:" + h.path("r") + "/", ":" + h.path("link"), "/"} {
			h.env["GIT_CEILING_DIRECTORIES"] = ceiling
			each("below the ceiling " + ceiling)
		}
		delete(h.env, "GIT_CEILING_DIRECTORIES")
		for _, c := range []struct{ name, value string }{
			{"GIT_DIR", h.path("bare.git")}, {"GIT_DIR", h.path("wt/.git")}, {"GIT_DIR", ".git"}, {"GIT_DIR", "."}, {"GIT_DIR", h.path("none")}, {"GIT_DIR", ""},
			{"GIT_OBJECT_DIRECTORY", h.path("none")}, {"GIT_OBJECT_DIRECTORY", "nowhere"}, {"GIT_OBJECT_DIRECTORY", ""}, {"GIT_OBJECT_DIRECTORY", h.path("s256/.git/objects")}, {"GIT_DISCOVERY_ACROSS_FILESYSTEM", "true"}, {"GIT_DISCOVERY_ACROSS_FILESYSTEM", "perhaps"},
		} {
			h.env[c.name] = c.value
			each(c.name + "=" + c.value)
			delete(h.env, c.name)
		}
		h.env["GIT_DIR"], h.env["GIT_COMMON_DIR"] = h.path("r/.git/worktrees/wt"), h.path("r/.git")
		each("with a common dir")
		delete(h.env, "GIT_DIR")
		delete(h.env, "GIT_COMMON_DIR")

		for _, tree := range []string{h.path("none"), "..", "."} {
			h.env["GIT_WORK_TREE"] = tree
			each("GIT_WORK_TREE=" + tree)
		}
		delete(h.env, "GIT_WORK_TREE")

		h.must(p, "r", "config", "core.worktree", h.path("none"))
		each("another working tree")
		h.must(p, "r", "config", "core.worktree", "../../none")
		each("a relative working tree")
		h.must(p, "r", "config", "--unset", "core.worktree")
		h.must(p, "r", "config", "core.bare", "true")
		dirs = slices.DeleteFunc(dirs, func(dir string) bool { // git calls a worktree bare when asked from within its git dir
			return dir == "r/.git/worktrees/wt"
		})
		each("bare, with worktrees")
		h.must(p, "r", "config", "extensions.worktreeConfig", "true")
		h.write("r/.git/config.worktree", "[core]\nbare = false\n")
		each("not bare by config.worktree")
	})
}

func TestSafeBareRepository(t *testing.T) {
	gits(t, func(t *testing.T, p *gittest.Program) {
		h := newHome(t)
		h.must(p, ".", "init", "-q", "--bare", "bare.git")
		h.must(p, ".", "init", "-q", "r")
		os.Mkdir(h.path("r/.git/hooks"), 0o755)
		h.must(p, ".", "init", "-q", "--bare", "r/.git/modules/m")
		h.write("r/.git/worktrees/w/HEAD", "ref: refs/heads/w\n")
		h.write("r/.git/worktrees/w/commondir", "../..\n")
		h.write("r/.git/worktrees/w/gitdir", h.path("none/.git")+"\n")
		h.must(p, "bare.git", "config", "safe.bareRepository", "all") // nobody asks the repository
		for _, value := range []string{"all", "explicit", "sometimes"} {
			h.write(".gitconfig", "[safe]\nbareRepository = "+value+"\n")
			for _, dir := range []string{"bare.git", "r", "r/.git/hooks", "r/.git/modules/m", "r/.git/worktrees/w"} {
				if strings.HasPrefix(dir, "r/.git/") && strings.HasPrefix(p.Version, "2.39") {
					continue // it refused these too
				}
				h.same(p, dir)
			}
		}
		h.write(".gitconfig", "[safe]\nbareRepository = explicit\n")
		if _, err := Discover(h.path("bare.git"), h.options()); !errors.Is(err, ErrBareRefused) {
			t.Error(err)
		}
		if _, err := Open(h.path("bare.git"), h.options()); err != nil {
			t.Errorf("a bare repository that is named: %v", err)
		}
	})
}

// Without the right to mount, a test can see no more of the boundary than that it was met.
func TestDiscoveryEndsWithTheFileSystem(t *testing.T) {
	const edge = "/dev/shm"
	above, err := vfs.Device(filepath.Dir(edge))
	if below, e := vfs.Device(edge); err != nil || e != nil || above == below {
		t.Skip(edge, " is no file system of its own")
	}
	dir, err := os.MkdirTemp(edge, "refaudit-test-")
	if err != nil {
		t.Skip(err)
	}
	defer os.RemoveAll(dir)
	env := map[string]string{}
	for across, met := range map[string]bool{"": true, "0": true, "1": false} {
		env["GIT_DISCOVERY_ACROSS_FILESYSTEM"] = across
		_, err := Discover(dir, Options{Env: MapEnv(env), Cwd: dir})
		if !errors.Is(err, ErrNotFound) || strings.Contains(err.Error(), "boundary") != met {
			t.Errorf("%q: %v", across, err)
		}
	}
}

func TestWhatIsAGitDir(t *testing.T) {
	gits(t, func(t *testing.T, p *gittest.Program) {
		fresh := newHome(t)
		fresh.must(p, ".", "init", "-q", "r")
		for name, spoil := range map[string]func(h *home){
			"nothing wrong": func(h *home) {},
			"no HEAD":       func(h *home) { os.Remove(h.path("r/.git/HEAD")) },
			"empty HEAD":    func(h *home) { h.write("r/.git/HEAD", "") },
			"HEAD without refs/": func(h *home) {
				h.write("r/.git/HEAD", "ref: heads/main\n")
			},
			"HEAD with white space":   func(h *home) { h.write("r/.git/HEAD", "ref:\n\t refs/heads/main") },
			"HEAD of an id":           func(h *home) { h.write("r/.git/HEAD", strings.Repeat("a", 40)+"x") },
			"HEAD of half an id":      func(h *home) { h.write("r/.git/HEAD", strings.Repeat("a", 39)) },
			"HEAD is a link":          func(h *home) { os.Remove(h.path("r/.git/HEAD")); os.Symlink("refs/heads/main", h.path("r/.git/HEAD")) },
			"HEAD is a link away":     func(h *home) { os.Remove(h.path("r/.git/HEAD")); os.Symlink("/refs/heads/main", h.path("r/.git/HEAD")) },
			"HEAD is a folder":        func(h *home) { os.Remove(h.path("r/.git/HEAD")); os.Mkdir(h.path("r/.git/HEAD"), 0o755) },
			"no objects":              func(h *home) { os.RemoveAll(h.path("r/.git/objects")) },
			"objects is a file":       func(h *home) { os.RemoveAll(h.path("r/.git/objects")); h.write("r/.git/objects", "") },
			"no refs":                 func(h *home) { os.RemoveAll(h.path("r/.git/refs")) },
			"no config":               func(h *home) { os.Remove(h.path("r/.git/config")) },
			"common dir is empty":     func(h *home) { h.write("r/.git/commondir", "") },
			"common dir is missing":   func(h *home) { h.write("r/.git/commondir", "no/where\n") },
			"common dir is elsewhere": func(h *home) { h.write("r/.git/commondir", "../../other/.git\r\n") },
			".git names nothing":      func(h *home) { os.RemoveAll(h.path("r/.git")); h.write("r/.git", "gitdir: \n") },
			".git is text":            func(h *home) { os.RemoveAll(h.path("r/.git")); h.write("r/.git", "gitdir:../other/.git\n") },
			".git is empty":           func(h *home) { os.RemoveAll(h.path("r/.git")); h.write("r/.git", "") },
			".git names a folder":     func(h *home) { os.RemoveAll(h.path("r/.git")); h.write("r/.git", "gitdir: ../other/.git\r\n\n") },
			".git names no git dir":   func(h *home) { os.RemoveAll(h.path("r/.git")); h.write("r/.git", "gitdir: ../other\n") },
			".git is a link":          func(h *home) { os.RemoveAll(h.path("r/.git")); os.Symlink("../other/.git", h.path("r/.git")) },
		} {
			h := newHome(t)
			h.env["GIT_CEILING_DIRECTORIES"] = h.dir
			for _, name := range []string{"r", "other"} {
				if err := os.CopyFS(h.path(name), os.DirFS(fresh.path("r"))); err != nil {
					t.Fatal(err)
				}
			}
			spoil(h)
			h.same(p, "r")
			if t.Failed() {
				t.Fatal(name)
			}
		}
	})
}

// git passes over a folder with a broken HEAD, and would take a repository further up.
func TestADamagedRepositoryIsNotPassedOver(t *testing.T) {
	h := newHome(t)
	p := gittest.Need(t, gittest.Newest)
	h.must(p, ".", "init", "-q", "outer")
	h.must(p, ".", "init", "-q", "outer/inner")
	h.must(p, ".", "init", "-q", "--bare", "outer/bare.git")
	h.write("outer/inner/.git/HEAD", "")
	h.write("outer/bare.git/HEAD", "")
	h.write("outer/moved/.git", "gitdir: "+h.path("gone")+"\n")
	for _, dir := range []string{"outer/inner", "outer/bare.git", "outer/moved"} {
		for name, open := range map[string]func(string, Options) (*Repo, error){"Open": Open, "Discover": Discover} {
			_, err := open(h.path(dir), h.options())
			if e, ok := errors.AsType[*NotRepository](err); !ok || !e.Damaged {
				t.Errorf("%s of %s: %v", name, dir, err)
			}
		}
	}
}

func TestFormatsAsGitTakesThem(t *testing.T) {
	p := gittest.Need(t, gittest.Newest)
	h := newHome(t)
	h.must(p, ".", "init", "-q", "r")
	for _, config := range []string{
		"", "[core]\n", "[core]\nrepositoryformatversion = 0\n", "[core]\nrepositoryformatversion = 1\n", "[core]\nrepositoryformatversion = 2\n", "[core]\nrepositoryformatversion = -1\n", "[core]\nrepositoryformatversion = -2\n",
		"[core]\nrepositoryformatversion\n", "[core]\nrepositoryformatversion = x\n", "[core]\nrepositoryformatversion = 9\nrepositoryformatversion = 0\n",
		"[extensions]\nobjectFormat = sha256\n", "[extensions]\nobjectFormat = nonsense\n", "[extensions]\nnonsense\n",
		"[core]\nrepositoryformatversion = 0\n[extensions]\nnoop\npreciousObjects = true\npartialClone = o\nworktreeConfig = yes\n",
		"[core]\nrepositoryformatversion = 0\n[extensions]\nnonsense = 1\n", "[core]\nrepositoryformatversion = 1\n[extensions]\nnonsense = 1\n",
		"[core]\nrepositoryformatversion = 0\n[extensions]\nnoop-v1\n", "[core]\nrepositoryformatversion = 1\n[extensions]\nnoop-v1\n",
		"[core]\nrepositoryformatversion = 0\n[extensions]\nobjectFormat = sha1\n", "[core]\nrepositoryformatversion = 1\n[extensions]\nobjectFormat = sha1\n", "[core]\nrepositoryformatversion = 1\n[extensions]\nobjectFormat = sha256\n",
		"[core]\nrepositoryformatversion = 1\n[extensions]\nobjectFormat = SHA256\n", "[core]\nrepositoryformatversion = 1\n[extensions]\nobjectFormat\n", "[extensions]\nobjectFormat = sha256\n[core]\nrepositoryformatversion = 1\n",
		"[core]\nrepositoryformatversion = 1\n[extensions]\nrefStorage = files\n", "[core]\nrepositoryformatversion = 1\n[extensions]\nrefStorage = reftable\n", "[core]\nrepositoryformatversion = 1\n[extensions]\nrefStorage = nonsense\n",
		"[core]\nrepositoryformatversion = 1\n[extensions]\nrefStorage = Files\n", "[core]\nrepositoryformatversion = 1\n[extensions]\nrefStorage\n", "[core]\nrepositoryformatversion = 1\n[extensions]\nrefStorage = files://.\n",
		"[core]\nrepositoryformatversion = 1\n[extensions]\nrelativeWorktrees\nsubmodulePathConfig = false\n", "[core]\nrepositoryformatversion = 1\n[extensions]\nrelativeWorktrees = perhaps\n",
		"[core]\nrepositoryformatversion = 1\n[extensions]\npartialClone\n", "[core]\nrepositoryformatversion = 1\n[extensions \"x\"]\ny = 1\n", "[core]\nrepositoryformatversion = 0\n[extensions \"x\"]\ny = 1\n",
		"[core]\nrepositoryformatversion = 1\n[include]\npath = more\n",
	} {
		h.write("r/.git/config", config)
		h.write("r/.git/more", "[extensions]\nnonsense\n") // an include does not count
		h.same(p, "r")
		if t.Failed() {
			t.Fatalf("with %q", config)
		}
	}
}

func TestUnsupportedIsItsOwnError(t *testing.T) {
	h := newHome(t)
	h.must(gittest.Need(t, gittest.Any), ".", "init", "-q", "r")
	for config, word := range map[string]string{
		"[core]\nrepositoryformatversion = 2\n":                                    "version 2",
		"[core]\nrepositoryformatversion = 1\n[extensions]\nnonsense\n":            "nonsense",
		"[core]\nrepositoryformatversion = 0\n[extensions]\nobjectFormat=sha256\n": "objectformat",
		"[core]\nrepositoryformatversion = 1\n[extensions]\nobjectFormat=sha512\n": "sha512",
		"[core]\nrepositoryformatversion = 1\n[extensions]\nrefStorage=sqlite\n":   "sqlite",
	} {
		h.write("r/.git/config", config)
		_, err := Open(h.path("r"), h.options())
		if e, ok := errors.AsType[*Unsupported](err); !ok || !strings.Contains(e.Error(), word) {
			t.Errorf("%q: %v", config, err)
		}
	}
	h.write("r/.git/config", "")
	h.env["GIT_REFERENCE_BACKEND"] = "sqlite://x"
	_, err := Open(h.path("r"), h.options())
	if _, ok := errors.AsType[*Unsupported](err); !ok {
		t.Errorf("%v", err)
	}
}

func TestSubmodulesAreJustRepositories(t *testing.T) {
	gits(t, func(t *testing.T, p *gittest.Program) {
		h := newHome(t)
		h.env["GIT_AUTHOR_NAME"], h.env["GIT_AUTHOR_EMAIL"] = "A", "a@example.com"
		h.env["GIT_COMMITTER_NAME"], h.env["GIT_COMMITTER_EMAIL"] = "A", "a@example.com"
		for _, dir := range []string{"sub", "super"} {
			h.must(p, ".", "init", "-q", dir)
			h.must(p, dir, "commit", "-q", "--allow-empty", "-m", "x")
		}
		h.must(p, "super", "-c", "protocol.file.allow=always", "submodule", "add", "-q", h.path("sub"), "lib")
		h.same(p, "super/lib")
		for _, path := range []string{"super/lib", "super/lib/.git", "super/.git/modules/lib"} {
			r, err := Open(h.path(path), h.options())
			if err != nil || r.GitDir != h.path("super/.git/modules/lib") || r.WorkTree != h.path("super/lib") || r.Bare {
				t.Errorf("%s: %+v %v", path, r, err)
			}
		}
	})
}

func TestOpenTakesEachKindOfPath(t *testing.T) {
	h := newHome(t)
	p := gittest.Need(t, gittest.Any)
	h.must(p, ".", "init", "-q", "r")
	h.must(p, ".", "init", "-q", "--bare", "b.git")
	h.must(p, ".", "init", "-q", "--separate-git-dir", h.path("away.git"), "away")
	for path, want := range map[string]string{
		"r": "r/.git", "r/": "r/.git", "r/.git": "r/.git", "b.git": "b.git", "./b.git/.": "b.git", "away": "away.git", "away/.git": "away.git", "away.git": "away.git",
	} {
		r, err := Open(path, h.options())
		if err != nil || r.GitDir != h.path(want) || r.Path != path || r.Format != oid.SHA1 {
			t.Errorf("%s: %+v %v", path, r, err)
		}
	}
	h.write("file", "")
	for _, path := range []string{".", "r/.git/refs", "none", "file", "r/.git/HEAD"} {
		_, err := Open(path, h.options())
		if e, ok := errors.AsType[*NotRepository](err); !ok || e.Damaged || e.Path != path {
			t.Errorf("%s: %v", path, err)
		}
	}
	if err := os.MkdirAll(h.path("r/sub/deep"), 0o755); err != nil {
		t.Fatal(err)
	}
	for path, inside := range map[string]string{"r/sub/deep": "r", "r/sub": "r", "b.git/objects": "b.git", ".": "", "none": "", "r/sub/none": "", "r/.git/HEAD": ""} {
		_, err := Open(path, h.options())
		if inside != "" {
			inside = h.path(inside)
		}
		if e, ok := errors.AsType[*NotRepository](err); !ok || e.Inside != inside || strings.Contains(err.Error(), "lies in the repository "+inside+",") != (inside != "") {
			t.Errorf("%s: %v, want it inside of %q", path, err, inside)
		}
	}
	for path, is := range map[string]bool{"r": true, "b.git": true, "away": true, "file": false, ".": false, "r/.git/objects": false} {
		if err := IsRepository(path, h.options()); (err == nil) != is {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := OpenGitDir("r", h.options()); err == nil {
		t.Error("--git-dir looked for a .git")
	}
	if r, err := OpenGitDir("away/.git", h.options()); err != nil || r.GitDir != h.path("away.git") {
		t.Error(err)
	}
}
