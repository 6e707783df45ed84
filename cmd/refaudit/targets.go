package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"refaudit/scan"
)

// targets says which repositories a command works on.
type targets struct {
	recursive bool
	from      string // --repos-from
	nul       bool   // -z
	gitDir    string // --git-dir
	paths     []string

	skip  func(target) bool // passes over a target; nil: none
	known func()            // is told when all targets are known; nil: nobody is
}

func (t *targets) flags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "recursive", Aliases: []string{"r"}, Destination: &t.recursive, Usage: "each PATH is a folder: take every repository below it (symbolic links below it are not followed)"},
		&cli.StringFlag{Name: "repos-from", Destination: &t.from, Usage: "read the paths of repositories from `FILE`, a line each (-: standard input)"},
		&cli.BoolFlag{Name: "z", Destination: &t.nul, Usage: "with --repos-from: the paths end in NUL, not newline"},
		&cli.StringFlag{Name: "git-dir", Destination: &t.gitDir, Usage: "the repository's git `DIR`, as with git"},
	}
}

// one tells whether at most one repository is meant.
func (t *targets) one() bool { return len(t.paths) < 2 && !t.recursive && t.from == "" }

// target is one repository to work on.
type target struct {
	path string
	how  scan.How
	err  error // why nothing could be found here
}

// each gives the targets one by one, as they become known, until fn or the context says stop.
// An error is of the arguments, or of reading the list.
func (t *targets) each(ctx context.Context, e env, fn func(target) error) error {
	if t.gitDir != "" && (len(t.paths) > 0 || t.from != "" || t.recursive) {
		return usagef("--git-dir names the repository: no PATH goes with it")
	}
	if t.nul && t.from == "" {
		return usagef("-z goes with --repos-from")
	}
	give := func(path string) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if path == "" {
			return usagef("an empty PATH names no repository")
		}
		if t.recursive {
			return below(ctx, path, fn)
		}
		return fn(target{path: path})
	}
	if t.gitDir != "" {
		return fn(target{path: t.gitDir, how: scan.ByGitDir})
	}
	for _, p := range t.paths {
		if err := give(p); err != nil {
			return err
		}
	}
	switch {
	case t.from != "":
		return t.list(ctx, e, give)
	case len(t.paths) > 0:
		return nil
	case t.recursive:
		return below(ctx, e.dir, fn)
	}
	if dir, ok := e.getenv("GIT_DIR"); ok && dir != "" {
		return fn(target{path: dir, how: scan.ByGitDir})
	}
	return fn(target{path: e.dir, how: scan.ByFolder})
}

// list reads --repos-from. The read may block for ever on a pipe, so it gives way to the context.
func (t *targets) list(ctx context.Context, e env, give func(string) error) error {
	in := e.stdin
	if t.from != "-" {
		f, err := os.Open(t.from)
		if err != nil {
			return usagef("--repos-from: %w", err)
		}
		defer f.Close()
		in = f
	}
	end := byte('\n')
	if t.nul {
		end = 0
	}
	lines, failed := make(chan string), make(chan error, 1)
	go func() {
		defer close(lines)
		r := bufio.NewReader(in)
		for {
			row, err := r.ReadBytes(end)
			row = bytes.TrimSuffix(row, []byte{end})
			if len(row) > 0 {
				select {
				case lines <- string(row):
				case <-ctx.Done():
					return
				}
			}
			if err != nil {
				if err != io.EOF {
					failed <- fmt.Errorf("--repos-from: %w", err)
				}
				return
			}
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case row, ok := <-lines:
			if !ok {
				select {
				case err := <-failed:
					return err
				default:
					return nil
				}
			}
			if err := give(row); err != nil {
				return err
			}
		}
	}
}

// below gives every repository under a folder, and does not look inside of them. The folder itself may be a
// symbolic link; those below it are not followed. What can't be listed is a target too, one with an
// error, and so is a folder with nothing below it: its disk may not be mounted.
func below(ctx context.Context, root string, fn func(target) error) error {
	start, found := root, false
	if st, err := os.Lstat(root); err == nil && st.Mode()&fs.ModeSymlink != 0 {
		start += string(filepath.Separator)
	}
	give := func(one target) error {
		found = true
		if one.path == start {
			one.path = root
		}
		return fn(one)
	}
	if err := walk(ctx, start, give); err != nil || found {
		return err
	}
	return fn(target{path: root, err: fmt.Errorf("no repository was found below %s", root)})
}

func walk(ctx context.Context, root string, fn func(target) error) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			if err := fn(target{path: path, err: err}); err != nil {
				return err
			}
			if d != nil && d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if !d.IsDir() {
			return nil
		}
		found, err := looksLikeRepository(path)
		if err != nil {
			found = true // it is for the command to say why
		}
		if found {
			if err := fn(target{path: path}); err != nil {
				return err
			}
			return fs.SkipDir
		}
		return nil
	})
}

// looksLikeRepository goes by what lies in the folder, not by its soundness: a damaged repository, of which
// HEAD, objects or refs is lost, is one all the same.
func looksLikeRepository(path string) (bool, error) {
	signs := 0
	for _, name := range []string{".git", "HEAD", "objects", "refs"} {
		_, err := os.Lstat(filepath.Join(path, name))
		switch {
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return false, err
		case err == nil && name == ".git":
			return true, nil
		case err == nil:
			signs++
		}
	}
	return signs >= 2, nil
}
