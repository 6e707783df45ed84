package repo

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"

	"refaudit/internal/refname"
	"refaudit/internal/vfs"
)

var (
	errNoHeadReader = errors.New("HEAD is in a reftable, and there is no reader for it")
	errSymrefs      = fmt.Errorf("HEAD is a symbolic ref more than %d steps long", refname.MaxSymrefs)
)

// branch is the short name of the branch that HEAD stands for, for includeIf onbranch.
func (r *Repo) branch() (string, bool, error) {
	head, err := r.symbolicHead()
	if err != nil {
		return "", false, err
	}
	name, on := strings.CutPrefix(head, "refs/heads/")
	return name, on, nil
}

// symbolicHead is the ref that HEAD finally stands for, which may not exist; "" if HEAD names an object.
func (r *Repo) symbolicHead() (string, error) {
	if r.Refs.Backend != "files" {
		if r.o.Head == nil {
			return "", errNoHeadReader
		}
		return r.o.Head(r)
	}
	own, err := vfs.Open(r.refDirOf(r.GitDir, r.linkedRefs))
	if err != nil {
		return "", err
	}
	dir, name, target := own, "HEAD", ""
	for range refname.MaxSymrefs {
		next, err := symbolicRef(dir, name)
		if err != nil || next == "" {
			return target, err
		}
		target, name, dir = next, next, r.Refs.Root
	}
	return "", errSymrefs
}

// symbolicRef is what a loose ref stands for: "" if it is absent or names an object.
func symbolicRef(dir *vfs.Dir, name string) (string, error) {
	if target, err := dir.Readlink(name); err == nil {
		if strings.HasPrefix(target, "refs/") {
			return target, nil
		}
	}
	text, err := dir.ReadFile(name, maxGitFile)
	if vfs.Missing(err) {
		return "", nil
	}
	if st, statErr := os.Stat(dir.Path(name)); statErr == nil && st.IsDir() {
		return "", nil // a folder of refs: no such ref
	}
	return symrefTarget(text), err
}

// symrefTarget reads "ref: <name>" off the text of a loose ref; "" if it is none.
func symrefTarget(text []byte) string {
	rest, found := bytes.CutPrefix(untilNUL(text), []byte("ref:"))
	if !found {
		return ""
	}
	return string(bytes.Trim(rest, " \t\r\n"))
}
