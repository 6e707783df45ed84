package packed

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"refaudit/oid"
)

// Why Rewrite refuses a file or a plan. Each of these comes wrapped with the line where it shows.
var (
	// ErrLostBytes is a file from which a ref, or part of one, is gone: see Summary.LostBytes.
	ErrLostBytes = errors.New("the file has lost bytes")
	// ErrUnterminated is a last line without a newline, where the plan does not end it.
	ErrUnterminated = errors.New("the last line has no newline")
	// ErrOrphan is a ^ line that belongs to no ref, where the plan does not drop those.
	ErrOrphan = errors.New("a ^ line belongs to no ref")
	// ErrBadPeel is a ^ line that can't be read, where the plan has no edit for its ref.
	ErrBadPeel = errors.New("a ^ line can't be read")
	// ErrBadHeader is a header that is not git's, where the plan brings no other.
	ErrBadHeader = errors.New("the header is not git's")
	// ErrUnsorted is a header that would say sorted of names that do not rise.
	ErrUnsorted = errors.New("the names are not in the order that the header promises")
	// ErrDuplicate is a name that stands twice with the same value, where the plan does not merge those.
	ErrDuplicate = errors.New("a name stands twice")
	// ErrDiffering is a name that stands twice with different values: nobody knows which is right.
	ErrDiffering = errors.New("a name stands twice, with different values")
	// ErrPlan is a plan that is not for this file: an edit without its entry.
	ErrPlan = errors.New("the plan is not for this file")
)

// An Edit says what is to be cached as the peel of one entry.
type Edit struct {
	Offset int64  // of the entry, as in Entry.Offset
	Peel   oid.ID // the zero ID: none
}

// A Plan says what Rewrite may change; all else is copied as it is, and a fault that the plan does
// not mend is an error. The zero Plan copies a file that is sound.
type Plan struct {
	// Edits are in the order of their offsets, one an entry at most.
	Edits []Edit
	// Header replaces the header, or the want of one; nil keeps what there is. Sorted is checked;
	// that the other traits are true is the caller's word.
	Header *Header
	// Sort puts the entries in order. Of equal names the first one stays, as with MergeEqual.
	Sort bool
	// MergeEqual keeps one of neighbours with the same name and value. If their peels differ, an
	// edit has to decide the peel of the first.
	MergeEqual bool
	// DropOrphans leaves out ^ lines that belong to no ref.
	DropOrphans bool
	// Terminate ends a last line that has no newline, if it is whole otherwise.
	Terminate bool
}

// Result says what Rewrite has written.
type Result struct {
	Size    int64 // bytes
	Writes  int   // calls of the writer
	Refs    int
	Set     int // peels written anew, or over others
	Dropped int // peels left out
	Orphans int // ^ lines left out that belonged to no ref
	Merged  int // entries left out that stood twice
}

// Rewrite copies a packed-refs file with the changes of a plan. Bytes that need no change are copied
// as they are, in runs as long as can be; each record is parsed before it is copied. Without Sort one
// pass is made, with up to 64 MiB of the file in memory. With Sort there is one pass for every 200,000
// refs or so, and 64 MiB, for a moment twice that, are held.
//
// What is written is read back on its way: if the refs in it and their values are not exactly those
// that were read, that is an error, and so is a header that says sorted falsely. After any error,
// what was written is not to be used.
func Rewrite(w io.Writer, r io.ReaderAt, size int64, f oid.Format, plan Plan) (Result, error) {
	return rewrite(w, r, size, f, plan, maxWindow, maxWindow)
}

func rewrite(w io.Writer, r io.ReaderAt, size int64, f oid.Format, plan Plan, window, limit int) (Result, error) {
	rw := &rewriter{r: r, size: size, f: f, plan: plan, window: window, limit: limit, kept: newDigest()}
	rw.out = newOutput(w, f, rw.kept.seed)
	err := rw.run()
	if err == nil {
		err = rw.finish()
	}
	rw.res.Size, rw.res.Writes = rw.out.size, rw.out.writes
	if err != nil {
		return rw.res, fmt.Errorf("%s: %w", FileName, err)
	}
	return rw.res, nil
}

