package remote

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"

	"refaudit/internal/vfs"
	"refaudit/oid"
)

// Scratch is a bare repository that takes what a server sends, so that it can be looked at before
// anybody else sees it. It has no refs.
type Scratch struct {
	Dir string
	fs  vfs.FS
}

// ScratchOptions say what a scratch repository is like.
type ScratchOptions struct {
	Format oid.Format
	// Borrow is the object folder of the client, whose objects need not be sent again; "" for none.
	Borrow string
	// Shallow is the client's file of that name; nil: there is none.
	Shallow []byte
	// Partial tells that objects may be missing which some remote has promised.
	Partial bool
	// Promises tells that this server is one that promises objects, and Filter which it leaves out.
	Promises bool
	Filter   string
}

// remoteName is the server's name in a scratch repository.
const remoteName = "refaudit-inner"

// NewScratch makes a scratch repository in a new folder below parent, whose name begins with prefix. It
// has what the client's own configuration says of credentials, proxies and the like.
func (r *Remote) NewScratch(parent, prefix string, o ScratchOptions) (*Scratch, error) {
	s := &Scratch{fs: r.fs}
	var err error
	if s.Dir, err = makeTemp(r.fs, parent, prefix); err != nil {
		return nil, fmt.Errorf("make a scratch repository: %w", err)
	}
	if err = s.fill(r, o); err != nil {
		return nil, errors.Join(fmt.Errorf("make a scratch repository: %w", err), s.Remove())
	}
	return s, nil
}

// makeTemp makes a folder that nobody else has.
func makeTemp(fsys vfs.FS, parent, prefix string) (string, error) {
	for {
		dir := filepath.Join(parent, prefix+strconv.FormatUint(rand.Uint64(), 36))
		if err := fsys.Mkdir(dir, 0o700); !errors.Is(err, fs.ErrExist) {
			return dir, err
		}
	}
}

func (s *Scratch) fill(r *Remote, o ScratchOptions) error {
	for _, dir := range []string{"refs", "objects", "objects/info", "objects/pack"} {
		if err := s.fs.Mkdir(filepath.Join(s.Dir, dir), 0o777); err != nil {
			return err
		}
	}
	files := map[string][]byte{"HEAD": []byte("ref: refs/heads/none\n"), "config": scratchConfig(r, o)}
	if o.Borrow != "" {
		files["objects/info/alternates"] = []byte(alternateLine(o.Borrow))
	}
	if o.Shallow != nil {
		files["shallow"] = o.Shallow
	}
	for name, text := range files {
		if err := writeFile(s.fs, filepath.Join(s.Dir, filepath.FromSlash(name)), text); err != nil {
			return err
		}
	}
	return nil
}

// alternateLine is a line of info/alternates; quotes keep what means something there from doing so.
func alternateLine(dir string) string {
	if strings.HasPrefix(dir, "#") || strings.ContainsAny(dir, "\"\n") {
		return Quote(dir) + "\n"
	}
	return dir + "\n"
}

// scratchConfig is the configuration: that of the client, then what makes this a repository of its own.
func scratchConfig(r *Remote, o ScratchOptions) []byte {
	b := r.settings.inherited()
	set := func(section, sub, name, value string) { b = appendSetting(b, section, sub, name, value, false) }
	set("core", "", "repositoryFormatVersion", "1")
	set("core", "", "bare", "true")
	set("core", "", "hooksPath", "no-hooks")
	if _, chosen := r.settings.Get("core.fsync"); !chosen {
		set("core", "", "fsync", "objects,derived-metadata") // what is moved into the client is on the disk
	}
	set("extensions", "", "objectFormat", o.Format.String())
	set("remote", remoteName, "url", r.URL.text)
	for _, name := range []string{"proxy", "proxyAuthMethod", "uploadpack"} {
		if v, set := r.settings.Get("remote." + r.o.Name + "." + strings.ToLower(name)); set && r.o.Name != "" {
			b = appendSetting(b, "remote", remoteName, name, v, false)
		}
	}
	switch {
	case o.Promises:
		set("extensions", "", "partialClone", remoteName)
		set("remote", remoteName, "promisor", "true")
		if o.Filter != "" {
			set("remote", remoteName, "partialCloneFilter", o.Filter)
		}
	case o.Partial:
		set("extensions", "", "partialClone", "another")
	}
	return b
}

// SetFormat changes the object format of a repository that has no objects yet.
func (s *Scratch) SetFormat(r *Remote, o ScratchOptions) error {
	path := filepath.Join(s.Dir, "config")
	if err := s.fs.Remove(path); err != nil {
		return err
	}
	return writeFile(s.fs, path, scratchConfig(r, o))
}

// Objects is its object folder.
func (s *Scratch) Objects() string { return filepath.Join(s.Dir, "objects") }

// Remove removes it with all that came.
func (s *Scratch) Remove() error {
	if err := removeAll(s.fs, s.Dir); err != nil {
		return fmt.Errorf("remove the scratch repository: %w", err)
	}
	return nil
}

// removeAll removes a file or folder with everything in it. Symbolic links are not followed.
func removeAll(fsys vfs.FS, path string) error {
	st, err := fsys.Lstat(path)
	if vfs.Missing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	var errs []error
	if st.Mode.IsDir() {
		names, err := fsys.ReadDir(path)
		errs = append(errs, err)
		for _, name := range names {
			errs = append(errs, removeAll(fsys, filepath.Join(path, name)))
		}
	}
	if err := fsys.Remove(path); err != nil && !vfs.Missing(err) {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func writeFile(fsys vfs.FS, path string, text []byte) error {
	f, err := fsys.Create(path, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}
