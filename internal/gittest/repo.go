package gittest

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"refaudit/oid"
)

// The ref formats, as `git init --ref-format` knows them.
const (
	Files    = "files"
	Reftable = "reftable"
)

// Options say what kind of repository to make. The zero Options is SHA-1, files, the newest git.
type Options struct {
	Format    oid.Format
	RefFormat string
	Git       Which
}

func (o Options) String() string {
	o = o.filled()
	return o.RefFormat + "/" + o.Format.String()
}

func (o Options) filled() Options {
	if o.Format == 0 {
		o.Format = oid.SHA1
	}
	if o.RefFormat == "" {
		o.RefFormat = Files
	}
	return o
}

// AllFormats are both ref formats in both object formats.
var AllFormats = []Options{
	{Format: oid.SHA1, RefFormat: Files}, {Format: oid.SHA256, RefFormat: Files},
	{Format: oid.SHA1, RefFormat: Reftable}, {Format: oid.SHA256, RefFormat: Reftable},
}

// Repo is a bare repository. Ids are in hex, as git takes and prints them.
//
//	A <- B      commits; both have one tree with one blob
//	|    |
//	v1   v2     annotated tags; main is at B
type Repo struct {
	Path       string
	Format     oid.Format
	RefFormat  string
	A, B       string // commits
	V1, V2     string // tag objects
	Tree, Blob string
	MadeBy     string   // the version of the git that made it
	Program    *Program // may be changed, to go on with another git
	t          testing.TB
	ExtraEnv   []string // for every command
}

// New makes a repository in a temporary folder.
func New(t testing.TB, o Options) *Repo {
	t.Helper()
	r := Init(t, o)
	r.Blob = r.WriteObject("blob", []byte("hello"))
	r.Tree = r.GitIn("100644 blob "+r.Blob+"\tfile\n", "mktree")
	r.A = r.Git("commit-tree", r.Tree, "-m", "A")
	r.B = r.Git("commit-tree", r.Tree, "-p", r.A, "-m", "B")
	r.Git("update-ref", "refs/heads/main", r.B)
	r.Git("tag", "-a", "-m", "one", "v1", r.A)
	r.Git("tag", "-a", "-m", "two", "v2", r.B)
	r.V1, r.V2 = r.Git("rev-parse", "refs/tags/v1"), r.Git("rev-parse", "refs/tags/v2")
	return r
}

// Init makes a repository without commits in a temporary folder.
func Init(t testing.TB, o Options) *Repo {
	t.Helper()
	return InitAt(t, o, filepath.Join(t.TempDir(), "repo.git"))
}

// InitAt makes a repository without commits at path.
func InitAt(t testing.TB, o Options, path string) *Repo {
	t.Helper()
	o = o.filled()
	p := o.program(t)
	argv := []string{"init", "-q", "--bare", "-b", "main", "--template=", "--object-format=" + o.Format.String()}
	if p.Reftable() {
		argv = append(argv, "--ref-format="+o.RefFormat)
	}
	argv = append(argv, path)
	p.Run(t, "", nil, "", argv...).must(t, argv...)
	return &Repo{Path: path, Format: o.Format, RefFormat: o.RefFormat, MadeBy: p.Version, Program: p, t: t}
}

// program is the git that the options ask for.
func (o Options) program(t testing.TB) *Program {
	t.Helper()
	p := Need(t, o.Git)
	if o.RefFormat == Reftable && !p.Reftable() {
		if o.Git != Any {
			t.Fatalf("git %s makes no reftables", p.Version)
		}
		p = Need(t, Mid) // says what is missing
	}
	return p
}

// Git runs a command that must succeed and gives what it prints, without the last newline.
func (r *Repo) Git(args ...string) string {
	r.t.Helper()
	return r.GitIn("", args...)
}

// GitIn is Git with something to read.
func (r *Repo) GitIn(stdin string, args ...string) string {
	r.t.Helper()
	return r.run(nil, stdin, args...).must(r.t, args...)
}

// Try runs a command that may fail; a death by signal fails the test.
func (r *Repo) Try(args ...string) (stdout, stderr string, code int) {
	r.t.Helper()
	res := r.run(nil, "", args...)
	if res.Died {
		r.t.Fatalf("git %s died of a signal: %v", strings.Join(args, " "), res)
	}
	return res.Stdout, res.Stderr, res.Code
}

func (r *Repo) run(env []string, stdin string, args ...string) Result {
	r.t.Helper()
	return r.Program.Run(r.t, "", append(append([]string{}, r.ExtraEnv...), env...), stdin,
		append([]string{"--git-dir=" + r.Path}, args...)...)
}

