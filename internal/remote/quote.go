package remote

import (
	"errors"
	"strings"
)

var errQuote = errors.New("a quoted string that is not well formed")

// letters are the escapes of one letter, as C has them.
const letters = "a\ab\bt\tn\nv\vf\fr\r\"\"\\\\"

// Unquote reads a string in git's C-style quotes, and gives what follows it.
//
//	"text with \n, \" and \303\274"
func Unquote(quoted string) (text, rest string, err error) {
	if !strings.HasPrefix(quoted, `"`) {
		return "", "", errQuote
	}
	var b strings.Builder
	for i := 1; i < len(quoted); i++ {
		switch c := quoted[i]; c {
		case '"':
			return b.String(), quoted[i+1:], nil
		case '\\':
			i++
			if i == len(quoted) {
				return "", "", errQuote
			}
			c := quoted[i]
			if at := strings.IndexByte(letters, c); at >= 0 && at%2 == 0 {
				b.WriteByte(letters[at+1])
				continue
			}
			if i+2 >= len(quoted) || c < '0' || c > '3' || !octal(quoted[i+1]) || !octal(quoted[i+2]) {
				return "", "", errQuote
			}
			b.WriteByte((c-'0')<<6 | (quoted[i+1]-'0')<<3 | (quoted[i+2] - '0'))
			i += 2
		default:
			b.WriteByte(c)
		}
	}
	return "", "", errQuote
}

func octal(c byte) bool { return c >= '0' && c <= '7' }

// Quote puts a string into git's C-style quotes. Bytes that are no ASCII stay as they are.
func Quote(text string) string {
	b := []byte{'"'}
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch at := strings.IndexByte(letters, c); {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c >= ' ' && c != 0x7f:
			b = append(b, c)
		case at >= 0:
			b = append(b, '\\', letters[at-1])
		default:
			b = append(b, '\\', '0'+c>>6, '0'+c>>3&7, '0'+c&7)
		}
	}
	return string(append(b, '"'))
}
