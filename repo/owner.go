package repo

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"refaudit/internal/vfs"
)

// DubiousOwner is a repository that belongs to somebody else and that nothing calls safe: git would
// not use it, lest its configuration run commands as us.
type DubiousOwner struct {
	Path string // what safe.directory would have to name
	Who  string // what belongs to whom
}

func (e *DubiousOwner) Error() string {
	return fmt.Sprintf("detected dubious ownership in repository at '%s': %s (add it to safe.directory to make an exception)", e.Path, e.Who)
}

// CheckOwner asks what git asks before it uses a repository that was not named by GIT_DIR: do the
// git dir, the working tree and the .git file belong to us, or, where we are root by sudo, to who
// called it? Else safe.directory of the protected configuration must list it. The answer no is a
// *DubiousOwner. Discover has asked already; who writes to a repository always must.
func (r *Repo) CheckOwner() error { return r.o.checkOwner(r.found, r.Config) }

func (o *Options) checkOwner(f found, c *Config) error {
	who, err := o.foreign(f)
	if who == "" || err != nil {
		return err
	}
	path := f.gitDir
	if f.top != "" {
		path = f.top
	}
	real, err := realPath(path)
	if err == nil && o.safe(real, c) {
		return nil
	}
	return &DubiousOwner{Path: path, Who: who}
}

// foreign says which part of a repository belongs to somebody else; "" if none does.
func (o *Options) foreign(f found) (who string, err error) {
	assume, err := o.Env.bool("GIT_TEST_ASSUME_DIFFERENT_OWNER", false)
	if err != nil {
		return "", err
	}
	if assume {
		return "GIT_TEST_ASSUME_DIFFERENT_OWNER is set", nil
	}
	for _, path := range []string{f.gitFile, f.top, f.gitDir} {
		if path == "" {
			continue
		}
		st, err := os.Lstat(path)
		if err != nil {
			return err.Error(), nil
		}
		if owner := vfs.Owner(st); !o.isUser(owner) {
			return fmt.Sprintf("%s is owned by user id %d, and the current user id is %d", path, owner, os.Geteuid()), nil
		}
	}
	return "", nil
}

// isUser tells whether an owner is us. Root that came by sudo is also the user that it came from.
func (o *Options) isUser(owner uint32) bool {
	euid := os.Geteuid()
	if euid < 0 { // Windows
		return true
	}
	if euid == int(owner) {
		return true
	}
	if euid != 0 {
		return false
	}
	sudo, err := strconv.ParseUint(o.Env.get("SUDO_UID"), 10, 32)
	return err == nil && uint32(sudo) == owner
}

// safe goes through safe.directory: the last of "" (forget what was before), "*", a path, or a path that ends in "/*" decides.
func (o *Options) safe(path string, c *Config) bool {
	is := false
	for _, v := range c.All("safe.directory") {
		switch {
		case !v.Scope.Protected():
		case v.NoValue || v.Text == "":
			is = false
		case v.Text == "*":
			is = true
		default:
			is = is || o.safeEntry(path, v, c)
		}
	}
	return is
}

func (o *Options) safeEntry(path string, v Value, c *Config) bool {
	allowed, err := c.pathOf(v)
	if err != nil {
		return false
	}
	if allowed == "." { // the folder that we stand in, if it is the top of a repository
		allowed = o.Cwd
	}
	if !filepath.IsAbs(allowed) {
		return false
	}
	if allowed, err = realPath(allowed); err != nil {
		return false
	}
	if below, found := strings.CutSuffix(allowed, "*"); found && strings.HasSuffix(below, string(os.PathSeparator)) {
		return strings.HasPrefix(path, below)
	}
	return path == allowed
}
