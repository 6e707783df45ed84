package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"refaudit/internal/gittest"
	"refaudit/oid"
)

// quarantine is a folder of new objects beside a repository, and the environment in which
// receive-pack runs a hook.
func quarantine(t *testing.T, r *gittest.Repo) map[string]string {
	t.Helper()
	q := r.File("objects/tmp_objdir-incoming-x")
	if err := os.MkdirAll(q, 0o755); err != nil {
		t.Fatal(err)
	}
	return map[string]string{"GIT_DIR": ".", "GIT_OBJECT_DIRECTORY": q, "GIT_ALTERNATE_OBJECT_DIRECTORIES": r.File("objects"), "GIT_QUARANTINE_PATH": q}
}

// pushed writes a tag into the quarantine.
func pushed(t *testing.T, r *gittest.Repo, vars map[string]string, text string) string {
	t.Helper()
	var env []string
	for k, v := range vars {
		env = append(env, k+"="+v)
	}
	res := r.Program.Run(t, r.Path, env, text, "hash-object", "-t", "tag", "-w", "--stdin", "--literally")
	if res.Code != 0 {
		t.Fatal(res)
	}
	return strings.TrimSpace(res.Stdout)
}

func preReceive(r *gittest.Repo, vars map[string]string, lines ...string) ran {
	return commandIn(context.Background(), r.Path, strings.NewReader(strings.Join(lines, "\n")+"\n"), vars, "hook", "pre-receive")
}

func TestThePushedTagsAreJudgedInTheQuarantine(t *testing.T) {
	for _, refs := range []string{gittest.Files, gittest.Reftable} {
		for _, f := range []oid.Format{oid.SHA1, oid.SHA256} {
			r := gittest.New(t, gittest.Options{RefFormat: refs, Format: f})
			vars := quarantine(t, r)
			main := r.Git("rev-parse", "refs/heads/main")
			zero := strings.Repeat("0", len(main))
			text := func(kind, name, tagger string) string {
				return "object " + main + "\ntype " + kind + "\ntag " + name + "\n" + tagger + "\nm\n"
			}
			const who = "tagger A <a@example.com> 1700000000 +0000\n"
			good := pushed(t, r, vars, text("commit", "x", who))
			lie := pushed(t, r, vars, text("blob", "lie", who))
			nul := pushed(t, r, vars, text("commit", "nul", "tagger A\x00 <a@example.com> 1700000000 +0000\n"))
			early := pushed(t, r, vars, text("commit", "early", ""))
			nested := pushed(t, r, vars, "object "+lie+"\ntype tag\ntag n\n"+who+"\nm\n")
			line := func(id, ref string) string { return zero + " " + id + " " + ref }
			gittest.Unchanged(t, r.Path, func() {
				if a := preReceive(r, vars, line(good, "refs/tags/x"), main+" "+zero+" refs/tags/old", zero+" "+main+" refs/heads/b", line(early, "refs/tags/early")); a.code != 0 || a.out+a.err != "" {
					t.Errorf("a good push: %+v", a)
				}
				a := preReceive(r, vars, line(good, "refs/tags/x"), line(lie, "refs/tags/lie"), line(nul, "refs/tags/nul"), line(nested, "refs/heads/n"))
				var ids []string
				for _, l := range strings.Split(strings.TrimSpace(a.err), "\n") {
					w := strings.SplitN(l, " ", 4)
					ids = append(ids, w[1]+w[2])
				}
				if got := strings.Join(ids, " "); a.code != 1 || a.out != "" || got != "refs/tags/lie:tagTypeMismatch: refs/tags/nul:nulInHeader: refs/heads/n:tagTypeMismatch:" {
					t.Errorf("a bad push: %d %s", a.code, a.err)
				}
			})
			if a := preReceive(r, vars, line(good, "refs/tags/y")); a.code != 0 {
				t.Errorf("another name: %+v", a)
			}
			r.Git("config", "refaudit.receive.tagNameMismatch", "error")
			if a := preReceive(r, vars, line(good, "refs/tags/y"), line(good, "refs/tags/x")); a.code != 1 || strings.Count(a.err, "tagNameMismatch") != 1 {
				t.Errorf("another name, where configured: %+v", a)
			}
			r.Git("config", "receive.fsck.missingTaggerEntry", "error")
			if a := preReceive(r, vars, line(early, "refs/tags/early")); a.code != 1 || !strings.Contains(a.err, "missingTaggerEntry") {
				t.Errorf("receive.fsck: %+v", a)
			}
			r.Git("config", "refaudit.hook.maxTagSize", "20")
			if a := preReceive(r, vars, line(good, "refs/tags/x")); a.code != 1 || !strings.Contains(a.err, "maxTagSize") {
				t.Errorf("a large tag: %+v", a)
			}
			r.Git("config", "refaudit.hook.maxTagSize", "0")
			r.Git("config", "refaudit.hook.maxChainDepth", "1")
			deep := pushed(t, r, vars, "object "+good+"\ntype tag\ntag deep\n"+who+"\nm\n")
			if a := preReceive(r, vars, line(deep, "refs/tags/deep")); a.code != 1 || !strings.Contains(a.err, "maxChainDepth") {
				t.Errorf("a deep chain: %+v", a)
			}
		}
	}
}

