package packed

import (
	"bytes"

	"refaudit/internal/refname"
)

// quick takes the next record if it lies in the window, is written as git writes it, and there is nothing to
// say of it; else it takes nothing, and the record is looked at with care. In a sound file all
// records but a few at the edges of the window come this way.
func (s *scan) quick() (took bool, err error) {
	w, n := s.w, s.digits
	b := w.buf[w.pos:w.end]
	if len(b) < n+3 || b[n] != ' ' || s.git != nil {
		return false, nil
	}
	eol := bytes.IndexByte(b[n+1:], '\n')
	if eol < 0 {
		return false, nil
	}
	name, below := b[n+1:n+1+eol:n+1+eol], b[n+2+eol:]
	if len(below) == 0 || !s.plainTail(name) {
		return false, nil
	}
	e := &s.entries[s.turn]
	size := n / 2
	if !decodeLower(e.id[:size], b[:n]) || isZero(e.id[:size]) {
		return false, nil
	}
	e.Entry = Entry{Name: name, OID: e.id[:size], Line: w.line, Offset: w.base + int64(w.pos), Length: int64(n + 2 + eol)}
	w.pos += n + 2 + eol
	if below[0] == '^' {
		if len(below) < n+2 || below[n+1] != '\n' {
			w.pos -= n + 2 + eol
			return false, nil
		}
		if !decodeLower(s.peel[:size], below[1:n+1]) {
			w.pos -= n + 2 + eol
			return false, nil
		}
		e.Peel, e.PeelLine, e.PeelOffset, e.PeelLength = s.peel[:size], w.line+1, w.base+int64(w.pos), int64(n+2)
		w.pos += n + 2
		w.line++
		s.sum.Peels++
	}
	s.order.prev, s.order.line, s.order.first, s.plain = name, e.Line, e.Line, true
	w.line++
	s.sum.Refs++
	s.turn ^= 1
	if s.each == nil {
		return true, nil
	}
	return true, s.each(&e.Entry)
}

// plainTail tells whether a name is valid, lies in refs/ and is greater than the one before. Only the
// part that differs from that is looked at.
func (s *scan) plainTail(name []byte) bool {
	prev := s.order.prev
	same := refname.CommonPrefix(prev, name)
	if same == len(name) || same < len(prev) && prev[same] > name[same] {
		return false
	}
	if !s.plain {
		same = 0
	}
	if same < len(refsPrefix) && !bytes.HasPrefix(name, refsPrefix) {
		return false
	}
	return refname.ValidAfter(name, same)
}
