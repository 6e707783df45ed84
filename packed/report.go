package packed

import (
	"bytes"
	"fmt"
	"strings"

	"refaudit/finding"
	"refaudit/internal/refname"
	"refaudit/oid"
)

func (s *scan) pos(line int, off, length int64) finding.Pos {
	return finding.Pos{File: s.opts.File, Line: line, Offset: off, Length: length, Placed: true}
}

// found hands a finding out. What git reports as an error keeps it from looking at the order.
func (s *scan) found(f finding.Finding) error {
	if f.GitText != "" && s.opts.Severity(f.ID) >= finding.Error {
		s.errors = true
	}
	if s.report == nil {
		return nil
	}
	return s.report(f)
}

// gitLine is a report of git's about a line.
func gitLine(line int, id finding.ID, text string) string {
	return finding.GitLine(fmt.Sprintf("%s line %d", FileName, line), id, text)
}

func (s *scan) empty() error {
	s.sum.Empty, s.sum.Sorted = true, true
	f := finding.New(finding.EmptyPackedRefsFile, s.pos(0, 0, 0), "the file is empty: if there were packed refs, they are gone")
	f.GitText = finding.GitLine(FileName, f.ID, "file is empty")
	return s.found(f)
}

func (s *scan) headerMissing() error {
	return s.found(finding.New(finding.HeaderMissing, s.pos(1, 0, 0), "no header: readers sort the file and peel its tags each time"))
}

func (s *scan) unterminated(line int, off int64, text []byte) error {
	s.sum.Unterminated, s.sum.Damaged = true, true
	f := finding.New(finding.PackedRefEntryNotTerminated, s.pos(line, off, int64(len(text))), "the last line has no newline: git refuses the whole file")
	switch {
	case !onlyUnterminated(text, s.f):
		s.sum.LostBytes = true
	case s.fallsShort(text):
		s.sum.CutName = true
		f.Message += "; its name has lost its end, for it is out of order as it stands"
	default:
		f.Fixable = true
	}
	f.GitText = gitLine(line, f.ID, "'"+string(gitString(text))+"' is not terminated with a newline")
	return s.found(f)
}

// fallsShort tells that the name in the last line, which has no newline, does not come after all others in a file
// that promises order and keeps it up to there.
func (s *scan) fallsShort(line []byte) bool {
	if line[0] == '^' || !s.sum.Header.Sorted || s.order.line == 0 || s.order.broken != 0 {
		return false
	}
	return bytes.Compare(s.order.prev, line[s.digits+1:]) >= 0
}

// onlyUnterminated tells whether nothing but its newline is missing from the last line, as far as it shows by
// itself. A file that ends in its header has lost all that was below, and a name that no ref can have has lost its end.
func onlyUnterminated(line []byte, f oid.Format) bool {
	var id [oid.MaxSize]byte
	if line[0] == '^' {
		ok, _ := splitPeel(line, id[:f.Size()])
		return ok
	}
	name, ok := splitRef(line, id[:f.Size()])
	return ok && refname.Valid(name, 0)
}

// malformed reports a line from which no ref can be told; git's text is empty where git has none.
// A ^ line below it is judged as git does, and belongs to nobody.
func (s *scan) malformed(rec *record, gitText, format string, args ...any) error {
	s.sum.Malformed++
	s.sum.Damaged, s.sum.LostBytes = true, true
	f := finding.New(finding.BadPackedRefEntry, s.pos(rec.line, rec.off, rec.refLen), format, args...)
	if gitText != "" {
		f.GitText = gitLine(rec.line, f.ID, gitText)
	}
	if err := s.found(f); err != nil {
		return err
	}
	s.gitKey(rec)
	if rec.peelLen > 0 {
		return s.peelOfMalformed(rec.line+1, rec.off+rec.refLen, rec.peelLen, rec.peel)
	}
	return nil
}

// gitKey shows git's order a line that is no entry: git compares it with the others, from where
// its name should be, if its error was configured to be none.
func (s *scan) gitKey(rec *record) {
	if s.opts.Severity(finding.BadPackedRefEntry) >= finding.Error || len(rec.ref) <= s.digits {
		return
	}
	if s.git == nil {
		s.git = s.order.clone()
	}
	s.git.add(rec.ref[s.digits+1:], rec.line, rec.off, rec.refLen)
}

func (s *scan) peelOfMalformed(line int, off, length int64, text []byte) error {
	_, _, err := s.parsePeel(line, off, length, text, false)
	return err
}