// A rewriter is one call of Rewrite.
type rewriter struct {
	r       io.ReaderAt
	size    int64
	f       oid.Format
	plan    Plan
	res     Result
	out     *output
	kept    digest // of the refs that are written
	used    int    // edits whose entry was met
	next    int    // the first edit whose entry may still come, in the file's order
	last    parsed // the ref written last
	started bool   // there was one
	window  int    // bytes that are copied at a time
	limit   int    // bytes that are sorted at a time
}

// parsed is a ref with its peel, as its lines say.
type parsed struct {
	line    int
	text    []byte // the ref's line, without its newline
	name    []byte // part of text
	id      [oid.MaxSize]byte
	peel    [oid.MaxSize]byte
	hasPeel bool
	peelOK  bool // peel could be read, and is written as git does
	edit    *Edit
}

func (rw *rewriter) run() error {
	if rw.size == 0 {
		return fmt.Errorf("the file is empty: %w", ErrLostBytes)
	}
	for i, e := range rw.plan.Edits {
		if i > 0 && e.Offset <= rw.plan.Edits[i-1].Offset {
			return fmt.Errorf("edits are not in order: %w", ErrPlan)
		}
		if !e.Peel.IsZero() && e.Peel.Format() != rw.f {
			return fmt.Errorf("an edit's id is no %v: %w", rw.f, ErrPlan)
		}
	}
	if rw.plan.Sort {
		return rw.sorted()
	}
	return rw.straight()
}

func at(line int, err error) error { return fmt.Errorf("line %d: %w", line, err) }

// header reads the header of the file and gives the text of the one to write.
func (rw *rewriter) header(w *window) (now Header, text []byte, err error) {
	if !w.fill() {
		return now, nil, w.err
	}
	if w.buf[0] == '#' {
		var rec record
		if !w.nextLine(&rec) {
			return now, nil, w.err
		}
		now = parseHeader(rec.ref)
		now.Length = rec.refLen
		switch {
		case rec.long, bytes.IndexByte(rec.ref, 0) >= 0, !rec.ended: // what stood below is gone
			return now, nil, at(1, ErrLostBytes)
		}
		text = append(bytes.Clone(rec.ref), '\n')
	}
	claim := now
	if rw.plan.Header != nil {
		claim = *rw.plan.Header
		text = claim.Format()
	} else if now.Bad {
		return now, nil, at(1, ErrBadHeader)
	}
	rw.out.proof.claimsSorted = claim.Sorted
	return now, text, nil
}

// parse reads a record into p; keep is false for ^ lines that belong to no ref.
func (rw *rewriter) parse(rec *record, p *parsed) (keep bool, err error) {
	if rec.long {
		return false, at(rec.line, ErrLostBytes)
	}
	if len(rec.ref) > 0 && rec.ref[0] == '^' {
		return false, rw.orphans(rec)
	}
	n := rw.f.Size()
	p.line, p.text, p.hasPeel, p.peelOK = rec.line, rec.ref, rec.peelLen > 0, false
	var ok bool
	if p.name, ok = splitRef(rec.ref, p.id[:n]); !ok {
		return false, at(rec.line, ErrLostBytes)
	}
	p.edit = rw.edit(rec.off)
	if p.hasPeel {
		ok, upper := splitPeel(rec.peel, p.peel[:n])
		p.peelOK = ok && !upper
		switch {
		case ok:
		case !rec.ended || holdsMore(rec.peel, 2*n):
			return false, at(rec.line+1, ErrLostBytes)
		case p.edit == nil:
			return false, at(rec.line+1, ErrBadPeel)
		}
	}
	switch {
	case rec.ended:
	case !p.hasPeel && !onlyUnterminated(rec.ref, rw.f):
		return false, at(rec.line, ErrLostBytes)
	case !rw.plan.Terminate:
		return false, at(rec.line, ErrUnterminated)
	}
	return true, nil
}

