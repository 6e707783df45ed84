package scan

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"math"
	"slices"
	"time"

	"refaudit/finding"
	"refaudit/internal/refname"
	"refaudit/internal/refstore"
	"refaudit/internal/vfs"
	"refaudit/oid"
	"refaudit/peel"
)

// info/refs is the third place where peels are kept, for clients of dumb HTTP. git writes it
// whole (update-server-info), in the order of names, with a second line for each tag:
//
//	<id> TAB <name> LF
//	<id> TAB <name> ^{} LF
//
// The refs move on and the file doesn't: that it is old is told once. A peel is judged where the line
// above it still says what the ref says.
const serverInfoFile = "info/refs"

// serverInfo is the comparison of that file with the refs, in one look.
type serverInfo struct {
	*look
	beside  *beside
	doubts  []doubted
	seed    maphash.Seed
	seen    []uint64        // a hash of name and value of each ref that is served, as they came
	next    int             // of seen: the one that the next line is likely to be about
	passed  int             // how many of seen were passed over on the way
	sorted  []place         // seen in order of the hashes, once it is needed
	symrefs map[string]bool // the file has the values that they lead to

	file    io.ReaderAt
	size    int64
	settled bool // nobody has written to the file lately
	batch   []infoLine
	bytes   []byte // of the names in batch
	raw     [oid.MaxSize]byte
	ids     []oid.ID
	matched int  // lines that say what a ref says
	stale   bool // some line doesn't
	bad     bool // a line was told of that makes no sense
}

// place is where in seen a hash is.
type place struct {
	hash uint64
	at   int
}

// doubted is a line that is done with a ref whose peel is wrong.
type doubted struct {
	line   int
	peeled bool // the line has one of its peel below it
}

// infoLine is a ref and its peel, as the file has them.
type infoLine struct {
	name, end  int // of the name, in bytes
	id, peel   oid.ID
	line       int // of the peel, if there is one
	off, width int64
	skip       bool // it has no part in the comparison
}

// maxInfoLine is longer than git's line for the longest name that a system allows.
const maxInfoLine = 1 << 16

// written is how long ago a file must have been written to be of another time than our look.
const written = 2 * time.Second

// openServerInfo opens the file; nil if there is none, or it is of no interest.
func (l *look) openServerInfo() (*serverInfo, func() error, error) {
	none := func() error { return nil }
	if !l.policy.Wanted(finding.ServerInfoPeel) {
		return nil, none, nil
	}
	f, err := l.target.Repo.Common.Open(serverInfoFile)
	if vfs.Missing(err) {
		return nil, none, nil
	}
	if err != nil {
		l.unread(fmt.Sprintf("%s: %v", serverInfoFile, err))
		skipped := finding.New(finding.AuditSkipped, finding.Pos{File: serverInfoFile}, "can't be read: %v", err)
		return nil, none, l.report(&skipped)
	}
	s := &serverInfo{look: l, seed: maphash.MakeSeed(), symrefs: map[string]bool{}, file: f, size: maxInfoLine}
	if st, err := f.Stat(); err == nil {
		s.size, s.settled = st.Size(), l.time().Sub(st.ModTime()) > written
	}
	s.beside = newBeside(l.format, s.reader(), s.symrefs)
	return s, f.Close, nil
}

// reader reads the file from its start.
func (s *serverInfo) reader() *bufio.Reader {
	return bufio.NewReaderSize(io.NewSectionReader(s.file, 0, math.MaxInt64), int(min(s.size+1, maxInfoLine)))
}

// note takes a ref that was read, and gives the number of the line that is done with it: it says what the ref says,
// and has the peel that the store caches. 0: there is none such.
func (s *serverInfo) note(r *refstore.Ref) int {
	switch {
	case s == nil || r.Hidden || !bytes.HasPrefix(r.Name, refsPrefix):
		return 0
	case r.OID == nil:
		s.symrefs[string(r.Name)] = true
		s.beside.passSymref(r.Name)
		return 0
	}
	if len(s.seen) == cap(s.seen) {
		s.seen = slices.Grow(s.seen, max(64, len(s.seen)))
	}
	s.seen = append(s.seen, s.hash(r.Name, r.OID))
	if r.Source == refstore.Loose { // these come first, and would lead the file past all others
		return 0
	}
	line := s.beside.take(r)
	if line > 0 {
		s.matched++
	}
	return line
}

