package refname

import "bytes"

// GlobFlags change how Glob.Match reads its pattern.
type GlobFlags uint8

// What git's callers ask of a pattern.
const (
	PathName GlobFlags = 1 << iota // "*", "?" and "[" do not match "/"; "**" between slashes does
	CaseFold                       // letters match without regard to case
)

// A Glob is a pattern as git matches refs and paths with: "?", "*", "**", "[a-z]", "[!a-z]",
// "[[:digit:]]" and "\" before a byte that stands for itself. It is safe for concurrent use.
type Glob struct {
	pattern []byte
	flags   GlobFlags
	stars   int
}

// NewGlob takes a pattern as it is; a malformed one ("[", "a\") matches nothing.
func NewGlob(pattern string, flags GlobFlags) *Glob {
	p := []byte(pattern)
	return &Glob{pattern: p, flags: flags, stars: bytes.Count(p, []byte("*"))}
}

func (g *Glob) String() string { return string(g.pattern) }

// Match tells whether the pattern covers the whole name. Its time is at most proportional to the
// product of both lengths.
func (g *Glob) Match(name []byte) bool {
	m := matcher{glob: g, name: name}
	return m.match(0, 0)
}

// A matcher is one call of Match. dead holds the pairs (place in the pattern, place in the name) from
// which there is no match: without it a pattern of many stars would try them again and again.
type matcher struct {
	glob *Glob
	name []byte
	dead []uint64
}

// match tells whether the pattern from p on covers the name from n on.
func (m *matcher) match(p, n int) bool {
	pattern, path := m.glob.pattern, m.glob.flags&PathName != 0
	for p < len(pattern) {
		if pattern[p] == '*' {
			return m.star(p, n)
		}
		if n == len(m.name) {
			return false
		}
		c := m.fold(m.name[n])
		switch pattern[p] {
		case '?':
			if path && c == '/' {
				return false
			}
			p++
		case '[':
			end, ok := m.set(p+1, c)
			if !ok || path && c == '/' {
				return false
			}
			p = end
		case '\\': // what follows stands for itself, and is not folded
			if p+1 == len(pattern) || pattern[p+1] != c {
				return false
			}
			p += 2
		default:
			if m.fold(pattern[p]) != c {
				return false
			}
			p++
		}
		n++
	}
	return n == len(m.name)
}

// star matches from a "*" at p on: one within a component, two or more across slashes if they fill
// a whole component (everywhere without PathName).
func (m *matcher) star(p, n int) bool {
	pattern := m.glob.pattern
	from := p
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	across := m.glob.flags&PathName == 0
	if !across && p-from > 1 && (from == 0 || pattern[from-1] == '/') {
		rest := pattern[p:]
		across = len(rest) == 0 || rest[0] == '/' || bytes.HasPrefix(rest, []byte(`\/`))
		if across && len(rest) > 0 && rest[0] == '/' && m.try(p+1, n) {
			return true // "a/**/b" covers "a/b"
		}
	}
	for ; ; n++ {
		if m.try(p, n) {
			return true
		}
		if n == len(m.name) || m.name[n] == '/' && !across {
			return false
		}
	}
}

// try is match, unless it is known to fail here.
func (m *matcher) try(p, n int) bool {
	if m.glob.stars < 2 {
		return m.match(p, n)
	}
	if m.dead == nil {
		m.dead = make([]uint64, ((len(m.glob.pattern)+1)*(len(m.name)+1)+63)/64)
	}
	at := p*(len(m.name)+1) + n
	if m.dead[at/64]&(1<<(at%64)) != 0 {
		return false
	}
	if m.match(p, n) {
		return true
	}
	m.dead[at/64] |= 1 << (at % 64)
	return false
}

func (m *matcher) fold(c byte) byte {
	if m.glob.flags&CaseFold != 0 && isUpper(c) {
		return c + 'a' - 'A'
	}
	return c
}

// set matches one byte with the set that begins at p, behind its "[", and gives the place behind
// its "]". A set that does not end, or names no class, matches nothing.
func (m *matcher) set(p int, c byte) (end int, ok bool) {
	pattern := m.glob.pattern
	at := func(i int) byte { // NUL is no byte of a pattern, and ends it
		if i < len(pattern) {
			return pattern[i]
		}
		return 0
	}
	negated := at(p) == '!' || at(p) == '^'
	if negated {
		p++
	}
	matched, low := false, byte(0) // low may begin a range
	for first := true; first || at(p) != ']'; first = false {
		b := at(p)
		switch {
		case b == 0:
			return 0, false
		case b == '\\':
			p++
			if b = at(p); b == 0 {
				return 0, false
			}
			matched = matched || c == b
			low = b
		case b == '-' && low != 0 && at(p+1) != 0 && at(p+1) != ']':
			p++
			high := at(p)
			if high == '\\' {
				p++
				if high = at(p); high == 0 {
					return 0, false
				}
			}
			matched = matched || low <= c && c <= high || m.otherCase(c, low, high)
			low = 0
		case b == '[' && at(p+1) == ':':
			name, after, found := m.className(p + 2)
			switch {
			case after < 0:
				return 0, false
			case !found: // no ":]": the "[" is one of the set
				matched = matched || c == '['
				low = '['
			default:
				in, known := inClass(name, c, m.glob.flags&CaseFold != 0)
				if !known {
					return 0, false
				}
				matched = matched || in
				low, p = 0, after
			}
		default:
			matched = matched || c == b
			low = b
		}
		p++
	}
	return p + 1, matched != negated
}

// otherCase tries a lower-case letter as its capital in a range.
func (m *matcher) otherCase(c, low, high byte) bool {
	if m.glob.flags&CaseFold == 0 || c < 'a' || c > 'z' {
		return false
	}
	c -= 'a' - 'A'
	return low <= c && c <= high
}

// className reads "name:]" at p; after is the place of its "]". It is -1 if the pattern ends before one.
func (m *matcher) className(p int) (name []byte, after int, found bool) {
	n := bytes.IndexByte(m.glob.pattern[p:], ']')
	if n < 0 {
		return nil, -1, false
	}
	if n == 0 || m.glob.pattern[p+n-1] != ':' {
		return nil, p, false
	}
	return m.glob.pattern[p : p+n-1], p + n, true
}

// inClass tells whether an ASCII byte is in a POSIX class, and whether there is such a class.
func inClass(name []byte, c byte, fold bool) (in, known bool) {
	lower, upper, digit := c >= 'a' && c <= 'z', isUpper(c), c >= '0' && c <= '9'
	printable := c >= ' ' && c < 0x7f
	switch string(name) {
	case "alnum":
		return lower || upper || digit, true
	case "alpha":
		return lower || upper, true
	case "blank":
		return c == ' ' || c == '\t', true
	case "cntrl":
		return c < ' ' || c == 0x7f, true
	case "digit":
		return digit, true
	case "graph":
		return printable && c != ' ', true
	case "lower":
		return lower, true
	case "print":
		return printable, true
	case "punct":
		return printable && c != ' ' && !lower && !upper && !digit, true
	case "space":
		return c == ' ' || c == '\t' || c == '\n' || c == '\r', true
	case "upper":
		return upper || fold && lower, true
	case "xdigit":
		return digit || lower && c <= 'f' || upper && c <= 'F', true
	}
	return false, false
}
