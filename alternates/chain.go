package alternates

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"refaudit/finding"
	"refaudit/internal/vfs"
)

// Store is one object folder of a chain.
type Store struct {
	Path   string // absolute, with no symbolic link in it
	Hops   int    // from the repository's own folder
	Parent int    // in Chain.Stores: whose list names it; of one from the environment, 0
	Line   int    // in Parent's info/alternates; 0: from the environment

	info fs.FileInfo
}

// Chain is a repository's own object folder and those that it borrows from, directly and in
// turn, each once, in the order in which git searches them.
type Chain struct {
	Stores   []Store // the first is the repository's own
	Findings []finding.Finding
	// Unknown says why objects may exist that can't be seen from here: a folder that is missing
	// or can't be read, or that lies too deep. It is nil if there is no such thing.
	Unknown error
	// Unread says why there may be folders that are not known at all: a list can't be read, or not to its end.
	// It is nil if all lists were read whole.
	Unread error
}

const (
	// MaxHops is how far git follows: entries of the repository's own list, or of the
	// environment, are one hop away.
	MaxHops = 6
	// fileLimit bounds an alternates file, entryLimit the entries of all of them.
	fileLimit, entryLimit = 16 << 20, 10000
	// Variable is the environment's list of folders.
	Variable = "GIT_ALTERNATE_OBJECT_DIRECTORIES"

	listName = "info/alternates"
)

// Resolve follows the alternates of an object folder, which must exist. environment is the value
// of the variable GIT_ALTERNATE_OBJECT_DIRECTORIES; its relative entries start at the working
// directory, those of a file at the real folder that the file is in.
func Resolve(objectDir, environment string) (*Chain, error) {
	real, err := realPath(objectDir)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(real)
	if err != nil {
		return nil, err
	}
	r := &resolver{Chain: &Chain{Stores: []Store{{Path: real, info: info}}}}
	r.stack = []int{0}
	entries, problems := Parse([]byte(environment), os.PathListSeparator)
	r.follow(entries, problems, -1)
	r.read(0)
	return r.Chain, nil
}

type resolver struct {
	*Chain
	stack   []int // the stores on the way to the one whose list is being followed
	entries int   // met so far
}

// read follows the list of a store, if it has one.
func (r *resolver) read(store int) {
	dir, err := vfs.Open(r.Stores[store].Path)
	var text []byte
	if err == nil {
		text, err = dir.ReadFile(listName, fileLimit)
	}
	if errors.Is(err, fs.ErrNotExist) && (dir == nil || !leadsNowhere(dir)) {
		return
	}
	if err != nil {
		r.unread(finding.New(finding.AuditSkipped, finding.Pos{File: r.list(store)}, "alternates can't be read: %v", err))
		return
	}
	entries, problems := Parse(text, '\n')
	if len(entries) > 0 && r.Stores[store].Hops == MaxHops {
		r.unknown(finding.New(finding.AlternateMissing, finding.Pos{File: r.list(store), Line: entries[0].Line},
			"alternates nested more than %d deep are ignored, by git too: %s", MaxHops, r.route(r.stack, "")))
		return
	}
	r.follow(entries, problems, store)
}

// leadsNowhere tells whether there is a list, but one that is a symbolic link, or in a folder that is one, to what is
// not there, as when a disk is not mounted. git takes that for no list.
func leadsNowhere(dir *vfs.Dir) bool {
	for _, name := range []string{listName, "info"} {
		if st, err := dir.Lstat(name); err == nil && st.Mode()&fs.ModeSymlink != 0 {
			return true
		}
	}
	return false
}

// list is how messages name the list of a store; -1 is the environment.
func (r *resolver) list(store int) string {
	switch store {
	case -1:
		return "$" + Variable
	case 0:
		return "objects/" + listName
	}
	return filepath.Join(r.Stores[store].Path, listName)
}

