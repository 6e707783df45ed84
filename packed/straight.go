package packed

import "bytes"

// A straight rewrites a file in its own order, in one pass. What stays as it is forms runs, which
// are written straight from the window:
//
//	# pack-refs with: …   ┐
//	8e1f… refs/heads/main │ one run
//	27ca… refs/tags/v1    ┘
//	^8e1f…                  replaced: a write of its own
//	9b0c… refs/tags/v2    ┐ the next run
//	^…                    ┘
type straight struct {
	*rewriter
	w    *window
	from int // where the run begins in the window
}

func (rw *rewriter) straight() error {
	s := &straight{rewriter: rw, w: newWindow(rw.r, rw.size, rw.window, max(rw.window, maxWindow))}
	s.w.moving = func() error {
		rw.last.name = bytes.Clone(rw.last.name)
		err := s.flush(s.w.hold)
		s.from = 0
		return err
	}
	now, text, err := rw.header(s.w)
	if err != nil {
		return err
	}
	if int64(len(text)) != now.Length || !bytes.Equal(text, s.w.buf[:len(text)]) {
		s.from = s.w.pos
		if err := rw.out.write(text); err != nil {
			return err
		}
	}
	if err := s.records(); err != nil {
		return err
	}
	if err := s.flush(s.w.pos); err != nil {
		return err
	}
	return rw.out.endLine()
}

func (s *straight) records() error {
	var rec record
	var p parsed
	for {
		s.skim()
		if !s.w.next(&rec) {
			return s.w.err
		}
		if err := s.record(&rec, &p); err != nil {
			return err
		}
	}
}

func (s *straight) record(rec *record, p *parsed) error {
	start := s.w.pos - int(rec.refLen+rec.peelLen)
	keep, err := s.parse(rec, p)
	if err != nil {
		return err
	}
	if keep {
		merged, err := s.admit(p)
		if err != nil {
			return err
		}
		keep = !merged
	}
	if !keep {
		return s.leaveOut(start)
	}
	text, change := s.peelOf(p)
	if !change {
		return nil
	}
	if err := s.leaveOut(start + int(rec.refLen)); err != nil || text == nil {
		return err
	}
	if err := s.out.endLine(); err != nil { // the ref's line may have been the last, without a newline
		return err
	}
	return s.out.write(text)
}

// skim adds records to the run as long as they are written as git writes them, lie in the window, are
// not to be changed and do not repeat a name.
func (s *straight) skim() {
	w, n, size := s.w, 2*s.f.Size(), s.f.Size()
	for {
		b := w.buf[w.pos:w.end]
		if len(b) < n+3 || b[n] != ' ' {
			return
		}
		eol := bytes.IndexByte(b[n+1:], '\n')
		if eol <= 0 || n+2+eol >= len(b) {
			return
		}
		line, below := b[:n+1+eol], b[n+2+eol:]
		name, total := line[n+1:], n+2+eol
		hasPeel := below[0] == '^'
		if hasPeel {
			total += n + 2
			if len(below) < n+2 || below[n+1] != '\n' {
				return
			}
		}
		if s.next < len(s.plan.Edits) && s.plan.Edits[s.next].Offset < w.base+int64(w.pos+total) || bytes.Equal(name, s.last.name) {
			return
		}
		p := &s.last // from here on its values belong to no ref, unless this one is taken
		if !decodeLower(p.id[:size], line[:n]) || bytes.IndexByte(name, 0) >= 0 || hasPeel && !decodeLower(p.peel[:size], below[1:n+1]) {
			return
		}
		p.line, p.text, p.name, p.hasPeel, p.peelOK, p.edit = w.line, line, name, hasPeel, hasPeel, nil
		s.started = true
		s.kept.add(line)
		s.res.Refs++
		w.pos += total
		if w.line++; hasPeel {
			w.line++
		}
	}
}

// flush writes the run up to a place in the window.
func (s *straight) flush(to int) error {
	run := s.w.buf[s.from:to]
	s.from = to
	if len(run) == 0 {
		return nil
	}
	return s.out.write(run)
}

// leaveOut ends the run at a place, and begins the next one behind the record at hand.
func (s *straight) leaveOut(to int) error {
	err := s.flush(to)
	s.from = s.w.pos
	return err
}
