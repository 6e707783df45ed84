// Package repo finds a git repository and says what it is: its folders and worktrees, its format,
// where its refs and objects are, and its configuration. It only reads.
//
// It follows git's setup to the letter, because a reader that looks elsewhere than git audits
// another repository; and it says so where it can't follow, because a store that was not found is
// not an empty one. Paths are bytes, as the system gives them.
package repo

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"refaudit/internal/vfs"
	"refaudit/oid"
)

// Repo is one repository, seen from one of its git dirs. What it says was read when it was
// opened; the folders of the Dirs are read anew each time.
type Repo struct {
	Path      string // as the user named it
	GitDir    string // the real path of the git dir: of a linked worktree, <CommonDir>/worktrees/<id>
	CommonDir string // the real path of what the worktrees share; the GitDir if there are none
	WorkTree  string // the real path of the working tree; "" where there is none or it is not known
	GitFile   string // the .git file that led here; "" if none did
	Bare      bool   // it has no working tree

	Git, Common *vfs.Dir // read GitDir and CommonDir

	ObjectDir    string     // the object directory: GIT_OBJECT_DIRECTORY, else <CommonDir>/objects
	Format       oid.Format // of the objects
	CompatFormat oid.Format // extensions.compatObjectFormat; 0: none
	Refs         RefStorage
	Config       *Config

	PreciousObjects   bool   // extensions.preciousObjects
	RelativeWorktrees bool   // extensions.relativeWorktrees
	PartialClone      string // extensions.partialClone: the remote that promised objects; "" if none

	o          Options
	found      found
	linkedRefs bool // there is a commondir file
}

// found is how a repository was come upon.
type found struct {
	gitDir  string // real path
	named   string // the same as it was named, absolute
	gitFile string // the .git file that names it
	top     string // the folder whose .git it is
	byEnv   bool   // the environment had a say in it: GIT_WORK_TREE counts
}

// Open opens the repository at path: a bare one, a .git dir, a working tree, or a .git file. It
// looks no further up. Nobody's ownership is asked after: see Repo.CheckOwner.
func Open(path string, o Options) (*Repo, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	f, err := o.at(path)
	if e, ok := errors.AsType[*NotRepository](err); ok && !e.Damaged {
		e.Inside = o.inside(path)
	}
	if err != nil {
		return nil, err
	}
	return o.open(path, f)
}

// inside gives the nearest repository that a folder lies in, or its working tree; "" if there is none, or
// it can't be told.
func (o *Options) inside(path string) string {
	dir, err := realPath(o.abs(path))
	if err != nil {
		return ""
	}
	if st, err := os.Stat(dir); err != nil || !st.IsDir() {
		return ""
	}
	for {
		parent := filepath.Dir(dir)
		if parent == dir {
			return ""
		}
		dir = parent
		if _, err := o.at(dir); err == nil {
			return dir
		}
	}
}

// OpenGitDir opens the git dir at path, or the one that the .git file at path names, as git's --git-dir
// and GIT_DIR do: a .git below it is not looked for.
func OpenGitDir(path string, o Options) (*Repo, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	f, err := o.gitDirAt(path)
	if err != nil {
		return nil, err
	}
	return o.open(path, f)
}

// IsRepository tells whether Open would find a repository at path, without reading more of it than
// that takes. The answer no is a *NotRepository.
func IsRepository(path string, o Options) error {
	if err := o.complete(); err != nil {
		return err
	}
	_, err := o.at(path)
	return err
}

// at looks for a repository at one path.
func (o *Options) at(path string) (found, error) {
	named := o.abs(path)
	real, err := realPath(named)
	if err != nil {
		return found{}, &NotRepository{Path: path, Why: err}
	}
	st, err := os.Stat(real)
	if err != nil {
		return found{}, &NotRepository{Path: path, Why: err}
	}
	if !st.IsDir() {
		return o.fileAt(path, real, st)
	}
	if f, ok, err := o.below(named, real); ok || err != nil {
		return f, err
	}
	if err := o.isGitDir(real); err != nil {
		if e, ok := errors.AsType[*NotRepository](err); ok {
			e.Path = path
		}
		return found{}, err
	}
	return found{gitDir: real, named: named}, nil
}

// below looks for a .git in a folder.
func (o *Options) below(named, real string) (f found, ok bool, err error) {
	dotGit := joinPath(real, ".git")
	st, err := os.Stat(dotGit)
	switch {
	case vfs.Missing(err):
		return found{}, false, nil
	case err != nil:
		return found{}, false, err
	case st.Mode().IsRegular():
		gitDir, err := o.readGitFile(dotGit)
		if err != nil {
			return found{}, false, &NotRepository{Path: named, Why: err, Damaged: true}
		}
		return found{gitDir: gitDir, named: gitDir, gitFile: dotGit, top: real}, true, nil
	case !st.IsDir():
		return found{}, false, fmt.Errorf("%s: %w", dotGit, vfs.ErrNotRegular)
	}
	gitDir, err := realPath(dotGit)
	if err != nil {
		return found{}, false, err
	}
	if err := o.isGitDir(gitDir); err != nil {
		if e, ok := errors.AsType[*NotRepository](err); ok && e.Damaged {
			return found{}, false, err
		}
		return found{}, false, nil
	}
	return found{gitDir: gitDir, named: joinPath(named, ".git"), top: real}, true, nil
}

