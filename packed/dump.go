package packed

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"refaudit/finding"
	"refaudit/oid"
)

// What a Piece can be.
const (
	PieceHeader  = "header"
	PieceRef     = "ref"
	PiecePeel    = "peel"    // the ^ line of the ref above
	PieceOrphan  = "orphan"  // a ^ line that belongs to no ref
	PieceDamage  = "damage"  // no entry can be read from the line
	PieceNothing = "nothing" // there are no bytes: what the findings say is true of the whole file
)

// A Piece is a line of the file with what it means.
type Piece struct {
	Kind   string
	Line   int
	Offset int64
	Length int64
	// Bytes are the line's, newline included; of one that fits into no window its beginning. They
	// are valid until the callback returns.
	Bytes   []byte
	Ref     finding.RefName // of a ref, and of its peel
	OID     oid.ID          // of a ref its object, of a ^ line the peel; zero where none can be read
	Meaning string
	// Resumed tells that what stands before this piece is damage, and that reading goes on here.
	Resumed  bool
	Findings []finding.Finding // about this line
}

// Dump goes through a packed-refs file and gives every line to emit, with its meaning and what is
// wrong with it. It goes on past damage. What can be said of the whole file only comes last, as a
// piece without bytes.
func Dump(r io.ReaderAt, size int64, f oid.Format, opts Options, emit func(*Piece) error) (Summary, error) {
	d := &dump{emit: emit}
	each := func(e *Entry) error { d.entry = e; return nil }
	d.scan = newScan(r, size, f, opts.filled(), d.report, each)
	if size == 0 {
		if err := d.empty(); err != nil {
			return d.sum, err
		}
		return d.sum, d.whole()
	}
	err := d.lines()
	if err == nil {
		err = d.w.failure(d.opts.File)
	}
	d.sum.Lines = d.w.line - 1
	if err == nil {
		err = d.finish()
	}
	if err == nil {
		err = d.whole()
	}
	return d.sum, err
}

// A dump is one call of Dump.
type dump struct {
	*scan
	emit    func(*Piece) error
	entry   *Entry // the one that the record at hand gave; nil: none
	found   []finding.Finding
	damaged bool // the last piece was damage
}

func (d *dump) report(f finding.Finding) error {
	d.found = append(d.found, f)
	return nil
}

func (d *dump) lines() error {
	var rec record
	if !d.w.fill() {
		return nil
	}
	if d.w.buf[0] == '#' {
		if !d.w.nextLine(&rec) {
			return nil
		}
		if err := d.header(rec.ref, rec.refLen, rec.ended); err != nil {
			return err
		}
		if err := d.give(d.headerPiece(), &rec, rec.ref); err != nil {
			return err
		}
	} else if err := d.headerMissing(); err != nil {
		return err
	}
	for d.w.next(&rec) {
		d.entry = nil
		if err := d.scan.record(&rec); err != nil {
			return err
		}
		if err := d.record(&rec); err != nil {
			return err
		}
	}
	return nil
}

func (d *dump) headerPiece() *Piece {
	h := &d.sum.Header
	p := &Piece{Kind: PieceHeader, Line: 1, Length: h.Length}
	if h.Bad {
		p.Kind, p.Meaning = PieceDamage, "a header that git does not know"
		return p
	}
	words := strings.Fields(strings.TrimPrefix(string(h.Format()), headerStart))
	if p.Meaning = "promises nothing"; len(words) > 0 {
		p.Meaning = "promises that the refs are " + strings.Join(words, ", ")
	}
	return p
}

// record gives the one or two lines of a record.
func (d *dump) record(rec *record) error {
	p := &Piece{Line: rec.line, Offset: rec.off, Length: rec.refLen}
	switch {
	case d.entry != nil:
		p.Kind, p.Ref, p.OID = PieceRef, finding.RefName(d.entry.Name), oid.FromBytes(d.f, d.entry.OID)
		p.Meaning = fmt.Sprintf("%s is %v", quote(d.entry.Name), p.OID)
	case len(rec.ref) > 0 && rec.ref[0] == '^':
		d.orphanPiece(p, rec.ref)
	default:
		p.Kind, p.Meaning = PieceDamage, "no entry"
	}
	if err := d.give(p, rec, rec.ref); err != nil || rec.peelLen == 0 {
		return err
	}
	q := &Piece{Line: rec.line + 1, Offset: rec.off + rec.refLen, Length: rec.peelLen}
	switch {
	case p.Kind == PieceOrphan:
		d.orphanPiece(q, rec.peel)
	case p.Kind == PieceDamage:
		q.Kind, q.Meaning = PieceDamage, "the ^ line of what can't be read above"
	case d.entry.Peel == nil:
		q.Kind, q.Ref, q.Meaning = PieceDamage, p.Ref, fmt.Sprintf("no peel of %s can be read from it", quote(d.entry.Name))
	default:
		q.Kind, q.Ref, q.OID = PiecePeel, p.Ref, oid.FromBytes(d.f, d.entry.Peel)
		q.Meaning = fmt.Sprintf("%s peels to %v", quote(d.entry.Name), q.OID)
	}
	return d.give(q, rec, rec.peel)
}

func (d *dump) orphanPiece(p *Piece, line []byte) {
	p.Kind, p.Meaning = PieceOrphan, "the peel of no ref"
	var id [oid.MaxSize]byte
	if ok, _ := splitPeel(line, id[:d.f.Size()]); ok {
		p.OID = oid.FromBytes(d.f, id[:])
	} else {
		p.Kind, p.Meaning = PieceDamage, "a ^ line of no ref, and no peel can be read from it"
	}
}

// give hands a piece out with its bytes and the findings about its line.
func (d *dump) give(p *Piece, rec *record, line []byte) error {
	p.Bytes = line
	if int64(len(line)) < p.Length && !rec.long {
		p.Bytes = append(bytes.Clone(line), '\n')
	}
	rest := d.found[:0:0]
	for _, f := range d.found {
		if f.Line == p.Line {
			p.Findings = append(p.Findings, f)
		} else {
			rest = append(rest, f)
		}
	}
	d.found = rest
	damage := p.Kind == PieceDamage
	p.Resumed = d.damaged && !damage
	d.damaged = damage
	return d.emit(p)
}

// whole gives what is left to say at the end.
func (d *dump) whole() error {
	if len(d.found) == 0 {
		return nil
	}
	return d.emit(&Piece{Kind: PieceNothing, Offset: d.sum.Size, Findings: d.found})
}

// AppendText appends a piece as lines of text: its range of bytes, the bytes, what they mean, and
// below it what is wrong, each line indented.
//
//	0000002e-00000057 3 ref     "9ae1… refs/tags/v1\n"
//	                            refs/tags/v1 is 9ae1…
func (p *Piece) AppendText(b []byte) []byte {
	if p.Resumed {
		b = fmt.Appendf(b, "--- reading goes on at line %d, offset %d ---\n", p.Line, p.Offset)
	}
	if p.Kind == PieceNothing {
		b = append(b, "the whole file\n"...)
	} else {
		b = fmt.Appendf(b, "%08x-%08x %d %-6s %s\n", p.Offset, p.Offset+p.Length, p.Line, p.Kind, quote(p.Bytes))
		b = fmt.Appendf(b, "    %s\n", p.Meaning)
	}
	for _, f := range p.Findings {
		place := ""
		if p.Kind == PieceNothing && f.Line > 0 {
			place = fmt.Sprintf("line %d: ", f.Line)
		}
		b = fmt.Appendf(b, "    %s%v: %s: %s\n", place, f.Severity, f.ID, f.Message)
	}
	return b
}