// describe says what a line that is no entry looks like, for people.
func (s *scan) describe(line []byte) string {
	hex := oid.HexPrefix(line, 2*oid.MaxSize)
	other := oid.SHA1.HexLen() + oid.SHA256.HexLen() - s.digits
	switch {
	case len(line) == 0:
		return "an empty line"
	case bytes.Count(line, []byte{0}) == len(line):
		return finding.Count(len(line), "zero byte", "zero bytes") + ": a block of the file was lost"
	case bytes.IndexByte(line, 0) >= 0:
		return fmt.Sprintf("no entry, and holds zero bytes: %s", quote(line))
	case hex == other && hex < len(line) && line[hex] == ' ':
		return fmt.Sprintf("an id of %d digits in a %v repository: %s", hex, s.f, quote(line))
	case line[0] == '#':
		return fmt.Sprintf("a header, or a comment, that is not the first line: %s", quote(line))
	case hex < s.digits:
		return fmt.Sprintf("no object id at its beginning: %s", quote(line))
	}
	return fmt.Sprintf("no space after its object id: %s", quote(line))
}

// quote shows bytes from a file to people, shortened.
func quote(b []byte) string {
	const limit = 120
	if len(b) > limit {
		return fmt.Sprintf("%q… (%d bytes)", b[:limit], len(b))
	}
	return fmt.Sprintf("%q", b)
}

// badName reports the name of the entry at hand. lost tells that no ref can be told from it.
func (s *scan) badName(rec *record) (lost bool, err error) {
	e := s.e
	name := cString(e.Name)
	s.sum.Damaged = true
	if len(name) < len(e.Name) {
		text := gitLine(rec.line, finding.BadPackedRefEntry, "refname '"+string(gitString(name))+"' contains NULL binaries")
		if err := s.malformedName(rec, finding.BadPackedRefEntry, text, "name has zero bytes in it: %s"); err != nil {
			return true, err
		}
		lost = true
	}
	if !refname.Valid(name, 0) {
		at := fmt.Sprintf("%s line %d", FileName, rec.line)
		if lost { // git writes the place into a buffer that holds it already
			at += at
		}
		text := finding.GitLine(at, finding.BadRefName, "has bad refname '"+string(gitString(name))+"'")
		how := "git refuses the name %s and passes over the ref"
		switch {
		case refname.Valid(name, refname.AllowOneLevel):
			how = "the name %s lies outside refs/: nothing lists it"
		case !refname.Safe(name):
			how = "the name %s could lead out of refs/: git stops reading here"
		}
		if err := s.malformedName(rec, finding.BadRefName, text, how); err != nil {
			return lost, err
		}
	}
	if lost || len(name) == 0 {
		s.sum.Malformed++
		s.sum.LostBytes = true
		s.gitKey(rec)
		if rec.peelLen > 0 {
			return true, s.peelOfMalformed(rec.line+1, rec.off+rec.refLen, rec.peelLen, rec.peel)
		}
		return true, nil
	}
	s.sum.BadNames++
	e.Style |= BadName
	if name[len(name)-1] == '\r' {
		e.Style |= CR
	}
	return false, nil
}

func (s *scan) malformedName(rec *record, id finding.ID, gitText, format string) error {
	e := s.e
	f := finding.New(id, s.pos(rec.line, rec.off, rec.refLen), format, quote(e.Name))
	f.Ref, f.OID = finding.RefName(e.Name), oid.FromBytes(s.f, e.OID)
	f.GitText = gitText
	return s.found(f)
}

// orphans reports one or two ^ lines that follow no ref. git takes the first for a broken ref and
// the second for the peel of that.
func (s *scan) orphans(rec *record) error {
	s.sum.Damaged = true
	f := finding.New(finding.BadPackedRefEntry, s.pos(rec.line, rec.off, rec.refLen), "a ^ line that follows no ref: git stops reading here")
	f.GitText = gitLine(rec.line, f.ID, "'"+string(gitString(rec.ref))+"' has invalid oid")
	if err := s.found(f); err != nil {
		return err
	}
	var peel []byte
	if digits := rec.ref[1:]; len(digits) == s.digits {
		if ok, _ := decodeHex(s.peel[:s.f.Size()], digits); ok {
			peel = s.peel[:s.f.Size()]
		}
	}
	if err := s.orphan(rec.line, rec.off, rec.refLen, peel); err != nil || rec.peelLen == 0 {
		return err
	}
	line, off := rec.line+1, rec.off+rec.refLen
	peel, _, err := s.parsePeel(line, off, rec.peelLen, rec.peel, false)
	if err != nil {
		return err
	}
	return s.orphan(line, off, rec.peelLen, peel)
}

func (s *scan) orphan(line int, off, length int64, peel []byte) error {
	s.sum.Orphans++
	f := finding.New(finding.PeelOrphan, s.pos(line, off, length), "a peel that belongs to no ref: git and most readers stop here, and see none of the refs below")
	f.Fixable = true
	if peel != nil {
		f.Cached = oid.FromBytes(s.f, peel)
	} else { // who knows what this line was
		s.sum.Malformed++
		s.sum.LostBytes, f.Fixable = true, false
	}
	f.Cause = finding.CauseOrphanPeelLine
	return s.found(f)
}

