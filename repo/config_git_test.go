package repo

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"refaudit/internal/gittest"
)

// gits runs fn with each git that is here.
func gits(t *testing.T, fn func(t *testing.T, p *gittest.Program)) {
	for _, w := range []gittest.Which{gittest.Old, gittest.Mid, gittest.Newest} {
		p, why := gittest.Find(w)
		if p == nil {
			t.Log(why)
			continue
		}
		t.Run(p.Version, func(t *testing.T) { fn(t, p) })
	}
}

// home is a folder for a user and repositories, and an environment that knows no other.
type home struct {
	t   testing.TB
	dir string
	env map[string]string
}

func newHome(t testing.TB) *home {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &home{t, dir, map[string]string{
		"HOME": dir, "GIT_CONFIG_SYSTEM": dir + "/system", "GIT_CONFIG_NOSYSTEM": "0", "PATH": os.Getenv("PATH"),
	}}
}

func (h *home) path(name string) string { return filepath.Join(h.dir, name) }

func (h *home) write(name, text string) {
	h.t.Helper()
	path := h.path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		h.t.Fatal(err)
	}
}

// options see the home as a process in it would.
func (h *home) options() Options { return Options{Env: MapEnv(h.env), Cwd: h.dir} }

// git runs a program in a folder of the home, with no environment but the home's.
func (h *home) git(p *gittest.Program, dir string, args ...string) gittest.Result {
	h.t.Helper()
	var env []string
	for k, v := range h.env {
		env = append(env, k+"="+v)
	}
	return gittest.Run(h.t, h.path(dir), env, "", append([]string{p.Path}, args...)...)
}

func (h *home) must(p *gittest.Program, dir string, args ...string) string {
	h.t.Helper()
	r := h.git(p, dir, args...)
	if r.Code != 0 || r.Died {
		h.t.Fatalf("git %s: %v", strings.Join(args, " "), r)
	}
	return strings.TrimSuffix(r.Stdout, "\n")
}

// listed is a configuration in the form of git config -z --list --show-origin --show-scope.
func (h *home) listed(c *Config) string {
	var b strings.Builder
	for v := range c.Values() {
		origin := "command line:"
		if v.File != "" {
			origin = "file:" + v.File
		}
		fmt.Fprintf(&b, "%s\x00%s\x00%s", v.Scope, origin, v.Key)
		if !v.NoValue {
			b.WriteString("\n" + v.Text)
		}
		b.WriteByte(0)
	}
	return b.String()
}

// sameConfig compares what we read of the repository in a folder with what git lists.
func (h *home) sameConfig(p *gittest.Program, dir string) {
	h.t.Helper()
	r := h.git(p, dir, "config", "-z", "--list", "--show-origin", "--show-scope")
	repo, err := Open(h.path(dir), h.options())
	if (err != nil) != (r.Code != 0) {
		h.t.Errorf("%v\ngit: %v", err, r)
		return
	}
	if err != nil {
		h.sameLine(err, r.Stderr)
		return
	}
	want := r.Stdout
	for here, dir := range map[string]string{".git/": repo.GitDir + "/", "config": repo.GitDir + "/config"} { // git names files by where it stands
		want = strings.ReplaceAll(want, "\x00file:"+here, "\x00file:"+dir)
	}
	h.sameText(h.listed(repo.Config), want)
}

// sameText shows where two texts part.
func (h *home) sameText(got, want string) {
	h.t.Helper()
	if got == want {
		return
	}
	at := 0
	for at < len(got) && at < len(want) && got[at] == want[at] {
		at++
	}
	from := max(0, at-60)
	h.t.Errorf("…%q\ngit: …%q", got[from:min(len(got), at+60)], want[from:min(len(want), at+60)])
}

// sameLine compares the place at which both give up.
func (h *home) sameLine(err error, stderr string) {
	h.t.Helper()
	_, place, found := strings.Cut(stderr, "bad config line ")
	if !found {
		return
	}
	place, _, _ = strings.Cut(place, "\n")
	line, _, _ := strings.Cut(place, " ")
	if !strings.Contains(err.Error(), "bad config line "+line+" in file") && !strings.Contains(err.Error(), ":"+line) {
		h.t.Errorf("%v\ngit: %s", err, stderr)
	}
}

