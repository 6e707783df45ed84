package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// search finds the repositories below folders, each once. It goes by what lies in a folder, not by its
// soundness: a damaged repository, of which HEAD, objects or refs is lost, is one all the same.
//
//	project/                a repository, by its .git
//	    .git/               goes with it
//	        modules/lib/    a repository
//	        worktrees/w/    goes with it, but has modules/ of its own
//	    lib/.git            a file, which names ../.git/modules/lib
//	    nested/x.git/       a repository
//	w/.git                  a file, which names project/.git/worktrees/w
//
// What has a file for a .git is given at the end, if its repository wasn't found by then.
type search struct {
	ctx   context.Context
	fn    func(target) error
	seen  map[string]bool // the git dirs that were given, or common dirs; free of links
	later []gitFile
}

// gitFile is a folder with a file for a .git.
type gitFile struct{ path, common string }

// below searches a folder, which may be a symbolic link; those below it are not followed. What can't be listed is a
// target too, one with an error, and so is a folder with nothing below it: its disk may not be mounted.
func (s *search) below(root string) error {
	start, found := root, false
	if st, err := os.Lstat(root); err == nil && st.Mode()&fs.ModeSymlink != 0 {
		start += string(filepath.Separator)
	}
	nothing := target{path: root, err: fmt.Errorf("no repository was found below %s", root)}
	if st, err := os.Stat(root); err == nil && !st.IsDir() {
		return s.fn(nothing)
	}
	real, err := filepath.EvalSymlinks(root)
	if err != nil {
		real = root // it is told when it is listed
	}
	if real, err = filepath.Abs(real); err != nil {
		return err
	}
	w := walk{search: s, top: root, start: start, real: real, found: &found}
	if err := w.folder(start); err != nil || found {
		return err
	}
	return s.fn(nothing)
}

// rest gives what has a file for a .git and belongs to no repository that was found.
func (s *search) rest() error {
	for _, g := range s.later {
		if s.seen[g.common] {
			continue
		}
		s.seen[g.common] = true
		if err := s.fn(target{path: g.path}); err != nil {
			return err
		}
	}
	s.later = nil
	return nil
}

// walk is the search below one folder.
type walk struct {
	*search
	top, start, real string // the folder as it was named, as it is opened, and free of links
	found            *bool
}

func (w *walk) give(path string, err error) error {
	*w.found = true
	if path == w.start {
		path = w.top
	}
	return w.fn(target{path: path, err: err})
}

// repository gives one, unless its git dir was given before.
func (w *walk) repository(path, gitDir string) error {
	*w.found = true
	real := w.real + strings.TrimPrefix(gitDir, strings.TrimSuffix(w.start, string(filepath.Separator)))
	if real = filepath.Clean(real); w.seen[real] {
		return nil
	}
	w.seen[real] = true
	return w.give(path, nil)
}

// folder searches one folder, and those in it.
func (w *walk) folder(path string) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	list, err := os.ReadDir(path)
	if err != nil {
		if looksLikeRepository(path) {
			err = nil // it can be entered: it is for the command to say what it can't read
		}
		return w.give(path, err)
	}
	signs, dotGit := 0, fs.DirEntry(nil)
	for _, e := range list {
		switch e.Name() {
		case ".git":
			dotGit = e
		case "HEAD", "objects", "refs":
			signs++
		}
	}
	switch {
	case dotGit == nil && signs >= 2:
		if err := w.repository(path, path); err != nil {
			return err
		}
		return w.gitDir(path, list)
	case dotGit == nil:
	case dotGit.IsDir():
		if err := w.repository(path, filepath.Join(path, ".git")); err != nil {
			return err
		}
	default:
		if err := w.file(path); err != nil {
			return err
		}
	}
	for _, e := range list {
		switch {
		case !e.IsDir():
		case e == dotGit:
			err = w.insideGitDir(filepath.Join(path, ".git"))
		default:
			err = w.folder(filepath.Join(path, e.Name()))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// file keeps a folder with a file for a .git for later; one that leads to no git dir is given at once.
func (w *walk) file(path string) error {
	common := commonDir(filepath.Join(path, ".git"))
	if common == "" {
		return w.give(path, nil)
	}
	*w.found = true
	if path == w.start {
		path = w.top
	}
	w.later = append(w.later, gitFile{path, common})
	return nil
}

// insideGitDir searches a git dir that belongs to a repository which was given.
func (w *walk) insideGitDir(path string) error {
	list, err := os.ReadDir(path)
	if err != nil {
		return nil // the command says so
	}
	return w.gitDir(path, list)
}

// gitDir searches what git doesn't make in a git dir, and modules/. A server has ten thousand git dirs, with all the
// folders that git does make.
func (w *walk) gitDir(path string, list []fs.DirEntry) (err error) {
	for _, e := range list {
		if err != nil {
			return err
		}
		if !e.IsDir() {
			continue
		}
		below := filepath.Join(path, e.Name())
		switch e.Name() {
		case "objects", "refs", "logs", "reftable", "hooks", "info", "branches", "lfs", "rr-cache":
		case "worktrees":
			err = w.worktrees(below)
		default:
			err = w.folder(below)
		}
	}
	return err
}

// worktrees searches what linked worktrees have beside their refs: modules/.
func (w *walk) worktrees(path string) error {
	list, err := os.ReadDir(path)
	if err != nil {
		return nil // the command says so
	}
	for _, e := range list {
		if !e.IsDir() {
			continue
		}
		if err := w.insideGitDir(filepath.Join(path, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// maxGitFile is longer than any path that systems allow.
const maxGitFile = 1 << 16

// commonDir is the common dir of the repository that a .git file leads to, free of links; "" if that can't be told.
func commonDir(dotGit string) string {
	text, err := readStart(dotGit)
	gitDir, ok := bytes.CutPrefix(text, []byte("gitdir: "))
	if err != nil || !ok {
		return ""
	}
	dir := from(filepath.Dir(dotGit), gitDir)
	switch text, err := readStart(filepath.Join(dir, "commondir")); {
	case err == nil:
		dir = from(dir, text)
	case !errors.Is(err, fs.ErrNotExist):
		return ""
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return ""
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return ""
	}
	return dir
}

func from(dir string, text []byte) string {
	path := string(bytes.TrimRight(text, "\r\n"))
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

func readStart(path string) ([]byte, error) {
	if st, err := os.Stat(path); err != nil || !st.Mode().IsRegular() {
		return nil, errors.Join(err, fs.ErrInvalid)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxGitFile))
}

// looksLikeRepository looks for a repository in a folder that can't be listed.
func looksLikeRepository(path string) bool {
	signs := 0
	for _, name := range []string{".git", "HEAD", "objects", "refs"} {
		if _, err := os.Lstat(filepath.Join(path, name)); err == nil {
			signs++
			if name == ".git" {
				return true
			}
		}
	}
	return signs >= 2
}
