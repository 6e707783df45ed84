package repo

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestTypedValues(t *testing.T) {
	h, r := configured(t, "[a]\nyes\nno = false\nempty =\nn = 1k\nbig = 3g\ntext = x\npath = ~/x\nuser = ~nosuchuser42/x\nprefix = %(prefix)/share\nthere = :(optional)~/r.git\ngone = :(optional)~/gone\n[Sub \"A.b\"]\nX = 1\nx = 2\n")
	c := r.Config
	for key, want := range map[string]string{
		"a.yes": "true", "a.no": "false", "a.empty": "false", "a.n": "true", "a.text": "!", "a.none": "true",
	} {
		b, err := c.Bool(key, true)
		if got := fmt.Sprint(b); (err != nil) != (want == "!") || err == nil && got != want {
			t.Errorf("bool %s: %v %v", key, b, err)
		}
	}
	for key, want := range map[string]int64{"a.n": 1024, "a.big": 3 << 30, "a.text": -1, "a.yes": -1, "a.none": 7} {
		n, err := c.Int64(key, 7)
		if (err != nil) != (want < 0) || err == nil && n != want {
			t.Errorf("int %s: %v %v", key, n, err)
		}
	}
	if n, err := c.Int("a.big", 0); err == nil {
		t.Errorf("3g in 32 bits: %d", n)
	}
	for key, want := range map[string]string{"a.text": "x", "a.yes": "!", "a.empty": "", "a.none": "def"} {
		s, err := c.String(key, "def")
		if (err != nil) != (want == "!") || err == nil && s != want {
			t.Errorf("string %s: %q %v", key, s, err)
		}
	}
	for key, want := range map[string]string{"a.path": h.path("x"), "a.user": "!", "a.yes": "!", "a.prefix": "/usr/share", "a.there": h.path("r.git"), "a.gone": "", "a.none": ""} {
		s, err := c.Path(key)
		if (err != nil) != (want == "!") || err == nil && s != want {
			t.Errorf("path %s: %q %v", key, s, err)
		}
	}
	if v, ok := c.Get("SUB.A.b.x"); !ok || v.Text != "2" || v.Line != 18 || v.Scope != ScopeLocal || v.File != h.path("r.git/config") {
		t.Errorf("%+v", v)
	}
	if all := c.All("sub.A.b.X"); len(all) != 2 || all[0].Text != "1" {
		t.Errorf("%+v", all)
	}
	for section, want := range map[string]bool{"a": true, "A": true, "sub": true, "Sub": true, "sub.A.b": false, "su": false, "x": false} {
		if c.Has(section) != want {
			t.Errorf("section %s: not %v", section, want)
		}
	}
	if _, ok := c.Get("sub.a.B.x"); ok {
		t.Error("a subsection has no case")
	}
	var seen []string
	c.Section("Sub", func(sub, name string, v Value) error {
		seen = append(seen, sub+" "+name+" "+v.Text)
		return nil
	})
	if strings.Join(seen, "|") != "A.b x 1|A.b x 2" {
		t.Error(seen)
	}
	_, err := c.Bool("a.text", false)
	if e, ok := errors.AsType[*BadValue](err); !ok || !strings.Contains(err.Error(), `"x"`) || !strings.Contains(err.Error(), "config:10") || e.Value.Key != "a.text" {
		t.Errorf("%v", err)
	}
}

// A command that is to be run never comes from the repository.
func TestProtectedSettings(t *testing.T) {
	h, r := configured(t, "alternateRefsCommand = local\n")
	if v, ok := r.Config.Protected("core.alternateRefsCommand"); ok {
		t.Errorf("%+v", v)
	}
	open := func() Value {
		t.Helper()
		r, err := Open("r.git", h.options())
		if err != nil {
			t.Fatal(err)
		}
		if v, _ := r.Config.Get("core.alternateRefsCommand"); v.Text != "local" && v.Scope != ScopeCommand {
			t.Errorf("%+v", v)
		}
		v, _ := r.Config.Protected("core.alternateRefsCommand")
		return v
	}
	h.write("system", "[core]\nalternateRefsCommand = system\n")
	if v := open(); v.Text != "system" || v.Scope != ScopeSystem {
		t.Errorf("%+v", v)
	}
	h.write("more", "[core]\nalternateRefsCommand = global\n")
	h.write(".gitconfig", "[includeIf \"gitdir:**\"]\npath = more\n")
	if v := open(); v.Text != "global" || v.Scope != ScopeGlobal || v.Origin.String() != h.path("more:2") {
		t.Errorf("%+v", v)
	}
	h.env["GIT_CONFIG_PARAMETERS"] = "'core.alternateRefsCommand'='command'"
	if v := open(); v.Text != "command" || v.Scope != ScopeCommand || v.Origin.String() != "command" {
		t.Errorf("%+v", v)
	}
	// what the repository includes is the repository's
	h.write("r.git/config", "[include]\npath = ../more\n[core]\nalternateRefsCommand = local\n")
	delete(h.env, "GIT_CONFIG_PARAMETERS")
	h.write(".gitconfig", "")
	if v := open(); v.Text != "system" {
		t.Errorf("%+v", v)
	}
}