// Whatever goes wrong with us, git gets 0 or 1, as it is configured.
func TestOwnTroubleIsAnsweredAsConfigured(t *testing.T) {
	r := gittest.New(t, gittest.Options{})
	vars := map[string]string{"GIT_DIR": "."}
	for _, c := range []struct {
		key, value, stdin string
		want              int
	}{
		{"", "", "nonsense", 0},
		{"refaudit.hook.onError", "reject", "nonsense", 1},
		{"refaudit.hook.onError", "perhaps", "nonsense", 0},
		{"refaudit.receive.tagTypeMismatch", "loud", "", 0},
	} {
		if c.key != "" {
			r.Git("config", c.key, c.value)
		}
		if a := preReceive(r, vars, c.stdin); a.code != c.want || a.err == "" {
			t.Errorf("%+v: %+v", c, a)
		}
		if c.key != "" {
			r.Git("config", "--unset", c.key)
		}
	}
	elsewhere := commandIn(context.Background(), t.TempDir(), strings.NewReader(""), nil, "hook", "pre-receive")
	if elsewhere.code != 0 || elsewhere.err == "" {
		t.Errorf("no repository: %+v", elsewhere)
	}
}

func TestATimeoutIsRefused(t *testing.T) {
	r := gittest.New(t, gittest.Options{})
	r.Git("config", "refaudit.hook.timeout", "50ms")
	in, w, err := os.Pipe() // git never says what is pushed
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	began := time.Now()
	a := commandIn(context.Background(), r.Path, in, map[string]string{"GIT_DIR": "."}, "hook", "pre-receive")
	if a.code != 1 || !strings.Contains(a.err, "50ms") || time.Since(began) > 10*time.Second {
		t.Errorf("%+v after %v", a, time.Since(began))
	}
	r.Git("config", "refaudit.hook.onTimeout", "allow")
	if a := commandIn(context.Background(), r.Path, in, map[string]string{"GIT_DIR": "."}, "hook", "pre-receive"); a.code != 0 {
		t.Errorf("%+v", a)
	}
}

// The installed hook, run by a real push, beside one that was there.
func TestAnInstalledHookAnswersAPush(t *testing.T) {
	program := filepath.Join(t.TempDir(), "refaudit")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	server, work := gittest.New(t, gittest.Options{}), gittest.New(t, gittest.Options{})
	seen := filepath.Join(t.TempDir(), "seen")
	server.WriteFile("hooks/pre-receive", fmt.Appendf(nil, "#!/bin/sh\ncat >%s\n", seen))
	os.Chmod(server.File("hooks/pre-receive"), 0o755)
	if a := command(t, nil, nil, "hook", "install", "--program", program, server.Path); a.code != 0 {
		t.Fatalf("%+v", a)
	}
	main := work.Git("rev-parse", "refs/heads/main")
	nul := work.WriteObject("tag", []byte("object "+main+"\ntype commit\ntag nul\ntagger A\x00 <a@example.com> 1700000000 +0000\n\nm\n"))
	work.Git("update-ref", "refs/tags/nul", nul)
	_, stderr, code := work.Try("push", server.Path, "refs/tags/nul")
	if code == 0 || !strings.Contains(stderr, "refs/tags/nul: nulInHeader") {
		t.Errorf("a NUL was let in: %d %s", code, stderr)
	}
	if text, _ := os.ReadFile(seen); !strings.Contains(string(text), "refs/tags/nul") {
		t.Errorf("the hook that was there did not run: %q", text)
	}
	if _, stderr, code := work.Try("push", server.Path, "refs/heads/main:refs/heads/new", "refs/tags/v1:refs/tags/new"); code != 0 {
		t.Errorf("a good push: %s", stderr)
	}
	if a := command(t, nil, nil, "hook", "uninstall", server.Path); a.code != 0 {
		t.Errorf("%+v", a)
	}
	if text := server.ReadFile("hooks/pre-receive"); strings.Contains(string(text), "refaudit") {
		t.Errorf("still there: %s", text)
	}
}

