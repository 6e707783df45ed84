package repo

import (
	"errors"
	"io/fs"
	"math"
	"strconv"
	"strings"
	"time"

	"refaudit/internal/gitconfig"
)

// PackedRefsTimeout is how long to wait for packed-refs.lock (core.packedRefsTimeout, by default 1 s).
// Negative: for ever; 0: try once. So with the timeouts below.
func (r *Repo) PackedRefsTimeout() (time.Duration, error) {
	ms, err := r.Config.Int("core.packedRefsTimeout", 1000)
	return milliseconds(int64(ms)), err
}

// FilesRefLockTimeout is how long to wait for the lock of a loose ref (core.filesRefLockTimeout, by default 100 ms).
func (r *Repo) FilesRefLockTimeout() (time.Duration, error) {
	ms, err := r.Config.Int("core.filesRefLockTimeout", 100)
	return milliseconds(int64(ms)), err
}

var errTimeout = errors.New("no negative value other than -1 is allowed")

// ReftableLockTimeout is how long to wait for tables.list.lock (reftable.lockTimeout, by default 100 ms).
func (r *Repo) ReftableLockTimeout() (time.Duration, error) {
	ms, err := r.Config.Int64("reftable.lockTimeout", 100)
	if err == nil && ms < -1 {
		v, _ := r.Config.Get("reftable.lockTimeout")
		return 0, &BadValue{v, errTimeout}
	}
	return milliseconds(ms), err
}

func milliseconds(n int64) time.Duration {
	return time.Duration(min(max(n, -1), math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
}

// UseReplaceRefs tells whether git shows replaced objects here (core.useReplaceRefs, by default true).
func (r *Repo) UseReplaceRefs() (bool, error) {
	if _, set := r.o.Env("GIT_NO_REPLACE_OBJECTS"); set {
		return false, nil
	}
	return r.Config.Bool("core.useReplaceRefs", true)
}

// ReplaceBase is the beginning of the names of replace refs.
func (r *Repo) ReplaceBase() string {
	if base, set := r.o.Env("GIT_REPLACE_REF_BASE"); set {
		return base
	}
	return "refs/replace/"
}

// IgnoreCase is core.ignoreCase: names that differ only in case are one file here.
func (r *Repo) IgnoreCase() (bool, error) { return r.Config.Bool("core.ignoreCase", false) }

// Promisors are the remotes that have promised objects: of those an absence is no damage. Without
// any, the repository is no partial clone.
func (r *Repo) Promisors() ([]string, error) {
	var names []string
	seen := map[string]bool{}
	add := func(name string) {
		if name != "" && !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	add(r.PartialClone)
	err := r.Config.Section("remote", func(remote, name string, v Value) error {
		switch name {
		case "promisor":
			yes, err := v.Bool()
			if yes {
				add(remote)
			}
			return err
		case "partialclonefilter":
			add(remote)
		}
		return nil
	})
	return names, err
}

// Quarantine is GIT_QUARANTINE_PATH. Where it is set, even to nothing, we run in a hook, and nothing may be written.
func (r *Repo) Quarantine() (path string, set bool) { return r.o.Env("GIT_QUARANTINE_PATH") }

// AlternatesEnv is GIT_ALTERNATE_OBJECT_DIRECTORIES as it stands, quotes and all.
func (r *Repo) AlternatesEnv() string { return r.o.Env.get("GIT_ALTERNATE_OBJECT_DIRECTORIES") }

// Shared is core.sharedRepository: who else than the owner may use the files.
type Shared struct {
	// Perm are the bits that a new file gets besides those of the umask, or, if Exact, instead of them.
	// 0 and not Exact: the umask decides alone.
	Perm  fs.FileMode
	Exact bool
}

var errSharedMode = errors.New("the owner of files must always have read and write permissions")

// Shared reads core.sharedRepository: umask, group, all, a boolean, or an octal mode.
func (r *Repo) Shared() (Shared, error) {
	v, set := r.Config.Get("core.sharedRepository")
	if !set {
		return Shared{}, nil
	}
	if v.NoValue {
		return Shared{Perm: 0o660}, nil
	}
	switch v.Text {
	case "umask":
		return Shared{}, nil
	case "group":
		return Shared{Perm: 0o660}, nil
	case "all", "world", "everybody":
		return Shared{Perm: 0o664}, nil
	}
	mode, isMode := octal(v.Text)
	if !isMode {
		b, ok := gitconfig.ParseBool(v.Text)
		switch {
		case !ok:
			return Shared{}, &BadValue{v, errNotBool}
		case b:
			return Shared{Perm: 0o660}, nil
		}
		return Shared{}, nil
	}
	switch mode {
	case 0:
		return Shared{}, nil
	case 1:
		return Shared{Perm: 0o660}, nil
	case 2:
		return Shared{Perm: 0o664}, nil
	}
	if mode&0o600 != 0o600 {
		return Shared{}, &BadValue{v, errSharedMode}
	}
	return Shared{Perm: fs.FileMode(mode) & 0o666, Exact: true}, nil
}

// octal reads a whole text as strtol does with base 8. "" is 0.
func octal(text string) (int32, bool) {
	text = strings.TrimLeft(text, " \t\n\v\f\r")
	if text == "" {
		return 0, true
	}
	n, err := strconv.ParseInt(text, 8, 32)
	return int32(n), err == nil
}

// File is the mode of a file that git would have made with mode, as it was after the umask.
func (s Shared) File(mode fs.FileMode) fs.FileMode {
	if s == (Shared{}) {
		return mode
	}
	bits := s.Perm
	if mode&0o200 == 0 {
		bits &^= 0o222
	}
	if mode&0o100 != 0 {
		bits |= (bits & 0o444) >> 2
	}
	if s.Exact {
		return mode&^0o777 | bits
	}
	return mode | bits
}

// Dir is the same for a folder, which also hands its group down where the group gets anything.
func (s Shared) Dir(mode fs.FileMode) fs.FileMode {
	if s == (Shared{}) {
		return mode
	}
	mode = s.File(mode)
	mode |= (mode & 0o444) >> 2
	if mode&0o060 != 0 {
		mode |= fs.ModeSetgid
	}
	return mode
}
