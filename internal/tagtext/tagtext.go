// Package tagtext judges the text of a tag as `git fsck` does, with git's ids and in its order.
// Whether a tag peels is another question, which package peel answers: most of what is said here
// leaves a tag whole.
package tagtext

import (
	"bytes"
	"fmt"
	"math"
	"strconv"

	"refaudit/finding"
	"refaudit/internal/refname"
	"refaudit/oid"
)

// Problem is one thing that git fsck says of a tag: its id, and git's words for it.
type Problem struct {
	ID   finding.ID
	Text string
}

// Check judges the text of a tag. severity is what is configured: as in git, what is an error
// ends the judging of what stands behind it, and a lesser problem doesn't; nil: the defaults.
//
//	object <id>\n
//	type <kind>\n
//	tag <name>\n
//	tagger <name> <<email>> <seconds> <zone>\n    early tags have none
//	gpgsig <...>\n <continued>\n                  of a tag in both formats
//	\n
//	the message
func Check(f oid.Format, text []byte, severity func(finding.ID) finding.Severity) []Problem {
	if severity == nil {
		severity = finding.Default
	}
	c := &check{rest: text, severity: severity}
	if c.headers(text) {
		c.lines(f)
	}
	return c.found
}

// check is one call of Check.
type check struct {
	rest     []byte // what has not been judged yet
	severity func(finding.ID) finding.Severity
	found    []Problem
}

// say notes a problem, and tells whether the judging goes on.
func (c *check) say(id finding.ID, format string, args ...any) bool {
	c.found = append(c.found, Problem{id, fmt.Sprintf(format, args...)})
	return c.severity(id) < finding.Error
}

// headers wants a header without NUL that ends: in an empty line or with the text. Nothing is
// judged behind a header that doesn't.
func (c *check) headers(text []byte) bool {
	end := bytes.Index(text, []byte("\n\n"))
	head := text
	if end >= 0 {
		head = text[:end]
	}
	if nul := bytes.IndexByte(head, 0); nul >= 0 {
		c.say(finding.NulInHeader, "unterminated header: NUL at offset %d", nul)
		return false
	}
	if end < 0 && (len(text) == 0 || text[len(text)-1] != '\n') {
		c.say(finding.UnterminatedHeader, "unterminated header")
		return false
	}
	return true
}

// word takes a word at the beginning of a line.
func (c *check) word(w string) bool {
	rest, ok := bytes.CutPrefix(c.rest, []byte(w))
	if ok {
		c.rest = rest
	}
	return ok
}

// line takes the rest of the line; false where it has no end.
func (c *check) line() (line []byte, ended bool) {
	line, c.rest, ended = bytes.Cut(c.rest, []byte("\n"))
	return line, ended
}

func (c *check) lines(f oid.Format) {
	if !c.word("object ") {
		c.say(finding.MissingObject, "invalid format - expected 'object' line")
		return
	}
	line, _ := c.line()
	if n := f.HexLen(); len(line) != n || oid.HexPrefix(line, n) != n {
		if !c.say(finding.BadObjectSha1, "invalid 'object' line format - bad sha1") {
			return
		}
	}
	if !c.word("type ") {
		c.say(finding.MissingTypeEntry, "invalid format - expected 'type' line")
		return
	}
	line, ended := c.line()
	if !ended {
		c.say(finding.MissingType, "invalid format - unexpected end after 'type' line")
		return
	}
	if _, ok := oid.ParseKind(line); !ok && !c.say(finding.BadType, "invalid 'type' value") {
		return
	}
	if !c.word("tag ") {
		c.say(finding.MissingTagEntry, "invalid format - expected 'tag' line")
		return
	}
	if line, ended = c.line(); !ended {
		c.say(finding.MissingTag, "invalid format - unexpected end after 'type' line")
		return
	}
	if !refname.Valid(append([]byte("refs/tags/"), line...), 0) && !c.say(finding.BadTagName, "invalid 'tag' name: %s", line) {
		return
	}
	if c.word("tagger ") {
		c.tagger()
	} else if !c.say(finding.MissingTaggerEntry, "invalid format - expected 'tagger' line") {
		return
	}
	if !c.signature() {
		return
	}
	if len(c.rest) > 0 && c.rest[0] != '\n' {
		c.say(finding.ExtraHeaderEntry, "invalid format - extra header(s) after 'tagger'")
	}
}

// signature passes over a gpgsig header and its continued lines.
func (c *check) signature() bool {
	if !c.word("gpgsig ") && !c.word("gpgsig-sha256 ") {
		return true
	}
	if _, ended := c.line(); !ended {
		c.say(finding.BadGpgsig, "invalid format - unexpected end after 'gpgsig' or 'gpgsig-sha256' line")
		return false
	}
	for c.word(" ") {
		if _, ended := c.line(); !ended {
			c.say(finding.BadHeaderContinuation, "invalid format - unexpected end in 'gpgsig' or 'gpgsig-sha256' continuation line")
			return false
		}
	}
	return true
}

// maxDate is the largest date that git can hold.
const maxDate = math.MaxInt64

// tagger judges who tagged and when: the first fault of the line only.
func (c *check) tagger() {
	line, _ := c.line()
	say := func(id finding.ID, what string) { c.say(id, "invalid author/committer line - %s", what) }
	if len(line) > 0 && line[0] == '<' {
		say(finding.MissingNameBeforeEmail, "missing space before email")
		return
	}
	open := bytes.IndexAny(line, "<>")
	switch {
	case open < 0:
		say(finding.MissingEmail, "missing email")
		return
	case line[open] == '>':
		say(finding.BadName, "bad name")
		return
	case line[open-1] != ' ':
		say(finding.MissingSpaceBeforeEmail, "missing space before email")
		return
	}
	line = line[open+1:]
	end := bytes.IndexAny(line, "<>")
	if end < 0 || line[end] == '<' {
		say(finding.BadEmail, "bad email")
		return
	}
	line, ok := bytes.CutPrefix(line[end+1:], []byte(" "))
	if !ok {
		say(finding.MissingSpaceBeforeDate, "missing space before date")
		return
	}
	line = bytes.TrimLeft(line, " \t")
	digits := 0
	for digits < len(line) && line[digits] >= '0' && line[digits] <= '9' {
		digits++
	}
	seconds, err := strconv.ParseUint(string(line[:digits]), 10, 64)
	switch zone := line[digits:]; {
	case digits == 0:
		say(finding.BadDate, "bad date")
	case line[0] == '0' && (digits > 1 || len(zone) == 0 || zone[0] != ' '):
		say(finding.ZeroPaddedDate, "zero-padded date")
	case err != nil || seconds > maxDate:
		say(finding.BadDateOverflow, "date causes integer overflow")
	case len(zone) == 0 || zone[0] != ' ':
		say(finding.BadDate, "bad date")
	case !isZone(zone[1:]):
		say(finding.BadTimezone, "bad time zone")
	}
}

func isZone(b []byte) bool {
	if len(b) != 5 || b[0] != '+' && b[0] != '-' {
		return false
	}
	for _, d := range b[1:] {
		if d < '0' || d > '9' {
			return false
		}
	}
	return true
}

// Name is a tag's own name: what stands on its third line.
func Name(text []byte) (name []byte, ok bool) {
	for range 2 {
		_, text, _ = bytes.Cut(text, []byte("\n"))
	}
	name, _, _ = bytes.Cut(text, []byte("\n"))
	return bytes.CutPrefix(name, []byte("tag "))
}
