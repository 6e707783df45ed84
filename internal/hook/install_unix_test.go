//go:build unix

package hook

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"refaudit/internal/gittest"
)

// A yard is a server, somebody who pushes to it, and a folder shared/ beside the server. Its policy refuses each push
// until there is a file "allow", and writes down what it read; so does what stands for refaudit, which refuses none.
type yard struct {
	t            *testing.T
	root         string
	server, work *gittest.Repo
	program      string
	pushes       int
}

func newYard(t *testing.T) *yard {
	t.Helper()
	y := &yard{t: t, root: t.TempDir(), work: gittest.New(t, gittest.Options{})}
	y.server = gittest.InitAt(t, gittest.Options{}, filepath.Join(y.root, "s.git"))
	y.program = y.script("refaudit it's", fmt.Sprintf("[ \"$1 $2\" = 'hook pre-receive' ] || exit 9\ncat >>'%s/ours'\n", y.root))
	y.script("shared/policy", y.policy())
	return y
}

func (y *yard) policy() string {
	return fmt.Sprintf("cat >>'%s/old'\nif ! [ -e '%[1]s/allow' ]; then echo no says the policy >&2; exit 7; fi\n", y.root)
}

// script writes a program below the root.
func (y *yard) script(name, body string) string {
	y.t.Helper()
	path := filepath.Join(y.root, name)
	os.MkdirAll(filepath.Dir(path), 0o755)
	os.Remove(path)
	if !strings.HasPrefix(body, "#!") {
		body = "#!/bin/sh\n" + body
	}
	if err := os.WriteFile(path, []byte(body), 0o755); err != nil {
		y.t.Fatal(err)
	}
	return path
}

func (y *yard) link(text, name string) {
	y.t.Helper()
	path := filepath.Join(y.root, name)
	os.MkdirAll(filepath.Dir(path), 0o755)
	if err := os.Symlink(text, path); err != nil {
		y.t.Fatal(err)
	}
}

func (y *yard) place() Place {
	return Place{GitDir: y.server.Path, Hooks: filepath.Join(y.server.Path, "hooks"), Style: Plain}
}

func (y *yard) install() []string {
	y.t.Helper()
	did, err := Install(y.place(), y.program)
	if err != nil {
		y.t.Fatal(err)
	}
	return did
}

func (y *yard) uninstall() []string {
	y.t.Helper()
	did, err := Uninstall(y.place())
	if err != nil {
		y.t.Fatal(err)
	}
	return did
}

// push gives what the user sees, and whether the server took the push.
func (y *yard) push() (stderr string, ok bool) {
	y.t.Helper()
	y.pushes++
	_, stderr, code := y.work.Try("push", y.server.Path, fmt.Sprintf("refs/heads/main:refs/heads/a%d", y.pushes), fmt.Sprintf("refs/tags/v1:refs/tags/b%d", y.pushes))
	return stderr, code == 0
}

func (y *yard) refused(when, why string) {
	y.t.Helper()
	if said, ok := y.push(); ok || !strings.Contains(said, why) {
		y.t.Errorf("%s: accepted %v: %s", when, ok, said)
	}
}

func (y *yard) accepted(when string) {
	y.t.Helper()
	if said, ok := y.push(); !ok {
		y.t.Errorf("%s: %s", when, said)
	}
}

// read empties a file of the root, and gives what was in it.
func (y *yard) read(name string) string {
	text, _ := os.ReadFile(filepath.Join(y.root, name))
	os.Remove(filepath.Join(y.root, name))
	return string(text)
}

func (y *yard) allow(yes bool) {
	if yes {
		os.WriteFile(filepath.Join(y.root, "allow"), nil, 0o644)
	} else {
		os.Remove(filepath.Join(y.root, "allow"))
	}
}

// tree is every name outside of what a push writes: its mode, and its text or where it leads.
func (y *yard) tree() (all []string) {
	y.t.Helper()
	err := filepath.WalkDir(y.root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(y.root, path)
		if slices.Contains([]string{"s.git/objects", "s.git/refs", "s.git/reftable"}, rel) {
			return filepath.SkipDir
		}
		st, err := d.Info()
		text, _ := os.ReadFile(path)
		if to, err := os.Readlink(path); err == nil {
			text = []byte("-> " + to)
		}
		all = append(all, rel+" "+st.Mode().String()+" "+string(text))
		return err
	})
	if err != nil {
		y.t.Fatal(err)
	}
	return all
}

