package reftable

import (
	"errors"
	"fmt"
	"io"

	"refaudit/finding"
)

const (
	scanWindow = 1 << 17          // a scan reads this much at a time
	seekWindow = DefaultBlockSize // and a search this much, or a block if that is larger
)

// A window is the part of a file that is in memory: reads go through it in order, in few
// and large pieces, and never hold the whole file.
type window struct {
	r     io.ReaderAt
	mem   []byte // the whole file, where the caller has it in memory
	file  string
	end   int64 // what lies behind is not ours to read
	buf   []byte
	off   int64 // of buf[0] in the file
	least int   // how much a read takes at least, after a jump
	step  int   // how much the next one takes at least: read in order, it doubles up to scanWindow
}

// window makes a window over the bytes before end, whose first read takes step bytes.
func (t *Table) window(end int64, step int) window {
	return window{r: t.r, mem: t.mem, file: t.file, end: end, least: step, step: step}
}

// seekStep is how much a search reads at a time: a block and the byte that follows it.
func (t *Table) seekStep() int { return min(max(t.BlockSize+1, seekWindow), scanWindow) }

// at is the n bytes at off, or what there is of them before the end. They are valid until the next call.
func (w *window) at(off int64, n int) ([]byte, *finding.Corrupt) {
	if off < 0 || off >= w.end {
		return nil, nil
	}
	n = int(min(int64(n), w.end-off))
	if i := off - w.off; i >= 0 && i+int64(n) <= int64(len(w.buf)) {
		return w.buf[i : i+int64(n) : i+int64(n)], nil
	}
	if w.mem != nil {
		w.buf, w.off = w.mem[:w.end:w.end], 0
		return w.mem[off : off+int64(n) : off+int64(n)], nil
	}
	return w.fill(off, n)
}

func (w *window) fill(off int64, n int) ([]byte, *finding.Corrupt) {
	if off < w.off || off > w.off+int64(len(w.buf)) {
		w.step = w.least
	}
	size := int(min(int64(max(n, w.step)), w.end-off))
	w.step = max(w.step, min(2*w.step, scanWindow))
	if cap(w.buf) < size {
		w.buf = make([]byte, size)
	}
	w.buf, w.off = w.buf[:size], off
	got, err := w.r.ReadAt(w.buf, off)
	if got < size {
		w.buf = w.buf[:got]
	}
	if got >= n {
		return w.buf[:n:n], nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = fmt.Errorf("file ends at %d, %d bytes earlier than it was long: %w", off+int64(got), int64(n-got), io.ErrUnexpectedEOF)
	}
	return nil, &finding.Corrupt{
		ID:  finding.ReftableUnreadable,
		Pos: finding.Pos{File: w.file, Offset: off, Length: int64(n), Placed: true},
		Err: fmt.Errorf("read: %w", err),
	}
}