func TestSyntaxAsGitReadsIt(t *testing.T) {
	texts := []string{
		"", "[a]\n", "[a]x=1\n", "[a] x = 1 ; c\n[b] y\n", "[A \"B\\\"\\\\\"]\n X-y = \" a \" b # c\n", "[a.B.c]\nx=1\r\ny=\"2\\\r\n3\"\r\nz\r\n",
		"\xef\xbb\xbf[a]\nx=1\n", "\xef\xbb[a]\nx=1\n", "\xef[a]\n", "[a]\nx=\\q\n", "[a]\nx=\"\n", "[a]\nx = 1\\\n 2\n", "[a]\nx=1\\", "[a \"\"]\nx=1\n", "[a\n\"b\"]\nx\n",
		"[a \"b\nc\"]\nx\n", "[a \"b\\\nc\"]\nx\n", "[a]\n1x=1\n", "[a]\nx_=1\n", "[a]\nx =\n", "[a]\nx\n\n\ny z\n", "[]\nx=1\n", "[a ]\n", "[ \"b\"]\nx=1\n", "[.]\nx=1\n", "[a", "[a \"b", "[a \"b\" ]\n",
		"x=1\n", "[a]\nx=1\x002\n", "[a]\nx=\t1\n", "[a]\nx=1\f\n", "[a]\ry=1\n", "[a]\nx = \"a;#\" ;c\\\n\ny=1\n", "[a]\nx = 1 \\\n\t; c\n",
		"[a]\nx = " + strings.Repeat("y", 5000) + "\n", "[a]\n= 1\n", "[a]\nx = a \"\" \n", "[a]\nx = \"\" a\n", "[-]\nx=1\n", "[a-1.2]\nx-1=1\n",
	}
	gits(t, func(t *testing.T, p *gittest.Program) {
		h := newHome(t)
		h.must(p, ".", "init", "-q", "r")
		local := "[core]\n\trepositoryformatversion = 0\n\tbare = false\n"
		for _, text := range texts {
			h.write("r/.git/config", local+text)
			h.sameConfig(p, "r")
			if t.Failed() {
				t.Fatalf("with %q", text)
			}
		}
	})
}

// Random text over the characters that matter finds what nobody thought of.
func TestRandomSyntaxAsGitReadsIt(t *testing.T) {
	p := gittest.Need(t, gittest.Newest)
	h := newHome(t)
	h.must(p, ".", "init", "-q", "r")
	rnd := rand.New(rand.NewPCG(1, 2))
	pieces := []string{"[a]", "[b \"c\"]", "x", "Y", "=", " ", "\t", "\n", "\n", "\r\n", "\r", "\\", "\"", ";", "#", "1", "-", ".", "[", "]", "\\n", "\\\n", "z = 1\n", "\v", "\x00"}
	for range 400 {
		var b strings.Builder
		b.WriteString("[core]\nrepositoryformatversion=0\n")
		for range rnd.IntN(12) {
			b.WriteString(pieces[rnd.IntN(len(pieces))])
		}
		h.write("r/.git/config", b.String())
		h.sameConfig(p, "r")
		if t.Failed() {
			t.Fatalf("with %q", b.String())
		}
	}
}