// Trouble with one ref lets no other one in that is wrong.
func TestWhatIsWrongRefusesBesideTrouble(t *testing.T) {
	r := gittest.New(t, gittest.Options{})
	vars := quarantine(t, r)
	main := r.Git("rev-parse", "refs/heads/main")
	zero := strings.Repeat("0", len(main))
	lie := zero + " " + pushed(t, r, vars, "object "+main+"\ntype blob\ntag lie\ntagger A <a@example.com> 1700000000 +0000\n\nm\n") + " refs/tags/lie"
	for _, trouble := range []string{"garbage", zero + " " + strings.Repeat("d", len(main)) + " refs/tags/gone"} {
		if a := preReceive(r, vars, trouble); a.code != 0 || !strings.Contains(a.err, "let in unjudged") {
			t.Errorf("%s alone: %+v", trouble, a)
		}
		for _, lines := range [][]string{{trouble, lie}, {lie, trouble}} {
			a := preReceive(r, vars, lines...)
			if a.code != 1 || !strings.Contains(a.err, "refs/tags/lie: tagTypeMismatch") || !strings.Contains(a.err, "not all of the push could be judged") {
				t.Errorf("%q: %+v", lines, a)
			}
		}
	}
	r.Git("config", "refaudit.hook.onError", "reject")
	r.Git("config", "refaudit.hook.timeout", "soon")
	if a := preReceive(r, vars, lie); a.code != 1 || !strings.Contains(a.err, "refused unjudged") {
		t.Errorf("a setting that is misspelt, beside onError=reject: %+v", a)
	}
}

// A target that was here before may have a damaged header: the tag that names it isn't false for that, and where
// another copy of the target is sound, it is let in.
func TestHookBesideAFlippedKind(t *testing.T) {
	for _, o := range gittest.AllFormats {
		r := gittest.New(t, o)
		r.Git("repack", "-adfq", "--depth=0")
		tag := r.WriteTag(r.A, "commit", "new")
		packs, _ := filepath.Glob(r.File("objects/pack/*.pack"))
		index, err := os.ReadFile(strings.TrimSuffix(packs[0], ".pack") + ".idx")
		if err != nil {
			t.Fatal(err)
		}
		at := int64(-1)
		for _, line := range strings.Split(r.GitIn(string(index), "show-index", "--object-format="+r.Format.String()), "\n") {
			if f := strings.Fields(line); len(f) > 1 && f[1] == r.A {
				fmt.Sscan(f[0], &at)
			}
		}
		name, _ := filepath.Rel(r.Path, packs[0])
		data := r.ReadFile(name)
		if at < 0 || data[at]>>4&7 != 1 {
			t.Fatalf("no commit at %d", at)
		}
		text := r.Git("cat-file", "commit", r.A) + "\n"
		data[at] ^= 2 << 4 // a blob
		r.WriteFile(name, data)
		line := r.Format.Zero().String() + " " + tag + " refs/tags/new"
		if out := preReceive(r, map[string]string{"GIT_DIR": "."}, line); out.code == 0 || !strings.Contains(out.err+out.out, "tagUnreadable") || strings.Contains(out.err+out.out, "tagTypeMismatch") {
			t.Errorf("%v: %d %s%s", o, out.code, out.out, out.err)
		}
		r.WriteLoose(r.A, "commit", []byte(text))
		if out := preReceive(r, map[string]string{"GIT_DIR": "."}, line); out.code != 0 {
			t.Errorf("%v, with a sound copy: %d %s%s", o, out.code, out.out, out.err)
		}
	}
}
