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
	for s.w.next(&rec) {
		start := s.w.pos - int(rec.refLen+rec.peelLen)
		keep, err := s.parse(&rec, &p)
		if err != nil {
			return err
		}
		if keep {
			merged, err := s.admit(&p)
			if err != nil {
				return err
			}
			keep = !merged
		}
		if !keep {
			err = s.leaveOut(start)
		} else if text, change := s.peelOf(&p); change {
			err = s.leaveOut(start + int(rec.refLen))
			if err == nil && text != nil {
				err = s.replace(text)
			}
		}
		if err != nil {
			return err
		}
	}
	return s.w.err
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

func (s *straight) replace(text []byte) error {
	if err := s.out.endLine(); err != nil { // the ref's own line may have been the last, without a newline
		return err
	}
	return s.out.write(text)
}