func (y *yard) same(when string, before []string) {
	y.t.Helper()
	if now := y.tree(); !slices.Equal(now, before) {
		y.t.Errorf("%s:\n%s\nbefore it was:\n%s", when, strings.Join(now, "\n"), strings.Join(before, "\n"))
	}
}

// oldHooks are the ways in which a hook that is there finds what it does.
var oldHooks = map[string]func(y *yard){
	"a file":          func(y *yard) { y.script("s.git/hooks/pre-receive", y.policy()) },
	"a relative link": func(y *yard) { y.link("../../shared/policy", "s.git/hooks/pre-receive") },
	"an absolute link": func(y *yard) {
		y.link(filepath.Join(y.root, "shared/policy"), "s.git/hooks/pre-receive")
	},
	"a link to a link": func(y *yard) {
		y.link("../../shared/policy", "s.git/hooks/other")
		y.link("other", "s.git/hooks/pre-receive")
	},
	"a link of many names": func(y *yard) {
		y.script("shared/many", "case ${0##*/} in pre-receive) exec \"$(dirname \"$(readlink -f \"$0\")\")/policy\";; esac\n")
		y.link("../../shared/many", "s.git/hooks/pre-receive")
		y.link("../../shared/many", "s.git/hooks/post-receive")
	},
	"a file beside it": func(y *yard) {
		y.script("s.git/hooks/lib.sh", y.policy())
		y.script("s.git/hooks/pre-receive", ". \"$(dirname \"$0\")/lib.sh\"\n")
	},
	"a hidden file beside it": func(y *yard) {
		y.script("s.git/hooks/.lib/policy", y.policy())
		y.script("s.git/hooks/pre-receive", "cd \"$(dirname \"$0\")\" && exec ./.lib/policy\n")
	},
	"BASH_SOURCE": func(y *yard) {
		y.script("s.git/hooks/lib.sh", y.policy())
		y.script("s.git/hooks/pre-receive", "#!/usr/bin/env bash\nsource \"$(cd \"$(dirname \"${BASH_SOURCE[0]}\")\" && pwd)/lib.sh\"\n")
	},
	"its own name": func(y *yard) {
		y.script("s.git/hooks/pre-receive.real", y.policy())
		y.script("s.git/hooks/pre-receive", "exec \"$0.real\" \"$@\"\n")
	},
	"a file above it": func(y *yard) {
		y.script("s.git/policy", y.policy())
		y.script("s.git/hooks/pre-receive", "exec \"$(dirname \"$0\")/../policy\"\n")
	},
	"parts of the working folder": func(y *yard) {
		y.script("s.git/hooks/pre-receive.d/policy", y.policy())
		y.script("s.git/hooks/pre-receive", "for h in \"$PWD\"/hooks/pre-receive.d/*; do \"$h\" || exit; done\n")
	},
	"parts of its own name": func(y *yard) {
		y.script("s.git/hooks/pre-receive.d/policy", y.policy())
		y.script("s.git/hooks/pre-receive", "for h in \"$0\".d/*; do [ -x \"$h\" ] && { \"$h\" || exit; }; done\n")
	},
	"parts of a name without its folder": func(y *yard) {
		y.script("s.git/hooks/pre-receive.d/policy", y.policy())
		y.link("../../shared/runner", "s.git/hooks/pre-receive")
		y.script("shared/runner", "for h in hooks/$(basename \"$0\").d/*; do [ -x \"$h\" ] && { \"$h\" || exit; }; done\n")
	},
}

