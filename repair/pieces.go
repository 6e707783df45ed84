package repair

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"

	"refaudit/internal/journal"
)

// wayBack works out how to make an old file of the new one, and what tells the old one from all
// others. Both are read once, side by side: a rewrite changes ^ lines and the header, leaves
// lines out and inserts some, and all else stays in its order. Of a file that was sorted, what
// has moved up is kept whole.
func wayBack(before, after io.Reader) ([]journal.Piece, journal.Whole, error) {
	sum := sha256.New()
	a, b := newLines(io.TeeReader(before, sum)), newLines(after)
	var p pieces
	for {
		x, y := a.rest(), b.rest()
		if err := errors.Join(a.err, b.err); err != nil {
			return nil, journal.Whole{}, err
		}
		if len(x) == 0 {
			break
		}
		if n := commonLines(x, y); n > 0 {
			p.copied(b.off, int64(n))
			a.skip(n)
			b.skip(n)
			continue
		}
		old, fresh := firstLine(x), firstLine(y)
		mark := len(fresh) > 0 && (fresh[0] == '^' || fresh[0] == '#')
		switch replaced := mark && old[0] == fresh[0]; {
		case mark && !replaced: // it was inserted
			b.skip(len(fresh))
		case replaced:
			b.skip(len(fresh))
			fallthrough
		default:
			p.text(old)
			a.skip(len(old))
		}
	}
	w := journal.Whole{Size: a.off}
	sum.Sum(w.SHA256[:0])
	return p.list, w, nil
}

// lines is a file in which whole lines are looked at.
type lines struct {
	r   io.Reader
	buf []byte
	pos int
	off int64 // of buf[pos] in the file
	eof bool
	err error
}

const linesBuffer = 256 << 10

func newLines(r io.Reader) *lines { return &lines{r: r, buf: make([]byte, 0, linesBuffer)} }

// rest is what comes next: one whole line at the least, unless it is longer than the buffer or the
// last. Empty at the end.
func (l *lines) rest() []byte {
	for !l.eof && l.err == nil && bytes.IndexByte(l.buf[l.pos:], '\n') < 0 && len(l.buf)-l.pos < linesBuffer {
		l.buf = append(l.buf[:0], l.buf[l.pos:]...)
		l.pos = 0
		n, err := l.r.Read(l.buf[len(l.buf):cap(l.buf)])
		l.buf = l.buf[:len(l.buf)+n]
		switch {
		case errors.Is(err, io.EOF):
			l.eof = true
		case err != nil:
			l.err = err
		}
	}
	return l.buf[l.pos:]
}

func (l *lines) skip(n int) {
	l.pos += n
	l.off += int64(n)
}

func firstLine(b []byte) []byte {
	if i := bytes.IndexByte(b, '\n'); i >= 0 {
		return b[:i+1]
	}
	return b
}

// commonLines is the length of the lines that both begin with.
func commonLines(a, b []byte) int {
	const block = 512
	n := min(len(a), len(b))
	same := 0
	for same+block <= n && bytes.Equal(a[same:same+block], b[same:same+block]) {
		same += block
	}
	for same < n && a[same] == b[same] {
		same++
	}
	return bytes.LastIndexByte(a[:same], '\n') + 1
}

// pieces joins neighbours.
type pieces struct{ list []journal.Piece }

func (p *pieces) copied(at, n int64) {
	if k := len(p.list) - 1; k >= 0 && p.list[k].Text == nil && p.list[k].At+p.list[k].Len == at {
		p.list[k].Len += n
		return
	}
	p.list = append(p.list, journal.Piece{At: at, Len: n})
}

func (p *pieces) text(line []byte) {
	if k := len(p.list) - 1; k >= 0 && p.list[k].Text != nil {
		p.list[k].Text = append(p.list[k].Text, line...)
		return
	}
	p.list = append(p.list, journal.Piece{Text: bytes.Clone(line)})
}