// fileAt takes the file at path for a .git file.
func (o *Options) fileAt(path, real string, st fs.FileInfo) (found, error) {
	if !st.Mode().IsRegular() {
		return found{}, &NotRepository{Path: path, Why: vfs.ErrNotRegular}
	}
	gitDir, err := o.readGitFile(real)
	if err != nil {
		return found{}, &NotRepository{Path: path, Why: err}
	}
	f := found{gitDir: gitDir, named: gitDir, gitFile: real}
	if filepath.Base(real) == ".git" {
		f.top = filepath.Dir(real)
	}
	return f, nil
}

// gitDirAt takes path for a git dir, or a file that names one.
func (o *Options) gitDirAt(path string) (found, error) {
	named := o.abs(path)
	real, err := realPath(named)
	if err != nil {
		return found{}, &NotRepository{Path: path, Why: err}
	}
	if st, err := os.Stat(real); err == nil && !st.IsDir() {
		f, err := o.fileAt(path, real, st)
		f.byEnv = true
		return f, err
	}
	if err := o.isGitDir(real); err != nil {
		return found{}, err
	}
	return found{gitDir: real, named: named, byEnv: true}, nil
}

// open reads what the repository says of itself.
func (o *Options) open(path string, f found) (*Repo, error) {
	r := &Repo{Path: path, GitDir: f.gitDir, GitFile: f.gitFile, o: *o, found: f}
	if err := r.read(); err != nil {
		return nil, fmt.Errorf("open repository: %w", err)
	}
	return r, nil
}

func (r *Repo) read() (err error) {
	common, linkedRefs, err := commonDirOf(r.GitDir)
	if err != nil {
		return err
	}
	r.CommonDir, r.linkedRefs = common, linkedRefs
	if dir, set := r.o.Env("GIT_COMMON_DIR"); set {
		if r.CommonDir, err = realPath(r.o.abs(dir)); err != nil {
			return err
		}
	}
	if r.Git, err = vfs.Open(r.GitDir); err != nil {
		return err
	}
	r.Common = r.Git
	linked := r.CommonDir != r.GitDir
	if linked {
		if r.Common, err = vfs.Open(r.CommonDir); err != nil {
			return err
		}
	}
	r.ObjectDir = joinPath(r.CommonDir, "objects")
	if dir, set := r.o.Env("GIT_OBJECT_DIRECTORY"); set {
		r.ObjectDir = r.o.abs(dir)
	}
	texts := configTexts{}
	f, err := readFormat(r.Git, r.Common, linked, texts)
	if err != nil {
		return err
	}
	r.Format, r.CompatFormat = f.objects, f.compat
	r.PartialClone, r.PreciousObjects, r.RelativeWorktrees = f.partialClone, f.preciousObjects, f.relativeWorktrees
	if err := r.locateRefs(f, common); err != nil {
		return err
	}
	r.locateWorkTree(f)
	return r.readConfig(f, texts)
}

// locateWorkTree finds the working tree. GIT_WORK_TREE names that of the repository that we stand in
// or that GIT_DIR names, and not those of any others. Without it, git takes the folder that
// we stand in for the working tree of a GIT_DIR; what matters here is where the repository has its own.
func (r *Repo) locateWorkTree(f format) {
	tree := ""
	fromEnv, set := r.o.Env("GIT_WORK_TREE")
	switch {
	case set && r.found.byEnv:
		tree = r.o.abs(fromEnv)
	case f.bare != nil && *f.bare:
	case f.workTree != "":
		tree = joinPath(r.GitDir, f.workTree)
	case r.found.top != "":
		tree = r.found.top
	case r.linkedRefs:
		tree = r.linkedWorkTree(r.GitDir)
	case filepath.Base(r.GitDir) == ".git":
		tree = filepath.Dir(r.GitDir)
	}
	r.Bare = tree == "" && (f.bare == nil || *f.bare)
	if tree == "" {
		return
	}
	if real, err := realPath(tree); err == nil {
		tree = real
	}
	r.WorkTree = tree
}

func (r *Repo) readConfig(f format, texts configTexts) (err error) {
	reader := configReader{
		o: r.o, gitDir: r.GitDir, namedGitDir: r.found.named, workTree: r.WorkTree,
		git: r.Git, common: r.Common, worktreeConfig: f.worktreeConfig, texts: texts, branch: r.branch,
	}
	r.Config, err = reader.read()
	return err
}
