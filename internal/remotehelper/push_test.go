package remotehelper

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"refaudit/internal/gittest"
)

func (w *world) at(ref string) string {
	out, _, _ := w.src.Try("rev-parse", "-q", "--verify", ref)
	return strings.TrimSpace(out)
}

// hook makes a hook of a repository.
func hook(t *testing.T, gitDir, name, script string) {
	t.Helper()
	err := os.MkdirAll(gitDir+"/hooks", 0o755)
	if err == nil {
		err = os.WriteFile(gitDir+"/hooks/"+name, []byte("#!/bin/sh\n"+script), 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestPush(t *testing.T) {
	t.Parallel()
	w := newWorld(t, gittest.Options{})
	w.src.Git("config", "receive.advertisePushOptions", "true")
	said := w.in("option")
	hook(t, w.src.Path, "pre-receive", `echo "$GIT_PUSH_OPTION_COUNT $GIT_PUSH_OPTION_0" >`+said+"\n")
	w.silent("", "clone", "-q", w.url(), "c")
	hook(t, w.in("c/.git"), "pre-push", "cat >/dev/null; echo once >>"+w.in("hook")+"\n")
	n := w.must("c", "commit-tree", w.src.Tree, "-p", w.src.B, "-m", "new")
	theirs := w.src.Git("commit-tree", w.src.Tree, "-p", w.src.B, "-m", "theirs")

	w.silent("c", "push", "-q", "origin", n+":refs/heads/pushed")
	if b, _ := os.ReadFile(w.in("hook")); w.at("refs/heads/pushed") != n || string(b) != "once\n" {
		t.Errorf("at %s, the pre-push hook ran: %q", w.at("refs/heads/pushed"), b)
	}
	w.must("c", "push", "--dry-run", "origin", n+":refs/heads/dry")
	if w.at("refs/heads/dry") != "" {
		t.Error("--dry-run pushed")
	}
	w.src.Git("update-ref", "refs/heads/main", theirs)
	for _, how := range []string{"", "--atomic", "--force-with-lease=main:" + w.src.A} {
		args := append([]string{"push", "--porcelain"}, strings.Fields(how)...)
		r := w.run("c", append(args, "origin", n+":refs/heads/main", n+":refs/heads/too")...)
		if r.Code != 1 || !strings.Contains(r.Stdout, "[rejected]") || w.at("refs/heads/main") != theirs {
			t.Errorf("push %s: %v", how, r)
		}
		if both := w.at("refs/heads/too") == n; both == (how == "--atomic") {
			t.Errorf("push %s: the other ref was pushed: %v", how, both)
		}
		w.src.Git("update-ref", "-d", "refs/heads/too")
	}
	w.must("c", "push", "--force-with-lease=main:"+theirs, "-o", `a "b" c`, "origin", n+":refs/heads/main")
	if b, _ := os.ReadFile(said); w.at("refs/heads/main") != n || string(b) != "1 a \"b\" c\n" {
		t.Errorf("a lease that holds: at %s, option %q", w.at("refs/heads/main"), b)
	}
	if out := w.must("c", "push", "--porcelain", "origin", "+"+w.src.A+":refs/heads/main", ":refs/heads/pushed"); !strings.Contains(out, "(forced update)") || w.at("refs/heads/pushed") != "" {
		t.Errorf("forced, and deleted: %s", out)
	}
	if out := w.must("c", "push", "--porcelain", "origin", w.src.A+":refs/heads/main"); !strings.Contains(out, "[up to date]") {
		t.Errorf("%s", out)
	}
	hook(t, w.src.Path, "pre-receive", "echo because; exit 1\n")
	if r := w.run("c", "push", "--porcelain", "origin", n+":refs/heads/x"); r.Code != 1 || !strings.Contains(r.Stdout, "[remote rejected] (pre-receive hook declined)") || !strings.Contains(r.Stderr, "remote: because") {
		t.Errorf("a hook's no: %v", r)
	}
	hook(t, w.src.Path, "pre-receive", "exit 0\n")
	w.must("c", "push", "--mirror", w.url())
	if w.at("refs/remotes/origin/main") == "" || w.at("HEAD") == "" {
		t.Error("--mirror: HEAD is no ref to delete")
	}
	if r := w.run("c", "push", "refaudit::"+w.in("nowhere"), "HEAD:x"); r.Code != 128 && r.Code != 1 {
		t.Error(r)
	}
	w.clean("c/.git")
}

// More refs than a command line has room for.
func TestPushOfManyRefs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, gittest.Options{RefFormat: gittest.Reftable})
	w.silent("", "clone", "-q", "--bare", "--ref-format=reftable", w.url(), "c")
	var in strings.Builder
	const n = 1100
	long := strings.Repeat("long/", 200)
	for i := range n {
		fmt.Fprintf(&in, "create refs/x/%s%04d %s\n", long, i, w.src.A)
	}
	if r := w.git.Run(t, w.in("c"), w.env, in.String(), "update-ref", "--stdin"); r.Code != 0 {
		t.Fatal(r)
	}
	w.must("c", "push", "-q", w.url(), "refs/x/*:refs/x/*")
	if got := strings.Count(w.src.Git("for-each-ref", "refs/x"), "\n") + 1; got != n {
		t.Errorf("%d refs came", got)
	}
}

// The tracking refs of the client's remote, and names with quotes in them.
func TestPushToARemoteByName(t *testing.T) {
	t.Parallel()
	w := newWorld(t, gittest.Options{})
	w.silent("", "clone", "-q", w.url(), "c")
	n := w.must("c", "commit-tree", w.src.Tree, "-p", w.src.B, "-m", "new")
	w.must("c", "push", "-q", "origin", n+`:refs/heads/a"b;#'c`)
	if w.at(`refs/heads/a"b;#'c`) != n || w.must("c", "rev-parse", `refs/remotes/origin/a"b;#'c`) != n {
		t.Error("a name with quotes")
	}
	w.must("c", "config", "remote.origin.receivepack", "git-receive-pack --no-such-thing")
	if said := w.refused("c", "push", "-q", "origin", n+":refs/heads/d"); said == "" {
		t.Error("remote.origin.receivepack does not hold")
	}
}
