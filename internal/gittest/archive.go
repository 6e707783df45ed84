package gittest

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"refaudit/oid"
)

// Archived is a repository from testdata, and what is known of it. No git is needed to use one.
type Archived struct {
	Name      string `json:"name"`
	Fault     string `json:"fault"` // of Faults
	Git       string `json:"git"`   // the version that made it
	RefFormat string `json:"refFormat"`
	Format    string `json:"objectFormat"`
	// Refs are what git lists; nil where it can't, or lists nothing though there are refs.
	Refs map[string]oid.ID `json:"refs"`
	// Peels is what those refs truly peel to.
	Peels map[string]oid.ID `json:"peels"`
	// Want are the findings of severity warn and above that a standard scan has to give.
	Want []Want `json:"findings"`

	Path string `json:"-"` // where it was unpacked
}

// testdata is the module's folder of that name. Tests start in their package's folder.
var testdata = func() string {
	dir, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(dir, "testdata")
		}
		if filepath.Dir(dir) == dir {
			break
		}
		dir = filepath.Dir(dir)
	}
	return "testdata"
}()

// Archives describes all of them.
func Archives(t testing.TB) []Archived {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(testdata, "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all []Archived
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatalf("manifest.json: %v", err)
	}
	if len(all) == 0 {
		t.Fatal("manifest.json lists no archive")
	}
	return all
}

// Archive unpacks one into a temporary folder.
func Archive(t testing.TB, name string) *Archived {
	t.Helper()
	for _, a := range Archives(t) {
		if a.Name == name {
			return a.unpack(t)
		}
	}
	t.Fatalf("testdata has no archive %s", name)
	return nil
}

// EachArchive runs fn for each of them, unpacked.
func EachArchive(t *testing.T, fn func(t *testing.T, a *Archived)) {
	t.Helper()
	for _, a := range Archives(t) {
		t.Run(a.Name, func(t *testing.T) { fn(t, a.unpack(t)) })
	}
}

// Repo is the unpacked repository in the hands of the newest git that can read it; without one the test is skipped.
func (a *Archived) Repo(t testing.TB) *Repo {
	t.Helper()
	r := a.Files(t)
	r.Program = Options{Format: r.Format, RefFormat: r.RefFormat}.program(t)
	return r
}

// Files is the unpacked repository in the hands of no git: its files can be read and written.
func (a *Archived) Files(t testing.TB) *Repo {
	f, _ := oid.ParseFormat(a.Format)
	return &Repo{Path: a.Path, Format: f, RefFormat: a.RefFormat, MadeBy: a.Git, t: t}
}

func (a Archived) unpack(t testing.TB) *Archived {
	t.Helper()
	a.Path = filepath.Join(t.TempDir(), "repo.git")
	f, err := os.Open(filepath.Join(testdata, a.Name+".tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := untar(f, a.Path); err != nil {
		t.Fatalf("%s: %v", a.Name, err)
	}
	return &a
}

// untar unpacks regular files and folders, with their times.
func untar(r io.Reader, to string) error {
	z, err := gzip.NewReader(r)
	if err != nil {
		return err
	}
	type folder struct {
		path string
		h    *tar.Header
	}
	var folders []folder
	for in := tar.NewReader(z); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if !filepath.IsLocal(h.Name) {
			return fmt.Errorf("%q leads out of the folder", h.Name)
		}
		path := filepath.Join(to, filepath.FromSlash(h.Name))
		switch h.Typeflag {
		case tar.TypeDir:
			folders = append(folders, folder{path, h})
			err = os.MkdirAll(path, 0o755)
		case tar.TypeReg:
			err = writeFrom(in, path, h)
		default:
			err = fmt.Errorf("%q is neither a file nor a folder", h.Name)
		}
		if err != nil {
			return err
		}
	}
	for _, f := range folders { // last, for each file in them changed their time
		if err := os.Chtimes(f.path, f.h.ModTime, f.h.ModTime); err != nil {
			return err
		}
	}
	return z.Close()
}

func writeFrom(in io.Reader, path string, h *tar.Header) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, in)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return errors.Join(os.Chmod(path, h.FileInfo().Mode().Perm()), os.Chtimes(path, h.ModTime, h.ModTime))
}
