package repo

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"refaudit/internal/vfs"
)

// ErrNotFound is that no folder from where we stand up to a limit is a repository.
var ErrNotFound = errors.New("not a git repository (or any of the parent directories): .git")

// ErrBareRefused is a bare repository that was come upon while safe.bareRepository is "explicit".
var ErrBareRefused = errors.New("cannot use a bare repository that is not named (safe.bareRepository is 'explicit')")

// Discover opens the repository that GIT_DIR names, else the one that dir lies in: the nearest
// folder upward that has a .git or is a git dir itself. The walk ends at GIT_CEILING_DIRECTORIES,
// and at the root of a file system unless GIT_DISCOVERY_ACROSS_FILESYSTEM is set.
// A repository that was found and not named must belong to the user, or be named in
// safe.directory: else the error is a *DubiousOwner.
func Discover(dir string, o Options) (*Repo, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	o.Cwd = o.abs(dir)
	if gitDir, set := o.Env("GIT_DIR"); set {
		r, err := OpenGitDir(gitDir, o)
		if err != nil {
			return nil, fmt.Errorf("GIT_DIR: %w", err)
		}
		return r, nil
	}
	start, err := realPath(o.Cwd)
	if err != nil {
		return nil, err
	}
	user, err := UserConfig(o)
	if err != nil {
		return nil, err
	}
	f, err := o.walkUp(start, user)
	if err != nil {
		return nil, err
	}
	if err := o.checkOwner(f, user); err != nil {
		return nil, err
	}
	f.byEnv = true
	return o.open(dir, f)
}

func (o *Options) walkUp(dir string, user *Config) (found, error) {
	across, err := o.Env.bool("GIT_DISCOVERY_ACROSS_FILESYSTEM", false)
	if err != nil {
		return found{}, err
	}
	device, err := vfs.Device(dir)
	if err != nil {
		return found{}, err
	}
	ceiling := o.ceiling(dir)
	for {
		if f, ok, err := o.below(dir, dir); ok || err != nil {
			return f, err
		}
		err := o.isGitDir(dir)
		if err == nil {
			return found{gitDir: dir, named: dir}, allowBare(dir, user)
		}
		if e, ok := errors.AsType[*NotRepository](err); ok && e.Damaged {
			return found{}, err
		}
		parent := filepath.Dir(dir)
		if parent == dir || len(parent) <= ceiling {
			return found{}, ErrNotFound
		}
		dir = parent
		if across {
			continue
		}
		if d, err := vfs.Device(dir); err != nil {
			return found{}, err
		} else if d != device {
			return found{}, fmt.Errorf("%w (stopped at the file system boundary below %s; GIT_DISCOVERY_ACROSS_FILESYSTEM is not set)", ErrNotFound, dir)
		}
	}
}

// ceiling is the length of the deepest folder of GIT_CEILING_DIRECTORIES that dir lies below; -1 if none.
// An empty entry says that the ones behind it hold no symbolic links.
func (o *Options) ceiling(dir string) int {
	deepest, resolved := -1, false
	for _, entry := range filepath.SplitList(o.Env.get("GIT_CEILING_DIRECTORIES")) {
		if entry == "" {
			resolved = true
			continue
		}
		if !filepath.IsAbs(entry) {
			continue
		}
		if !resolved {
			real, err := realPath(entry)
			if err != nil {
				continue
			}
			entry = real
		}
		entry = filepath.Clean(entry)
		if entry != dir && within(dir, entry) {
			deepest = max(deepest, len(entry))
		}
	}
	return deepest
}

// allowBare refuses a bare repository that was come upon, if the user wants them named. A git dir
// of a working tree, in which we stand, is none.
func allowBare(gitDir string, user *Config) error {
	v, set := user.Protected("safe.bareRepository")
	if !set || v.Text == "all" {
		return nil
	}
	if v.Text != "explicit" {
		return &BadValue{v, errors.New("neither 'all' nor 'explicit'")}
	}
	slashed := filepath.ToSlash(gitDir)
	if filepath.Base(gitDir) == ".git" || strings.Contains(slashed, "/.git/worktrees/") || strings.Contains(slashed, "/.git/modules/") {
		return nil
	}
	return fmt.Errorf("%s: %w", gitDir, ErrBareRefused)
}
