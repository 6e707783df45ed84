package repair

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"refaudit/internal/lockfile"
	"refaudit/internal/vfs"
)

// locking are the options for a lock that a setting of the repository says how long to wait for.
func (r *Repo) locking(setting string, wait time.Duration, like vfs.Info) lockfile.Options {
	o := lockfile.Options{Timeout: wait, PIDFile: r.PIDFile, Perm: r.perm(like)}
	if r.LongestWait > 0 && (wait < 0 || wait > r.LongestWait) {
		o.Timeout = r.LongestWait
		o.Bound = fmt.Sprintf("%s says to wait longer, which is not done here; --lock-timeout says for how long, -1s for ever", setting)
	}
	return o
}

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

// like describes the file of the folder whose mode and owner its successor gets. A symbolic link has none of its
// own that mean anything (its mode is 0777): what it leads to is what others could read. One that leads to
// somebody else's file is refused, as it is by whoever reads.
func (s *Stack) like(name string) (vfs.Info, error) {
	path := filepath.Join(s.Dir, name)
	st, err := s.Repo.FS.Lstat(path)
	if err != nil || st.Mode&fs.ModeSymlink == 0 {
		return st, s.wrap(err)
	}
	if st, err = s.Repo.FS.Stat(path); err != nil {
		return st, s.wrap(err)
	}
	here, err := s.Repo.FS.Stat(s.Dir)
	if err == nil && here.UID != st.UID {
		return st, &Refused{Store: s.Label, Reason: name + " is a symbolic link to a file of another owner; put that file, as your own, in the place of the link", Err: vfs.ErrOutside}
	}
	return st, s.wrap(err)
}

// wrap names the stack in an error.
func (s *Stack) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", s.Label, err)
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
