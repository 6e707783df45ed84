package repo

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"refaudit/internal/gittest"
	"refaudit/internal/vfs"
)

func TestSafeDirectoryAsGitReadsIt(t *testing.T) {
	gits(t, func(t *testing.T, p *gittest.Program) {
		h := newHome(t)
		h.must(p, ".", "init", "-q", "srv/r")
		h.must(p, ".", "init", "-q", "--bare", "srv/b.git")
		os.Symlink(h.path("srv"), h.path("link"))
		h.must(p, "srv/r", "config", "safe.directory", "*") // the repository itself has no say
		h.env["GIT_TEST_ASSUME_DIFFERENT_OWNER"] = "1"
		old := p.Version < "2.40"
		for _, c := range []struct {
			conf  string
			newer bool // the old git reads it otherwise
		}{
			{"", false}, {"directory = *", false}, {"directory = *\ndirectory =", false}, {"directory =\ndirectory = *", false}, {"directory", false},
			{"directory = " + h.path("srv/r"), false}, {"directory = " + h.path("srv/r/.git"), false}, {"directory = " + h.path("srv/b.git"), false},
			{"directory = ~/srv/r", false}, {"directory = srv/r", false}, {"directory = .", true}, {"directory = " + h.path("srv") + "/*", true}, {"directory = " + h.dir + "/*", true},
			{"directory = " + h.path("srv/r") + "/", true}, {"directory = " + h.path("link/r"), true}, {"directory = " + h.path("link") + "/*", true},
			{"directory = " + h.path("none"), false}, {"directory = " + h.path("srv/rr"), false}, {"directory = ~nosuchuser42/x", true},
		} {
			if c.newer && old {
				continue
			}
			h.write(".gitconfig", "[safe]\n"+c.conf+"\n")
			for _, dir := range []string{"srv/r", "srv/r/.git", "srv/b.git", "srv/b.git/refs"} {
				code := h.git(p, dir, "rev-parse", "--git-dir").Code
				_, err := Discover(h.path(dir), Options{Env: MapEnv(h.env), Cwd: h.path(dir)})
				if c.conf == "directory = ~nosuchuser42/x" {
					code = 128 // git dies of it, we refuse
				}
				if (code == 0) != (err == nil) {
					t.Errorf("%s with %q: %v, git exits %d", dir, c.conf, err, code)
				}
				if _, dubious := errors.AsType[*DubiousOwner](err); err != nil && !dubious {
					t.Errorf("%v", err)
				}
			}
		}
		h.write(".gitconfig", "")
		if _, err := Open(h.path("srv/r"), h.options()); err != nil {
			t.Errorf("a repository that is named: %v", err)
		}
		h.env["GIT_DIR"] = h.path("srv/r/.git")
		if _, err := Discover(h.dir, h.options()); err != nil {
			t.Errorf("a git dir that is named: %v", err)
		}
		h.env["GIT_CONFIG_COUNT"], h.env["GIT_CONFIG_KEY_0"], h.env["GIT_CONFIG_VALUE_0"] = "1", "safe.directory", h.path("srv/r")
		delete(h.env, "GIT_DIR")
		if r, err := Discover(h.path("srv/r"), h.options()); err != nil || r.CheckOwner() != nil {
			t.Errorf("named safe in the environment: %v", err)
		}
	})
}

// giveAway makes everything below path another one's.
func giveAway(t *testing.T, path string, uid int) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	err := filepath.WalkDir(path, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, uid, uid)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestOwnersAsGitAsksThem(t *testing.T) {
	gits(t, func(t *testing.T, p *gittest.Program) {
		h := newHome(t)
		h.must(p, ".", "init", "-q", "r")
		h.must(p, ".", "init", "-q", "--separate-git-dir", h.path("away.git"), "away")
		giveAway(t, h.path("r"), 4242)
		giveAway(t, h.path("away"), 4242)
		giveAway(t, h.path("away.git"), 4242)
		check := func() {
			t.Helper()
			for _, dir := range []string{"r", "r/.git", "away", "away.git"} {
				code := h.git(p, dir, "rev-parse", "--git-dir").Code
				_, err := Discover(h.path(dir), h.options())
				if (code == 0) != (err == nil) {
					t.Errorf("%s: %v, git exits %d", dir, err, code)
				}
			}
		}
		check()
		for _, uid := range []string{"4242", "4243", "x", ""} {
			h.env["SUDO_UID"] = uid
			check()
		}
		delete(h.env, "SUDO_UID")
		r, err := Open(h.path("r"), h.options())
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := errors.AsType[*DubiousOwner](r.CheckOwner()); !ok || e.Path != h.path("r") {
			t.Errorf("%v", r.CheckOwner())
		}
		os.Lchown(h.path("r"), 0, 0)
		check()
	})
}