func TestScopesAsGitReadsThem(t *testing.T) {
	gits(t, func(t *testing.T, p *gittest.Program) {
		h := newHome(t)
		h.write("system", "[a]\nx = system\n[include]\npath = more\n")
		h.write("more", "[a]\nmore = system\n")
		h.write(".gitconfig", "[a]\nx = home\n[include]\npath = ~/fromhome\npath = nowhere\npath = %(prefix)/nowhere\n")
		h.write("fromhome", "[a]\ny = 1\n")
		h.write(".config/git/config", "[a]\nx = xdg\n")
		h.must(p, ".", "init", "-q", "r")
		h.must(p, "r", "config", "a.x", "local")
		h.must(p, "r", "config", "include.path", "../../extra")
		h.write("extra", "[a]\nx = extra\n")
		h.must(p, "r", "config", "extensions.worktreeConfig", "true")
		h.write("r/.git/config.worktree", "[a]\nx = worktree\n")
		h.sameConfig(p, "r")

		h.env["GIT_CONFIG_COUNT"] = "2"
		h.env["GIT_CONFIG_KEY_0"], h.env["GIT_CONFIG_VALUE_0"] = "A.X", "counted"
		h.env["GIT_CONFIG_KEY_1"], h.env["GIT_CONFIG_VALUE_1"] = "include.path", h.path("extra")
		h.env["GIT_CONFIG_PARAMETERS"] = `'a.old=1' 'a.New'='it'\''s' 'a.flag' 'a.flag2'=`
		h.sameConfig(p, "r")
		h.env["XDG_CONFIG_HOME"] = h.path("xdg")
		h.write("xdg/git/config", "[a]\nx = other xdg\n")
		h.sameConfig(p, "r")
		h.env["GIT_CONFIG_GLOBAL"] = h.path("fromhome")
		h.sameConfig(p, "r")
		h.env["GIT_CONFIG_GLOBAL"] = os.DevNull
		h.env["GIT_CONFIG_NOSYSTEM"] = "yes"
		h.sameConfig(p, "r")
		h.env["GIT_CONFIG_GLOBAL"] = ""
		delete(h.env, "HOME")
		h.sameConfig(p, "r")

		for name, value := range map[string]string{
			"GIT_CONFIG_COUNT": "3", "GIT_CONFIG_KEY_0": "nosection", "GIT_CONFIG_PARAMETERS": "a.b=c", "GIT_CONFIG_NOSYSTEM": "perhaps",
		} {
			old := h.env[name]
			h.env[name] = value
			h.sameConfig(p, "r")
			if _, err := Open(h.path("r"), h.options()); err == nil {
				t.Errorf("%s=%s was taken", name, value)
			}
			h.env[name] = old
		}
	})
}

func TestConditionsAsGitReadsThem(t *testing.T) {
	gits(t, func(t *testing.T, p *gittest.Program) {
		h := newHome(t)
		os.Symlink(h.dir, h.path("link"))
		conditions := []string{
			"gitdir:~/", "gitdir:~/r/", "gitdir:~/r/.git", "gitdir:~/R/.git", "gitdir/i:~/R/.GIT", "gitdir:r/.git", "gitdir:r/", "gitdir:./r/", "gitdir:./r/.git", "gitdir:**/r/*", "gitdir:*", "gitdir:/",
			"gitdir:~/x/", "gitdir:" + h.path("link") + "/r/", "gitdir:" + h.path("*/.git"), "gitdir:[r]/.git", "gitdir:", "gitdir", "nonsense:x", "",
			"onbranch:main", "onbranch:m*", "onbranch:feature/", "onbranch:feature/**", "onbranch:feature", "onbranch:Main", "onbranch:**",
			"hasconfig:remote.*.url:https://example.com/**", "hasconfig:remote.*.url:https://*/a.git", "hasconfig:remote.*.url:ssh://**", "hasconfig:remote.*.url:**", "hasconfig:remote.*.pushurl:**",
		}
		var conf strings.Builder
		for i, c := range conditions {
			fmt.Fprintf(&conf, "[includeIf \"%s\"]\npath = inc/%d\n", c, i)
			h.write(fmt.Sprintf("inc/%d", i), fmt.Sprintf("[hit]\nn%d = %s\n", i, c))
		}
		h.write(".gitconfig", conf.String())
		h.must(p, ".", "init", "-q", "-b", "main", "r")
		h.sameConfig(p, "r")
		h.must(p, "r", "config", "remote.o.url", "https://example.com/a.git")
		h.sameConfig(p, "r")
		h.must(p, "r", "symbolic-ref", "HEAD", "refs/heads/feature/x")
		h.sameConfig(p, "r")
		h.must(p, "r", "symbolic-ref", "refs/heads/feature/x", "refs/heads/main")
		h.sameConfig(p, "r")
		h.write("r/.git/worktrees/w/HEAD", "ref: refs/heads/m2\n")
		h.write("r/.git/worktrees/w/commondir", "../..\n")
		h.write("r/.git/worktrees/w/gitdir", h.path("w/.git")+"\n")
		h.write("w/.git", "gitdir: "+h.path("r/.git/worktrees/w")+"\n")
		h.sameConfig(p, "w") // on another branch
		h.write("r/.git/HEAD", strings.Repeat("1", 40)+"\n")
		h.sameConfig(p, "r")
		h.must(p, ".", "init", "-q", "--bare", "-b", "main", "bare.git")
		h.sameConfig(p, "bare.git")
	})
}

