// Package wildmatch matches names, paths and URLs with git's globs.
package wildmatch

import "errors"

// MaxPattern and MaxText bound what is matched, in bytes: a glob may come from a hostile repository,
// and the work can be their product.
const (
	MaxPattern = 4096
	MaxText    = 8192
)

// ErrTooLong is the refusal to match a glob or a text over these limits.
var ErrTooLong = errors.New("is too long to be matched")

// Flags change how a glob is read.
type Flags uint8

// What git's callers ask of a glob.
const (
	// Path makes a slash special: *, ? and [] stop at it, and only ** between slashes reaches past it.
	Path Flags = 1 << iota
	// Fold ignores the case of ASCII letters.
	Fold
)

// Match tells whether the glob describes the whole text.
//
//	?      any one character (with Path none but /)
//	*      any characters (with Path none but /)
//	**     with Path, of "**/", "/**" and "/**/": any folders, also none; elsewhere the same as *
//	[a-z]  one of these; [!a-z] or [^a-z] none of them; [[:digit:]] and its like
//	\x     x itself
//
// A malformed glob matches nothing.
func Match(glob, text []byte, flags Flags) (bool, error) {
	if len(glob) > MaxPattern || len(text) > MaxText {
		return false, ErrTooLong
	}
	m := matcher{glob: glob, text: text, fold: flags&Fold != 0, path: flags&Path != 0}
	return m.match(0, 0) == matches, nil
}

// verdict is what came of trying to match from one place. It keeps the work small: what a later
// star could not mend by reaching further, an earlier one of the same reach can't either.
type verdict uint8

const (
	matches   verdict = iota
	differs           // here
	starFails         // a * was reached and did not help: only a ** before it may
	allFails          // a ** was reached and did not help, the text is too short, or the glob is malformed
)

type matcher struct {
	glob, text []byte
	fold, path bool
}

func (m *matcher) match(g, t int) verdict {
	for ; g < len(m.glob); g++ {
		c := m.glob[g]
		if c == '*' {
			return m.star(g, t)
		}
		if t == len(m.text) {
			return allFails
		}
		ch := m.folded(m.text[t])
		t++
		switch c {
		case '?':
			if ch == '/' && m.path {
				return differs
			}
			continue
		case '[':
			end, in := m.set(g+1, ch)
			if end < 0 {
				return allFails
			}
			if !in || ch == '/' && m.path {
				return differs
			}
			g = end
			continue
		case '\\':
			if g++; g == len(m.glob) {
				return allFails
			}
			if m.glob[g] != ch { // not folded: git doesn't either
				return differs
			}
			continue
		}
		if m.folded(c) != ch {
			return differs
		}
	}
	if t < len(m.text) {
		return differs
	}
	return matches
}

// star matches from a run of stars at g on.
func (m *matcher) star(g, t int) verdict {
	begin := g
	for g < len(m.glob) && m.glob[g] == '*' {
		g++
	}
	if !m.path || g-begin > 1 && m.betweenSlashes(begin, g) {
		return m.starStar(g, t)
	}
	for ; t < len(m.text); t++ {
		if v := m.match(g, t); v != differs {
			return v
		}
		if m.text[t] == '/' {
			return starFails
		}
	}
	if g == len(m.glob) {
		return matches
	}
	return allFails
}

// starStar matches from behind a ** on, at g.
func (m *matcher) starStar(g, t int) verdict {
	if g == len(m.glob) {
		return matches
	}
	if m.path && m.glob[g] == '/' { // no folder at all
		if v := m.match(g+1, t); v == matches || v == allFails {
			return v
		}
	}
	for ; t < len(m.text); t++ {
		if v := m.match(g, t); v == matches || v == allFails {
			return v
		}
	}
	return allFails
}

// betweenSlashes tells whether a ** that stands at glob[begin:end] is a component of its own.
func (m *matcher) betweenSlashes(begin, end int) bool {
	if begin > 0 && m.glob[begin-1] != '/' {
		return false
	}
	rest := m.glob[end:]
	return len(rest) == 0 || rest[0] == '/' || len(rest) > 1 && rest[0] == '\\' && rest[1] == '/'
}

func (m *matcher) folded(c byte) byte {
	if m.fold && c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// set reads a [] behind its bracket, and tells where its end stands (-1: nowhere) and whether ch is in it.
func (m *matcher) set(g int, ch byte) (end int, in bool) {
	at := func(i int) byte { // 0 behind the end, as in git
		if i < len(m.glob) {
			return m.glob[i]
		}
		return 0
	}
	negated := at(g) == '!' || at(g) == '^'
	if negated {
		g++
	}
	var prev byte // what may begin a range
	for first := true; first || at(g) != ']'; first = false {
		c := at(g)
		switch {
		case c == 0:
			return -1, false
		case c == '\\':
			g++
			if c = at(g); c == 0 {
				return -1, false
			}
			in = in || c == ch
		case c == '-' && prev != 0 && at(g+1) != 0 && at(g+1) != ']':
			g++
			if c = at(g); c == '\\' {
				g++
				if c = at(g); c == 0 {
					return -1, false
				}
			}
			in = in || ch >= prev && ch <= c || m.fold && isLower(ch) && upper(ch) >= prev && upper(ch) <= c
			c = 0
		case c == '[' && at(g+1) == ':':
			close := g + 2
			for at(close) != 0 && at(close) != ']' {
				close++
			}
			if at(close) == 0 {
				return -1, false
			}
			if close-1 < g+2 || m.glob[close-1] != ':' { // no class: a bracket in the set
				in = in || c == ch
				break
			}
			member, known := m.class(string(m.glob[g+2:close-1]), ch)
			if !known {
				return -1, false
			}
			in = in || member
			g, c = close, 0
		default:
			in = in || c == ch
		}
		prev = c
		g++
	}
	return g, in != negated
}

func isLower(c byte) bool { return c >= 'a' && c <= 'z' }
func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }
func isDigit(c byte) bool { return c >= '0' && c <= '9' }
func isGraph(c byte) bool { return c > ' ' && c < 0x7f }

func upper(c byte) byte { return c - 'a' + 'A' }

// class tells whether ch belongs to a named class, and whether there is such a class.
func (m *matcher) class(name string, ch byte) (in, known bool) {
	alpha := isLower(ch) || isUpper(ch)
	switch name {
	case "alnum":
		return alpha || isDigit(ch), true
	case "alpha":
		return alpha, true
	case "blank":
		return ch == ' ' || ch == '\t', true
	case "cntrl":
		return ch < ' ' || ch == 0x7f, true
	case "digit":
		return isDigit(ch), true
	case "graph":
		return isGraph(ch), true
	case "lower":
		return isLower(ch), true
	case "print":
		return isGraph(ch) || ch == ' ', true
	case "punct":
		return isGraph(ch) && !alpha && !isDigit(ch), true
	case "space":
		return ch == ' ' || ch >= '\t' && ch <= '\r', true
	case "upper":
		return isUpper(ch) || m.fold && isLower(ch), true
	case "xdigit":
		return isDigit(ch) || ch >= 'a' && ch <= 'f' || ch >= 'A' && ch <= 'F', true
	}
	return false, false
}
