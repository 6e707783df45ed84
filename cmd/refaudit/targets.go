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
	"strings"

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
		&cli.BoolFlag{Name: "recursive", Aliases: []string{"r"}, Destination: &t.recursive, Usage: "each PATH is a folder: take every repository below it, nested ones and submodules too, each once (symbolic links below it are not followed)"},
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
	found := search{ctx: ctx, fn: fn, seen: map[string]bool{}}
	give := func(path string) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if path == "" {
			return usagef("an empty PATH names no repository")
		}
		if t.recursive {
			return found.below(path)
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
		if err := t.list(ctx, e, fn, give); err != nil {
			return err
		}
		return found.rest()
	case len(t.paths) > 0:
		return found.rest()
	case t.recursive:
		if err := found.below(e.dir); err != nil {
			return err
		}
		return found.rest()
	}
	if dir, ok := e.getenv("GIT_DIR"); ok && dir != "" {
		return fn(target{path: dir, how: scan.ByGitDir})
	}
	return fn(target{path: e.dir, how: scan.ByFolder})
}

// list reads --repos-from. The read may block for ever on a pipe, so it gives way to the context.
func (t *targets) list(ctx context.Context, e env, fn func(target) error, give func(string) error) error {
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
	var err error
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
			if why := t.noPath(e.dir, row); why != nil {
				err = fn(target{path: row, err: why})
			} else {
				err = give(row)
			}
			if err != nil {
				return err
			}
		}
	}
}

// noPath tells why a line of a list that leads to nothing was perhaps not meant as a path; nil where it leads somewhere,
// or there is no such reason. It names a repository nevertheless, one that is not there.
func (t *targets) noPath(dir, row string) error {
	if t.nul || row[0] != '#' && strings.TrimSpace(row) == row {
		return nil
	}
	path := row
	if !filepath.IsAbs(row) {
		path = filepath.Join(dir, row)
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return fmt.Errorf("no file has the name %q: each line of --repos-from is a path as it stands, with no comments and no white space around it", row)
}
