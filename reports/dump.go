package reports

import (
	"encoding/hex"
	"fmt"
	"io"
	"strings"

	"refaudit/finding"
)

// Piece is a range of bytes of a dumped file, and what it means.
type Piece struct {
	File     string
	Kind     string
	Offset   int64
	Length   int64
	Bytes    []byte
	Inflated bool   // the range is one of an inflated block, not of the file
	Block    int64  // offset of the block; valid if Blocked
	Line     int    // of a text file; 0: none
	Meaning  string // in one line
	Blocked  bool
	Resumed  bool // what stands before is damage, and reading goes on here
	Findings []finding.Finding
}

// Dump takes the pieces of files in the order in which they stand there.
type Dump interface {
	File(name string, size int64) error
	Piece(*Piece) error
	Summary(exit int) error
}

// NewDump makes a dump as text or as JSON lines.
func NewDump(format string, w io.Writer) (Dump, error) {
	switch format {
	case "text":
		return &textDump{w}, nil
	case "jsonl":
		return &jsonDump{w}, nil
	}
	return nil, fmt.Errorf("no format %q for a dump: there are text and jsonl", format)
}

// textDump draws a line a piece: range, kind, bytes, meaning.
//
//	00000024..00000028  block     72 00 00 9a          ref block of 154 bytes
type textDump struct{ w io.Writer }

func (d *textDump) File(name string, size int64) error {
	_, err := fmt.Fprintf(d.w, "%s (%s)\n", Escape(name), count(size, "byte", "bytes"))
	return err
}

// shownBytes is how many bytes of a piece the text shows.
const shownBytes = 24

func (d *textDump) Piece(p *Piece) error {
	var b strings.Builder
	mark := " "
	if p.Inflated {
		mark = "~"
	}
	if p.Length == 0 && len(p.Bytes) == 0 {
		fmt.Fprintf(&b, "  %-18s %s %-9s", "", mark, p.Kind)
	} else {
		fmt.Fprintf(&b, "  %08x..%08x %s %-9s", p.Offset, p.Offset+p.Length, mark, p.Kind)
	}
	if p.Resumed {
		b.WriteString(" [resumed here]")
	}
	fmt.Fprintf(&b, " %s\n", Escape(p.Meaning))
	if len(p.Bytes) > 0 && p.Line == 0 {
		more := ""
		shown := p.Bytes
		if len(shown) > shownBytes {
			shown, more = shown[:shownBytes], fmt.Sprintf(" … %d more", len(p.Bytes)-shownBytes)
		}
		fmt.Fprintf(&b, "    % x%s\n", shown, more)
	}
	for i := range p.Findings {
		f := &p.Findings[i]
		fmt.Fprintf(&b, "    ! %s: %s\n", f.ID, Escape(f.Message))
	}
	_, err := io.WriteString(d.w, b.String())
	return err
}

func (d *textDump) Summary(int) error { return nil }

// jsonDump writes an object a piece, all bytes in hex.
type jsonDump struct{ w io.Writer }

func (d *jsonDump) File(string, int64) error { return nil }

func (d *jsonDump) Piece(p *Piece) error {
	o := line("piece")
	o.bytes("file", p.File)
	o.str("kind", p.Kind)
	o.num("offset", p.Offset)
	o.num("length", p.Length)
	if p.Line > 0 {
		o.num("line", int64(p.Line))
	}
	if p.Blocked {
		o.num("block", p.Block)
	}
	o.truth("inflated", p.Inflated)
	o.truth("resumed", p.Resumed)
	o.str("bytes", hex.EncodeToString(p.Bytes))
	o.str("meaning", p.Meaning)
	if len(p.Findings) > 0 {
		var list []map[string]string
		for i := range p.Findings {
			list = append(list, map[string]string{"id": string(p.Findings[i].ID), "message": Escape(p.Findings[i].Message)})
		}
		if err := o.value("findings", list); err != nil {
			return err
		}
	}
	_, err := d.w.Write(append(o.b, "}\n"...))
	return err
}

func (d *jsonDump) Summary(exit int) error {
	o := line("summary")
	o.num("exit", int64(exit))
	_, err := d.w.Write(append(o.b, "}\n"...))
	return err
}
