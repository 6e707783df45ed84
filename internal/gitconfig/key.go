package gitconfig

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

var (
	errNameMissing = errors.New("key without a section or a variable's name")
	errNameInvalid = errors.New("key with a character that is not allowed there")
)

// checkKey tells whether git can keep a key: it has a section and a variable, and only the
// subsection may hold anything but letters, digits and dashes. (No line feed stands in it either.)
func checkKey(key []byte) error {
	last := bytes.LastIndexByte(key, '.')
	if last <= 0 || last == len(key)-1 {
		return fmt.Errorf("%w: %q", errNameMissing, string(key))
	}
	first := bytes.IndexByte(key, '.')
	for i, c := range key {
		switch {
		case i >= first && i <= last:
			if c == '\n' {
				return fmt.Errorf("%w: %q", errNameInvalid, string(key))
			}
		case !isKeyChar(c), i == last+1 && !isAlpha(c):
			return fmt.Errorf("%w: %q", errNameInvalid, string(key))
		}
	}
	return nil
}

// CanonicalKey puts section and variable of a key into lower case and leaves the subsection alone,
// or says why git refuses the key.
func CanonicalKey(key string) (string, error) {
	b, err := AppendCanonicalKey(nil, key)
	return string(b), err
}

// AppendCanonicalKey appends to dst what CanonicalKey gives.
func AppendCanonicalKey(dst []byte, key string) ([]byte, error) {
	n := len(dst)
	dst = append(dst, key...)
	added := dst[n:]
	if err := checkKey(added); err != nil {
		return dst[:n], err
	}
	first, last := bytes.IndexByte(added, '.'), bytes.LastIndexByte(added, '.')
	for i, c := range added {
		if i < first || i > last {
			added[i] = lower(c)
		}
	}
	return dst, nil
}

func asciiLower(s string) string {
	b := []byte(s)
	for i, c := range b {
		b[i] = lower(c)
	}
	return string(b)
}

// SplitKey takes a key apart. The subsection is "" where there is none.
func SplitKey(key string) (section, subsection, name string) {
	last := strings.LastIndexByte(key, '.')
	if last < 0 {
		return "", "", key
	}
	name = key[last+1:]
	section, subsection, _ = strings.Cut(key[:last], ".")
	return section, subsection, name
}
