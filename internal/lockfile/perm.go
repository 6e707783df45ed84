package lockfile

import (
	"errors"
	"io/fs"

	"refaudit/internal/vfs"
)

// Perm is who may open a new file: git's rules and, where core.sharedRepository is not set, also
// those who could open the file that it stands for.
type Perm struct {
	// Shared gives the mode that core.sharedRepository makes of the one the umask has left; nil
	// where it is not set.
	Shared func(made fs.FileMode) fs.FileMode
	Like   vfs.Info // the file replaced, or the newest of its kind; zero: none
	Root   bool     // we may give files away: keep the owner
}

// mode is the mode of a file that was made with mode made.
func (p Perm) mode(made fs.FileMode) fs.FileMode {
	if p.Shared != nil {
		return p.Shared(made.Perm()).Perm()
	}
	if p.Like.Mode&fs.ModeSymlink != 0 {
		return made.Perm() // the mode of a link says nothing about who may read what it leads to
	}
	return made.Perm() | p.Like.Mode.Perm()&0o666
}

// apply gives a file that was just made its owner and mode.
func (p Perm) apply(f vfs.File, st vfs.Info) error {
	if p.Like.ID != (vfs.ID{}) {
		switch {
		case p.Root && (p.Like.UID != st.UID || p.Like.GID != st.GID):
			if err := f.Chown(int(p.Like.UID), int(p.Like.GID)); err != nil {
				return err
			}
		case p.Like.GID != st.GID: // only members of the group may give it: others do as git does
			if err := f.Chown(-1, int(p.Like.GID)); err != nil && !errors.Is(err, fs.ErrPermission) {
				return err
			}
		}
	}
	if want := p.mode(st.Mode); want != st.Mode.Perm() {
		return f.Chmod(want)
	}
	return nil
}