func TestUserConfigHasNoRepository(t *testing.T) {
	h, _ := configured(t, "")
	h.write(".gitconfig", "[a]\nx = 1\n[includeIf \"gitdir:**\"]\npath = more\n[includeIf \"onbranch:**\"]\npath = more\n")
	h.write("more", "[a]\nx = 2\n")
	c, err := UserConfig(h.options())
	if err != nil {
		t.Fatal(err)
	}
	if v, _ := c.Get("a.x"); v.Text != "1" {
		t.Errorf("%+v", v)
	}
}

// git can't say which branch HEAD is on before it knows where the refs are; nor can we where they
// are in a reftable, without help.
func TestOnBranchNeedsAReaderOfHEAD(t *testing.T) {
	h, _ := configured(t, "")
	h.write("r.git/config", "[core]\nrepositoryformatversion = 1\n[extensions]\nrefStorage = reftable\n[includeIf \"onbranch:main\"]\npath = more\n")
	h.write("r.git/more", "[a]\nx = 1\n")
	r, err := Open("r.git", h.options())
	if err != nil {
		t.Fatal(err)
	}
	if _, set := r.Config.Get("a.x"); set || len(r.Config.Refused) != 1 || !strings.Contains(r.Config.Refused[0].Error(), "config:6") {
		t.Errorf("%v %v", set, r.Config.Refused)
	}
	o := h.options()
	for ref, want := range map[string]bool{"refs/heads/main": true, "refs/heads/other": false, "": false} {
		o.Head = func(r *Repo) (string, error) {
			if r.Refs.Backend != "reftable" || r.Refs.Root == nil || r.GitDir == "" {
				t.Errorf("asked too early: %+v", r)
			}
			return ref, nil
		}
		r, err := Open("r.git", o)
		if err != nil || len(r.Config.Refused) != 0 {
			t.Fatal(err)
		}
		if _, set := r.Config.Get("a.x"); set != want {
			t.Errorf("on %q: %v", ref, set)
		}
	}
}

// Ten levels of a hundred includes each would be read for ever.
func TestIncludesAreBounded(t *testing.T) {
	h, _ := configured(t, "[include]\npath = 0\n")
	for level := range 8 {
		h.write(fmt.Sprintf("r.git/%d", level), "[include]\n"+strings.Repeat(fmt.Sprintf("path = %d\n", level+1), 100))
	}
	h.write("r.git/8", "")
	if _, err := Open("r.git", h.options()); !errors.Is(err, errConfigTooLarge) {
		t.Error(err)
	}
}

// worktree: is a condition of git 2.56; the gits that these tests run don't know it yet.
func TestIncludeIfWorktree(t *testing.T) {
	h, _ := configured(t, "")
	os.Rename(h.path("r.git"), h.path("tree.git"))
	os.Mkdir(h.path("tree"), 0o755)
	os.Rename(h.path("tree.git"), h.path("tree/.git"))
	h.write("tree/.git/config", "")
	for condition, want := range map[string]bool{"worktree:**/tree": true, "worktree:~/tree": true, "worktree:~/TREE": false, "worktree/i:~/TREE": true, "worktree:**/.git": false} {
		h.write(".gitconfig", "[includeIf \""+condition+"\"]\npath = more\n")
		h.write("more", "[a]\nx = 1\n")
		r, err := Open("tree", h.options())
		if err != nil {
			t.Fatal(err)
		}
		if _, set := r.Config.Get("a.x"); set != want {
			t.Errorf("%s: %v", condition, set)
		}
	}
}

// So would a HEAD that leads back to itself.
func TestASymbolicRefInACircle(t *testing.T) {
	h, _ := configured(t, "[includeIf \"onbranch:x\"]\npath = more\n")
	h.write("r.git/HEAD", "ref: refs/heads/x\n")
	h.write("r.git/refs/heads/x", "ref: refs/heads/y\n")
	h.write("r.git/refs/heads/y", "ref: refs/heads/x\n")
	r, err := Open("r.git", h.options())
	if err != nil || len(r.Config.Refused) != 1 || !errors.Is(r.Config.Refused[0], errSymrefs) {
		t.Errorf("%v", err)
	}
}

