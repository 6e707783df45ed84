package gittest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"refaudit/oid"
)

func TestEveryFormatHasItsTwoCommitsAndTags(t *testing.T) {
	for _, o := range AllFormats {
		t.Run(o.String(), func(t *testing.T) {
			r := New(t, o)
			if len(r.A) != o.Format.HexLen() || r.Git("rev-parse", "refs/heads/main") != r.B {
				t.Errorf("main is not at B: %+v", r)
			}
			want := map[string]oid.ID{"refs/tags/v1": oid.MustParse(r.A), "refs/tags/v2": oid.MustParse(r.B)}
			got := r.Peels()
			if len(got) != len(want) || got["refs/tags/v1"] != want["refs/tags/v1"] || got["refs/tags/v2"] != want["refs/tags/v2"] {
				t.Errorf("peels: %v", got)
			}
			if r.Kind(r.V1) != "tag" || r.Kind(strings.Repeat("1", len(r.A))) != "" {
				t.Error("kinds")
			}
		})
	}
}

// The same program makes the same ids everywhere: nothing of the machine gets in.
func TestNothingOfTheMachineGetsIn(t *testing.T) {
	t.Setenv("GIT_AUTHOR_NAME", "Somebody Else")
	t.Setenv("GIT_DIR", "/nowhere")
	t.Setenv("HOME", t.TempDir())
	os.WriteFile(filepath.Join(os.Getenv("HOME"), ".gitconfig"), []byte("[broken"), 0o600)
	r := New(t, Options{})
	if r.B != "6d190cdf2e6e011bc64a5543c88a8c8b781821d7" {
		t.Errorf("B is %s", r.B)
	}
}

func TestUnchangedSeesEverything(t *testing.T) {
	for name, change := range map[string]func(dir string) error{
		"nothing": func(string) error { return nil },
		"byte":    func(dir string) error { return swap(filepath.Join(dir, "f"), "ab", true) },
		"mtime":   func(dir string) error { return os.Chtimes(filepath.Join(dir, "f"), time.Time{}, time.Unix(5, 0)) },
		"mode":    func(dir string) error { return os.Chmod(filepath.Join(dir, "f"), 0o400) },
		"new":     func(dir string) error { return os.WriteFile(filepath.Join(dir, "g"), nil, 0o600) },
		"gone":    func(dir string) error { return os.Remove(filepath.Join(dir, "f")) },
		"link": func(dir string) error {
			os.Remove(filepath.Join(dir, "l"))
			return os.Symlink("g", filepath.Join(dir, "l"))
		},
		"replaced": func(dir string) error { return swap(filepath.Join(dir, "f"), "aa", false) },
	} {
		dir := t.TempDir()
		os.WriteFile(filepath.Join(dir, "f"), []byte("aa"), 0o600)
		os.Symlink("f", filepath.Join(dir, "l"))
		spy := &spy{TB: t}
		Unchanged(spy, dir, func() {
			if err := change(dir); err != nil {
				t.Fatal(err)
			}
		})
		if (spy.errors > 0) != (name != "nothing") {
			t.Errorf("%s: %d errors", name, spy.errors)
		}
	}
}

// swap changes a file and puts its time back; in place, or by another file under its name.
func swap(path, text string, inPlace bool) error {
	st, err := os.Stat(path)
	if err != nil {
		return err
	}
	to := path
	if !inPlace {
		to += ".new"
	}
	if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
		return err
	}
	if err := os.Chtimes(to, st.ModTime(), st.ModTime()); err != nil || inPlace {
		return err
	}
	return os.Rename(to, path)
}

type spy struct {
	testing.TB
	errors int
}

func (s *spy) Errorf(string, ...any) { s.errors++ }

func TestADeathIsNoAnswer(t *testing.T) {
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skip("no /bin/sh to kill itself")
	}
	for script, died := range map[string]bool{
		"echo fine":     false,
		"exit 1":        false,
		"exit 129":      false,
		"kill -9 $$":    true,
		"kill -SEGV $$": true,
		"exit 139":      true,
		"echo 'error: refs died of signal 11' >&2; exit 8": true,
	} {
		if r := Run(t, "", Env(), "", "/bin/sh", "-c", script); r.Died != died {
			t.Errorf("%s: died %v, %v", script, r.Died, r)
		}
	}
}

// Each git makes what it is here for; where the others are wanted, tools/modern-git installs them.
func TestTheThreeGitsDamageWhatTheyAreKnownFor(t *testing.T) {
	for name, w := range map[string]struct {
		which Which
		o     Options
		build func(testing.TB, Options) (*Repo, []Want)
	}{
		"old":    {Old, Options{}, FalseType},
		"middle": {Mid, Options{RefFormat: Reftable}, FalseType},
		"new":    {Newest, Options{}, UnpeeledRewrite},
	} {
		t.Run(name, func(t *testing.T) {
			Need(t, w.which)
			w.build(t, w.o)
		})
	}
}
