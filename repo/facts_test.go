package repo

import (
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"refaudit/internal/gittest"
	"refaudit/oid"
)

// configured is a bare repository with these lines in its config. No git is needed.
func configured(t testing.TB, config string) (*home, *Repo) {
	t.Helper()
	h := newHome(t)
	for _, dir := range []string{"r.git/objects", "r.git/refs", "r.git/info"} {
		if err := os.MkdirAll(h.path(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	h.write("r.git/HEAD", "ref: refs/heads/main\n")
	h.write("r.git/config", "[core]\nrepositoryformatversion = 0\nbare = true\n"+config)
	r, err := Open("r.git", h.options())
	if err != nil {
		t.Fatal(err)
	}
	return h, r
}

func TestTimeouts(t *testing.T) {
	_, r := configured(t, "")
	for name, get := range map[string]func() (time.Duration, error){
		"1s": r.PackedRefsTimeout, "100ms": r.FilesRefLockTimeout, "100ms ": r.ReftableLockTimeout,
	} {
		if d, err := get(); err != nil || d.String() != strings.TrimSpace(name) {
			t.Errorf("default %s: %v %v", name, d, err)
		}
	}
	_, r = configured(t, "packedRefsTimeout = 2k\nfilesRefLockTimeout = -5\n[reftable]\nlockTimeout = 9223372036854775807\n")
	if d, err := r.PackedRefsTimeout(); d != 2048*time.Millisecond || err != nil {
		t.Error(d, err)
	}
	if d, err := r.FilesRefLockTimeout(); d >= 0 || err != nil {
		t.Error(d, err)
	}
	if d, err := r.ReftableLockTimeout(); d < 100*365*24*time.Hour || err != nil {
		t.Error(d, err)
	}
	_, r = configured(t, "packedRefsTimeout = 3g\nfilesRefLockTimeout = soon\n[reftable]\nlockTimeout = -2\n")
	for _, get := range []func() (time.Duration, error){r.PackedRefsTimeout, r.FilesRefLockTimeout, r.ReftableLockTimeout} {
		if d, err := get(); err == nil || !strings.Contains(err.Error(), "r.git/config:") {
			t.Error(d, err)
		}
	}
}

func TestSharedRepository(t *testing.T) {
	for text, want := range map[string]struct {
		s         Shared
		file, dir fs.FileMode // of 0600 and 0700
	}{
		"":                              {Shared{}, 0o600, 0o700},
		"sharedRepository":              {Shared{Perm: 0o660}, 0o660, 0o770 | fs.ModeSetgid},
		"sharedRepository = umask":      {Shared{}, 0o600, 0o700},
		"sharedRepository = group":      {Shared{Perm: 0o660}, 0o660, 0o770 | fs.ModeSetgid},
		"sharedRepository = true":       {Shared{Perm: 0o660}, 0o660, 0o770 | fs.ModeSetgid},
		"sharedRepository = false":      {Shared{}, 0o600, 0o700},
		"sharedRepository = 0":          {Shared{}, 0o600, 0o700},
		"sharedRepository =":            {Shared{}, 0o600, 0o700},
		"sharedRepository = 1":          {Shared{Perm: 0o660}, 0o660, 0o770 | fs.ModeSetgid},
		"sharedRepository = 2":          {Shared{Perm: 0o664}, 0o664, 0o775 | fs.ModeSetgid},
		"sharedRepository = world":      {Shared{Perm: 0o664}, 0o664, 0o775 | fs.ModeSetgid},
		"sharedRepository = everybody":  {Shared{Perm: 0o664}, 0o664, 0o775 | fs.ModeSetgid},
		"sharedRepository = 0640":       {Shared{Perm: 0o640, Exact: true}, 0o640, 0o750 | fs.ModeSetgid},
		"sharedRepository = 0777":       {Shared{Perm: 0o666, Exact: true}, 0o666, 0o777 | fs.ModeSetgid},
		"sharedRepository = 0600":       {Shared{Perm: 0o600, Exact: true}, 0o600, 0o700},
		"sharedRepository = 0440":       {},
		"sharedRepository = everything": {},
	} {
		_, r := configured(t, text+"\n")
		s, err := r.Shared()
		if want.file == 0 {
			if err == nil {
				t.Errorf("%s: %+v", text, s)
			}
			continue
		}
		if s != want.s || err != nil || s.File(0o600) != want.file || s.Dir(0o700) != want.dir {
			t.Errorf("%s: %+v %v %o %o", text, s, err, s.File(0o600), s.Dir(0o700))
		}
	}
	if m := (Shared{Perm: 0o660}).File(0o444); m != 0o444 {
		t.Errorf("a file that nobody may write: %o", m)
	}
}

// The modes that git itself gives to a file and a folder.
func TestSharedModesAreGits(t *testing.T) {
	gits(t, func(t *testing.T, p *gittest.Program) {
		for _, shared := range []string{"umask", "group", "all", "0640", "0600", "0666", "0644", "0604"} {
			h := newHome(t)
			h.must(p, ".", "init", "-q", "--bare", "r.git")
			h.must(p, "r.git", "config", "core.sharedRepository", shared)
			h.must(p, "r.git", "symbolic-ref", "refs/heads/new/x", "refs/heads/y")
			r, err := Open("r.git", h.options())
			if err != nil {
				t.Fatal(err)
			}
			s, err := r.Shared()
			if err != nil {
				t.Fatal(err)
			}
			h.write("plain/file", "")
			for made, by := range map[string]fs.FileMode{"refs/heads/new": s.Dir(mode(t, h.path("plain"))), "refs/heads/new/x": s.File(mode(t, h.path("plain/file")))} {
				if git := mode(t, h.path("r.git/"+made)); git != by {
					t.Errorf("%s, %s: %v, git's is %v", shared, made, by, git)
				}
			}
		}
	})
}

func mode(t *testing.T, path string) fs.FileMode {
	t.Helper()
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return st.Mode() & (fs.ModePerm | fs.ModeSetgid)
}

func TestPromisors(t *testing.T) {
	for config, want := range map[string][]string{
		"":                                     nil,
		"[extensions]\npartialClone = o\n":     {"o"},
		"[remote \"a.b\"]\npromisor\n":         {"a.b"},
		"[remote \"a\"]\npromisor = false\n":   nil,
		"[remote \"a\"]\npartialCloneFilter=x": {"a"},
		"[remote]\npromisor = true\n":          nil,
		"[remote \"o\"]\npromisor = true\n[extensions]\npartialClone = o\n[remote \"p\"]\npromisor = 1\npartialCloneFilter = blob:none\n": {"o", "p"},
	} {
		_, r := configured(t, config)
		if got, err := r.Promisors(); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v %v", config, got, err)
		}
	}
	_, r := configured(t, "[remote \"a\"]\npromisor = perhaps\n")
	if got, err := r.Promisors(); err == nil {
		t.Error(got)
	}
}

func TestSwitches(t *testing.T) {
	h, r := configured(t, "")
	if on, err := r.UseReplaceRefs(); !on || err != nil {
		t.Error(err)
	}
	if on, err := r.IgnoreCase(); on || err != nil {
		t.Error(err)
	}
	if r.ReplaceBase() != "refs/replace/" || quarantine(r) != "unset" || r.AlternatesEnv() != "" {
		t.Error("from nowhere")
	}
	h.env["GIT_NO_REPLACE_OBJECTS"] = ""
	h.env["GIT_REPLACE_REF_BASE"] = "refs/mine/"
	h.env["GIT_QUARANTINE_PATH"] = "/q"
	h.env["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = `"/a\"b":/c`
	if on, err := r.UseReplaceRefs(); on || err != nil {
		t.Error(err)
	}
	if r.ReplaceBase() != "refs/mine/" || quarantine(r) != "/q" || r.AlternatesEnv() != `"/a\"b":/c` {
		t.Error("not from the environment")
	}
	_, r = configured(t, "useReplaceRefs = no\nignoreCase\n")
	if on, err := r.UseReplaceRefs(); on || err != nil {
		t.Error(err)
	}
	if on, err := r.IgnoreCase(); !on || err != nil {
		t.Error(err)
	}
}

func TestShallow(t *testing.T) {
	h, r := configured(t, "")
	if ids, shallow, err := r.Shallow(); ids != nil || shallow || err != nil {
		t.Error(ids, shallow, err)
	}
	a, b := strings.Repeat("a", 40), strings.Repeat("B", 40)
	for text, want := range map[string]int{"": 0, a + "\n": 1, a + "\n" + b: 2, a + " anything\r\n": 1, a + "\n\n": -1, a[1:] + "\n": -1, "g" + a[1:] + "\n": -1, a + strings.Repeat(" ", 2000) + "\n": -1} {
		h.write("r.git/shallow", text)
		ids, shallow, err := r.Shallow()
		if !shallow || (err != nil) != (want < 0) || err == nil && len(ids) != want {
			t.Errorf("%q: %v %v %v", text, ids, shallow, err)
		}
	}
	h.write("r.git/shallow", a+"\nx\n")
	if _, _, err := r.Shallow(); err == nil || !strings.Contains(err.Error(), "shallow:2:") {
		t.Errorf("%v", err)
	}
	h.write("other", b+"\n")
	h.env["GIT_SHALLOW_FILE"] = "other"
	if ids, _, err := r.Shallow(); err != nil || len(ids) != 1 || ids[0] != oid.MustParse(b) {
		t.Error(ids, err)
	}
	h.env["GIT_SHALLOW_FILE"] = ""
	if ids, shallow, err := r.Shallow(); ids != nil || shallow || err != nil {
		t.Error(ids, shallow, err)
	}
	delete(h.env, "GIT_SHALLOW_FILE")
	os.Remove(h.path("r.git/shallow"))
	os.Mkdir(h.path("r.git/shallow"), 0o755)
	if _, _, err := r.Shallow(); err == nil {
		t.Error("a folder is no boundary")
	}
}

func TestGrafts(t *testing.T) {
	h, r := configured(t, "")
	if g, bad, err := r.Grafts(); g != nil || bad != nil || err != nil {
		t.Error(g, bad, err)
	}
	id := func(c string) string { return strings.Repeat(c, 40) }
	h.write("r.git/info/grafts", "# comment\n\n"+id("1")+"\n"+id("2")+" "+id("3")+"\t"+id("4")+" \r\n"+id("5")+"  "+id("6")+"\nx\n"+id("7")+id("8")+"\n")
	g, bad, err := r.Grafts()
	if err != nil || fmt.Sprint(bad) != "[5 6 7]" || len(g) != 2 || g[0].Parents != nil || len(g[1].Parents) != 2 || g[1].Parents[1] != oid.MustParse(id("4")) {
		t.Errorf("%v %v %v", g, bad, err)
	}
}

func TestHooksAsGitListsThem(t *testing.T) {
	p := gittest.Need(t, gittest.Newest)
	const event = "reference-transaction"
	h := newHome(t)
	h.must(p, ".", "init", "-q", "r")
	h.must(p, ".", "init", "-q", "--bare", "b.git")
	check := func(dir string) {
		t.Helper()
		r, err := Open(dir, h.options())
		if err != nil {
			t.Fatal(err)
		}
		ours, err := r.Hooks(event)
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		for line := range strings.Lines(h.git(p, dir, "hook", "list", event).Stdout) {
			want = append(want, strings.TrimSpace(line))
		}
		said := make([]string, 0, len(ours))
		for _, name := range ours {
			if name, found := strings.CutPrefix(name, "hook."); found {
				said = append(said, name)
			} else {
				said = append(said, "hook from hookdir")
			}
		}
		if fmt.Sprint(said) != fmt.Sprint(want) {
			t.Errorf("%s: %v, git: %v", dir, ours, want)
		}
	}
	both := func() { t.Helper(); check("r"); check("b.git") }
	both()
	script := func(path string, perm fs.FileMode) {
		h.write(path, "#!/bin/sh\n")
		os.Chmod(h.path(path), perm)
	}
	script("r/.git/hooks/"+event, 0o644)
	script("b.git/hooks/"+event, 0o644)
	both()
	script("r/.git/hooks/"+event, 0o755)
	script("b.git/hooks/"+event, 0o755)
	both()
	h.write(".gitconfig", "[core]\nhooksPath = "+os.DevNull+"\n")
	both()
	h.write(".gitconfig", "[core]\nhooksPath = mine\n")
	both()
	script("r/mine/"+event, 0o755)
	script("b.git/mine/"+event, 0o755)
	both()
	script("central/"+event, 0o755)
	h.write(".gitconfig", "[core]\nhooksPath = ~/central\n")
	both()
	for _, config := range []string{
		"[hook \"a\"]\nevent = " + event + "\ncommand = true\n[hook \"b\"]\nevent = pre-commit\nevent = " + event + "\ncommand = true\n",
		"[hook \"a\"]\nevent = " + event + "\ncommand = true\nevent =\n",
		"[hook \"a\"]\nevent = " + event + "\ncommand = true\n[hook \"b\"]\nevent = " + event + "\ncommand = true\n[hook \"a\"]\nevent = " + event + "\n",
	} {
		h.write(".gitconfig", config)
		both()
	}
	h.write(".gitconfig", "[hook \"a\"]\nevent = "+event+"\ncommand = true\nenabled = no\n")
	if r, _ := Open("b.git", h.options()); r != nil {
		if names, err := r.Hooks(event); err != nil || len(names) != 1 {
			t.Errorf("a hook that is off: %v %v", names, err)
		}
	}
}

func TestSignsOfReplication(t *testing.T) {
	h, r := configured(t, "")
	if signs := r.Replicated(); len(signs) != 0 {
		t.Fatalf("signs above the test's own folder: %v", signs)
	}
	h.write("etc/gerrit.config", "")
	if signs := r.Replicated(); len(signs) != 0 {
		t.Errorf("a Gerrit that nothing replicates: %v", signs)
	}
	for _, sign := range []struct{ file, word string }{
		{"plugins/multi-site.jar", "multi-site"}, {".gitaly-metadata", "Gitaly"}, {"+gitaly/partitions/x", "write-ahead"},
	} {
		h.write(sign.file, "")
		if got := strings.Join(r.Replicated(), "\n"); !strings.Contains(got, sign.word) {
			t.Errorf("%s: %q", sign.file, got)
		}
	}
	os.MkdirAll(h.path("@cluster/repositories"), 0o755)
	os.Rename(h.path("r.git"), h.path("@cluster/repositories/7"))
	r, err := Open("@cluster/repositories/7", h.options())
	if err != nil || !strings.Contains(strings.Join(r.Replicated(), "\n"), "Praefect") {
		t.Error(r, err)
	}
}

func FuzzBoundary(f *testing.F) {
	id := strings.Repeat("1", 40)
	f.Add([]byte(id + "\n" + id + " " + id + "\n"))
	f.Add([]byte("# x\n" + id + "\r\n\n" + id + id))
	f.Fuzz(func(t *testing.T, data []byte) {
		n := 0
		for line, text := range lines(data) {
			if n++; line != n {
				t.Fatalf("line %d is called %d", n, line)
			}
			if g, ok := parseGraft(oid.SHA1, text); ok && len(text) < 40+41*len(g.Parents) {
				t.Fatalf("%d parents in %q", len(g.Parents), text)
			}
			if id, rest, ok := leadingID(oid.SHA256, text); ok && id.String()+string(rest) != strings.ToLower(string(text[:64]))+string(text[64:]) {
				t.Fatalf("%q is %v", text, id)
			}
		}
	})
}

func quarantine(r *Repo) string {
	if path, set := r.Quarantine(); set {
		return path
	}
	return "unset"
}