// ZeroOIDFinding is the finding for an entry whose Style has ZeroOID, which Read leaves to the caller: git is
// silent of it in packed-refs.
func (e *Entry) ZeroOIDFinding(file string) finding.Finding {
	f := finding.New(finding.BadRefOid, finding.Pos{File: file, Line: e.Line, Offset: e.Offset, Length: e.Length, Placed: true}, "the ref's object id is all zeros: its value is lost")
	f.Ref = finding.RefName(e.Name)
	return f
}

func (s *scan) badPeel(line int, off, length int64, fixable bool, gitText, message string) error {
	s.sum.Damaged = true
	f := finding.New(finding.BadPackedRefEntry, s.pos(line, off, length), "the ^ line %s: git stops reading here", message)
	f.Fixable = fixable
	f.GitText = gitLine(line, f.ID, gitText)
	return s.found(f)
}

// style reports what git reads at the entry at hand, and other readers perhaps not.
func (s *scan) style() error {
	e := s.e
	if !e.Style.Canonical() {
		s.sum.Odd++
	}
	var odd []string
	for _, c := range []struct {
		style Style
		text  string
	}{
		{UpperHex, "its object id has upper-case digits"},
		{UpperPeel, "its peel has upper-case digits"},
		{OddSpace, "no plain space stands before its name"},
		{OutsideRefs, "it lies outside refs/"},
	} {
		if e.Style&c.style != 0 {
			odd = append(odd, c.text)
		}
	}
	if len(odd) == 0 || e.Style&BadName != 0 {
		return nil
	}
	f := finding.New(finding.PackedRefStyle, s.pos(e.Line, e.Offset, e.Length), "git reads this entry, other readers may not: %s", strings.Join(odd, ", "))
	f.Ref, f.OID = finding.RefName(e.Name), oid.FromBytes(s.f, e.OID)
	return s.found(f)
}

// disorder is told of an entry whose name is not greater than the one before.
func (s *scan) disorder(c int) error {
	if c > 0 || s.order.fell != 0 { // then they are all looked for at the end
		return nil
	}
	if s.twin.line != s.order.first {
		s.twin.line, s.twin.id = s.order.first, s.entries[s.turn^1].id
	}
	return s.duplicate(s.e, s.twin.line, s.twin.id == s.entries[s.turn].id)
}

// duplicate reports an entry whose name stood at another line before.
func (s *scan) duplicate(e *Entry, first int, same bool) error {
	s.sum.Duplicates++
	how := "the same value"
	if !same {
		s.sum.Differing++
		how = "another value, and readers differ in which one they take"
	}
	f := finding.New(finding.PackedRefDuplicate, s.pos(e.Line, e.Offset, e.Length), "the name stands at line %d too, with %s", first, how)
	f.Ref, f.OID, f.Fixable = finding.RefName(e.Name), oid.FromBytes(s.f, e.OID), same
	return s.found(f)
}

// finish says what can be said only of the whole file.
func (s *scan) finish() error {
	s.sum.Sorted = s.order.broken == 0
	if s.order.fell != 0 {
		if err := s.duplicates(); err != nil {
			return err
		}
	}
	if !s.sum.Header.Sorted {
		return nil
	}
	git := &s.order
	if s.git != nil {
		git = s.git
	}
	if git.broken != 0 && !s.errors {
		if err := s.unsorted(git); err != nil {
			return err
		}
	}
	if s.sum.Sorted {
		return nil
	}
	f := finding.New(finding.HeaderTraitFalse, s.pos(1, 0, s.sum.Header.Length), "the header says sorted, and %q at line %d stands behind %q: look-ups in this file may miss refs that are there",
		s.order.names[1], s.order.broken, s.order.names[0])
	f.Fixable = s.sortable()
	return s.found(f)
}

// sortable tells whether the file can be put in order: it is whole, and no two values contend for a name.
func (s *scan) sortable() bool { return !s.sum.Lost() && s.sum.Differing == 0 }

func (s *scan) unsorted(o *order) error {
	f := finding.New(finding.PackedRefUnsorted, s.pos(o.broken, o.brokenAt, o.brokenLen), "it does not come after %q, though the header says that the names are in order", o.names[0])
	f.Ref, f.Fixable = finding.RefName(o.names[1]), s.sortable()
	f.GitText = gitLine(o.broken, f.ID, "refname '"+string(gitString(o.names[1]))+"' is less than previous refname '"+string(gitString(o.names[0]))+"'")
	return s.found(f)
}