// The old hook goes on refusing what it refused, and it alone runs what it ran; to take ours away leaves nothing.
func TestEachKindOfHookGoesOnWorking(t *testing.T) {
	for name, make := range oldHooks {
		t.Run(name, func(t *testing.T) {
			y := newYard(t)
			make(y)
			y.refused("without ours", "no says the policy")
			y.read("old")
			before := y.tree()
			if did := y.install(); !strings.Contains(strings.Join(did, "\n"), "runs both") {
				t.Errorf("did %q", did)
			}
			y.checkBoth()
			during := y.tree()
			if did := y.install(); len(did) > 0 {
				t.Errorf("a second install did %q", did)
			}
			y.same("a second install", during)
			y.program = y.script("refaudit it's", "exit 3\n")
			y.allow(true)
			if said, ok := y.push(); ok {
				t.Errorf("ours refuses: %s", said)
			}
			y.read("old")
			y.allow(false)
			y.program = y.script("refaudit it's", strings.Split(before[indexOf(before, "refaudit it's ")], "#!/bin/sh\n")[1])
			y.uninstall()
			y.same("uninstalled", before)
			if did := y.uninstall(); len(did) > 0 {
				t.Errorf("a second uninstall did %q", did)
			}
			y.refused("uninstalled", "no says the policy")
		})
	}
}

func indexOf(all []string, prefix string) int {
	return slices.IndexFunc(all, func(s string) bool { return strings.HasPrefix(s, prefix) })
}

// checkBoth pushes twice: the policy refuses, then both see all of what is pushed, once.
func (y *yard) checkBoth() {
	y.t.Helper()
	y.refused("installed", "no says the policy")
	if text := y.read("ours"); text != "" {
		y.t.Errorf("ours ran though the push was refused: %q", text)
	}
	y.read("old")
	y.allow(true)
	y.accepted("installed, and allowed")
	old, ours := y.read("old"), y.read("ours")
	if old != ours || strings.Count(old, "\n") != 2 || !strings.Contains(old, "refs/tags/b") {
		y.t.Errorf("the old hook read %q, and ours %q", old, ours)
	}
	y.allow(false)
}

// What was no part of the hook before is none after.
func TestPartsThatNobodyRanAreNotRun(t *testing.T) {
	for _, hook := range []bool{true, false} {
		y := newYard(t)
		if hook {
			y.script("s.git/hooks/pre-receive", y.policy())
		}
		y.script("s.git/hooks/pre-receive.d/10-local", "exit 1\n")
		y.script("s.git/hooks/pre-receive.d/other", "exit 1\n")
		before := y.tree()
		y.install()
		y.allow(true)
		y.accepted("parts that nobody runs")
		y.allow(false)
		y.read("old")
		y.read("ours")
		y.uninstall()
		y.same("uninstalled", before)
	}
}

// The part that goes missing after the install refuses the push, and says so.
func TestAHookThatCanNotRunRefuses(t *testing.T) {
	for name, spoil := range map[string]func(y *yard, kept string) error{
		"not executable": func(y *yard, kept string) error { return os.Chmod(filepath.Join(y.root, "shared/policy"), 0o644) },
		"dangling":       func(y *yard, kept string) error { return os.Remove(filepath.Join(y.root, "shared/policy")) },
		"gone":           func(y *yard, kept string) error { return os.Remove(filepath.Join(kept, "pre-receive")) },
		"folder gone":    func(y *yard, kept string) error { return os.RemoveAll(kept) },
		"a folder": func(y *yard, kept string) error {
			os.Remove(filepath.Join(y.root, "shared/policy"))
			return os.Mkdir(filepath.Join(y.root, "shared/policy"), 0o755)
		},
	} {
		y := newYard(t)
		y.link("../../shared/policy", "s.git/hooks/pre-receive")
		y.install()
		y.allow(true)
		y.accepted(name)
		if err := spoil(y, y.server.File("hooks.refaudit")); err != nil {
			t.Fatal(err)
		}
		y.refused(name, "refaudit: the push is refused: the ")
	}
}