// Use goes on with another git.
func (r *Repo) Use(w Which) *Repo {
	r.t.Helper()
	r.Program = Need(r.t, w)
	return r
}

// WriteObject writes a loose object, whatever git thinks of its content, and gives its id.
func (r *Repo) WriteObject(kind string, content []byte) string {
	r.t.Helper()
	id := r.Format.Object(kind, content).String()
	r.WriteLoose(id, kind, content)
	return id
}

// WriteLoose writes a loose object under any name.
func (r *Repo) WriteLoose(id, kind string, content []byte) {
	r.t.Helper()
	var z bytes.Buffer
	w := zlib.NewWriter(&z)
	fmt.Fprintf(w, "%s %d\x00", kind, len(content))
	w.Write(content)
	w.Close()
	r.WriteFile(r.LooseName(id), z.Bytes())
}

// LooseName is the path of a loose object in the repository.
func (r *Repo) LooseName(id string) string { return "objects/" + id[:2] + "/" + id[2:] }

// RemoveLoose takes a loose object away.
func (r *Repo) RemoveLoose(id string) {
	r.t.Helper()
	if err := os.Remove(r.File(r.LooseName(id))); err != nil {
		r.t.Fatal(err)
	}
}

// File is the path of a file of the repository.
func (r *Repo) File(name string) string { return filepath.Join(r.Path, filepath.FromSlash(name)) }

// ReadFile reads a file of the repository.
func (r *Repo) ReadFile(name string) []byte {
	r.t.Helper()
	b, err := os.ReadFile(r.File(name))
	if err != nil {
		r.t.Fatal(err)
	}
	return b
}

// WriteFile writes a file of the repository, over one that may be read-only.
func (r *Repo) WriteFile(name string, content []byte) {
	r.t.Helper()
	path := r.File(name)
	err := os.MkdirAll(filepath.Dir(path), 0o777)
	if st, e := os.Lstat(path); e == nil && st.Mode().IsRegular() {
		os.Chmod(path, 0o644)
	}
	if err == nil {
		err = os.WriteFile(path, content, 0o644)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// WriteTag writes a tag object that says of its target what it is told to, and gives its id.
func (r *Repo) WriteTag(target, kind, name string) string {
	r.t.Helper()
	return r.WriteObject("tag", fmt.Appendf(nil, "object %s\ntype %s\ntag %s\ntagger C O Mitter <committer@example.com> %s\n\n%s\n", target, kind, name, Date, name))
}

// FalseTag makes refs/tags/<name>, a tag that calls its target, a blob, a commit.
func (r *Repo) FalseTag(name string) (tag, blob string) {
	r.t.Helper()
	blob = r.WriteObject("blob", []byte("garbage\n"))
	tag = r.WriteTag(blob, "commit", name)
	r.Git("update-ref", "refs/tags/"+name, tag)
	return tag, blob
}

// Packed is the path of packed-refs.
func (r *Repo) Packed() string { return r.File("packed-refs") }

// EditPacked changes packed-refs, which must not stay as it is.
func (r *Repo) EditPacked(edit func(string) string) {
	r.t.Helper()
	before := string(r.ReadFile("packed-refs"))
	after := edit(before)
	if after == before {
		r.t.Fatalf("packed-refs is not changed by the edit:\n%s", before)
	}
	r.WriteFile("packed-refs", []byte(after))
}

// Tables are the paths of the tables of the main stack, the oldest first.
func (r *Repo) Tables() []string {
	r.t.Helper()
	var paths []string
	for _, name := range strings.Fields(string(r.ReadFile("reftable/tables.list"))) {
		paths = append(paths, r.File("reftable/"+name))
	}
	return paths
}

// PatchTables replaces bytes, given in hex, in every table and mends nothing else: ref blocks
// carry no checksum. At least one table must have them.
func (r *Repo) PatchTables(oldHex, newHex string) {
	r.t.Helper()
	from, to := unhex(r.t, oldHex), unhex(r.t, newHex)
	n := 0
	for _, path := range r.Tables() {
		name, _ := filepath.Rel(r.Path, path)
		if data := r.ReadFile(name); bytes.Contains(data, from) {
			r.WriteFile(name, bytes.ReplaceAll(data, from, to))
			n++
		}
	}
	if n == 0 {
		r.t.Fatalf("%s is in no table of %s", oldHex, r.Path)
	}
}
