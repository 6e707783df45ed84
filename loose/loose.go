// Package loose reads references that are files of their own: refs, symrefs, HEAD and the other root
// refs, symbolic links among them. It opens nothing: contents, modes and link texts are handed in.
//
//	8e1f…(40 or 64 digits)\n      a ref: the id of its object; more may follow behind white space
//	ref: refs/heads/main\n         a symref: the name of another ref
//
// The format is described in gitrepository-layout. As git reads it, a file is a C string: nothing
// behind a NUL is seen.
package loose

import (
	"bytes"
	"strings"

	"refaudit/finding"
	"refaudit/internal/refname"
	"refaudit/oid"
)

// Kind is what a ref holds.
type Kind uint8

// The kinds of values. The zero Kind is a ref from which git reads nothing: it stops there, and does
// not fall back to a packed value.
const (
	Broken Kind = iota
	Object
	Symref
)

// A Value is what git reads from a loose ref.
type Value struct {
	Kind   Kind
	OID    oid.ID          // of an Object
	Target finding.RefName // of a Symref: as it stands there, perhaps no valid name
}

// Parse reads the content of a ref file as git's look-ups do.
func Parse(f oid.Format, content []byte) Value {
	v, _ := parse(f, cString(trimSpace(content)))
	return v
}

// parse takes a C string and gives what stands behind an object id too.
func parse(f oid.Format, text []byte) (v Value, trailing []byte) {
	if target, ok := bytes.CutPrefix(text, []byte("ref:")); ok {
		for len(target) > 0 && isSpace(target[0]) {
			target = target[1:]
		}
		return Value{Kind: Symref, Target: finding.RefName(target)}, nil
	}
	n := f.HexLen()
	if oid.HexPrefix(text, n) < n || len(text) > n && !isSpace(text[n]) {
		return Value{}, nil
	}
	var raw [oid.MaxSize]byte
	oid.DecodeHex(raw[:f.Size()], text[:n])
	return Value{Kind: Object, OID: oid.FromBytes(f, raw[:])}, text[n:]
}

// ParseLink reads the text of a symbolic link that stands for a ref. git takes one that begins with
// "refs/" and is a valid name for a symref; through any other it reads the file behind it.
func ParseLink(text string) (v Value, symref bool) {
	text = string(cString([]byte(text)))
	if !strings.HasPrefix(text, "refs/") || !refname.Valid([]byte(text), 0) {
		return Value{}, false
	}
	return Value{Kind: Symref, Target: finding.RefName(text)}, true
}

// IsLock tells whether a file below refs/ is passed over as a lock, from the last part of its name.
func IsLock(base string) bool {
	return !strings.HasPrefix(base, ".") && strings.HasSuffix(base, ".lock")
}

// isSpace is white space as git knows it, without regard to the locale.
func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// trimSpace cuts white space off the end.
func trimSpace(b []byte) []byte {
	for len(b) > 0 && isSpace(b[len(b)-1]) {
		b = b[:len(b)-1]
	}
	return b
}

// cString is b up to its first NUL.
func cString(b []byte) []byte {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		return b[:i]
	}
	return b
}