func TestIncludesThatFailAsInGit(t *testing.T) {
	gits(t, func(t *testing.T, p *gittest.Program) {
		for name, files := range map[string]map[string]string{
			"itself":           {"a": "[include]\npath = a\n"},
			"each other":       {"a": "[include]\npath = b\n", "b": "[include]\npath = a\n"},
			"no value":         {"a": "[include]\npath\n"},
			"no such user":     {"a": "[include]\npath = ~nosuchuser42/x\n"},
			"folder":           {"a": "[include]\npath = .\n"},
			"bad syntax":       {"a": "[include]\npath = b\n", "b": "[x\n"},
			"URL behind an if": {"a": "[includeIf \"hasconfig:remote.*.url:x\"]\npath = b\n", "b": "[remote \"o\"]\nurl = x\n"},
			"URL behind two":   {"a": "[includeIf \"hasconfig:remote.*.url:x\"]\npath = b\n", "b": "[include]\npath = c\n", "c": "[remote \"o\"]\nurl = x\n"},
			"URL behind gitdir": {"a": "[includeIf \"gitdir:nowhere\"]\npath = b\n[includeIf \"gitdir:**\"]\npath = b\n[includeIf \"hasconfig:remote.*.url:x\"]\npath = c\n",
				"b": "[remote \"o\"]\nurl = x\n", "c": ""},
		} {
			h := newHome(t)
			h.must(p, ".", "init", "-q", "r")
			for file, text := range files {
				h.write(file, text)
			}
			h.write(".gitconfig", "[include]\npath = a\n")
			h.sameConfig(p, "r")
			if _, err := Open(h.path("r"), h.options()); err == nil {
				t.Errorf("%s: no error", name)
			}
			if t.Failed() {
				t.Fatal(name)
			}
		}
	})
}

func TestTenIncludesDeepAndNoMore(t *testing.T) {
	gits(t, func(t *testing.T, p *gittest.Program) {
		for _, depth := range []int{10, 11} {
			h := newHome(t)
			h.must(p, ".", "init", "-q", "r")
			h.write(".gitconfig", "[include]\npath = 1\n")
			for i := 1; i < depth; i++ {
				h.write(fmt.Sprint(i), fmt.Sprintf("[include]\npath = %d\n", i+1))
			}
			h.write(fmt.Sprint(depth), "[a]\nx = deep\n")
			h.sameConfig(p, "r")
		}
	})
}

// Globs of all kinds against git's own matcher, through the URLs of remotes.
func TestGlobsAsGitMatchesThem(t *testing.T) {
	p := gittest.Need(t, gittest.Newest)
	rnd := rand.New(rand.NewPCG(3, 4))
	h := newHome(t)
	h.must(p, ".", "init", "-q", "r")
	globs := []string{"a", "b", "/", "*", "**", "**/", "/**", "?", "[ab]", "[!a]", "[^b/]", "[a-c]", "[[:alpha:]]", "[]a]", "*/"}
	texts := []string{"a", "b", "c", "/", "/", "]", "ab"}
	join := func(from []string, n int) string {
		var b strings.Builder
		for range n {
			b.WriteString(from[rnd.IntN(len(from))])
		}
		return b.String()
	}
	for range 60 {
		h.write("r/.git/config", "[core]\nrepositoryformatversion=0\n[remote \"o\"]\nurl = "+join(texts, rnd.IntN(7))+"\n")
		var conf strings.Builder
		for i := range 100 {
			fmt.Fprintf(&conf, "[includeIf \"hasconfig:remote.*.url:%s\"]\npath = inc/%d\n", join(globs, rnd.IntN(6)), i)
			h.write(fmt.Sprintf("inc/%d", i), fmt.Sprintf("[hit]\nn%d\n", i))
		}
		h.write(".gitconfig", conf.String())
		h.sameConfig(p, "r")
	}
}
