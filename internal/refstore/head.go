package refstore

import (
	"bytes"
	"context"
	"fmt"

	"refaudit/finding"
	"refaudit/internal/refname"
	"refaudit/internal/vfs"
	"refaudit/reftable"
	"refaudit/repo"
)

// Head is the name of the ref that HEAD of the worktree at hand finally stands for, where HEAD is in a
// reftable; "" if it names an object, or is absent. It is what repo.Options.Head asks for, and
// needs nothing of the configuration.
func Head(r *repo.Repo) (string, error) {
	own, err := vfs.Open(r.OwnRefDir())
	if err != nil {
		return "", err
	}
	at, name, target := &place{root: own, main: r.GitDir == r.CommonDir}, "HEAD", ""
	main := &place{root: r.Refs.Root, main: true}
	for range refname.MaxSymrefs {
		next, err := symref(r, at, name)
		if err != nil || next == "" {
			return target, err
		}
		target, name, at = next, next, main
	}
	return "", fmt.Errorf("HEAD is a symbolic ref more than %d steps long", refname.MaxSymrefs)
}

// symref is what a record of the store stands for: "" if there is none, or it names an object.
func symref(r *repo.Repo, at *place, name string) (string, error) {
	e, err := record(r, at, name)
	if err != nil || e == nil || e.Type != reftable.Symref {
		return "", err
	}
	return string(e.Target), nil
}

// record is that of a name in the store; nil if there is none.
func record(r *repo.Repo, at *place, name string) (*reftable.Ref, error) {
	v := &visit{ctx: context.Background(), repo: r, place: at, sum: &Summary{}, report: func(f finding.Finding) error {
		return fmt.Errorf("%s: %s", f.Pos, f.Message)
	}}
	s, _, err := v.openStack()
	if err != nil {
		return nil, err
	}
	defer s.close()
	m := reftable.Merge(s.tables)
	m.Seek([]byte(name))
	if m.Next() {
		if e := m.Entries()[0]; string(e.Name) == name {
			ref := *e.Ref
			ref.Value, ref.Target = bytes.Clone(e.Value), bytes.Clone(e.Target)
			return &ref, nil
		}
	}
	return nil, m.Err()
}
