package hook

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"refaudit/oid"
	"refaudit/repo"
)

func TestReadUpdates(t *testing.T) {
	zero, one := strings.Repeat("0", 40), strings.Repeat("1", 40)
	got, err := ReadUpdates(strings.NewReader(zero+" "+one+" refs/tags/x\n"+one+" "+zero+" refs/heads/a b\n"), oid.SHA1)
	if err != nil || len(got) != 2 || got[0].Ref != "refs/tags/x" || !got[1].New.IsZero() || got[1].Ref != "refs/heads/a b" {
		t.Errorf("%v %v", got, err)
	}
	good := zero + " " + one + " refs/tags/x\n"
	for _, bad := range []string{"\n", strings.Repeat("a", maxRefName-1) + "\n", "x\n", zero + " " + one + "\n", "xx " + one + " refs/a\n", strings.Repeat("0", 64) + " " + strings.Repeat("1", 64) + " refs/a\n"} {
		if _, err := ReadUpdates(strings.NewReader(bad), oid.SHA1); err == nil {
			t.Errorf("%q was read", bad)
		}
		if got, err := ReadUpdates(strings.NewReader(good+bad+good), oid.SHA1); err == nil || !strings.HasPrefix(err.Error(), "line 2 of standard input: ") || len(got) != 2 {
			t.Errorf("beside %.50q: %v %v", bad, got, err)
		}
	}
}

func TestALineThatHasNoEnd(t *testing.T) {
	good := strings.Repeat("0", 40) + " " + strings.Repeat("1", 40) + " refs/tags/x\n"
	got, err := ReadUpdates(strings.NewReader(good+strings.Repeat("a", maxRefName+1)), oid.SHA1)
	if len(got) != 1 || err == nil || err.Error() != "line 2 of standard input is longer than any that git writes" {
		t.Errorf("%v %v", got, err)
	}
}

func FuzzReadUpdates(f *testing.F) {
	f.Add([]byte(strings.Repeat("0", 40) + " " + strings.Repeat("1", 40) + " refs/tags/x\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		all, err := ReadUpdates(strings.NewReader(string(in)), oid.SHA1)
		for _, u := range all {
			if u.Ref == "" && err == nil && !strings.Contains(string(in), " \n") && !strings.HasSuffix(string(in), " ") {
				t.Errorf("a ref without a name of %q", in)
			}
		}
	})
}

func config(t *testing.T, text string) *repo.Config {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{"objects", "refs"} {
		os.Mkdir(filepath.Join(dir, d), 0o755)
	}
	os.WriteFile(filepath.Join(dir, "HEAD"), []byte("ref: refs/heads/main\n"), 0o644)
	os.WriteFile(filepath.Join(dir, "config"), []byte(text), 0o644)
	r, err := repo.Open(dir, repo.Options{Env: repo.EmptyEnv})
	if err != nil {
		t.Fatal(err)
	}
	return r.Config
}

func TestSettings(t *testing.T) {
	if s, err := ReadSettings(config(t, "")); err != nil || s != Defaults {
		t.Errorf("%+v %v", s, err)
	}
	s, err := ReadSettings(config(t, "[refaudit \"hook\"]\nonError = reject\nonTimeout = allow\ntimeout = 1500ms\nmaxChainDepth = 3\nmaxTagSize = 1k\n"))
	if want := (Settings{Reject, Allow, 1500 * time.Millisecond, 3, 1024}); err != nil || s != want {
		t.Errorf("%+v %v", s, err)
	}
	if s, err := ReadSettings(config(t, "[refaudit \"hook\"]\ntimeout = 7\n")); err != nil || s.Timeout != 7*time.Second {
		t.Errorf("%+v %v", s, err)
	}
	for _, bad := range []string{"onError = maybe", "onTimeout", "timeout = soon", "timeout = -1", "maxTagSize = many"} {
		if s, err := ReadSettings(config(t, "[refaudit \"hook\"]\n"+bad+"\n")); err == nil || s != Defaults {
			t.Errorf("%s: %+v %v", bad, s, err)
		}
		want := Defaults
		if want.OnError = Reject; bad == "onError = maybe" {
			continue
		}
		if s, err := ReadSettings(config(t, "[refaudit \"hook\"]\nonError = reject\n"+bad+"\n")); err == nil || s != want {
			t.Errorf("%s beside onError: %+v %v", bad, s, err)
		}
	}
}

// list is every file below a folder, with its text.
func list(t *testing.T, dir string) (all []string) {
	t.Helper()
	filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			t.Fatal(err)
		}
		if !d.IsDir() {
			text, _ := os.ReadFile(path)
			st, _ := d.Info()
			rel, _ := filepath.Rel(dir, path)
			all = append(all, rel+" "+st.Mode().String()+"\n"+string(text))
		}
		return nil
	})
	return all
}

func TestInstallKeepsTheHookThatIsThere(t *testing.T) {
	for _, style := range Styles {
		for _, there := range []string{"", "#!/bin/sh\nexit 3\n"} {
			dir := t.TempDir()
			hooks := filepath.Join(dir, "hooks")
			os.Mkdir(hooks, 0o755)
			if there != "" {
				os.WriteFile(filepath.Join(hooks, "pre-receive"), []byte(there), 0o755)
			}
			before := list(t, dir)
			p := Place{GitDir: dir, Hooks: hooks, Style: style}
			if did, err := Install(p, "/opt/ref audit"); err != nil || len(did) == 0 {
				t.Fatalf("%s: %v %v", style, did, err)
			}
			during := list(t, dir)
			text := strings.Join(during, "\n")
			if !strings.Contains(text, "exec '/opt/ref audit' hook pre-receive") || !strings.Contains(text, strings.TrimPrefix(there, "#!/bin/sh\n")) {
				t.Errorf("%s: %s", style, text)
			}
			if did, err := Install(p, "/opt/ref audit"); err != nil || len(did) != 0 || !slices.Equal(list(t, dir), during) {
				t.Errorf("%s: a second install did %v %v", style, did, err)
			}
			if did, err := Uninstall(p); err != nil || len(did) == 0 {
				t.Errorf("%s: %v %v", style, did, err)
			}
			if after := list(t, dir); !slices.Equal(before, after) {
				t.Errorf("%s: before %q, after %q", style, before, after)
			}
			if did, err := Uninstall(p); err != nil || len(did) != 0 {
				t.Errorf("%s: a second uninstall did %v %v", style, did, err)
			}
		}
	}
}
