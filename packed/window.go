package packed

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// How much of a file is in memory at a time: so much at first, and more only while a single line,
// or a ref with its peel, does not fit.
const (
	firstWindow = 256 << 10
	maxWindow   = 64 << 20
)

// A record is a line and, if one follows that begins with "^", that line too. The slices have no
// newlines and are valid until the next record is asked for.
type record struct {
	line    int
	off     int64
	ref     []byte
	peel    []byte
	refLen  int64 // in the file, newline included
	peelLen int64 // 0: no such line
	ended   bool  // its last line has a newline
	long    bool  // ref is only the beginning of a line that fits into no window; a peel is not looked for
}

// A window goes through a file from front to back. What it holds is buf[hold:end], which
// begins at offset base+hold of the file; pos is where the next line begins.
type window struct {
	r         io.ReaderAt
	size      int64
	buf       []byte
	base      int64
	hold, pos int
	end       int
	max       int
	line      int          // number of the next line
	moving    func() error // called before bytes that were handed out are overwritten
	err       error
}

var errLong = errors.New("line does not fit into the window")

func newWindow(r io.ReaderAt, size int64, first, most int) *window {
	return &window{r: r, size: size, buf: make([]byte, min(int64(first), max(size, 1))), max: most, line: 1, moving: func() error { return nil }}
}

// more reads on, keeping what stands from hold on. It gives io.EOF at the end of the file, errLong
// where a window as large as may be is full, or why the file could not be read.
func (w *window) more() error {
	at := w.base + int64(w.end)
	if at >= w.size {
		return io.EOF
	}
	if w.hold == 0 && w.end == len(w.buf) {
		if len(w.buf) >= w.max {
			return errLong
		}
		if err := w.moving(); err != nil {
			return err
		}
		grown := make([]byte, min(2*len(w.buf), w.max))
		copy(grown, w.buf)
		w.buf = grown
	} else if w.hold > 0 {
		if err := w.moving(); err != nil {
			return err
		}
		copy(w.buf, w.buf[w.hold:w.end])
		w.base += int64(w.hold)
		w.end -= w.hold
		w.pos -= w.hold
		w.hold = 0
	}
	room := w.buf[w.end:]
	if left := w.size - at; int64(len(room)) > left {
		room = room[:left]
	}
	n, err := w.r.ReadAt(room, at)
	w.end += n
	if n == len(room) {
		return nil
	}
	if err == nil || err == io.EOF {
		err = io.ErrUnexpectedEOF // it has become shorter under our hands
	}
	return fmt.Errorf("read at offset %d: %w", at+int64(n), err)
}

// newline finds the end of the line that begins from bytes behind hold: its length and whether a
// newline ends it. At errLong the line goes on behind the window.
func (w *window) newline(from int) (n int, ended bool, err error) {
	seen := 0
	for {
		if i := bytes.IndexByte(w.buf[w.hold+from+seen:w.end], '\n'); i >= 0 {
			return seen + i, true, nil
		}
		seen = w.end - w.hold - from
		switch err := w.more(); err {
		case nil:
		case io.EOF:
			return seen, false, nil
		default:
			return seen, false, err
		}
	}
}

// next gives the next record; false at the end of the file, or after an error, which is in w.err.
func (w *window) next(rec *record) bool { return w.take(rec, true) }

// nextLine gives one line as a record of its own.
func (w *window) nextLine(rec *record) bool { return w.take(rec, false) }

func (w *window) take(rec *record, pair bool) bool {
	w.hold = w.pos
	if w.err != nil || w.pos == w.end && !w.fill() {
		return false
	}
	*rec = record{line: w.line, off: w.base + int64(w.hold)}
	n, ended, err := w.newline(0)
	if err == errLong {
		return w.takeLong(rec)
	}
	if err != nil {
		w.err = err
		return false
	}
	w.line++
	rec.refLen, rec.ended = lineLen(n, ended), ended
	if pair && ended {
		if !w.takePeel(rec) {
			return false
		}
	}
	at := w.hold // only now: a look ahead moves the window
	rec.off = w.base + int64(at)
	rec.ref = w.buf[at : at+n : at+n]
	w.pos = at + int(rec.refLen+rec.peelLen)
	if rec.peelLen > 0 {
		rec.peel = w.buf[at+int(rec.refLen) : w.pos]
		if rec.ended {
			rec.peel = rec.peel[:rec.peelLen-1]
		}
	}
	return true
}

// failure is why next gave no more records; nil at the end of the file.
func (w *window) failure(file string) error {
	if w.err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", file, w.err)
}

func lineLen(n int, ended bool) int64 {
	if ended {
		n++
	}
	return int64(n)
}

// fill makes sure that there is a byte to read at pos.
func (w *window) fill() bool {
	switch err := w.more(); err {
	case nil:
		return true
	case io.EOF:
	default:
		w.err = err
	}
	return false
}

// takePeel looks whether a ^ line follows the first line of rec.
func (w *window) takePeel(rec *record) bool {
	from := int(rec.refLen)
	if w.hold+from == w.end {
		switch err := w.more(); err {
		case nil:
		case io.EOF, errLong:
			return true
		default:
			w.err = err
			return false
		}
	}
	if w.buf[w.hold+from] != '^' {
		return true
	}
	n, ended, err := w.newline(from)
	switch err {
	case nil:
		w.line++
		rec.peelLen, rec.ended = lineLen(n, ended), ended
	case errLong: // it will be a record by itself
	default:
		w.err = err
		return false
	}
	return true
}

// takeLong keeps the beginning of a line that fills the window and passes over the rest of it.
func (w *window) takeLong(rec *record) bool {
	w.line++
	rec.long = true
	rec.ref = bytes.Clone(w.buf[w.hold:min(w.end, w.hold+textLimit)])
	for {
		i := bytes.IndexByte(w.buf[w.hold:w.end], '\n')
		if i >= 0 {
			w.pos, rec.ended = w.hold+i+1, true
			break
		}
		w.hold, w.pos = w.end, w.end
		if !w.fill() {
			break
		}
	}
	rec.refLen = w.base + int64(w.pos) - rec.off
	return w.err == nil
}
