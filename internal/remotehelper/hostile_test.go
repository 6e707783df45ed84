package remotehelper

import (
	"os"
	"strings"
	"testing"

	"refaudit/internal/gittest"
)

func TestHostileURLs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, gittest.Options{})
	w.env = append(w.env, "GIT_ALLOW_PROTOCOL=refaudit:file:ext:fd:ssh:git:http")
	w.silent("", "clone", "-q", w.url(), "c")
	mark := w.in("pwned")
	for _, url := range []string{
		"--upload-pack=touch " + mark + ";", "ext::sh -c touch% " + mark, "-oProxyCommand=touch " + mark + ":x", "ssh://-oProxyCommand=touch " + mark + "/x",
		"ssh://%2doProxyCommand=touch " + mark + "/x", "fd::0", "refaudit::" + w.src.Path, "git://localhost:1/x", "http://localhost:1/x", "",
	} {
		for _, args := range [][]string{
			{"ls-remote", "refaudit::" + url}, {"fetch", "refaudit::" + url, "main"}, {"push", "refaudit::" + url, "HEAD:x"}, {"clone", "-q", "refaudit::" + url, w.in("new")},
		} {
			if said := w.refused("c", args...); said == "" {
				t.Errorf("%q: nothing is said", args)
			}
			if _, err := os.Stat(mark); err == nil {
				t.Fatalf("%q ran a command", args)
			}
			if _, err := os.Stat(w.in("new")); err == nil {
				t.Fatalf("%q left a folder", args)
			}
		}
	}
	if out := w.must("c", "ls-remote", "refaudit::file://"+w.src.Path, "main"); !strings.Contains(out, w.src.B) {
		t.Errorf("a good URL: %s", out)
	}
	w.clean("c/.git")
}

// git's protocol rules hold for the inner URL, also for what insteadOf makes of it.
func TestProtocolRulesHoldInside(t *testing.T) {
	t.Parallel()
	w := newWorld(t, gittest.Options{})
	w.env = append(w.env, "GIT_ALLOW_PROTOCOL=refaudit:file:ext:fd:ssh:git:http")
	w.silent("", "clone", "-q", w.url(), "c")
	mark := w.in("pwned")
	for base, short := range map[string]string{"ext::sh -c touch% " + mark + "% ": "file:///zz", "--upload-pack=touch " + mark + ";": "/zz", "http://localhost:1/": "zz:", "refaudit::" + w.src.Path: "file:///zz"} {
		for _, args := range [][]string{{"ls-remote"}, {"fetch"}, {"push"}} {
			args = append([]string{"-c", "url." + base + ".insteadOf=" + short}, append(args, "refaudit::"+short)...)
			if args[2] == "push" {
				args = append(args, "HEAD:x")
			}
			w.refused("c", args...)
			w.refused("c", append([]string{"-c", strings.Replace(args[1], "insteadOf", "pushInsteadOf", 1)}, args[2:]...)...)
			if _, err := os.Stat(mark); err == nil {
				t.Fatalf("%q ran a command", args)
			}
		}
	}
	// The same where the user's configuration allows what it should not.
	env := w.env
	w.env = w.env[:len(w.env)-2]
	allow := []string{"-c", "protocol.ext.allow=always", "-c", "protocol.allow=always"}
	w.refused("c", append(allow, "-c", "url.ext::sh -c touch% "+mark+"% .pushInsteadOf=file://"+w.src.Path, "push", "refaudit::file://"+w.src.Path, "HEAD:x")...)
	w.refused("c", append(allow, "-c", "url.ext::sh -c touch% "+mark+"% .insteadOf=file:///zz", "fetch", "refaudit::file:///zz", "main")...)
	if _, err := os.Stat(mark); err == nil {
		t.Fatal("protocol.ext.allow=always ran a command")
	}
	w.env = env
	if out := w.must("c", "-c", "url."+w.src.Path+".insteadOf=short:", "ls-remote", "refaudit::short:", "main"); !strings.Contains(out, w.src.B) {
		t.Errorf("insteadOf for good: %s", out)
	}
	for _, c := range [][]string{
		{"GIT_ALLOW_PROTOCOL=refaudit:https", "protocol.version=2"},
		{"GIT_PROTOCOL_FROM_USER=0", "protocol.refaudit.allow=always"},
		{"GIT_PROTOCOL_FROM_USER=1", "protocol.file.allow=never"},
	} {
		env := append([]string{}, w.env...)
		if !strings.HasPrefix(c[0], "GIT_ALLOW") {
			env = env[:len(env)-2]
		}
		r := w.git.Run(t, w.in("c"), append(env, c[0]), "", "-c", c[1], "ls-remote", w.url())
		if r.Code == 0 || strings.Contains(r.Stdout, w.src.B) || !strings.Contains(r.Stderr, "is refused") {
			t.Errorf("%q: %v", c, r)
		}
	}
}

// A server's refs may have any bytes; what git is told never has a line too many.
func TestABareWordIsAPath(t *testing.T) {
	t.Parallel()
	w := newWorld(t, gittest.Options{})
	w.must("", "clone", "-q", "--bare", "file://"+w.src.Path, "origin")
	w.silent("", "clone", "-q", "refaudit::origin", "c") // below the folder that we stand in
	if w.must("c", "rev-parse", "HEAD") != w.src.B {
		t.Error("a relative path")
	}
	w.refused("c", "fetch", "refaudit::origin") // and not the remote of that name
}
