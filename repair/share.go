package repair

import (
	"path/filepath"
	"slices"

	"refaudit/internal/vfs"
)

// mkdirAll makes a folder and those above it that are missing, with the modes that git gives them, and
// tells which it has made, the outermost first.
func (r *Repo) mkdirAll(path string) (made []string, err error) {
	for dir := path; ; dir = filepath.Dir(dir) {
		if _, err := r.FS.Lstat(dir); !vfs.Missing(err) || dir == filepath.Dir(dir) {
			break
		}
		made = append(made, dir)
	}
	slices.Reverse(made)
	if err := vfs.MkdirAll(r.FS, path, 0o777); err != nil {
		return made, err
	}
	if r.SharedDir == nil {
		return made, nil
	}
	for _, dir := range made {
		st, err := r.FS.Stat(dir)
		if err != nil {
			return made, err
		}
		if want := r.SharedDir(st.Mode); want != st.Mode {
			if err := r.FS.Chmod(dir, want); err != nil {
				return made, err
			}
		}
	}
	return made, nil
}

// share gives a file that was just made the mode that core.sharedRepository says.
func (r *Repo) share(f vfs.File) error {
	if r.Shared == nil {
		return nil
	}
	st, err := f.Stat()
	if err != nil {
		return err
	}
	if want := r.Shared(st.Mode.Perm()); want != st.Mode.Perm() {
		return f.Chmod(want)
	}
	return nil
}