// A repository of somebody else, read by root, can't lead to root's files.
func TestAForeignRepositoryLeadsNowhere(t *testing.T) {
	p := gittest.Need(t, gittest.Any)
	h := newHome(t)
	h.write("secret", "[secret]\nx = 1\n")
	h.must(p, ".", "init", "-q", "--bare", "roots.git")
	for _, dir := range []string{"include", "relative", "if", "link", "nested", "own", "inside", "fifo"} {
		h.must(p, ".", "init", "-q", "--bare", "x/"+dir)
	}
	h.write("x/theirs", "[theirs]\nx = 1\n[include]\npath = ../secret\n")
	more := func(dir, text string) {
		config, _ := os.ReadFile(h.path("x/" + dir + "/config"))
		h.write("x/"+dir+"/config", string(config)+text)
	}
	more("include", "[include]\npath = "+h.path("secret")+"\n")
	more("relative", "[include]\npath = ../../secret\n")
	more("if", "[includeIf \"gitdir:**\"]\npath = "+h.path("secret")+"\n")
	os.Symlink(h.path("secret"), h.path("x/link/more"))
	more("link", "[include]\npath = more\n")
	more("nested", "[include]\npath = ../theirs\n")
	more("own", "[include]\npath = ../own.config\n")
	h.write("x/own.config", "[theirs]\nx = 1\n")
	h.write("x/inside/more", "[theirs]\nx = 1\n")
	more("inside", "[include]\npath = more\n")
	more("fifo", "[include]\npath = /dev/stdin\n")
	h.must(p, ".", "init", "-q", "--bare", "x/common")
	h.write("x/common/commondir", h.path("roots.git"))
	h.must(p, ".", "init", "-q", "x/gitfile")
	os.RemoveAll(h.path("x/gitfile/.git"))
	h.write("x/gitfile/.git", "gitdir: "+h.path("roots.git")+"\n")
	h.must(p, ".", "init", "-q", "--bare", "x/refs")
	h.write("x/refs/config", "[core]\nrepositoryformatversion = 1\n[extensions]\nrefStorage = files://"+h.path("roots.git")+"\n")
	h.must(p, ".", "init", "-q", "--bare", "x/shallow")
	os.Symlink(h.path("secret"), h.path("x/shallow/shallow"))
	giveAway(t, h.path("x"), 4242)

	for _, dir := range []string{"include", "relative", "if", "link", "nested", "fifo"} {
		r, err := Open(h.path("x/"+dir), h.options())
		if err != nil {
			t.Errorf("%s: %v", dir, err)
			continue
		}
		if _, leaked := r.Config.Get("secret.x"); leaked || len(r.Config.Refused) != 1 {
			t.Errorf("%s: leaked %v, refused %v", dir, leaked, r.Config.Refused)
		}
	}
	for _, dir := range []string{"own", "inside", "nested"} {
		r, err := Open(h.path("x/"+dir), h.options())
		if err != nil {
			t.Errorf("%s: %v", dir, err)
			continue
		}
		if _, set := r.Config.Get("theirs.x"); !set {
			t.Errorf("%s: their own file was not followed: %v", dir, r.Config.Refused)
		}
	}
	for _, dir := range []string{"common", "gitfile", "refs"} {
		if r, err := Open(h.path("x/"+dir), h.options()); !errors.Is(err, vfs.ErrOutside) {
			t.Errorf("%s: %+v %v", dir, r, err)
		}
	}
	r, err := Open(h.path("x/shallow"), h.options())
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.Shallow(); !errors.Is(err, vfs.ErrOutside) {
		t.Errorf("shallow: %v", err)
	}

	// A worktree that a colleague has made in it is theirs too.
	os.MkdirAll(h.path("x/own/worktrees/w"), 0o755)
	h.write("x/own/worktrees/w/commondir", "../..\n")
	h.write("x/own/worktrees/w/HEAD", "ref: refs/heads/w\n")
	giveAway(t, h.path("x/own/worktrees/w"), 4243)
	if r, err := Open(h.path("x/own/worktrees/w"), h.options()); err != nil || r.CommonDir != h.path("x/own") {
		t.Errorf("a worktree within: %v", err)
	}

	// What root includes in its own repository is its own affair.
	h.must(p, "roots.git", "config", "include.path", h.path("x/theirs"))
	if r, err = Open(h.path("roots.git"), h.options()); err != nil || len(r.Config.Refused) != 0 {
		t.Fatal(err)
	}
	if _, set := r.Config.Get("secret.x"); !set {
		t.Error("root's own include was not followed")
	}
}
