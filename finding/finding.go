// Package finding is the vocabulary of what can be wrong with a repository.
//
// A finding is data: it is returned, counted and rendered later. An error means that
// we could not do our work. One namespace of ids serves both.
package finding

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"path"
	"strings"

	"refaudit/oid"
)

// ID names one kind of problem. IDs are part of the output contract: once
// released, an ID is never renamed and never reused for something else.
type ID string

// Severity is how much a finding matters; they are ordered.
type Severity uint8

// The severities, from what is not reported at all to what no setting can lower.
const (
	Ignore Severity = iota
	Info
	Warn
	Error
	Fatal // git's word for a problem whose severity can't be configured; shown as error
)

var severityNames = [...]string{"ignore", "info", "warn", "error", "error"}

func (s Severity) String() string {
	if int(s) < len(severityNames) {
		return severityNames[s]
	}
	return fmt.Sprintf("severity(%d)", uint8(s))
}

// MarshalText gives the word that JSON lines carry.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// ParseSeverity reads the value of a setting, in any case, as git reads fsck.<msg-id>.
func ParseSeverity(word string) (Severity, bool) {
	switch strings.ToLower(word) {
	case "ignore":
		return Ignore, true
	case "info":
		return Info, true
	case "warn":
		return Warn, true
	case "error":
		return Error, true
	}
	return Ignore, false
}

// RefName is the name of a reference: bytes, perhaps not UTF-8, without NUL where it was checked.
type RefName string

// Pos is a place in a repository. File is relative to the git dir ("packed-refs",
// "reftable/<table>", "worktrees/<id>/reftable/<table>"); the numbers are bytes, Line counts from 1.
type Pos struct {
	File   string
	Line   int   // of a text file; 0: none
	Offset int64 // of the first byte; valid if Placed
	Length int64 // in bytes, a line's newline included; 0: not known
	Block  int64 // offset of the reftable block; valid if Blocked
	Placed bool
	// Blocked tells that Block is set: block 0 is a block.
	Blocked bool
}

func (p Pos) String() string {
	switch {
	case p.Line > 0:
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	case p.Placed:
		return fmt.Sprintf("%s:+%d", p.File, p.Offset)
	}
	return p.File
}

// Cause says how a wrong peel came about, where that can be told.
type Cause string

// The causes of a wrong peel, as far as its value shows them.
const (
	CauseReplaceRefs    Cause = "replace-refs"     // the cached value is the peel through refs/replace
	CauseOrphanPeelLine Cause = "orphan-peel-line" // the ^ line belonged to a ref that was deleted
	CauseFalseTypeLine  Cause = "false-type-line"  // the tag's type line is false
	CauseHexFlip        Cause = "hex-flip"         // one or two hex digits away from the right value
)

// Finding is one problem. Its JSON (package reports) is frozen.
type Finding struct {
	ID       ID
	Severity Severity
	Repo     string // the repository's path as the user knows it
	Dir      string // the folder that File lies below, which the worktrees share; "": it is Repo
	Ref      RefName
	OID      oid.ID // the ref's own object; zero: none
	Pos
	Cached   oid.ID // the peel that is stored; zero: none
	Expected oid.ID // the peel that would be right; zero: none
	Cause    Cause
	Fixable  bool
	Message  string
	// GitText is what `git refs verify` prints for it after the severity, "<path>: <id>: <text>"; "" if git has no such check.
	GitText string
}

// Fingerprint is the same for the same problem in every scan of the repository,
// and differs between problems: of a ref's object it covers what is wrong, not how it is worded or where the bytes lie by now.
func (f *Finding) Fingerprint() string {
	h := sha256.New()
	part := func(s string) {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(s)))
		h.Write(n[:])
		h.Write([]byte(s))
	}
	part(string(f.ID))
	part(f.Repo)
	part(string(f.Ref))
	part(f.OID.String())
	part(f.Cached.String())
	if f.Ref != "" { // the table that has the record changes with each compaction
		part(path.Dir(f.File))
	} else { // nothing but its place tells it from its like
		part(f.File)
		part(fmt.Sprint(f.Line, f.Offset, f.Block))
	}
	if f.Ref == "" || f.OID == (oid.ID{}) { // what is wrong with a name or a file, only the message says
		part(f.Message)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Corrupt reports bytes that cannot be decoded any further. It is an error whose ID is a finding's.
type Corrupt struct {
	ID  ID
	Pos Pos
	Err error
}

func (c *Corrupt) Error() string {
	if c.Pos.File == "" {
		return c.Err.Error()
	}
	return fmt.Sprintf("%s: %v", c.Pos, c.Err)
}

func (c *Corrupt) Unwrap() error { return c.Err }

// Finding makes a finding of it, with the default severity.
func (c *Corrupt) Finding() Finding {
	return Finding{ID: c.ID, Severity: Default(c.ID), Pos: c.Pos, Message: c.Err.Error()}
}

// New makes a finding with the default severity of its id.
func New(id ID, pos Pos, format string, args ...any) Finding {
	return Finding{ID: id, Severity: Default(id), Pos: pos, Message: fmt.Sprintf(format, args...)}
}
