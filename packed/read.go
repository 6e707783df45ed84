package packed

import (
	"bytes"
	"fmt"
	"io"

	"refaudit/finding"
	"refaudit/internal/refname"
	"refaudit/oid"
)

// Options of Read. The zero Options will do.
type Options struct {
	// File is the name in the findings' places; FileName if empty.
	File string
	// Severity is what is configured for git's ids; the defaults if nil. git looks at the order of
	// the names only where nothing else was an error.
	Severity func(finding.ID) finding.Severity
	// Part tells that the bytes are part of a file, from the beginning of a line on that is not the first.
	Part bool

	first, most int // sizes of the window, for tests
}

func (o Options) filled() Options {
	if o.File == "" {
		o.File = FileName
	}
	if o.Severity == nil {
		o.Severity = finding.Default
	}
	if o.first == 0 {
		o.first, o.most = firstWindow, maxWindow
	}
	return o
}

// Read goes through a packed-refs file of size bytes and gives each entry to each, in the file's
// order, and everything that is wrong to report. It goes on past damage. Both callbacks may be
// nil; an error from one of them ends the reading and is returned as it is. Any other error
// means that the file could not be read to its end: nothing is known of the rest then.
//
// Memory does not grow with the file: 256 KiB are held at a time, and up to 64 MiB while a line
// is so long; in a file whose names do not rise another 32 MB find those that stand twice.
func Read(r io.ReaderAt, size int64, f oid.Format, opts Options, report func(finding.Finding) error, each func(*Entry) error) (Summary, error) {
	s := newScan(r, size, f, opts.filled(), report, each)
	if size == 0 {
		return s.sum, s.empty()
	}
	err := s.run()
	if err == nil {
		err = s.w.failure(s.opts.File)
	}
	s.sum.Lines = s.w.line - 1
	if err == nil {
		err = s.finish()
	}
	return s.sum, err
}

// A scan is one call of Read.
type scan struct {
	r       io.ReaderAt
	f       oid.Format
	digits  int // of an id
	opts    Options
	report  func(finding.Finding) error
	each    func(*Entry) error
	sum     Summary
	w       *window
	e       *Entry // the one at hand
	entries [2]struct {
		Entry
		id [oid.MaxSize]byte
	} // this and the one before, in turn
	turn     int
	peel     [oid.MaxSize]byte
	order    order
	plain    bool   // the name before is valid and lies in refs/
	git      *order // as git sees it, where that differs
	errors   bool   // git has reported an error
	longLine int    // number of the last line that fits into no window
	twin     struct {
		line int // of the first of several neighbours with the same name
		id   [oid.MaxSize]byte
	}
}

func newScan(r io.ReaderAt, size int64, f oid.Format, opts Options, report func(finding.Finding) error, each func(*Entry) error) *scan {
	s := &scan{r: r, f: f, digits: f.HexLen(), opts: opts, report: report, each: each, w: newWindow(r, size, opts.first, opts.most)}
	s.sum.Size = size
	s.w.moving = func() error {
		s.order.keep()
		if s.git != nil {
			s.git.keep()
		}
		return nil
	}
	return s
}

func (s *scan) run() error {
	var rec record
	if !s.w.fill() {
		return nil
	}
	switch {
	case s.opts.Part:
	case s.w.buf[0] == '#':
		if !s.w.nextLine(&rec) {
			return nil
		}
		if err := s.header(rec.ref, rec.refLen, rec.ended); err != nil {
			return err
		}
	default:
		if err := s.headerMissing(); err != nil {
			return err
		}
	}
	for {
		took, err := s.quick()
		if !took && err == nil {
			if !s.w.next(&rec) {
				return nil
			}
			err = s.record(&rec)
		}
		if err != nil {
			return err
		}
	}
}