func (rw *rewriter) orphans(rec *record) error {
	if !rw.plan.DropOrphans {
		return at(rec.line, ErrOrphan)
	}
	if !rec.ended && !rw.plan.Terminate {
		return at(rec.line, ErrUnterminated)
	}
	var id [oid.MaxSize]byte
	for i, text := range [][]byte{rec.ref, rec.peel} {
		if i == 1 && rec.peelLen == 0 {
			break
		}
		if ok, _ := splitPeel(text, id[:rw.f.Size()]); !ok {
			return at(rec.line+i, ErrLostBytes)
		}
		rw.res.Orphans++
	}
	return nil
}

// splitRef takes a ref's line apart: its id, into id, and its name, if both can be told.
func splitRef(line, id []byte) (name []byte, ok bool) {
	n := 2 * len(id)
	if len(line) <= n+1 || !isSpace(line[n]) {
		return nil, false
	}
	name = line[n+1:]
	ok, _ = decodeHex(id, line)
	return name, ok && bytes.IndexByte(name, 0) < 0
}

// splitPeel reads a ^ line that holds an id and nothing else.
func splitPeel(line, id []byte) (ok, upper bool) {
	if len(line) != 1+2*len(id) {
		return false, false
	}
	return decodeHex(id, line[1:])
}

// edit finds the edit for the entry at an offset.
func (rw *rewriter) edit(off int64) *Edit {
	edits := rw.plan.Edits
	for rw.next < len(edits) && edits[rw.next].Offset < off {
		rw.next++
	}
	if rw.next < len(edits) && edits[rw.next].Offset == off {
		return &edits[rw.next]
	}
	return nil
}

// admit takes the next ref in the order of the output. merged tells that it is one with the ref
// before and is to be left out.
func (rw *rewriter) admit(p *parsed) (merged bool, err error) {
	if p.edit != nil {
		rw.used++
	}
	if rw.started && bytes.Equal(p.name, rw.last.name) {
		if merged, err = rw.merge(p); merged || err != nil {
			return merged, err
		}
	}
	rw.started, rw.last = true, *p
	rw.kept.add(p.text)
	rw.res.Refs++
	return false, nil
}

// merge decides about a ref of the same name as the one before.
func (rw *rewriter) merge(p *parsed) (merged bool, err error) {
	q := &rw.last
	switch {
	case !rw.plan.MergeEqual && !rw.plan.Sort:
		return false, nil // as it was; a header that says sorted will be found untrue
	case p.id != q.id:
		return false, at(p.line, fmt.Errorf("%w: line %d has another", ErrDiffering, q.line))
	case !rw.plan.MergeEqual:
		return false, at(p.line, fmt.Errorf("%w: line %d has it too", ErrDuplicate, q.line))
	case q.edit == nil && (p.hasPeel != q.hasPeel || p.peelOK != q.peelOK || p.hasPeel && p.peel != q.peel):
		return false, at(p.line, fmt.Errorf("%w: its peel is not that of line %d, and no edit decides", ErrPlan, q.line))
	}
	rw.res.Merged++
	return true, nil
}

// peelOf tells what becomes of a ref's ^ line: it stays (nil, false), is replaced by text, or left out.
func (rw *rewriter) peelOf(p *parsed) (text []byte, change bool) {
	switch {
	case p.edit == nil:
		return nil, false
	case p.edit.Peel.IsZero():
		if p.hasPeel {
			rw.res.Dropped++
		}
		return nil, p.hasPeel
	case p.peelOK && oid.FromBytes(rw.f, p.peel[:]) == p.edit.Peel:
		return nil, false
	}
	rw.res.Set++
	text = append(text, '^')
	return append(p.edit.Peel.AppendHex(text), '\n'), true
}

// finish asserts that the output is what it has to be.
func (rw *rewriter) finish() error {
	if err := rw.out.finish(); err != nil {
		return err
	}
	if rw.used != len(rw.plan.Edits) {
		return fmt.Errorf("%w: %d of its %d edits have no entry", ErrPlan, len(rw.plan.Edits)-rw.used, len(rw.plan.Edits))
	}
	return rw.out.proof.holds(&rw.kept)
}