// One worktree that can't be read hides neither the others nor itself.
func TestAWorktreeThatCanNotBeRead(t *testing.T) {
	h, r := configured(t, "")
	h.write("r.git/worktrees/a/gitdir", h.path("a/.git")+"\n")
	os.MkdirAll(h.path("r.git/worktrees/b/gitdir"), 0o755)
	h.write("r.git/worktrees/c/gitdir", h.path("c/.git")+"\n")
	os.MkdirAll(h.path("r.git/worktrees/c/locked"), 0o755)
	h.write("r.git/worktrees/d/gitdir", strings.Repeat("x/", 1<<19+1))
	all, err := r.Worktrees()
	if err != nil || len(all) != 5 {
		t.Fatalf("%+v %v", all, err)
	}
	if a := all[1]; a.Err != nil || a.Ignored != "" || a.Prunable == "" || a.Path != h.path("a") {
		t.Errorf("%+v", a)
	}
	if b := all[2]; b.Err == nil || b.Ignored == "" || b.RefDir != h.path("r.git/worktrees/b") {
		t.Errorf("%+v", b)
	}
	if c := all[3]; c.Err == nil || !c.Locked || c.Prunable != "" || c.Ignored != "" {
		t.Errorf("%+v", c)
	}
	if d := all[4]; d.Err == nil || d.Ignored == "" {
		t.Errorf("%+v", d)
	}
}

func TestOpenWritesNothing(t *testing.T) {
	h, r := configured(t, "[include]\npath = more\n")
	before, _ := os.ReadDir(h.path("r.git"))
	r.Worktrees()
	r.Shallow()
	r.Grafts()
	r.Hooks("reference-transaction")
	r.CheckOwner()
	if after, _ := os.ReadDir(h.path("r.git")); len(after) != len(before) {
		t.Errorf("%v", after)
	}
}

// Hundreds of settings are asked for, of which hardly any is made.
func BenchmarkGet(b *testing.B) {
	_, r := configured(b, "bare = true\n")
	b.ReportAllocs()
	for b.Loop() {
		if _, set := r.Config.Get("refaudit.peelMismatch"); set {
			b.Fatal("it is set")
		}
	}
}

func BenchmarkOpen(b *testing.B) {
	h, _ := configured(b, "[remote \"origin\"]\nurl = https://example.com/a.git\nfetch = +refs/*:refs/*\n")
	h.write(".gitconfig", "[user]\nname = A\n")
	o := h.options()
	for b.Loop() {
		if _, err := Open("r.git", o); err != nil {
			b.Fatal(err)
		}
	}
}

// All repositories of a run go by the user's configuration as it was; the next run sees what has changed.
func TestUserFilesAreReadOnce(t *testing.T) {
	h, _ := configured(t, "x = own\n")
	h.write(".gitconfig", "[core]\n\ty = before\n[include]\n\tpath = more\n")
	h.write("more", "[core]\n\tz = before\n")
	look := func(o Options, want string) {
		t.Helper()
		r, err := Open("r.git", o)
		if err != nil {
			t.Fatal(err)
		}
		user, err := UserConfig(o)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, key := range []string{"core.x", "core.y", "core.z", "core.s"} {
			v, _ := r.Config.Get(key)
			got += v.Text + " "
			if u, _ := user.Get(key); key != "core.x" && u.Text != v.Text {
				t.Errorf("%s: %q for the user, %q in the repository", key, u.Text, v.Text)
			}
		}
		if got = strings.TrimSpace(got); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
	shared := h.options()
	shared.UserFiles = &UserFiles{}
	look(shared, "own before before")
	h.write(".gitconfig", "[core]\n\ty = after\n[include]\n\tpath = more\n")
	h.write("more", "[core]\n\tz = after\n")
	h.write("system", "[core]\n\ts = new\n")
	h.write("r.git/config", "[core]\n\trepositoryformatversion = 0\n\tx = own after\n")
	look(shared, "own after before before")
	look(h.options(), "own after after after new")
	next := h.options()
	next.UserFiles = &UserFiles{}
	look(next, "own after after after new")
}

// What could not be read is no file that is missing, for nobody.
func TestUserFilesRememberNoFailure(t *testing.T) {
	h, _ := configured(t, "")
	if err := os.Mkdir(h.path("system"), 0o755); err != nil {
		t.Fatal(err)
	}
	o := h.options()
	o.UserFiles = &UserFiles{}
	if _, err := Open("r.git", o); err == nil {
		t.Error("a folder was read as a configuration file")
	}
	if err := os.Remove(h.path("system")); err != nil {
		t.Fatal(err)
	}
	h.write("system", "[core]\n\ts = there\n")
	r, err := Open("r.git", o)
	if err != nil {
		t.Fatal(err)
	}
	if v, _ := r.Config.Get("core.s"); v.Text != "there" {
		t.Errorf("%+v", v)
	}
}
