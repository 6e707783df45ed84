package repo

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"refaudit/internal/account"
	"refaudit/internal/vfs"
)

// prefix is where git is installed, for paths of the form %(prefix)/share.
const prefix = "/usr"

// joinPath makes path, if it is relative, one below dir. Nothing is cleaned away: through a
// symbolic link "a/.." is not ".".
func joinPath(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	if path == "" || path == "." {
		return dir
	}
	return strings.TrimSuffix(dir, string(os.PathSeparator)) + string(os.PathSeparator) + path
}

// realPath resolves all symbolic links. What is there must be there, but for the last component.
func realPath(path string) (string, error) {
	if path == "" {
		return "", &fs.PathError{Op: "find", Path: path, Err: fs.ErrNotExist}
	}
	real, err := vfs.RealPath(path)
	if err == nil {
		return filepath.Abs(real)
	}
	trimmed := strings.TrimRight(path, string(os.PathSeparator))
	dir, base := filepath.Split(trimmed)
	if !errors.Is(err, fs.ErrNotExist) || dir == "" || base == ".." {
		return "", err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return "", err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", err
	}
	return joinPath(dir, base), nil
}

// expandPath replaces a leading ~, ~user or %(prefix)/. ok is false if there is no such home.
func expandPath(path string, env Env, realHome bool) (expanded string, ok bool) {
	if rest, found := strings.CutPrefix(path, "%(prefix)/"); found {
		return prefix + "/" + rest, true
	}
	if !strings.HasPrefix(path, "~") {
		return path, true
	}
	name, rest := path[1:], ""
	if i := strings.IndexByte(name, '/'); i >= 0 {
		name, rest = name[:i], name[i:]
	}
	if name != "" {
		u, err := account.ByName(name)
		if err != nil {
			return "", false
		}
		return u.Home + rest, true
	}
	home, set := env("HOME")
	if !set {
		return "", false
	}
	if realHome {
		real, err := realPath(home)
		if err != nil {
			return "", false
		}
		home = real
	}
	return home + rest, true
}

// within tells whether path is dir or lies below it. Both are real paths.
func within(path, dir string) bool {
	dir = strings.TrimSuffix(dir, string(os.PathSeparator))
	return path == dir || strings.HasPrefix(path, dir+string(os.PathSeparator))
}

// mayFollow refuses to let the owner of one place, the folder or file at from, lead a reader who
// is somebody else, such as root, to a folder of a third. Neither is it refused where one lies within the other.
func mayFollow(from, to string) error {
	fromStat, err := os.Stat(from)
	if err != nil {
		return err
	}
	toStat, err := os.Stat(to)
	if err != nil {
		return err
	}
	owner := vfs.Owner(fromStat)
	if owner == vfs.Owner(toStat) || int(owner) == os.Geteuid() {
		return nil
	}
	realFrom, err := realPath(from)
	if err != nil {
		return err
	}
	realTo, err := realPath(to)
	if err != nil {
		return err
	}
	if within(realFrom, realTo) || within(realTo, realFrom) {
		return nil
	}
	return &fs.PathError{Op: "follow " + from + " to", Path: to, Err: vfs.ErrOutside}
}

// isMissing tells whether nothing is at path.
func isMissing(path string) bool {
	_, err := os.Stat(path)
	return vfs.Missing(err)
}
