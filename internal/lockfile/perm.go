package lockfile

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"refaudit/internal/vfs"
)

// Shared is core.sharedRepository: 0 leaves the mode to the umask, a positive number is added to
// it, a negative one takes its place.
type Shared int

// The named values of core.sharedRepository.
const (
	Umask    Shared = 0
	Group    Shared = 0o660
	Everyone Shared = 0o664
)

// ParseShared reads the value of core.sharedRepository as git does; a key without "=" is true.
func ParseShared(value string) (Shared, error) {
	switch value {
	case "umask":
		return Umask, nil
	case "group":
		return Group, nil
	case "all", "world", "everybody":
		return Everyone, nil
	}
	if n, err := strconv.ParseInt(value, 8, 32); err == nil {
		switch {
		case n == 0:
			return Umask, nil
		case n == 1:
			return Group, nil
		case n == 2:
			return Everyone, nil
		case n&0o600 == 0o600:
			return Shared(-(n & 0o666)), nil
		}
		return 0, fmt.Errorf("core.sharedRepository = %s: the owner must always be able to read and write", value)
	}
	switch strings.ToLower(value) {
	case "true", "yes", "on":
		return Group, nil
	case "", "false", "no", "off":
		return Umask, nil
	}
	return 0, fmt.Errorf("core.sharedRepository = %q is not understood", value)
}

// Perm is who may open a new file: git's rules and, where nothing is configured, also those who
// could open the file that it stands for.
type Perm struct {
	Shared Shared
	Like   vfs.Info // the file replaced, or the newest of its kind; zero: none
	Root   bool     // we may give files away: keep the owner
}

// mode is the mode of a file that was made with mode made.
func (p Perm) mode(made fs.FileMode) fs.FileMode {
	made = made.Perm()
	if p.Shared == Umask {
		return made | p.Like.Mode.Perm()&0o666
	}
	tweak := fs.FileMode(max(p.Shared, -p.Shared))
	if made&0o200 == 0 {
		tweak &^= 0o222
	}
	if p.Shared < 0 {
		return tweak
	}
	return made | tweak
}

// apply gives a file that was just made its owner and mode.
func (p Perm) apply(f vfs.File, st vfs.Info) error {
	if p.Like.ID != (vfs.ID{}) {
		switch {
		case p.Root && (p.Like.UID != st.UID || p.Like.GID != st.GID):
			if err := f.Chown(int(p.Like.UID), int(p.Like.GID)); err != nil {
				return err
			}
		case p.Like.GID != st.GID:
			// Only members of the group may give it; the mode below is right for them and no wider for others than it was.
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
