package repo

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"refaudit/internal/vfs"
)

// RefStorage says where the refs of a repository are, and in which form.
type RefStorage struct {
	Backend string // "files" or "reftable"
	// Dir is the folder of the main store: it holds HEAD, refs/ and packed-refs, or reftable/. It is
	// the common dir, unless a payload names another. Worktree.RefDir is that of a worktree's own refs.
	Dir  string
	Root *vfs.Dir // reads Dir
	// Payload tells that extensions.refStorage or GIT_REFERENCE_BACKEND names the folder
	// ("reftable://<folder>"). What looks like refs in the git dir is a stub then.
	Payload bool
	FromEnv bool // GIT_REFERENCE_BACKEND decides
}

// parseRefStorage reads "<backend>" or "<backend>://<folder>".
func parseRefStorage(text string) (backend, payload string, hasPayload bool, err error) {
	backend, payload, hasPayload = strings.Cut(text, "://")
	if backend != "files" && backend != "reftable" {
		return "", "", false, &Unsupported{What: fmt.Sprintf("ref storage %q", text)}
	}
	return backend, payload, hasPayload, nil
}

// locateRefs finds the refs of the repository, as git does: GIT_COMMON_DIR has no say in it, and
// a relative payload starts at the common dir, which is given as if that were not set.
func (r *Repo) locateRefs(f format, common string) (err error) {
	backend, payload, hasPayload := f.refs, f.refsPayload, f.refsHavePayload
	r.Refs = RefStorage{}
	if text, set := r.o.Env("GIT_REFERENCE_BACKEND"); set {
		if backend, payload, hasPayload, err = parseRefStorage(text); err != nil {
			return fmt.Errorf("GIT_REFERENCE_BACKEND: %w", err)
		}
		r.Refs.FromEnv = true
	}
	r.Refs.Backend, r.Refs.Payload, r.Refs.Dir = backend, hasPayload, common
	if hasPayload {
		if err := r.payload(joinPath(common, payload)); err != nil {
			return err
		}
	}
	if r.Refs.Dir == r.CommonDir {
		r.Refs.Root = r.Common
		return nil
	}
	if r.Refs.Root, err = vfs.Open(r.Refs.Dir); err != nil {
		return fmt.Errorf("ref storage: %w", err)
	}
	return nil
}

// payload takes the folder that a payload names. There must be a store in it: git sees
// no refs in one that is missing or empty, and exits with 0.
func (r *Repo) payload(path string) error {
	real, err := vfs.RealPath(path)
	if err != nil {
		return fmt.Errorf("ref storage: %w", err)
	}
	if !r.Refs.FromEnv {
		if err := mayFollow(r.CommonDir, real); err != nil {
			return fmt.Errorf("ref storage: %w", err)
		}
	}
	must := "refs"
	if r.Refs.Backend == "reftable" {
		must = "reftable"
	}
	if isMissing(joinPath(real, must)) {
		return fmt.Errorf("ref storage: there is no %s store: %w", r.Refs.Backend,
			&fs.PathError{Op: "find", Path: joinPath(real, must), Err: fs.ErrNotExist})
	}
	r.Refs.Dir = real
	return nil
}

// OwnRefDir is the folder that holds the refs of the worktree through which the repository was opened.
func (r *Repo) OwnRefDir() string { return r.refDirOf(r.GitDir, r.linkedRefs) }

// refDirOf is the folder that holds the refs of the worktree whose git dir this is.
func (r *Repo) refDirOf(gitDir string, linked bool) string {
	switch {
	case !r.Refs.Payload:
		return gitDir
	case linked:
		return joinPath(joinPath(r.Refs.Dir, "worktrees"), filepath.Base(gitDir))
	}
	return r.Refs.Dir
}
