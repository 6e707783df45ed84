// Package alternates reads which object folders a repository borrows from: its
// objects/info/alternates, the ones that those folders have in turn, and the environment. It
// follows the chain as git does, and says where git would be silent.
package alternates

import (
	"bytes"
	"errors"
)

// Entry is one folder that an alternates file names.
type Entry struct {
	Path string // as it is written, unquoted: perhaps relative
	Line int    // where it begins, from 1
}

// Problem is a place that git reads otherwise than its writer will have meant.
type Problem struct {
	Line int
	Text string
}

// Parse reads a list of folders, whose entries sep ends: a newline in info/alternates, the
// separator of path lists in the environment. It reads as git does:
//
//	# comment
//	/path/as/it/is
//	"path, \"quoted\" as in C\n"
//
// An entry that begins with # is a comment, an empty one nothing. One that begins with a quote
// but is not rightly quoted is taken as it is, quote and all. Behind a closing quote one byte
// is skipped, whatever it is. A NUL ends the list. Of a list so long that nobody follows it, the first
// 10,001 entries are given, and of its problems the first 1,000.
func Parse(text []byte, sep byte) ([]Entry, []Problem) {
	p := parser{line: 1}
	if i := bytes.IndexByte(text, 0); i >= 0 {
		p.nul = 1 + bytes.Count(text[:i], []byte{'\n'})
		text = text[:i]
	}
	for len(text) > 0 && len(p.entries) <= entryLimit {
		text = p.next(text, sep)
	}
	if p.nul > 0 {
		p.problem(p.nul, "a NUL byte: what follows is not read")
	}
	return p.entries, p.problems
}

type parser struct {
	line     int
	nul      int
	entries  []Entry
	problems []Problem
}

// problemLimit bounds the problems of one list.
const problemLimit = 1000

func (p *parser) problem(line int, text string) {
	if len(p.problems) == problemLimit-1 {
		text += "; what follows is not told of"
	}
	if len(p.problems) == problemLimit {
		return
	}
	p.problems = append(p.problems, Problem{Line: line, Text: text})
}

// next reads one entry and returns what is left.
func (p *parser) next(text []byte, sep byte) []byte {
	end := bytes.IndexByte(text, sep)
	if end < 0 {
		end = len(text)
	}
	path := text[:end]
	line := p.line
	switch text[0] {
	case '#':
		path = nil
	case '"':
		name, n, err := unquote(text)
		if err != nil {
			p.problem(line, err.Error()+": the quote is read as part of the path")
			break
		}
		path, end = name, n
		if end < len(text) && text[end] != sep {
			p.problem(line, "text behind the closing quote: its first byte is skipped, the rest read as another path")
		}
		if i := bytes.IndexByte(path, 0); i >= 0 {
			p.problem(line, "an escaped NUL byte: the path is read up to it")
			path = path[:i]
		}
	}
	if len(path) > 0 && path[len(path)-1] == '\r' {
		p.problem(line, "a carriage return at its end is read as part of the path")
	}
	if end < len(text) {
		end++
	}
	p.line += bytes.Count(text[:end], []byte{'\n'})
	if len(path) > 0 {
		p.entries = append(p.entries, Entry{Path: string(path), Line: line})
	}
	return text[end:]
}

var (
	errOpen   = errors.New("a quoted path without closing quote")
	errEscape = errors.New("a quoted path with an escape that does not exist")
)

var escapes = map[byte]byte{'a': '\a', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', 'v': '\v', '\\': '\\', '"': '"'}

// unquote reads a string quoted as in C at the start of text, and tells how long it is there,
// quotes included. Octal escapes have three digits.
func unquote(text []byte) (path []byte, n int, err error) {
	var out []byte
	for i := 1; i < len(text); i++ {
		c := text[i]
		switch c {
		case '"':
			return out, i + 1, nil
		case '\\':
			i++
			if i == len(text) {
				return nil, 0, errOpen
			}
			if plain, ok := escapes[text[i]]; ok {
				c = plain
				break
			}
			if i+2 >= len(text) || text[i] < '0' || text[i] > '3' || !octal(text[i+1]) || !octal(text[i+2]) {
				return nil, 0, errEscape
			}
			c = text[i]<<6 | (text[i+1]-'0')<<3 | (text[i+2] - '0')
			i += 2
		}
		out = append(out, c)
	}
	return nil, 0, errOpen
}

func octal(c byte) bool { return c >= '0' && c <= '7' }
