package gitconfig

import (
	"errors"
	"strings"
)

var errParameters = errors.New("bogus format")

// ParseParameters reads the form in which git hands -c settings to its children, in
// GIT_CONFIG_PARAMETERS: quoted for a shell, separated by white space, each either
// 'key=value' or 'key'='value', with the = left out for a variable without a value.
func ParseParameters(text string, entry func(Entry) error) error {
	for text != "" {
		word, rest, ok := dequote(text)
		if !ok {
			return errParameters
		}
		var e Entry
		switch {
		case rest == "" || isSpace(rest[0]): // the old form
			var found bool
			e.Key, e.Value, found = strings.Cut(word, "=")
			e.NoValue = !found
		case rest[0] == '=':
			e.Key, rest = word, rest[1:]
			switch {
			case rest == "" || isSpace(rest[0]):
				e.NoValue = true
			case rest[0] == '\'':
				if e.Value, rest, ok = dequote(rest); !ok || rest != "" && !isSpace(rest[0]) {
					return errParameters
				}
			default:
				return errParameters
			}
		default:
			return errParameters
		}
		key, err := CanonicalKey(e.Key)
		if err != nil {
			return err
		}
		e.Key = key
		if err := entry(e); err != nil {
			return err
		}
		for rest != "" && isSpace(rest[0]) {
			rest = rest[1:]
		}
		text = rest
	}
	return nil
}

// dequote takes one shell word, made of '…' pieces and \' or \! between them, off text.
func dequote(text string) (word, rest string, ok bool) {
	if text == "" || text[0] != '\'' {
		return "", "", false
	}
	var b strings.Builder
	for {
		end := strings.IndexByte(text[1:], '\'')
		if end < 0 {
			return "", "", false
		}
		b.WriteString(text[1 : 1+end])
		text = text[2+end:]
		if len(text) < 3 || text[0] != '\\' || text[1] != '\'' && text[1] != '!' || text[2] != '\'' {
			return b.String(), text, true
		}
		b.WriteByte(text[1])
		text = text[2:]
	}
}