// record judges one line, and the ^ line below it, in git's order.
func (s *scan) record(rec *record) error {
	if !rec.ended {
		line, off, text := rec.line, rec.off, rec.ref
		if rec.peelLen > 0 {
			line, off, text = line+1, off+rec.refLen, rec.peel
		}
		if err := s.unterminated(line, off, text); err != nil {
			return err
		}
	}
	line, n := rec.ref, s.digits
	switch {
	case rec.long:
		s.longLine = rec.line
		return s.malformed(rec, "", "line of %d bytes is too long to be a ref", rec.refLen)
	case len(line) > 0 && line[0] == '^':
		if s.longLine == rec.line-1 && s.longLine > 0 { // it belongs to that line
			return s.peelOfMalformed(rec.line, rec.off, rec.refLen, line)
		}
		return s.orphans(rec)
	}
	id := s.entries[s.turn].id[:s.f.Size()]
	var ok, upper bool
	if len(line) >= n {
		ok, upper = decodeHex(id, line[:n])
	}
	switch {
	case !ok:
		return s.malformed(rec, "'"+string(gitString(line))+"' has invalid oid", "%s", s.describe(line))
	case len(line) == n || !isSpace(line[n]):
		rest := gitString(line[n:])
		return s.malformed(rec, fmt.Sprintf("has no space after oid '%x' but with '%s'", id, rest), "%s", s.describe(line))
	}
	e := &s.entries[s.turn].Entry
	s.e = e
	*e = Entry{Name: line[n+1:], OID: id, Line: rec.line, Offset: rec.off, Length: rec.refLen}
	if upper {
		e.Style |= UpperHex
	}
	if line[n] != ' ' {
		e.Style |= OddSpace
	}
	if !refname.Valid(e.Name, 0) {
		lost, err := s.badName(rec)
		if lost || err != nil {
			return err
		}
	}
	return s.entry(rec)
}

// entry finishes and hands out an entry whose ref line has been read.
func (s *scan) entry(rec *record) error {
	e := s.e
	if rec.peelLen > 0 {
		if err := s.readPeel(rec); err != nil {
			return err
		}
	}
	if !bytes.HasPrefix(e.Name, refsPrefix) {
		e.Style |= OutsideRefs
	}
	if isZero(e.OID) {
		e.Style |= ZeroOID
	}
	if e.Style != 0 {
		if err := s.style(); err != nil {
			return err
		}
	}
	if c := s.order.add(e.Name, e.Line, e.Offset, e.Length); c >= 0 {
		if err := s.disorder(c); err != nil {
			return err
		}
	}
	if s.git != nil {
		s.git.add(e.Name, e.Line, e.Offset, e.Length)
	}
	s.plain = e.Style&(BadName|OutsideRefs) == 0
	s.sum.Refs++
	s.turn ^= 1
	if s.each == nil {
		return nil
	}
	return s.each(e)
}

var refsPrefix = []byte("refs/")

func isZero(id []byte) bool {
	for _, b := range id {
		if b != 0 {
			return false
		}
	}
	return true
}

// isSpace is what git takes for the space behind an id.
func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

// readPeel reads the ^ line of the entry at hand.
func (s *scan) readPeel(rec *record) error {
	e := s.e
	e.PeelLine, e.PeelOffset, e.PeelLength = rec.line+1, rec.off+rec.refLen, rec.peelLen
	peel, upper, err := s.parsePeel(rec.line+1, e.PeelOffset, rec.peelLen, rec.peel, rec.ended && !holdsMore(rec.peel, s.digits))
	if err != nil {
		return err
	}
	if peel == nil {
		e.Style |= BadPeel
		s.sum.BadPeels++
		s.sum.LostBytes = s.sum.LostBytes || !rec.ended || holdsMore(rec.peel, s.digits)
		return nil
	}
	if upper {
		e.Style |= UpperPeel
	}
	e.Peel = peel
	s.sum.Peels++
	return nil
}

// parsePeel decodes a ^ line, and reports as git does one that can't be. fixable tells that such a line
// could be replaced.
func (s *scan) parsePeel(line int, off, length int64, text []byte, fixable bool) (peel []byte, upper bool, err error) {
	digits := text[1:]
	dst := s.peel[:s.f.Size()]
	var ok bool
	if len(digits) >= s.digits {
		ok, upper = decodeHex(dst, digits[:s.digits])
	}
	switch {
	case !ok:
		return nil, false, s.badPeel(line, off, length, fixable, "'"+string(gitString(digits))+"' has invalid peeled oid", "holds no object id")
	case len(digits) > s.digits:
		return nil, false, s.badPeel(line, off, length, fixable, "has trailing garbage after peeled oid '"+string(gitString(digits[s.digits:]))+"'", "goes on after its object id")
	}
	return dst, upper, nil
}

// holdsMore tells that a ^ line may have swallowed the line behind it, or lost bytes to zeros.
func holdsMore(line []byte, digits int) bool {
	line = bytes.TrimRight(line, "\r\t ")
	return len(line) > digits+1 || bytes.IndexByte(line, 0) >= 0
}