// What git ignored before is ignored on, and that is said; it runs as soon as git would have run it.
func TestAHookThatGitIgnored(t *testing.T) {
	for name, make := range map[string]func(y *yard){
		"not executable": func(y *yard) {
			y.script("s.git/hooks/pre-receive", y.policy())
			y.chmod("s.git/hooks/pre-receive", 0o644)
		},
		"dangling": func(y *yard) {
			y.link("../../shared/policy", "s.git/hooks/pre-receive")
			os.Rename(filepath.Join(y.root, "shared/policy"), filepath.Join(y.root, "shared/later"))
		},
	} {
		y := newYard(t)
		make(y)
		y.accepted(name)
		before := y.tree()
		if did := strings.Join(y.install(), "\n"); !strings.Contains(did, "git ignored the other hook") {
			t.Errorf("%s: did %s", name, did)
		}
		y.accepted(name + ", installed")
		if y.read("ours") == "" {
			t.Errorf("%s: ours did not run", name)
		}
		if did := y.install(); len(did) > 0 {
			t.Errorf("%s: a second install did %q", name, did)
		}
		y.uninstall()
		y.same(name, before)
		y.install()
		if name == "dangling" {
			os.Rename(filepath.Join(y.root, "shared/later"), filepath.Join(y.root, "shared/policy"))
		} else {
			y.chmod("s.git/hooks.refaudit/pre-receive", 0o755)
		}
		y.refused(name+", and mended", "no says the policy")
	}
}

func (y *yard) chmod(name string, mode os.FileMode) {
	y.t.Helper()
	if err := os.Chmod(filepath.Join(y.root, name), mode); err != nil {
		y.t.Fatal(err)
	}
}

// Where there is something that can't be kept, nothing is changed.
func TestWhatCanNotBeKeptIsLeftAlone(t *testing.T) {
	for name, make := range map[string]func(y *yard){
		"a folder":           func(y *yard) { os.MkdirAll(y.server.File("hooks/pre-receive"), 0o755) },
		"a link to a folder": func(y *yard) { y.link("../../shared", "s.git/hooks/pre-receive") },
		"a link that leads nowhere for a folder": func(y *yard) {
			y.link("../hooks2", "s.git/hooks")
		},
		"an older hook that is kept": func(y *yard) {
			y.script("s.git/hooks/pre-receive", y.policy())
			y.script("s.git/hooks.refaudit/pre-receive", "exit 1\n")
		},
		"a file where the folder would be": func(y *yard) {
			y.script("s.git/hooks/pre-receive", y.policy())
			y.script("s.git/hooks.refaudit", "")
		},
		"a dispatcher of the former layout that was edited": func(y *yard) {
			y.former()
			y.script("s.git/hooks/pre-receive", formerDispatcher+"exit 1\n")
		},
	} {
		y := newYard(t)
		make(y)
		before := y.tree()
		if did, err := Install(y.place(), y.program); err == nil {
			t.Errorf("%s: did %q", name, did)
		}
		y.same(name, before)
	}
	y := newYard(t)
	os.MkdirAll(y.server.File("hooks"), 0o755)
	if err := syscall.Mkfifo(y.server.File("hooks/pre-receive"), 0o755); err != nil {
		t.Fatal(err)
	}
	if did, err := Install(y.place(), y.program); err == nil {
		t.Errorf("a pipe: did %q", did)
	}
	for _, style := range []Style{Gitaly, Gitea} {
		p := y.place()
		p.Style = style
		rel, _ := filepath.Rel(y.root, p.part())
		y.script(rel, "exit 1\n")
		if did, err := Install(p, y.program); err == nil {
			t.Errorf("%s, another's part: did %q", style, did)
		}
		if did, err := Uninstall(p); err != nil || len(did) > 0 {
			t.Errorf("%s, another's part: uninstall did %q %v", style, did, err)
		}
		if text, _ := os.ReadFile(p.part()); string(text) != "#!/bin/sh\nexit 1\n" {
			t.Errorf("%s: %q", style, text)
		}
	}
}

// Hooks that many repositories share, by core.hooksPath or by a link, are shared on.
func TestSharedHooks(t *testing.T) {
	for _, how := range []string{"hooksPath", "a link"} {
		y := newYard(t)
		y.script("all/hooks/lib.sh", y.policy())
		y.script("shared/policy", ". \"$(dirname \"$0\")/lib.sh\"\n")
		y.link("../../shared/policy", "all/hooks/pre-receive")
		p := y.place()
		if how == "a link" {
			y.link("../all/hooks", "s.git/hooks")
		} else {
			p.Hooks = filepath.Join(y.root, "all/hooks")
			y.server.Git("config", "core.hooksPath", p.Hooks)
		}
		before := y.tree()
		did, err := Install(p, y.program)
		if err != nil || !strings.Contains(strings.Join(did, "\n"), "outside of the repository") {
			t.Errorf("%s: %q %v", how, did, err)
		}
		y.checkBoth()
		if _, err := Uninstall(p); err != nil {
			t.Error(err)
		}
		y.same(how, before)
	}
}

