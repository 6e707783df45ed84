// Package refname knows what git accepts as the name of a reference. Names are bytes, perhaps not
// UTF-8, and are compared as bytes. The rules are those of gitglossary and git-check-ref-format.
package refname

import "bytes"

// Flags loosen the rules for one call of Valid.
type Flags uint8

// What git's callers allow beyond a plain ref name.
const (
	AllowOneLevel Flags = 1 << iota // a name without a slash, such as HEAD
	AllowPattern                    // one "*" anywhere, as a refspec has
)

// The classes of bytes in a name: what each may mean.
const (
	plain = iota
	slash
	dot   // not first in a component, not twice in a row, not last
	brace // not after "@"
	bad
	star
)

var class = func() (t [256]byte) {
	for c := 0; c <= ' '; c++ {
		t[c] = bad
	}
	for _, c := range []byte(":?[\\^~\x7f") {
		t[c] = bad
	}
	t['/'], t['.'], t['{'], t['*'] = slash, dot, brace, star
	return t
}()

var lockSuffix = []byte(".lock")

// Valid tells whether git accepts name: at least two components (one with AllowOneLevel), none of
// them empty, beginning with ".", or ending in ".lock"; no "..", no "@{", no space, control byte or
// any of ~^:?[\ and "*"; not "@" alone; no "." at the end.
func Valid(name []byte, flags Flags) bool { return valid(name, 0, flags) }

// ValidAfter is Valid without flags for a name whose first bytes are known to begin some valid name. In a sorted
// list that is most of each name.
func ValidAfter(name []byte, known int) bool { return valid(name, known, 0) }

func valid(name []byte, known int, flags Flags) bool {
	start, components := bytes.LastIndexByte(name[:known], '/')+1, 1
	if start > 0 {
		components = 2
	}
	for i := known; i < len(name); i++ {
		c := name[i]
		switch class[c] {
		case plain:
		case slash:
			if !validEnd(name[start:i]) {
				return false
			}
			start = i + 1
			components++
		case dot:
			if i == start || name[i-1] == '.' {
				return false
			}
		case brace:
			if i > start && name[i-1] == '@' {
				return false
			}
		case star:
			if flags&AllowPattern == 0 {
				return false
			}
			flags &^= AllowPattern
		default:
			return false
		}
	}
	switch {
	case !validEnd(name[start:]), name[len(name)-1] == '.':
		return false
	case components == 1:
		return flags&AllowOneLevel != 0 && string(name) != "@"
	}
	return true
}

// validEnd judges what can be told of a component only when it has ended.
func validEnd(component []byte) bool {
	n := len(component)
	return n > 0 && !(component[n-1] == 'k' && bytes.HasSuffix(component, lockSuffix))
}

// Safe tells whether a name, valid or not, may at least be used as a path below the git dir: it has no
// way out of refs/, or is made of capitals and "_" alone. git stops at a packed ref that is unsafe, and
// passes over one that is merely invalid.
func Safe(name []byte) bool {
	rest, ok := bytes.CutPrefix(name, []byte("refs/"))
	if !ok {
		for _, c := range name {
			if !isUpper(c) && c != '_' {
				return false
			}
		}
		return len(name) > 0
	}
	for {
		component, after, more := bytes.Cut(rest, []byte("/"))
		switch string(component) {
		case "", ".", "..":
			return false
		}
		if !more {
			return bytes.IndexByte(name, 0) < 0
		}
		rest = after
	}
}

func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }
