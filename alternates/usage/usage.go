// Package usage computes what a repository costs on disk: the objects that its refs reach, those of
// them that are its own and not borrowed from a pool, and what its object folder holds besides.
//
// It reads packs, indexes, bitmaps and commit-graphs itself. Objects are numbered by their places in
// packs, sets of them are bit sets over pack order, and their sizes come from neighbouring offsets.
// What can't be known has no number but a reason.
package usage

import (
	"errors"
	"fmt"
	"strings"

	"refaudit/finding"
	"refaudit/repo"
)

// Method says how reachable objects are found.
type Method string

// The methods. Bitmap and Walk give the same numbers.
const (
	Auto   Method = "auto"
	Bitmap Method = "bitmap"
	Walk   Method = "walk"
)

// ParseMethod reads a method by its name.
func ParseMethod(name string) (Method, error) {
	switch m := Method(name); m {
	case Auto, Bitmap, Walk:
		return m, nil
	}
	return "", fmt.Errorf("no method %q: there are auto, bitmap and walk", name)
}

// By says how figures are split.
type By string

// The ways to split.
const (
	ByNothing   By = ""
	ByType      By = "type"
	ByNamespace By = "ref-namespace"
)

// ParseBy reads a way to split by its name.
func ParseBy(name string) (By, error) {
	switch b := By(name); b {
	case ByNothing, ByType, ByNamespace:
		return b, nil
	}
	return "", fmt.Errorf("can't split by %q: there are type and ref-namespace", name)
}

// Options say what is measured.
type Options struct {
	Method              Method // "" is Auto
	By                  By
	Exclude             []string // globs of refs that don't count, as rev-list --exclude takes them
	ExcludeAlternates   bool     // own is what is asked for
	IgnoreDeadWorktrees bool     // leave out HEADs of worktrees whose working tree is gone
	Verify              bool     // measure by walking too, and compare
	Repo                repo.Options
}

// Figure is the name of one number.
type Figure string

// The figures; docs/usage.md defines them.
const (
	Reachable          Figure = "reachable"
	Own                Figure = "own"
	Borrowed           Figure = "borrowed"
	Duplicate          Figure = "duplicate"
	Unreachable        Figure = "unreachable"
	Files              Figure = "files"
	OwnStoredElsewhere Figure = "own_stored_elsewhere"
)

// Figures are all figures, in the order in which they are shown.
var Figures = []Figure{Reachable, Own, Borrowed, Duplicate, Unreachable, Files, OwnStoredElsewhere}

// Share is a part of what is reachable: the objects of one type, or those that the refs of one
// namespace reach and no namespace before it.
type Share struct {
	Name           string
	Reachable, Own int64 // bytes; Own is known if Usage's is
}

// Usage is what one repository costs, in bytes on disk.
type Usage struct {
	Bytes   map[Figure]int64
	Unknown map[Figure]string // why a figure can't be known; each figure is here or in Bytes
	Shares  []Share           // nil unless asked for, or where reachable can't be known

	Method   Method // what was used: Bitmap or Walk
	Reason   string // why
	Notices  []string
	Findings []finding.Finding
}

// Complete tells whether every figure is known.
func (u *Usage) Complete() bool { return len(u.Unknown) == 0 }

// know gives a figure its number.
func (u *Usage) know(f Figure, bytes uint64) { u.Bytes[f] = int64(bytes) }

// unknown says why figures can't be known; a first reason stays.
func (u *Usage) unknown(why string, figures ...Figure) {
	for _, f := range figures {
		if _, ok := u.Unknown[f]; !ok {
			u.Unknown[f] = why
		}
		delete(u.Bytes, f)
	}
}

func (u *Usage) notice(format string, args ...any) {
	u.Notices = append(u.Notices, fmt.Sprintf(format, args...))
}

// errAgain says that what was opened is not how things are any more.
var errAgain = errors.New("objects or packs have gone since the folders were listed")

// definitions say what each figure is, a line or two each.
var definitions = map[Figure]string{
	Reachable:          "objects that refs and HEADs reach, those of worktrees too",
	Own:                "of these, the ones that the refs of the alternates don't reach",
	Borrowed:           "reachable without own",
	Duplicate:          "objects in the repository's own folder that an alternate has too",
	Unreachable:        "objects in the repository's own folder that no ref reaches",
	Files:              "all files below the object folder, as stat says",
	OwnStoredElsewhere: "the part of own that lies in an alternate only",
}

// Definitions is a table of the figures and what they are.
func Definitions() string {
	var b strings.Builder
	for _, f := range Figures {
		fmt.Fprintf(&b, "  %-21s %s\n", f, definitions[f])
	}
	return b.String()
}
