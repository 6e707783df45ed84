package refname

import "refaudit/internal/wildmatch"

// GlobFlags change how Glob.Match reads its pattern.
type GlobFlags uint8

// What git's callers ask of a pattern.
const (
	PathName GlobFlags = 1 << iota // "*", "?" and "[" do not match "/"; "**" between slashes does
	CaseFold                       // letters match without regard to case
)

// A Glob is a pattern as git matches refs with. It is safe for concurrent use.
type Glob struct {
	pattern []byte
	flags   wildmatch.Flags
}

// NewGlob takes a pattern as it is; a malformed one ("[", "a\\") matches nothing.
func NewGlob(pattern string, flags GlobFlags) *Glob {
	g := &Glob{pattern: []byte(pattern)}
	if flags&PathName != 0 {
		g.flags |= wildmatch.Path
	}
	if flags&CaseFold != 0 {
		g.flags |= wildmatch.Fold
	}
	return g
}

func (g *Glob) String() string { return string(g.pattern) }

// Match tells whether the pattern covers the whole name. One that is too long to be matched is covered by none.
func (g *Glob) Match(name []byte) bool {
	ok, err := wildmatch.Match(g.pattern, name, g.flags)
	return ok && err == nil
}
