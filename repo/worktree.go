package repo

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"refaudit/internal/gitconfig"
	"refaudit/internal/vfs"
)

// Worktree is one worktree of a repository: the main one, or a linked one with refs of its own.
// Layout: Documentation/gitrepository-layout.adoc in git.
//
//	<common dir>/worktrees/<id>/
//		HEAD        its own, with the reftable backend a stub
//		commondir   "../.."
//		gitdir      the path of the .git file in the working tree
//		locked      there while it is locked; may hold the reason
//		refs/, logs/ or reftable/   its own refs
type Worktree struct {
	ID      string // the name of its folder below worktrees/; "" for the main one
	GitDir  string // the main one's is the common dir
	RefDir  string // holds its HEAD and refs/, or its reftable/; need not exist
	Path    string // the working tree; the git dir itself where the main one has none; "" if not known
	Bare    bool   // the main one has no working tree
	Current bool   // the repository was opened through it

	Locked     bool
	LockReason string
	// Prunable is why git worktree prune would remove it: its working tree is gone. "" if not.
	Prunable string
	// Ignored is why git doesn't see it: then its refs keep nothing alive. "" if it does.
	Ignored string
	// Stray tells that what lies there is no worktree, and holds nothing that one would: it is no folder, or
	// an empty one. git passes over it until it is pruned.
	Stray bool
	// Err is what could not be read of the above; nil if nothing.
	Err error
}

// Main tells whether it is the main worktree.
func (w *Worktree) Main() bool { return w.ID == "" }

// Worktrees lists the main worktree, then the linked ones by id. The error tells that they can't be
// listed; what is wrong with a single one is a field of it.
func (r *Repo) Worktrees() ([]Worktree, error) {
	main, err := r.mainWorktree()
	if err != nil {
		return nil, err
	}
	all := []Worktree{main}
	entries, err := r.Common.ReadDir("worktrees")
	if vfs.Missing(err) {
		return all, nil
	}
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		all = append(all, r.linkedWorktree(e.Name()))
	}
	return all, nil
}

func (r *Repo) mainWorktree() (Worktree, error) {
	w := Worktree{
		GitDir: r.CommonDir, RefDir: r.refDirOf(r.CommonDir, false),
		Path:    strings.TrimSuffix(r.CommonDir, string(os.PathSeparator)+".git"),
		Current: r.GitDir == r.CommonDir,
	}
	if w.Current {
		w.Bare = r.Bare
		return w, nil
	}
	bare, err := r.Config.Bool("core.bare", false)
	if err != nil || bare {
		w.Bare = bare
		return w, err
	}
	w.Bare, err = bareInWorktreeConfig(r.Common)
	return w, err
}

// bareInWorktreeConfig looks for the core.bare of the main worktree, seen from a linked one.
func bareInWorktreeConfig(common *vfs.Dir) (bare bool, err error) {
	data, err := common.ReadFile("config.worktree", maxConfigBytes)
	if vfs.Missing(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	path := common.Path("config.worktree")
	err = gitconfig.Parse(path, data, func(e gitconfig.Entry) (err error) {
		if e.Key == "core.bare" {
			v := Value{Key: e.Key, Text: e.Value, NoValue: e.NoValue, Origin: Origin{ScopeWorktree, path, e.Line}}
			bare, err = v.Bool()
		}
		return err
	})
	return bare, err
}

func (r *Repo) linkedWorktree(id string) Worktree {
	gitDir := r.Common.Path("worktrees/" + id)
	w := Worktree{ID: id, GitDir: gitDir, RefDir: r.refDirOf(gitDir, true), Current: gitDir == r.GitDir}
	st, err := os.Stat(gitDir)
	if err != nil || !st.IsDir() {
		w.Ignored, w.Prunable = "not a folder", "not a valid directory"
		w.Stray = err == nil || vfs.Missing(err)
		return w
	}
	dotGit, err := r.dotGitOf(id)
	switch {
	case vfs.Missing(err):
		w.Ignored, w.Prunable = "it has no gitdir file", "gitdir file does not exist"
		list, err := r.Common.ReadDir("worktrees/" + id)
		w.Stray = err == nil && len(list) == 0
	case err != nil:
		w.Ignored, w.Err = "its gitdir file can't be read", err
	case dotGit == "":
		w.Ignored, w.Prunable = "its gitdir file is empty", "invalid gitdir file"
	default:
		w.Path = strings.TrimSuffix(dotGit, string(os.PathSeparator)+".git")
		if _, err := os.Lstat(dotGit); err != nil {
			w.Prunable = "gitdir file points to non-existent location"
		}
	}
	r.readLock(&w)
	if w.Locked {
		w.Prunable = ""
	}
	return w
}

// dotGitOf is the .git file that a linked worktree's gitdir file names, "" where it is empty.
func (r *Repo) dotGitOf(id string) (string, error) {
	text, err := r.Common.ReadFile("worktrees/"+id+"/gitdir", maxGitFile)
	if err != nil {
		return "", err
	}
	path := string(untilNUL(bytes.TrimRight(text, " \t\r\n")))
	if path == "" {
		return "", nil
	}
	if !filepath.IsAbs(path) {
		path = forgivingRealPath(joinPath(r.Common.Path("worktrees/"+id), path))
	}
	return path, nil
}

// maxPath is longer than any path that Linux can open.
const maxPath = 4096

// forgivingRealPath resolves the links of as much of path as there is, and cleans the rest.
func forgivingRealPath(path string) string {
	if len(path) > maxPath {
		return path
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	dir, base := filepath.Split(strings.TrimRight(path, string(os.PathSeparator)))
	if dir == "" || dir == path {
		return path
	}
	return filepath.Join(forgivingRealPath(dir), base)
}

// readLock looks for the file locked, which locks whatever it is.
func (r *Repo) readLock(w *Worktree) {
	name := "worktrees/" + w.ID + "/locked"
	if _, err := r.Common.Lstat(name); vfs.Missing(err) {
		return
	}
	w.Locked = true
	text, err := r.Common.ReadFile(name, maxGitFile)
	w.LockReason = string(bytes.Trim(text, " \t\r\n"))
	w.Err = errors.Join(w.Err, err)
}

// linkedWorkTree is the working tree that belongs to a linked worktree's git dir; "" if it does not say.
func (r *Repo) linkedWorkTree(gitDir string) string {
	if filepath.Dir(gitDir) != filepath.Join(r.CommonDir, "worktrees") {
		return ""
	}
	dotGit, err := r.dotGitOf(filepath.Base(gitDir))
	if err != nil || dotGit == "" {
		return ""
	}
	return strings.TrimSuffix(dotGit, string(os.PathSeparator)+".git")
}
