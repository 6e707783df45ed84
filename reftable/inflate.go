package reftable

import (
	"compress/zlib"
	"io"

	"refaudit/finding"
)

// maxRatio is how much larger than its deflated form data can be: 258 bytes from two bits.
const maxRatio = 1032

// searchBudget is how many bytes searches for the next log block may inflate in vain.
const searchBudget = 64 << 20

// An inflater reads log blocks: their four bytes of header, then a zlib stream whose end alone
// tells where the next block begins. Its checksum vouches for the whole block.
type inflater struct {
	z      io.ReadCloser // with zlib.Resetter
	data   []byte
	wasted int64 // inflated in vain by searches
}

// read reads the log block at off into *blk. Its bytes are valid until the next read.
func (f *inflater) read(t *Table, w *window, off int64, blk *block) *finding.Corrupt {
	kind, length, bad := t.blockAt(w, off)
	if bad != nil {
		return bad
	}
	head := t.head(off)
	left := w.end - off
	fail := func(format string, args ...any) *finding.Corrupt {
		return t.corrupt(finding.ReftableLog, off, off, 0, format, args...)
	}
	if length < head+minBlock || int64(length) > int64(head)+4+left*maxRatio {
		return fail("log block claims %d bytes inflated, from at most %d", length, left)
	}
	raw, bad := w.at(off, head+4)
	if bad != nil {
		return bad
	}
	if cap(f.data) < length {
		f.data = make([]byte, length)
	}
	f.data = f.data[:length]
	copy(f.data, raw)
	src := feeder{w: w, pos: off + int64(head) + 4}
	n, err := f.inflate(&src, f.data[head+4:])
	if src.bad != nil {
		return src.bad
	}
	if err != nil {
		return fail("log block ends after %d of %d bytes inflated: %w", n+head+4, length, err)
	}
	*blk = block{kind: kind, off: off, head: head, data: f.data, next: src.pos - int64(len(src.left))}
	bad = t.findRestarts(blk)
	if bad != nil {
		bad.ID = finding.ReftableLog
	}
	return bad
}

// inflate fills dst, with which the stream must end.
func (f *inflater) inflate(src *feeder, dst []byte) (n int, err error) {
	if f.z == nil {
		f.z, err = zlib.NewReader(src)
	} else {
		err = f.z.(zlib.Resetter).Reset(src, nil)
	}
	if err != nil {
		return 0, noEOF(err)
	}
	if n, err = io.ReadFull(f.z, dst); err != nil {
		return n, noEOF(err)
	}
	var more [1]byte
	switch k, err := f.z.Read(more[:]); {
	case k > 0:
		return n, errTooLong
	case err != io.EOF:
		return n, noEOF(err)
	}
	return n, nil
}

type constError string

func (e constError) Error() string { return string(e) }

const errTooLong = constError("the stream is longer")

// noEOF makes an end too early an error that says so.
func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// search finds the next log block at or behind off that inflates whole; 0: none.
func (f *inflater) search(t *Table, w *window, off, limit int64) int64 {
	var b block
	for ; off < limit && f.wasted < searchBudget; off++ {
		raw, bad := w.at(off, 6)
		if bad != nil || len(raw) < 6 {
			return 0
		}
		if isLogStart(raw) && f.try(t, w, off, &b) {
			return off
		}
	}
	return 0
}

// try tells whether a log block can be read, until too much has been inflated in vain.
func (f *inflater) try(t *Table, w *window, off int64, b *block) bool {
	if f.wasted >= searchBudget {
		return false
	}
	if f.read(t, w, off, b) == nil {
		return true
	}
	f.wasted += int64(len(f.data))
	return false
}

// isLogStart judges the first six bytes of a block: a log block goes on with a zlib stream, which
// begins with its method, deflate, a window of at most 32 KiB, and a multiple of 31.
func isLogStart(b []byte) bool {
	return b[0] == kindLog && b[4]&0x8f == 8 && (int(b[4])<<8|int(b[5]))%31 == 0
}

// A feeder gives the bytes of a window one by one, so that what is left of them is known.
type feeder struct {
	w    *window
	pos  int64 // behind left
	left []byte
	bad  *finding.Corrupt
}

func (s *feeder) more() error {
	const chunk = 8 << 10
	s.left, s.bad = s.w.at(s.pos, chunk)
	switch {
	case s.bad != nil:
		return s.bad
	case len(s.left) == 0:
		return io.EOF
	}
	s.pos += int64(len(s.left))
	return nil
}

func (s *feeder) ReadByte() (byte, error) {
	if len(s.left) == 0 {
		if err := s.more(); err != nil {
			return 0, err
		}
	}
	b := s.left[0]
	s.left = s.left[1:]
	return b, nil
}

func (s *feeder) Read(p []byte) (int, error) {
	if len(s.left) == 0 {
		if err := s.more(); err != nil {
			return 0, err
		}
	}
	n := copy(p, s.left)
	s.left = s.left[n:]
	return n, nil
}
