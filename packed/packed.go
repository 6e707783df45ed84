// Package packed reads and writes packed-refs files: all refs of a repository in one text file,
// each with the object that its tag finally leads to cached below it.
//
//	# pack-refs with: peeled fully-peeled sorted           the header; its words are promises
//	8e1f… refs/heads/main                                  a ref: its object, one space, its name
//	27ca… refs/tags/v1
//	^8e1f…                                                 the peel of the ref above, a tag
//
// The format has no specification of its own; what is here is what git reads and writes, and the
// traits are described in git's refs/packed-backend.c. The package opens no files: it takes an
// io.ReaderAt and a size, and goes on past everything that is wrong, reporting it as findings.
package packed

import (
	"io/fs"

	"refaudit/finding"
)

// FileName is the name of the file in the git dir, and the one in findings where no other is given.
const FileName = "packed-refs"

// A Header is the first line of a packed-refs file, if that begins with "#".
type Header struct {
	Present     bool
	Bad         bool   // it does not begin as git's does; git refuses the file
	Raw         []byte // without its newline; nil if absent
	Length      int64  // newline included
	Peeled      bool   // refs below refs/tags/ have their peels
	FullyPeeled bool   // all refs have their peels
	Sorted      bool   // names rise strictly, as bytes
}

// Style says how an entry departs from what git itself writes.
type Style uint16

// The departures. The value of the ref can be read in spite of each of them.
const (
	UpperHex    Style = 1 << iota // upper-case digits in the ref's id
	UpperPeel                     // upper-case digits in the peel
	OddSpace                      // a TAB or CR instead of the space before the name
	CR                            // the name ends in CR: the lines end as on Windows. Also BadName.
	OutsideRefs                   // the name does not begin with refs/
	BadName                       // git refuses the name: it passes over the ref
	ZeroOID                       // the id is all zeros. git says nothing of it.
	BadPeel                       // there is a ^ line, and no peel can be read from it: Peel is nil
)

// Canonical tells whether the entry's bytes are those that git would write.
func (s Style) Canonical() bool { return s&(UpperHex|UpperPeel|OddSpace|CR|BadPeel) == 0 }

// An Entry is one ref with its cached peel. The slices are valid until the callback returns.
type Entry struct {
	Name   []byte
	OID    []byte // raw
	Peel   []byte // raw; nil: none
	Line   int    // of the ref, from 1
	Offset int64  // of the ref's line
	Length int64  // of the ref's line, newline included
	// The ^ line, where there is one: Peel is not nil, or Style has BadPeel.
	PeelLine   int
	PeelOffset int64
	PeelLength int64
	Style      Style
}

// HasPeelLine tells whether a ^ line stands below the ref, whether or not it can be read.
func (e *Entry) HasPeelLine() bool { return e.PeelLine != 0 }

// Summary is what is true of a whole file.
type Summary struct {
	Header Header
	Size   int64
	Lines  int
	Refs   int // entries, those with bad names included
	Peels  int // peels that can be read
	// Sorted tells that the names rise strictly, whatever the header says.
	Sorted bool
	// Duplicates counts the entries whose name stood before; Differing those of them whose id is
	// another than at the first.
	Duplicates, Differing int
	Orphans               int // ^ lines that belong to no ref
	BadPeels              int // ^ lines of a ref that can't be read
	BadNames              int // entries whose name git refuses
	Malformed             int // lines that are no entry at all
	Odd                   int // entries that are not canonical
	Unterminated          bool
	Empty                 bool // no bytes at all
	// Damaged tells that some line is not what it should be.
	Damaged bool
	// LostBytes tells that a ref, or part of one, is gone or can't be told: lines that are no
	// entry, NULs, a last line that was cut off, a file of another kind.
	LostBytes bool
	// CutName tells that the name in the last line has lost its end: the line has no newline, and breaks the order
	// that the header promises and that holds up to it.
	CutName bool
}

// Lost tells that refs are gone, or parts of them.
func (s *Summary) Lost() bool { return s.LostBytes || s.CutName }

// Refused tells that git dies of a line, and reads none of the refs then, also where each can be told.
func (s *Summary) Refused() bool {
	return s.Header.Bad || s.Unterminated || s.Orphans > 0 || s.BadPeels > 0 || s.Malformed > 0
}

// Filetype gives the finding for a packed-refs that is no regular file, told from its own mode
// (not that of what a symbolic link leads to). git reads through a link all the same.
func Filetype(mode fs.FileMode) (f finding.Finding, bad bool) {
	text := "not a regular file"
	switch {
	case mode.IsRegular():
		return f, false
	case mode&fs.ModeSymlink != 0:
		text = "not a regular file but a symlink"
	}
	f = finding.New(finding.BadRefFiletype, finding.Pos{File: FileName}, "is %s", text)
	f.GitText = finding.GitLine(FileName, f.ID, text)
	return f, true
}
