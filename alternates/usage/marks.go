package usage

// marks keep where the entries of trees begin, in a ring like that of their contents.
type marks struct {
	ring []uint32
	head uint64
}

// markSpan is a part of a ring: the numbers that were put into it before and with it.
type markSpan struct{ start, end uint64 }

// put keeps some, if there is room for that many.
func (m *marks) put(starts []uint32) markSpan {
	n := len(starts)
	if n > len(m.ring)/8 {
		return markSpan{}
	}
	at := int(m.head % uint64(len(m.ring)))
	if at+n > len(m.ring) {
		m.head += uint64(len(m.ring) - at)
		at = 0
	}
	copy(m.ring[at:], starts)
	start := m.head
	m.head += uint64(n)
	return markSpan{start, m.head}
}

// restart goes on at the start of the ring, and what was put before is no more: not every reading touches new memory.
func (m *marks) restart() { m.head += 2*uint64(len(m.ring)) - m.head%uint64(len(m.ring)) }

// get gives what is kept; nil if it was written over since.
func (m *marks) get(s markSpan) []uint32 {
	if s.start == s.end || m.head-s.start > uint64(len(m.ring)) {
		return nil
	}
	at := s.start % uint64(len(m.ring))
	return m.ring[at : at+s.end-s.start]
}

// marksOf are where the entries of a tree begin that was parsed and is kept; nil if not known.
func (r *reader) marksOf(v uint32) []uint32 {
	if s := r.slot(v); s.kind != 0 && s.v == v {
		return r.marks.get(s.marks)
	}
	return nil
}

// mark keeps where the entries of a tree begin.
func (r *reader) mark(v uint32, starts []uint32) {
	if s := r.slot(v); s.kind != 0 && s.v == v {
		s.marks = r.marks.put(starts)
	}
}
