// Package gitconfig reads the text of git's configuration: the syntax of config files, the
// environment's quoted form, keys, and the values' types.
//
// It stands apart from repo because it is a codec: bytes in, entries out. It opens no files and
// looks up no variables, so every malformed input is a plain test and a fuzz seed; which files
// are read, in which order and with what right, is repo's subject.
package gitconfig

import (
	"bytes"
	"errors"
	"fmt"
)

// Entry is one line that sets a variable.
type Entry struct {
	// Key is section.subsection.variable, the section and the variable in lower case. From a file it
	// may be one that nobody can ask for: a variable above the first section has a name only.
	Key string
	// Value is what stands after the "="; "" where there is none.
	Value string
	// NoValue tells that there is no "=", which is true for a boolean and an error for the rest.
	NoValue bool
	// Line is the line on which the entry ends, counted from 1. 0: not from a file.
	Line int
}

// SyntaxError is a file that git refuses to read, and the line at which it gives up.
type SyntaxError struct {
	File string
	Line int
	Err  error
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("bad config line %d in file %s: %v", e.Line, e.File, e.Err)
}

func (e *SyntaxError) Unwrap() error { return e.Err }

// The ways in which a line can be wrong.
var (
	errBOM       = errors.New("cut byte order mark")
	errLineStart = errors.New("a line begins neither with a section, a variable nor a comment")
	errSection   = errors.New("malformed section header")
	errNoSection = errors.New("section header without a name")
	errEquals    = errors.New("no '=' after the variable's name")
	errOpenQuote = errors.New("quote left open at the end of the line")
	errEscape    = errors.New("unknown escape")
)

// Parse reads a config file and hands over its entries in order, up to the first line that git
// would not read: then it returns a *SyntaxError with file and line. An error from entry ends it too,
// as it is.
//
//	# comment
//	[section]
//		variable = value ; comment
//		flag
//	[section "Sub\"section"] other = "a quoted \t value" \
//		that goes on
//
// The rules are those of git's reader: Documentation/config.adoc, "Syntax", and its odd corners: a
// section may end its line with a variable; a carriage return before a line feed is no part of
// the text; a name or value ends at a NUL, because git keeps them as C strings.
func Parse(file string, data []byte, entry func(Entry) error) error {
	p := parser{data: data, line: 1, entry: entry}
	err := p.file()
	if err == nil {
		return nil
	}
	if stop, ok := errors.AsType[*stopped](err); ok {
		return stop.err
	}
	return &SyntaxError{File: file, Line: p.line, Err: err}
}

// stopped carries an error of the caller's past the ones of the syntax.
type stopped struct{ err error }

func (s *stopped) Error() string { return s.err.Error() }

type parser struct {
	data  []byte
	pos   int
	line  int
	eof   bool
	name  []byte // "section.subsection." and, behind base, the variable
	base  int
	value []byte
	entry func(Entry) error
}

var bom = []byte("\xef\xbb\xbf")

func (p *parser) file() error {
	if bytes.HasPrefix(p.data, bom[:1]) {
		for _, b := range bom {
			if p.next() != b {
				return errBOM
			}
		}
	}
	for {
		switch c := p.next(); {
		case p.eof:
			return nil
		case isSpace(c):
		case c == '#' || c == ';':
			p.skipLine()
		case c == '[':
			if err := p.section(); err != nil {
				return err
			}
		case isAlpha(c):
			if err := p.variable(c); err != nil {
				return err
			}
		default:
			return errLineStart
		}
	}
}

// next is the next character. The end of the file reads as one more line feed, again and again.
func (p *parser) next() byte {
	if p.pos >= len(p.data) {
		p.eof = true
		p.line++
		return '\n'
	}
	c := p.data[p.pos]
	p.pos++
	if c == '\r' && p.pos < len(p.data) && p.data[p.pos] == '\n' {
		c = '\n'
		p.pos++
	}
	if c == '\n' {
		p.line++
	}
	return c
}

