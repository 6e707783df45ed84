package remotehelper

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"refaudit/internal/gittest"
	"refaudit/internal/logging"
)

// TestMain is the remote helper where git calls the test program by that name.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "git-remote-refaudit" {
		os.Exit(asHelper())
	}
	os.Exit(m.Run())
}

func asHelper() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	dir, _ := os.Getwd()
	err := Run(ctx, Options{Name: os.Args[1], URL: os.Args[2], Env: os.Environ(), Dir: dir, In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Log: logging.Discard(), Now: time.Now})
	if err != nil {
		fmt.Fprintln(os.Stderr, "fatal:", err)
		return 128
	}
	return 0
}

// world is a server's repository, and a place for clients.
type world struct {
	t   *testing.T
	src *gittest.Repo
	git *gittest.Program // the clients'
	dir string
	tmp string
	env []string
}

func newWorld(t *testing.T, o gittest.Options) *world {
	t.Helper()
	w := &world{t: t, src: gittest.New(t, o), dir: t.TempDir(), tmp: t.TempDir()}
	w.use(w.src.Program)
	return w
}

// use makes clients use a git program.
func (w *world) use(p *gittest.Program) {
	w.t.Helper()
	w.git = p
	bin := filepath.Join(w.t.TempDir(), "bin")
	self, err := os.Executable()
	if err == nil {
		err = os.MkdirAll(bin, 0o700)
	}
	if err == nil {
		err = os.Symlink(self, filepath.Join(bin, "git-remote-refaudit"))
	}
	if err != nil {
		w.t.Fatal(err)
	}
	w.env = []string{"PATH=" + strings.Join([]string{bin, filepath.Dir(p.Path), os.Getenv("PATH")}, ":"), "TMPDIR=" + w.tmp, "GIT_ALLOW_PROTOCOL=refaudit:file:ssh:https"}
}

// inFormat is how git clone is told to make a client with refs as the server's.
func (w *world) inFormat() string {
	if !w.git.Reftable() {
		return "--tags" // what it does anyway
	}
	return "--ref-format=" + w.src.RefFormat
}

// in is the path of a client.
func (w *world) in(name string) string { return filepath.Join(w.dir, name) }

// url is the server's repository as git clients are to name it.
func (w *world) url() string { return "refaudit::" + w.src.Path }

// run runs git in a client (or in the folder of clients, for "") through the helper.
func (w *world) run(client string, args ...string) gittest.Result {
	w.t.Helper()
	return w.git.Run(w.t, w.in(client), w.env, "", args...)
}

// must is run for what has to succeed, and gives its output.
func (w *world) must(client string, args ...string) string {
	w.t.Helper()
	r := w.run(client, args...)
	if r.Code != 0 || r.Died {
		w.t.Fatalf("git %s: %v", strings.Join(args, " "), r)
	}
	return strings.TrimSuffix(r.Stdout, "\n")
}

// refused runs what has to fail, and gives what it said.
func (w *world) refused(client string, args ...string) string {
	w.t.Helper()
	r := w.run(client, args...)
	if r.Code == 0 || r.Died {
		w.t.Fatalf("git %s: %v", strings.Join(args, " "), r)
	}
	return r.Stderr
}

// silent runs what has to succeed and say nothing at all.
func (w *world) silent(client string, args ...string) {
	w.t.Helper()
	if r := w.run(client, args...); r.Code != 0 || r.Stderr != "" {
		w.t.Fatalf("git %s: %v", strings.Join(args, " "), r)
	}
}

// clean fails the test if the helper has left anything in a git dir or in TMPDIR.
func (w *world) clean(gitDir string) {
	w.t.Helper()
	filepath.WalkDir(w.in(gitDir), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			w.t.Fatal(err)
		}
		name := d.Name()
		if strings.HasPrefix(name, "tmp_") || strings.HasSuffix(name, ".keep") || strings.HasSuffix(name, ".lock") || strings.Contains(name, "refaudit") {
			w.t.Errorf("left: %s", path)
		}
		return nil
	})
	left, err := os.ReadDir(w.tmp)
	if err != nil || len(left) > 0 {
		w.t.Errorf("left in TMPDIR: %v %v", left, err)
	}
}

// held is what a refused fetch must leave alone. (git itself empties FETCH_HEAD before it asks anybody.)
func (w *world) held(gitDir string) map[string]string {
	w.t.Helper()
	tree := map[string]string{}
	err := filepath.WalkDir(w.in(gitDir), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() == "FETCH_HEAD" {
			return err
		}
		tree[path] = ""
		if d.Type().IsRegular() {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			tree[path] = fmt.Sprintf("%x", sha256.Sum256(b))
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return tree
}

// unchanged runs fn, after which a git dir has to be as it was.
func (w *world) unchanged(gitDir string, fn func()) {
	w.t.Helper()
	before := w.held(gitDir)
	fn()
	after := w.held(gitDir)
	for path, sum := range before {
		if now, ok := after[path]; !ok || now != sum {
			w.t.Errorf("%s is changed or gone", path)
		}
	}
	for path := range after {
		if _, ok := before[path]; !ok {
			w.t.Errorf("%s is new", path)
		}
	}
	w.clean(gitDir)
}

// lie makes the server advertise another peel than a tag has.
func (w *world) lie(tag, object, right, wrong string) {
	w.t.Helper()
	if w.src.RefFormat == gittest.Reftable {
		w.src.PatchTables(object+right, object+wrong)
	} else {
		w.src.Git("pack-refs", "--all")
		w.src.EditPacked(func(s string) string {
			return strings.Replace(s, "refs/tags/"+tag+"\n^"+right, "refs/tags/"+tag+"\n^"+wrong, 1)
		})
	}
	if list := w.src.Git("ls-remote", w.src.Path); !strings.Contains(list, wrong+"\trefs/tags/"+tag+"^{}") {
		w.t.Fatalf("nothing wrong is served:\n%s", list)
	}
}

// liar makes a new tag of B that is said to peel to A.
func (w *world) liar(name string) {
	w.t.Helper()
	id := w.src.WriteTag(w.src.B, "commit", name)
	w.src.Git("update-ref", "refs/tags/"+name, id)
	w.lie(name, id, w.src.B, w.src.A)
}

// commit makes a commit on the server's main.
func (w *world) commit(parent, text string) string {
	w.t.Helper()
	id := w.src.Git("commit-tree", w.src.Tree, "-p", parent, "-m", text)
	w.src.Git("update-ref", "refs/heads/main", id)
	return id
}

func (w *world) tags(client string) string {
	w.t.Helper()
	return strings.Join(strings.Fields(w.must(client, "tag", "-l")), " ")
}

// whole fails the test unless git finds the client sound.
func (w *world) whole(client string) {
	w.t.Helper()
	w.must(client, "fsck", "--strict")
}

// gits are all that are here.
func gits(t *testing.T) map[string]*gittest.Program {
	all := map[string]*gittest.Program{}
	for _, which := range []gittest.Which{gittest.Old, gittest.Mid, gittest.Newest} {
		if p, _ := gittest.Find(which); p != nil {
			all[p.Version] = p
		}
	}
	if len(all) == 0 {
		t.Fatal("no git")
	}
	return all
}
