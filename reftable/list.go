package reftable

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"strings"

	"refaudit/finding"
)

// ParseList reads tables.list: one table a line, the oldest first. file is the list's name in
// messages. Empty lines are passed over, as git does. What can't be believed is told with its
// place, each a finding.ReftableListBad, whose error is a *ReadLine where git reads the line all the
// same; a name that leads out of the folder is not among names, a path within it is there as
// the plain name, and none is there twice. A list without any name is no problem by itself, but to git
// such a repository has no refs: whether it may be so, the tables beside it tell.
func ParseList(text []byte, file string) (names []string, problems []*finding.Corrupt) {
	seen := map[string]int{}
	line := 0
	for off := 0; off < len(text); {
		line++
		name, _, ended := bytes.Cut(text[off:], []byte("\n"))
		pos := finding.Pos{File: file, Line: line, Offset: int64(off), Length: int64(len(name)), Placed: true}
		problem := func(err error) {
			problems = append(problems, &finding.Corrupt{ID: finding.ReftableListBad, Pos: pos, Err: err})
		}
		off += len(name)
		if ended {
			off++
			pos.Length++
		} else {
			problem(fmt.Errorf("last line %q has no newline: git 2.55 sees no table at all", name))
		}
		if plain := within(name); plain != nil {
			problem(&ReadLine{text: fmt.Sprintf("%q is a path and no plain name", name)})
			name = plain
		}
		switch first := seen[string(name)]; {
		case len(name) == 0:
			continue
		case bytes.IndexByte(name, 0) >= 0:
			problem(fmt.Errorf("%q holds a NUL: git sees no table at all", name))
			continue
		case bytes.ContainsAny(name, `/\`) || string(name) == "." || string(name) == "..":
			problem(fmt.Errorf("%q lies outside the folder of the tables", name))
			continue
		case first != 0:
			problem(&ReadLine{text: fmt.Sprintf("%q stands on line %d already", name, first), Twice: true})
			continue
		}
		seen[string(name)] = line
		names = append(names, string(name))
	}
	return names, problems
}

// ReadLine is what is wrong with a line of tables.list that git reads all the same.
type ReadLine struct {
	text  string
	Twice bool // the table stands on another line too; else the line leads to it by a path
}

func (l *ReadLine) Error() string { return l.text }

// within gives the plain name of a table to which a line leads by a path, out of the folder and into it again at
// most: ./NAME or ../reftable/NAME. It is nil for any other line.
func within(line []byte) []byte {
	if bytes.IndexByte(line, '/') < 0 || bytes.IndexByte(line, 0) >= 0 || line[0] == '/' {
		return nil
	}
	plain, ok := strings.CutPrefix(path.Clean("reftable/"+string(line)), "reftable/")
	if !ok || strings.ContainsAny(plain, `/\`) || bytes.HasSuffix(line, []byte("/")) {
		return nil
	}
	return []byte(plain)
}

// AppendList appends names as a tables.list holds them.
func AppendList(text []byte, names []string) []byte {
	for _, name := range names {
		text = append(append(text, name...), '\n')
	}
	return text
}

// FormatTableName is the name that git gives a table: its range of update indexes, and a
// number that has never been in use, for a name that left the list never comes back.
func FormatTableName(minIndex, maxIndex uint64, random uint32) string {
	return fmt.Sprintf("0x%012x-0x%012x-%08x.ref", minIndex, maxIndex, random)
}

// TableName is what a table's name says.
type TableName struct {
	Min, Max uint64 // the range of update indexes
	Random   uint64
	LogOnly  bool // it ends in .log instead of .ref
}

var errTableName = errors.New("is not named as a table is")

// ParseTableName reads a name as git and JGit (which leaves out 0x) write it.
func ParseTableName(name string) (n TableName, err error) {
	rest := name
	hex := func(end byte) (v uint64) {
		if len(rest) > 1 && rest[0] == '0' && rest[1] == 'x' {
			rest = rest[2:]
		}
		digits := 0
		for ; digits < len(rest) && digits < 16; digits++ {
			d := hexDigit(rest[digits])
			if d > 15 {
				break
			}
			v = v<<4 | uint64(d)
		}
		if digits == 0 || digits == len(rest) || rest[digits] != end {
			err = errTableName
			rest = ""
			return 0
		}
		rest = rest[digits+1:]
		return v
	}
	n.Min, n.Max, n.Random = hex('-'), hex('-'), hex('.')
	n.LogOnly = rest == "log"
	if err != nil || rest != "ref" && !n.LogOnly {
		return TableName{}, fmt.Errorf("%q %w", name, errTableName)
	}
	return n, nil
}

func hexDigit(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10
	}
	return 0xff
}

// BadTableName is git's text for a name that GoodTableName refuses, a finding.BadReftableTableName.
const BadTableName = "invalid reftable table name"

// GoodTableName judges a name as `git refs verify` does, which is more lenient than its own
// writer: three numbers in hex as strtoull reads them (each may be missing, signed, or have
// blanks before it, but must fit 64 bits) with '-' between, and .ref or .log behind.
func GoodTableName(name string) bool {
	for _, end := range []string{"-", "-", ""} {
		rest, ok := skipNumber(name)
		if !ok || len(rest) < len(end) || rest[:len(end)] != end {
			return false
		}
		name = rest[len(end):]
	}
	return name == ".ref" || name == ".log"
}

// skipNumber is what C's strtoull(s, &rest, 16) leaves; false where it sets ERANGE.
func skipNumber(s string) (rest string, ok bool) {
	i := 0
	for i < len(s) && (s[i] == ' ' || s[i] >= '\t' && s[i] <= '\r') {
		i++
	}
	if i < len(s) && (s[i] == '+' || s[i] == '-') {
		i++
	}
	if i+2 < len(s) && s[i] == '0' && s[i+1]|0x20 == 'x' && hexDigit(s[i+2]) < 16 {
		i += 2
	}
	start, v := i, uint64(0)
	for ; i < len(s) && hexDigit(s[i]) < 16; i++ {
		if v>>60 != 0 {
			return "", false
		}
		v = v<<4 | uint64(hexDigit(s[i]))
	}
	if i == start {
		return s, true // no number: nothing is read, the sign neither
	}
	return s[i:], true
}
