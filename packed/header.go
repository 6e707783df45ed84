package packed

import (
	"bytes"

	"refaudit/finding"
)

// headerStart is how git's header begins; words of traits follow, each with a space behind it.
const headerStart = "# pack-refs with: "

// parseHeader reads a first line that begins with "#", without its newline. git takes the line
// for a C string, so what stands behind a NUL is not seen.
func parseHeader(line []byte) Header {
	h := Header{Present: true, Raw: bytes.Clone(line)}
	words, ok := bytes.CutPrefix(cString(line), []byte(headerStart))
	if !ok {
		h.Bad = true
		return h
	}
	for _, word := range bytes.Split(words, []byte(" ")) {
		switch string(word) {
		case "peeled":
			h.Peeled = true
		case "fully-peeled":
			h.FullyPeeled = true
		case "sorted":
			h.Sorted = true
		}
	}
	return h
}

// Format writes the header as git does, with the traits that are set, newline included.
func (h Header) Format() []byte {
	b := []byte(headerStart)
	for _, t := range []struct {
		set  bool
		word string
	}{{h.Peeled, "peeled "}, {h.FullyPeeled, "fully-peeled "}, {h.Sorted, "sorted "}} {
		if t.set {
			b = append(b, t.word...)
		}
	}
	return append(b, '\n')
}

func (s *scan) header(line []byte, length int64, terminated bool) error {
	s.sum.Header = parseHeader(line)
	s.sum.Header.Length = length
	if bytes.IndexByte(line, 0) >= 0 {
		s.sum.LostBytes, s.sum.Damaged = true, true
	}
	if !terminated {
		if err := s.unterminated(1, 0, line); err != nil {
			return err
		}
	}
	if !s.sum.Header.Bad {
		return nil
	}
	s.sum.Damaged = true
	f := finding.New(finding.BadPackedRefHeader, s.pos(1, 0, length), "the header does not begin with %q: git refuses the whole file", headerStart)
	f.Fixable = bytes.IndexByte(line, 0) < 0
	f.GitText = finding.GitLine(FileName+".header", f.ID, "'"+string(gitString(line))+"' does not start with '"+headerStart+"'")
	return s.found(f)
}

// cString is b up to its first NUL.
func cString(b []byte) []byte {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		return b[:i]
	}
	return b
}

// textLimit is more of a line than git prints.
const textLimit = 8 << 10

// gitString is a line as git prints it: up to a NUL, and of a very long one the beginning.
func gitString(b []byte) []byte { return cString(b[:min(len(b), textLimit)]) }