func (p *parser) skipLine() {
	for p.next() != '\n' {
	}
}

// section reads a header behind its bracket: [name], [name.sub] or [name "sub"].
func (p *parser) section() error {
	p.name = p.name[:0]
	for {
		c := p.next()
		switch {
		case p.eof:
			return errSection
		case c == ']':
			if len(p.name) == 0 {
				return errNoSection
			}
			p.name = append(p.name, '.')
			p.base = len(p.name)
			return nil
		case isSpace(c):
			return p.subsection(c)
		case !isKeyChar(c) && c != '.':
			return errSection
		}
		p.name = append(p.name, lower(c))
	}
}

func (p *parser) subsection(c byte) error {
	for {
		if c == '\n' {
			p.line--
			return errSection
		}
		if c = p.next(); !isSpace(c) {
			break
		}
	}
	if c != '"' {
		return errSection
	}
	p.name = append(p.name, '.')
	for {
		c := p.next()
		if c == '"' {
			break
		}
		if c == '\\' {
			c = p.next()
		}
		if c == '\n' {
			p.line--
			return errSection
		}
		p.name = append(p.name, c)
	}
	if p.next() != ']' {
		return errSection
	}
	p.name = append(p.name, '.')
	p.base = len(p.name)
	return nil
}

// variable reads a name, of which c is the first letter, and its value.
func (p *parser) variable(c byte) error {
	p.name = append(p.name[:p.base], lower(c))
	for {
		if c = p.next(); p.eof || !isKeyChar(c) {
			break
		}
		p.name = append(p.name, lower(c))
	}
	for c == ' ' || c == '\t' {
		c = p.next()
	}
	e := Entry{NoValue: c == '\n'}
	if !e.NoValue {
		if c != '=' {
			return errEquals
		}
		if err := p.readValue(); err != nil {
			return err
		}
		e.Value = string(untilNUL(p.value))
	}
	p.line-- // the line feed has been read: back to the line that it ends
	e.Line = p.line
	e.Key = string(untilNUL(p.name))
	if err := p.entry(e); err != nil {
		return &stopped{err}
	}
	p.line++
	return nil
}

// readValue reads up to the end of the line, or of the last line where lines are continued.
// White space at both ends is dropped, unless it is quoted; inside it stays as it is.
func (p *parser) readValue() error {
	p.value = p.value[:0]
	quoted, comment := false, false
	end := 0 // where the value ends, if nothing but white space follows; 0: no such place
	for {
		c := p.next()
		switch {
		case c == '\n':
			if quoted {
				p.line--
				return errOpenQuote
			}
			if end > 0 {
				p.value = p.value[:end]
			}
			return nil
		case comment:
		case isSpace(c) && !quoted:
			if end == 0 {
				end = len(p.value)
			}
			if len(p.value) > 0 {
				p.value = append(p.value, c)
			}
		case (c == '#' || c == ';') && !quoted:
			comment = true
		case c == '\\':
			end = 0
			c, more, err := unescape(p.next())
			if err != nil {
				return err
			}
			if more {
				p.value = append(p.value, c)
			}
		case c == '"':
			end = 0
			quoted = !quoted
		default:
			end = 0
			p.value = append(p.value, c)
		}
	}
}

// unescape tells what a backslash before c stands for; a line feed stands for nothing.
func unescape(c byte) (b byte, some bool, err error) {
	switch c {
	case '\n':
		return 0, false, nil
	case 't':
		return '\t', true, nil
	case 'b':
		return '\b', true, nil
	case 'n':
		return '\n', true, nil
	case '\\', '"':
		return c, true, nil
	}
	return 0, false, fmt.Errorf("%w \\%c", errEscape, c)
}

func untilNUL(b []byte) []byte {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		return b[:i]
	}
	return b
}

// isSpace is white space as git's character table has it: neither vertical tab nor form feed.
func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

func isAlpha(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func isKeyChar(c byte) bool { return isAlpha(c) || c >= '0' && c <= '9' || c == '-' }

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
