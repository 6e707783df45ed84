package scan

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"refaudit/finding"
	"refaudit/internal/refname"
	"refaudit/oid"
)

// skipList is refaudit.skipList: findings that somebody has looked at and lets stand.
//
//	# a comment
//	refname-glob [msg-id] [oid] [until=YYYY-MM-DD]
type skipList struct {
	file  string
	lines []skipLine
}

type skipLine struct {
	line  int
	text  string
	glob  *refname.Glob
	id    finding.ID // "": any
	oid   oid.ID     // zero: any
	until time.Time  // zero: for ever; else to the end of that day, UTC
	used  bool
}

// parseSkipList reads the file; a line that can't be understood is an error, since it might
// hide more, or less, than was meant.
func parseSkipList(file string, text []byte) (*skipList, error) {
	l := &skipList{file: file}
	for n, row := range strings.Split(string(text), "\n") {
		row = strings.TrimSpace(strings.TrimSuffix(row, "\r"))
		if row == "" || row[0] == '#' {
			continue
		}
		w := strings.Fields(row)
		s := skipLine{line: n + 1, text: row, glob: refname.NewGlob(w[0], 0)}
		for _, word := range w[1:] {
			if err := s.take(word); err != nil {
				return nil, fmt.Errorf("%s:%d: %w", file, n+1, err)
			}
		}
		l.lines = append(l.lines, s)
	}
	return l, nil
}

func (s *skipLine) take(word string) error {
	if day, ok := strings.CutPrefix(word, "until="); ok {
		t, err := time.Parse(time.DateOnly, day)
		if err != nil {
			return fmt.Errorf("until= takes a date as YYYY-MM-DD, not %q", day)
		}
		s.until = t.AddDate(0, 0, 1)
		return nil
	}
	if id, ok := finding.ParseID(word); ok {
		s.id = id
		return nil
	}
	if id, err := oid.Parse(word); err == nil {
		s.oid = id
		return nil
	}
	return fmt.Errorf("%q is no message id, object id or until=YYYY-MM-DD", word)
}

// hides tells whether a line covers the finding. An expired line covers nothing.
func (l *skipList) hides(f *finding.Finding, now time.Time) bool {
	if l == nil || f.Ref == "" {
		return false
	}
	hidden := false
	for i := range l.lines {
		s := &l.lines[i]
		if s.id != "" && s.id != f.ID || s.oid != (oid.ID{}) && s.oid != f.OID || !s.glob.Match([]byte(f.Ref)) {
			continue
		}
		s.used = true
		if s.until.IsZero() || now.Before(s.until) {
			hidden = true
		}
	}
	return hidden
}

// notices tells of lines that have expired and of lines that hide nothing any more.
func (l *skipList) notices(now time.Time) []string {
	if l == nil {
		return nil
	}
	var out []string
	for i := range l.lines {
		switch s := &l.lines[i]; {
		case !s.until.IsZero() && !now.Before(s.until):
			out = append(out, fmt.Sprintf("%s:%d: expired on %s and hides nothing any more: %s", l.file, s.line, s.until.AddDate(0, 0, -1).Format(time.DateOnly), s.text))
		case !s.used:
			out = append(out, fmt.Sprintf("%s:%d: hides nothing in this repository: %s", l.file, s.line, s.text))
		}
	}
	return out
}

// parseObjectList reads fsck.skipList: an object id a line, # begins a comment.
func parseObjectList(file string, text []byte) (map[oid.ID]bool, error) {
	out := map[oid.ID]bool{}
	for n, row := range bytes.Split(text, []byte("\n")) {
		row, _, _ = bytes.Cut(row, []byte("#"))
		row = bytes.TrimSpace(row)
		if len(row) == 0 {
			continue
		}
		id, err := oid.Parse(string(row))
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, n+1, err)
		}
		out[id] = true
	}
	return out, nil
}