// doubt takes back that a line is done with its ref: the peel of both is wrong. It may be called while refs are noted.
func (s *serverInfo) doubt(line int, peeled bool) {
	s.doubts = append(s.doubts, doubted{line, peeled})
}

func (s *serverInfo) hash(name, id []byte) uint64 {
	var h maphash.Hash
	h.SetSeed(s.seed)
	h.Write(id)
	h.Write(name)
	return h.Sum64()
}

// compare reads the lines that are not done, when all refs are known and judged.
func (s *serverInfo) compare(ctx context.Context) error {
	if s == nil {
		return nil
	}
	for _, w := range s.doubts {
		s.matched--
		s.beside.undo(w.line)
		if w.peeled {
			s.beside.undo(w.line + 1)
		}
	}
	if s.beside.complete() {
		return s.conclude()
	}
	r := s.reader()
	offset := int64(0)
	for n := 1; ; n++ {
		text, err := r.ReadSlice('\n')
		if len(text) > 0 {
			if !s.beside.isDone(n) {
				if err := s.take(ctx, text, n, offset); err != nil {
					return err
				}
			}
			offset += int64(len(text))
		}
		switch {
		case err == io.EOF:
			return errors.Join(s.judgeBatch(ctx), s.conclude())
		case errors.Is(err, bufio.ErrBufferFull):
			n--
		case err != nil:
			s.unread(fmt.Sprintf("%s: %v", serverInfoFile, err))
			skipped := finding.New(finding.AuditSkipped, finding.Pos{File: serverInfoFile}, "can't be read to the end: %v", err)
			return errors.Join(s.judgeBatch(ctx), s.report(&skipped))
		}
	}
}

var (
	refsPrefix = []byte("refs/")
	peelSuffix = []byte("^{}")
)

// take takes one line.
func (s *serverInfo) take(ctx context.Context, text []byte, n int, offset int64) error {
	digits := s.format.HexLen()
	line, whole := bytes.CutSuffix(text, []byte("\n"))
	raw := s.raw[:s.format.Size()]
	if !whole || len(line) < digits+2 || line[digits] != '\t' || !oid.DecodeHex(raw, line[:digits]) {
		return s.malformed(text, n, offset)
	}
	name, id := line[digits+1:], oid.FromBytes(s.format, raw)
	if ref, isPeel := bytes.CutSuffix(name, peelSuffix); isPeel {
		last := len(s.batch) - 1
		if last < 0 || !s.batch[last].peel.IsZero() || !bytes.Equal(s.nameOf(&s.batch[last]), ref) {
			return s.malformed(text, n, offset)
		}
		e := &s.batch[last]
		e.peel, e.line, e.off, e.width = id, n, offset, int64(len(text))
		return nil
	}
	if len(s.batch) >= batchSize { // not earlier: a peel might have followed
		if err := s.judgeBatch(ctx); err != nil {
			return err
		}
	}
	e := infoLine{name: len(s.bytes), id: id, line: n, off: offset, width: int64(len(text)), skip: s.symrefs[string(name)]}
	s.bytes = append(s.bytes, name...)
	e.end = len(s.bytes)
	if !e.skip {
		switch {
		case s.isSo(s.hash(name, raw)):
			s.matched++
		case !refname.Valid(name, 0):
			return s.malformed(text, n, offset)
		default:
			s.stale, e.skip = true, true
		}
	}
	if s.before != nil && !s.before.troubled && !s.before.named[string(name)] {
		e.skip = true
	}
	s.batch = append(s.batch, e)
	return nil
}

// passOver is how many times all refs may be passed over, looking for those that the file has.
const passOver = 4

