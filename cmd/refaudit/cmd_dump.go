package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"refaudit/finding"
	"refaudit/internal/vfs"
	"refaudit/oid"
	"refaudit/packed"
	"refaudit/reftable"
	"refaudit/repo"
	"refaudit/reports"
)

type dumpOptions struct {
	format string
	object string
	paths  []string
}

func dumpCommand(e env) *cli.Command {
	var o dumpOptions
	return &cli.Command{
		Name:      "dump",
		Usage:     "print a packed-refs file or a table as it is, going on past damage",
		ArgsUsage: "FILE|PATH…",
		Description: "Of each range of bytes: where it stands, the bytes, and what they mean. A PATH is a repository:\n" +
			"its packed-refs, or every table of its stacks, is dumped. `~` marks a range of an inflated block.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "format", Value: "text", Destination: &o.format, Usage: "`FORMAT`: text or jsonl"},
			&cli.StringFlag{Name: "object-format", Destination: &o.object, Usage: "sha1 or sha256, of a packed-refs FILE (else told from its first id)"},
		},
		Action: func(c *cli.Context) error {
			o.paths = c.Args().Slice()
			return runDump(c.Context, e, o)
		},
	}
}

func runDump(ctx context.Context, e env, o dumpOptions) error {
	if len(o.paths) == 0 {
		return usagef("dump takes a packed-refs file, a table, or a repository")
	}
	var format oid.Format
	if o.object != "" {
		var ok bool
		if format, ok = oid.ParseFormat(o.object); !ok {
			return usagef("--object-format takes sha1 or sha256, not %q", o.object)
		}
	}
	out := &buffer{w: e.stdout, before: e.arm}
	d, err := reports.NewDump(o.format, out)
	if err != nil {
		return &usageError{err}
	}
	if slices.ContainsFunc(o.paths, func(path string) bool { return !isDumpFile(e.abs(path)) }) {
		if err := e.checkConfig(); err != nil {
			return err
		}
	}
	code := exitOK
	for _, path := range o.paths {
		err := dumpPath(ctx, e, d, path, format)
		if cause := context.Cause(ctx); cause != nil {
			return errors.Join(out.flush(true), cause)
		}
		if err != nil {
			fmt.Fprintf(e.stderr, "refaudit: %s\n", reports.Escape(err.Error()))
			code = exitIncomplete
		}
	}
	if err := errors.Join(d.Summary(code), out.flush(true)); err != nil {
		return err
	}
	return exitWith(code)
}

func dumpPath(ctx context.Context, e env, d reports.Dump, path string, format oid.Format) error {
	full := e.abs(path)
	if _, err := os.Stat(full); err != nil {
		return err
	}
	dir, err := vfs.Open(filepath.Dir(full))
	if err != nil {
		return err
	}
	if isDumpFile(full) {
		return dumpFile(ctx, d, dir, filepath.Base(full), path, format)
	}
	r, err := repo.Open(full, e.seeing())
	if err != nil {
		return err
	}
	return dumpRepository(ctx, d, r)
}

// isDumpFile tells a file, for which configuration has no meaning, from a repository.
func isDumpFile(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular() && filepath.Base(path) != ".git"
}

func dumpRepository(ctx context.Context, d reports.Dump, r *repo.Repo) error {
	if r.Refs.Backend == "files" {
		err := dumpFile(ctx, d, r.Refs.Root, packed.FileName, packed.FileName, r.Format)
		if vfs.Missing(err) {
			return fmt.Errorf("%s: there is no packed-refs: all refs are loose", r.Path)
		}
		return err
	}
	trees, err := r.Worktrees()
	if err != nil {
		return err
	}
	var errs []error
	for i := range trees {
		w := &trees[i]
		root, err := vfs.Open(w.RefDir)
		if vfs.Missing(err) {
			continue
		}
		prefix := ""
		if !w.Main() {
			prefix = "worktrees/" + w.ID + "/"
		}
		if err == nil {
			err = dumpStack(ctx, d, root, prefix, r.Format)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// maxList bounds a tables.list.
const maxList = 64 << 20

func dumpStack(ctx context.Context, d reports.Dump, root *vfs.Dir, prefix string, format oid.Format) error {
	const list = "reftable/tables.list"
	text, err := root.ReadFile(list, maxList)
	if err != nil {
		return err
	}
	names, problems := reftable.ParseList(text, prefix+list)
	var errs []error
	for _, p := range problems {
		errs = append(errs, p)
	}
	for _, name := range names {
		errs = append(errs, dumpFile(ctx, d, root, "reftable/"+name, prefix+"reftable/"+name, format))
	}
	return errors.Join(errs...)
}

// dumpFile tells a table by its first bytes; all else is taken for packed-refs.
func dumpFile(ctx context.Context, d reports.Dump, dir *vfs.Dir, name, label string, format oid.Format) error {
	f, err := dir.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	if err := d.File(label, st.Size()); err != nil {
		return err
	}
	head := make([]byte, 4096)
	n, err := f.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return err
	}
	head = head[:n]
	if bytes.HasPrefix(head, []byte("REFT")) || filepath.Ext(name) == ".ref" {
		return reftable.Dump(f, st.Size(), label, func(p *reftable.Part) error {
			return errors.Join(ctx.Err(), d.Piece(tablePiece(label, p)))
		})
	}
	if format == 0 {
		format = guessFormat(head)
	}
	_, err = packed.Dump(f, st.Size(), format, packed.Options{File: label}, func(p *packed.Piece) error {
		return errors.Join(ctx.Err(), d.Piece(&reports.Piece{File: label, Kind: p.Kind, Offset: p.Offset, Length: p.Length, Bytes: p.Bytes, Line: p.Line,
			Meaning: p.Meaning, Resumed: p.Resumed, Findings: p.Findings}))
	})
	return err
}

func tablePiece(label string, p *reftable.Part) *reports.Piece {
	out := &reports.Piece{File: label, Kind: string(p.Kind), Offset: p.Offset, Length: p.Length, Bytes: p.Bytes, Inflated: p.Inflated,
		Block: p.Block, Blocked: p.Block >= 0, Meaning: p.Text, Resumed: p.Kind == reftable.PartResumed}
	if p.Damage != nil {
		out.Findings = []finding.Finding{p.Damage.Finding()}
	}
	return out
}

// guessFormat goes by the first line that begins as one with an id of 64 digits does.
func guessFormat(head []byte) oid.Format {
	for _, line := range bytes.Split(head, []byte("\n")) {
		if n := oid.HexPrefix(bytes.TrimPrefix(line, []byte("^")), oid.SHA256.HexLen()+1); n == oid.SHA256.HexLen() {
			return oid.SHA256
		}
	}
	return oid.SHA1
}