// follow adds the folders of a list, and what they borrow from.
func (r *resolver) follow(entries []Entry, problems []Problem, store int) {
	pos := func(line int) finding.Pos {
		if store < 0 {
			return finding.Pos{File: r.list(store)}
		}
		return finding.Pos{File: r.list(store), Line: line}
	}
	for _, p := range problems {
		r.Findings = append(r.Findings, finding.New(finding.AlternateSyntax, pos(p.Line), "%s", p.Text))
	}
	for _, e := range entries {
		if r.entries++; r.entries > entryLimit {
			if r.entries == entryLimit+1 {
				r.unread(finding.New(finding.AuditSkipped, pos(e.Line), "more than %d alternates: the rest is not looked at", entryLimit))
			}
			return
		}
		path, info, err := r.find(e.Path, store)
		if err != nil {
			r.unknown(finding.New(finding.AlternateMissing, pos(e.Line), "alternate %q is not there: %v", e.Path, err))
			continue
		}
		if seen := r.seen(info); seen >= 0 {
			r.again(seen, e, pos(e.Line))
			continue
		}
		next := Store{Path: path, Hops: 1, Line: e.Line, info: info}
		if store >= 0 {
			next.Parent, next.Hops = store, r.Stores[store].Hops+1
		} else {
			next.Line = 0
		}
		r.Stores = append(r.Stores, next)
		r.stack = append(r.stack, len(r.Stores)-1)
		r.read(len(r.Stores) - 1)
		r.stack = r.stack[:len(r.stack)-1]
	}
}

// find resolves a path as git does: a relative one from the real folder of the list, and every
// ".." behind a symbolic link from where the link leads.
func (r *resolver) find(path string, store int) (string, fs.FileInfo, error) {
	if !filepath.IsAbs(path) && store >= 0 {
		path = r.Stores[store].Path + string(os.PathSeparator) + path
	}
	real, err := realPath(path)
	if err != nil {
		return "", nil, err
	}
	info, err := os.Stat(real)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is not a folder", real)
	}
	return real, info, err
}

// realPath is path from the root, without symbolic links.
func realPath(path string) (string, error) {
	if !filepath.IsAbs(path) { // not with Join, which would take "link/.." for nothing
		wd, err := os.Getwd()
		if err != nil {
			return "", err
		}
		path = wd + string(os.PathSeparator) + path
	}
	return vfs.RealPath(path)
}

// seen is the store that is this folder, under whatever name; -1 if none is.
func (r *resolver) seen(info fs.FileInfo) int {
	for i := range r.Stores {
		if os.SameFile(r.Stores[i].info, info) {
			return i
		}
	}
	return -1
}

// again judges an entry that leads to a folder that is known already. Two ways to one folder are
// no fault, a way back is.
func (r *resolver) again(seen int, e Entry, pos finding.Pos) {
	for i, s := range r.stack {
		switch {
		case s != seen:
		case i == len(r.stack)-1:
			r.Findings = append(r.Findings, finding.New(finding.AlternateSelf, pos, "alternate %q is the object folder that lists it", e.Path))
		default:
			r.Findings = append(r.Findings, finding.New(finding.AlternateCycle, pos, "alternates lead back: %s", r.route(r.stack[i:], r.Stores[seen].Path)))
		}
	}
}

// route is the folders on the way, for a message.
func (r *resolver) route(stores []int, last string) string {
	var b strings.Builder
	for i, s := range stores {
		if i > 0 {
			b.WriteString(" -> ")
		}
		b.WriteString(r.Stores[s].Path)
	}
	if last != "" {
		b.WriteString(" -> " + last)
	}
	return b.String()
}

// unknown adds a finding that makes absence unknowable.
func (r *resolver) unknown(f finding.Finding) {
	r.Findings = append(r.Findings, f)
	if r.Unknown == nil {
		r.Unknown = errors.New(f.Pos.String() + ": " + f.Message)
	}
}

// unread adds a finding of a list that could not be read, or not to its end.
func (r *resolver) unread(f finding.Finding) {
	r.unknown(f)
	if r.Unread == nil {
		r.Unread = errors.New(f.Pos.String() + ": " + f.Message)
	}
}
