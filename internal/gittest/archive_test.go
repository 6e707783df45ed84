package gittest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"refaudit/oid"
)

var rewrite = flag.Bool("rewrite", false, "make the archives in testdata anew")

// A plan is one archive to make.
type plan struct {
	fault Fault
	o     Options
}

// plans are every fault in every format; what each git makes by itself, by each git.
func plans() []plan {
	var all []plan
	for _, f := range Faults {
		for _, o := range AllFormats {
			if !f.in(o.RefFormat) {
				continue
			}
			gits := []Which{Any}
			if f.Name == "clean" || f.Name == "replaced" {
				gits = []Which{Old, Mid, Newest}
			}
			for _, w := range gits {
				if o.Git = w; w != Old || o.RefFormat == Files {
					all = append(all, plan{f, o})
				}
			}
		}
	}
	return all
}

// make builds the repository, looks whether the fault is there, and says what is known of it.
func (p plan) make(t *testing.T) (*Repo, Archived) {
	r, want := p.fault.Build(t, p.o)
	for _, w := range want {
		if !w.Cached.IsZero() && !r.caches(string(w.Ref), w.OID.String(), w.Cached.String()) {
			t.Errorf("%s: %s is not cached for %s", w.ID, w.Cached, w.Ref)
		}
	}
	r.settle()
	version := strings.Join(strings.SplitN(r.MadeBy, ".", 3)[:2], ".")
	a := Archived{
		Name:  fmt.Sprintf("%s-%s-%s-%s", p.fault.Name, version, r.RefFormat, r.Format),
		Fault: p.fault.Name, Git: r.MadeBy, RefFormat: r.RefFormat, Format: r.Format.String(), Want: want,
	}
	if out := r.run(nil, "", "for-each-ref"); !out.Died && out.Code == 0 && out.Stdout != "" {
		a.Refs, a.Peels = r.Refs(), r.Peels()
	}
	return r, a
}

// settle gives tables names that follow from their content, where git's are drawn by chance.
func (r *Repo) settle() {
	r.t.Helper()
	if r.RefFormat != Reftable {
		return
	}
	list := string(r.ReadFile("reftable/tables.list"))
	chance := map[string]string{} // of each table: what stands for git's random digits
	for _, name := range strings.Fields(list) {
		chance[name] = "00000000" // it may be listed and gone
	}
	tables, err := filepath.Glob(r.File("reftable/*.ref"))
	if err != nil {
		r.t.Fatal(err)
	}
	for _, path := range tables {
		name := filepath.Base(path)
		chance[name] = fmt.Sprintf("%x", sha256.Sum256(r.ReadFile("reftable/"+name)))[:8]
	}
	for old, digits := range chance {
		name := old[:strings.LastIndex(old, "-")+1] + digits + ".ref"
		if err := os.Rename(r.File("reftable/"+old), r.File("reftable/"+name)); err != nil && !os.IsNotExist(err) {
			r.t.Fatal(err)
		}
		list = strings.ReplaceAll(list, old, name)
	}
	if list != "" {
		r.WriteFile("reftable/tables.list", []byte(list))
	}
}

// packFolder makes an archive of a folder that depends on nothing but names and bytes, and on who may write.
func packFolder(t *testing.T, dir string) []byte {
	t.Helper()
	var buf bytes.Buffer
	z, _ := gzip.NewWriterLevel(&buf, gzip.BestCompression)
	out := tar.NewWriter(z)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		st, err := os.Stat(path)
		if err != nil {
			return err
		}
		h := &tar.Header{Typeflag: tar.TypeDir, Name: filepath.ToSlash(rel) + "/", Mode: 0o755, ModTime: time.Unix(1700000000, 0), Format: tar.FormatUSTAR}
		var content []byte
		if !d.IsDir() {
			if content, err = os.ReadFile(path); err != nil {
				return err
			}
			h.Typeflag, h.Name, h.Size = tar.TypeReg, filepath.ToSlash(rel), int64(len(content))
			h.Mode = 0o444 | int64(st.Mode()&0o200)
		}
		if err := out.WriteHeader(h); err != nil {
			return err
		}
		_, err = out.Write(content)
		return err
	})
	if err == nil {
		err = out.Close()
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// What the builders make with these gits is what testdata has. With -rewrite, testdata is made anew.
func TestArchivesAreWhatTheGitsMake(t *testing.T) {
	known := map[string]Archived{}
	if !*rewrite {
		for _, a := range Archives(t) {
			known[a.Name] = a
		}
	}
	var all []Archived
	for _, p := range plans() {
		t.Run(p.fault.Name+"/"+p.o.String(), func(t *testing.T) {
			r, a := p.make(t)
			all = append(all, a)
			file := filepath.Join(testdata, a.Name+".tar.gz")
			if *rewrite {
				if err := os.WriteFile(file, packFolder(t, r.Path), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			old, ok := known[a.Name]
			if !ok {
				t.Skipf("testdata has none that git %s made: -rewrite makes it", a.Git)
			}
			compare(t, r, a, old)
		})
	}
	if *rewrite && !t.Failed() {
		writeManifest(t, all)
	}
}

// compare holds a new repository against the archived one; the bytes only if the same git made both.
func compare(t *testing.T, r *Repo, a, old Archived) {
	t.Helper()
	one, two := text(t, a), text(t, old)
	if old.Git != a.Git {
		two = bytes.ReplaceAll(two, []byte(old.Git), []byte(a.Git))
	}
	if !bytes.Equal(one, two) {
		t.Errorf("manifest.json says\n%s\nand now it is\n%s", two, one)
	}
	if old.Git != a.Git {
		return
	}
	fresh := filepath.Join(t.TempDir(), "fresh")
	if err := untar(bytes.NewReader(packFolder(t, r.Path)), fresh); err != nil {
		t.Fatal(err)
	}
	if !SameTree(t, fresh, old.unpack(t).Path) {
		t.Error("the archive holds other bytes")
	}
}

func text(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// writeManifest lists what was made, and removes archives that were not.
func writeManifest(t *testing.T, all []Archived) {
	t.Helper()
	slices.SortFunc(all, func(a, b Archived) int { return strings.Compare(a.Name, b.Name) })
	if err := os.WriteFile(filepath.Join(testdata, "manifest.json"), append(text(t, all), '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(testdata, "*.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".tar.gz")
		if !slices.ContainsFunc(all, func(a Archived) bool { return a.Name == name }) {
			os.Remove(file)
		}
	}
}

// The gits that are here read the archives as the manifest says.
func TestGitsReadTheArchives(t *testing.T) {
	EachArchive(t, func(t *testing.T, a *Archived) {
		if a.Refs == nil {
			return
		}
		r := a.Repo(t)
		if got := r.Refs(); !same(got, a.Refs) {
			t.Errorf("refs: %v\nwant %v", got, a.Refs)
		}
		if got := r.Peels(); !same(got, a.Peels) {
			t.Errorf("peels: %v\nwant %v", got, a.Peels)
		}
	})
}

func same(a, b map[string]oid.ID) bool {
	if len(a) != len(b) {
		return false
	}
	for name, id := range a {
		if b[name] != id {
			return false
		}
	}
	return true
}