// isSo tells whether a line says what a ref says. Both are nearly always in the same order: refs that
// the file lacks are passed over, and only where that was done too often is another way taken.
func (s *serverInfo) isSo(h uint64) bool {
	if s.passed <= passOver*len(s.seen) {
		for i := s.next; i < len(s.seen); i++ {
			if s.seen[i] == h {
				s.passed += i - s.next
				s.next = i + 1
				return true
			}
		}
		s.passed += len(s.seen) - s.next
	}
	if len(s.sorted) != len(s.seen) {
		s.sorted = make([]place, len(s.seen))
		for i, h := range s.seen {
			s.sorted[i] = place{h, i}
		}
		slices.SortFunc(s.sorted, func(a, b place) int { return cmp.Compare(a.hash, b.hash) })
	}
	i, same := slices.BinarySearchFunc(s.sorted, h, func(p place, h uint64) int { return cmp.Compare(p.hash, h) })
	if same {
		s.next = s.sorted[i].at + 1
	}
	return same
}

func (s *serverInfo) nameOf(e *infoLine) []byte { return s.bytes[e.name:e.end] }

// malformed tells of the first line that makes no sense.
func (s *serverInfo) malformed(text []byte, n int, offset int64) error {
	if s.bad {
		return nil
	}
	s.bad = true
	f := finding.New(finding.ServerInfoPeel, finding.Pos{File: serverInfoFile, Line: n, Offset: offset, Length: int64(len(text)), Placed: true},
		"a line that is no ref and no peel of the ref above")
	return s.report(&f)
}

// judgeBatch compares the peels of a batch with what the refs truly peel to.
func (s *serverInfo) judgeBatch(ctx context.Context) error {
	s.ids = s.ids[:0]
	for i := range s.batch {
		if !s.batch[i].skip {
			s.ids = append(s.ids, s.batch[i].id)
		}
	}
	handles, err := s.look.judge.Learn(ctx, s.ids, s.handles[:0])
	if err != nil {
		return err
	}
	s.handles = handles
	for i := range s.batch {
		e := &s.batch[i]
		if e.skip {
			continue
		}
		h := handles[0]
		handles = handles[1:]
		var cached []byte
		if !e.peel.IsZero() {
			cached = e.peel.Bytes()
		}
		if !s.look.judge.Right(h, cached) {
			if err := s.wrong(ctx, e, h); err != nil {
				return err
			}
		}
	}
	s.batch, s.bytes = s.batch[:0], s.bytes[:0]
	return ctx.Err()
}

// wrong tells of one peel. Where the tag is corrupt only because an object of its chain is lost, that is all there is to say.
func (s *serverInfo) wrong(ctx context.Context, e *infoLine, h peel.Handle) error {
	_, _, v, err := s.confirmed(ctx, h)
	if err != nil {
		return err
	}
	f := finding.New(finding.ServerInfoPeel, finding.Pos{File: serverInfoFile, Line: e.line, Offset: e.off, Length: e.width, Placed: true}, "")
	f.Ref, f.OID, f.Cached, f.Expected = finding.RefName(s.nameOf(e)), e.id, e.peel, v.Peel
	switch {
	case v.State == peel.Sound && e.peel == v.Peel:
		return nil
	case v.State == peel.Sound && e.peel.IsZero():
		f.Message = fmt.Sprintf("info/refs has no peel for the tag %v, which peels to %v", e.id, v.Peel)
	case v.State == peel.Sound:
		f.Message = fmt.Sprintf("info/refs gives %v as its peel; it peels to %v", e.peel, v.Peel)
	case v.State == peel.NotTag && !e.peel.IsZero():
		f.Message = fmt.Sprintf("info/refs gives %v as its peel, and its object is a %v, no tag", e.peel, v.Kind)
	case v.State == peel.Corrupt && v.Fault.Why == peel.TypeMismatch && !e.peel.IsZero():
		f.Message = fmt.Sprintf("info/refs gives %v as its peel, and it is a corrupt tag: %s", e.peel, v.Fault.String())
	default:
		return nil
	}
	return s.report(&f)
}

// conclude tells, once, of a file that is older than the refs.
func (s *serverInfo) conclude() error {
	if !s.stale && s.matched == len(s.seen) {
		return nil
	}
	f := finding.New(finding.ServerInfoPeel, finding.Pos{File: serverInfoFile}, "is older than the refs: some have another value by now, are gone, or are not in it")
	f.Severity = finding.Info // gc leaves the file behind wherever it runs, and hardly anybody serves it
	if s.settled {            // what the refs said while we read them, the file can't have known
		s.look.settle(&f)
		return nil
	}
	return s.report(&f)
}