// A file that comes later is found as it would have been, and one that can't be is no reason to let a push in.
func TestAFileThatComesLater(t *testing.T) {
	y := newYard(t)
	y.script("s.git/hooks/pre-receive", "if [ -e \"$0.later\" ]; then . \"$0.later\"; fi\nif [ -e \"$0.d/x\" ]; then exit 8; fi\necho 1 >\"$(dirname \"$0\")/written\"\n")
	y.install()
	y.accepted("before")
	y.script("s.git/hooks/pre-receive.later", y.policy())
	y.refused("later", "no says the policy")
	y.allow(true)
	y.accepted("allowed")
	y.script("s.git/hooks/pre-receive.d/x", "")
	y.refused("parts", "declined")
	os.RemoveAll(y.server.File("hooks/pre-receive.d"))
	y.uninstall()
	if names := fmt.Sprint(y.names("hooks")); names != "[pre-receive pre-receive.later written]" {
		t.Errorf("hooks has %s", names)
	}
	if _, err := os.Lstat(y.server.File("hooks.refaudit")); err == nil {
		t.Error("the folder is left")
	}
}

// A link that can't be made stops pushes only where the old hook would look for the file.
func TestAFileThatCanNotBeLinked(t *testing.T) {
	y := newYard(t)
	y.script("s.git/hooks/pre-receive", "")
	y.install()
	y.script("bin/ln", "exit 1\n")
	y.work.ExtraEnv = append(y.work.ExtraEnv, "PATH="+filepath.Join(y.root, "bin")+":"+os.Getenv("PATH"))
	y.script("s.git/hooks/post-receive", "")
	y.accepted("another hook")
	y.script("s.git/hooks/pre-receive.more", "")
	y.refused("a file of the hook's", "has no link to")
}

func (y *yard) names(dir string) []string {
	entries, _ := os.ReadDir(y.server.File(dir))
	return namesOf(entries)
}

// What the environment holds is handed on as it is, the quarantine too.
func TestTheEnvironmentStays(t *testing.T) {
	y := newYard(t)
	y.script("s.git/hooks/pre-receive", fmt.Sprintf("[ -n \"$GIT_QUARANTINE_PATH\" ] && [ \"$GIT_DIR\" = . ] && env | sed 's/incoming-.*/incoming/' | grep -v '^_=' | sort >'%s/env'\n", y.root))
	y.work.ExtraEnv = append(y.work.ExtraEnv, "input=1", "part=2", "text=3", "CDPATH=/:/usr")
	y.accepted("before")
	before := y.read("env")
	y.install()
	y.accepted("after")
	if after := y.read("env"); after != before || !strings.Contains(after, "part=2") {
		t.Errorf("%s\nbefore:\n%s", after, before)
	}
}

// Wherever an install is stopped, the old hook works on, and to install or uninstall goes on from there.
func TestAnInstallThatWasStopped(t *testing.T) {
	for _, kind := range []string{"a file", "a relative link", "its own name"} {
		for step := range 3 {
			for _, again := range []bool{true, false} {
				y := newYard(t)
				oldHooks[kind](y)
				before := y.tree()
				f, err := y.place().folder()
				if err != nil {
					t.Fatal(err)
				}
				switch step {
				case 0:
					err = os.Mkdir(f.kept, 0o755)
				case 1:
					err = f.makeKept()
				case 2:
					if err = f.makeKept(); err == nil {
						err = secondName(f.hook, f.keep)
					}
				}
				if err != nil {
					t.Fatal(err)
				}
				y.refused("stopped", "no says the policy")
				y.read("old")
				if again {
					y.install()
					y.checkBoth()
				}
				y.uninstall()
				y.same(fmt.Sprintf("%s, stopped at step %d", kind, step), before)
			}
		}
	}
}
