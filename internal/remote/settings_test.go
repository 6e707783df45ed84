package remote

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"refaudit/internal/gitconfig"
	"refaudit/internal/gittest"
)

func TestSettings(t *testing.T) {
	s, err := parseSettings([]byte("system\x00core.a\nx\x00local\x00core.flag\x00local\x00remote.o.1.url\na\nb\x00command\x00core.a\n\x00"))
	if err != nil || len(s) != 4 {
		t.Fatal(s, err)
	}
	if v, set := s.Get("core.a"); v != "" || !set {
		t.Errorf("the last one counts, not %q", v)
	}
	if v, _ := s.Get("remote.o.1.url"); v != "a\nb" {
		t.Errorf("%q", v)
	}
	if !s.Bool("core.flag") || s.Bool("core.a") || s.Bool("core.none") {
		t.Error("booleans")
	}
	for _, out := range []string{"local", "local\x00", "local\x00core.a\nx"} {
		if s, err := parseSettings([]byte(out)); err == nil {
			t.Errorf("%q was read as %v", out, s)
		}
	}
}

func TestPromisors(t *testing.T) {
	for key, want := range map[string]bool{"remote.o.promisor": true, "remote.o.partialclonefilter": true, "extensions.partialclone": true, "remote.o.url": false} {
		if got := settingsOf(key, "true").Promisor(); got != want {
			t.Errorf("%s: %v", key, got)
		}
	}
	if settingsOf("remote.o.promisor", "false").Promisor() {
		t.Error("remote.o.promisor = false")
	}
}

// Whatever can stand in a repository's configuration comes back as it was, from our reader and from git.
func TestInheritedSettings(t *testing.T) {
	values := []string{"plain", "", " spaces at both ends ", "a # no comment; neither", `quotes " and \ backslashes`, "tab\tand\nline\b", "\xff\xfe", "a\rb"}
	var s Settings
	for i, v := range values {
		s = append(s, Setting{Scope: "local", Key: "http.https://x \"y\" \\z/.v" + string(rune('a'+i)), Value: v})
	}
	s = append(s, Setting{Scope: "worktree", Key: "fetch.fsckobjects", NoValue: true}, Setting{Scope: "local", Key: "core.sshcommand", Value: "ssh -v"})
	left := Settings{
		{Scope: "global", Key: "http.proxy", Value: "x"}, {Scope: "system", Key: "http.proxy", Value: "x"}, {Scope: "command", Key: "http.proxy", Value: "x"},
		{Scope: "local", Key: "core.bare", Value: "false"}, {Scope: "local", Key: "core.worktree", Value: "/"}, {Scope: "local", Key: "core.hookspath", Value: "/"},
		{Scope: "local", Key: "remote.origin.url", Value: "x"}, {Scope: "local", Key: "extensions.objectformat", Value: "sha256"}, {Scope: "local", Key: "include.path", Value: "x"},
		{Scope: "local", Key: "core.alternaterefscommand", Value: "exit 0 #"},
	}
	text := append(slices.Clone(s), left...).inherited()
	var got Settings
	err := gitconfig.Parse("config", text, func(e gitconfig.Entry) error {
		got = append(got, Setting{Key: e.Key, Value: e.Value, NoValue: e.NoValue})
		return nil
	})
	same := func(a, b Setting) bool { return a.Key == b.Key && a.Value == b.Value && a.NoValue == b.NoValue }
	if err != nil || !slices.EqualFunc(got, s, same) {
		t.Errorf("%v\n got %+v\nwant %+v", err, got, s)
	}
	git := gittest.Need(t, gittest.Any)
	file := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	out := git.Run(t, "", nil, "", "config", "--file", file, "--list", "--show-scope", "-z")
	if fromGit, err := parseSettings([]byte(out.Stdout)); err != nil || !slices.EqualFunc(fromGit, s, same) {
		t.Errorf("git reads %+v, %v", fromGit, err)
	}
}

func FuzzSettings(f *testing.F) {
	f.Add([]byte("local\x00core.a\nx\x00"))
	f.Add([]byte("local\x00remote.a.b\x00"))
	f.Fuzz(func(t *testing.T, out []byte) {
		s, err := parseSettings(out)
		if err == nil {
			s.Promisor()
			s.inherited()
		}
	})
}
