package remotehelper

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"refaudit/internal/vfs"
)

// migration moves objects that were judged from a quarantine into a repository. Both lie on one
// file system, and the files are on the disk already: what is left is names. A pack counts from the
// moment when its index has one, so the index comes last; what stops us before leaves files
// that nobody reads.
type migration struct {
	fs       vfs.FS
	from, to string   // object folders
	keeps    []string // .keep files that we made
}

// packOrder are the files of a pack in the order in which they move. A pack without .idx is none.
var packOrder = []string{"promisor", "pack", "rev", "mtimes", "bitmap", "idx"}

func (m *migration) run() error {
	names, err := m.fs.ReadDir(m.from)
	if err != nil {
		return err
	}
	if err := m.packs(); err != nil {
		return errors.Join(err, m.dropKeeps())
	}
	for _, name := range names {
		if len(name) == 2 && isHex(name) {
			if err := m.loose(name); err != nil {
				return errors.Join(err, m.dropKeeps())
			}
		}
	}
	return nil
}

func (m *migration) dropKeeps() error {
	var errs []error
	for _, path := range m.keeps {
		errs = append(errs, m.fs.Remove(path))
	}
	m.keeps = nil
	return errors.Join(errs...)
}

func isHex(name string) bool { return strings.Trim(name, "0123456789abcdef") == "" }

// packs moves every pack that is whole.
func (m *migration) packs() error {
	names, err := m.fs.ReadDir(filepath.Join(m.from, "pack"))
	if vfs.Missing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	moved := false
	for _, name := range names {
		base, isIndex := strings.CutSuffix(name, ".idx")
		if !isIndex || !strings.HasPrefix(base, "pack-") || !slices.Contains(names, base+".pack") {
			continue
		}
		if !moved {
			if err := m.fs.Mkdir(filepath.Join(m.to, "pack"), 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
				return err
			}
			moved = true
		}
		if err := m.pack(base, names); err != nil {
			return fmt.Errorf("%s: %w", base, err)
		}
	}
	if !moved {
		return nil
	}
	return m.fs.SyncDir(filepath.Join(m.to, "pack"))
}

// pack moves one pack. A .keep file saves it from a repack until git's refs lead to it; one that
// is there already belongs to somebody else.
func (m *migration) pack(base string, names []string) error {
	keep := filepath.Join(m.to, "pack", base+".keep")
	switch err := m.create(keep); {
	case err == nil:
		m.keeps = append(m.keeps, keep)
	case !errors.Is(err, fs.ErrExist):
		return err
	}
	var done []string
	for _, ext := range packOrder {
		name := base + "." + ext
		if !slices.Contains(names, name) {
			continue
		}
		if ext == "idx" { // a crash must not leave an index whose pack has no name yet
			if err := m.fs.SyncDir(filepath.Join(m.to, "pack")); err != nil {
				return m.takeBack(done, err)
			}
		}
		to := filepath.Join(m.to, "pack", name)
		isNew, err := m.move(filepath.Join(m.from, "pack", name), to)
		if err != nil {
			return m.takeBack(done, err)
		}
		if isNew {
			done = append(done, to)
		}
	}
	return nil
}

// takeBack removes the files of a pack that did not become one.
func (m *migration) takeBack(done []string, why error) error {
	errs := []error{why}
	for _, path := range slices.Backward(done) {
		errs = append(errs, m.fs.Remove(path))
	}
	return errors.Join(errs...)
}

// loose moves the loose objects whose ids begin with two digits.
func (m *migration) loose(digits string) error {
	names, err := m.fs.ReadDir(filepath.Join(m.from, digits))
	if err != nil || len(names) == 0 {
		return err
	}
	dir := filepath.Join(m.to, digits)
	if _, err := m.fs.Lstat(dir); vfs.Missing(err) {
		// The whole folder, with the mode that git gave it. Should one of that name appear just now, it stays.
		if m.fs.Rename(filepath.Join(m.from, digits), dir) == nil {
			return errors.Join(m.fs.SyncDir(dir), m.fs.SyncDir(m.to))
		}
	}
	for _, name := range names {
		if !isHex(name) {
			continue
		}
		if _, err := m.move(filepath.Join(m.from, digits, name), filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return m.fs.SyncDir(dir)
}

// move gives a file its new name. One that is there already stays: files of objects are named
// after what is in them.
func (m *migration) move(from, to string) (isNew bool, err error) {
	if _, err := m.fs.Lstat(to); err == nil {
		return false, nil
	} else if !vfs.Missing(err) {
		return false, err
	}
	if err := m.fs.Rename(from, to); err != nil {
		// A network file system may do it and lose the answer.
		_, gone := m.fs.Lstat(from)
		_, there := m.fs.Lstat(to)
		if !vfs.Missing(gone) || there != nil {
			return false, err
		}
	}
	return true, nil
}

func (m *migration) create(path string) error {
	f, err := m.fs.Create(path, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "git-remote-refaudit %d\n", os.Getpid())
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, m.fs.Remove(path))
	}
	return nil
}
