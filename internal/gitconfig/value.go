package gitconfig

import (
	"errors"
	"math"
	"strings"
)

// The ways in which a value is no number.
var (
	ErrUnit  = errors.New("invalid unit")
	ErrRange = errors.New("out of range")
)

// ParseBool reads a boolean: true, yes, on, false, no, off in any case, "" for false, or a number
// that is 0 or not. ok tells whether it is one of these. (A variable without "=" is true: NoValue.)
func ParseBool(text string) (value, ok bool) {
	switch asciiLower(text) {
	case "true", "yes", "on":
		return true, true
	case "false", "no", "off", "":
		return false, true
	}
	n, err := ParseInt(text, math.MaxInt32)
	return n != 0, err == nil
}

// ParseInt reads a whole number between -max-1 and max: decimal, 0x… or 0… for octal, white space
// before it and a unit of k, m or g behind it (1024, 1024², 1024³).
func ParseInt(text string, max int64) (int64, error) {
	digits, negative, base := numberPrefix(text)
	var n uint64
	used := 0
	for used < len(digits) {
		d := digitValue(digits[used])
		if d >= base {
			break
		}
		if n > (math.MaxUint64-d)/base {
			return 0, ErrRange
		}
		n = n*base + d
		used++
	}
	if used == 0 {
		return 0, ErrUnit
	}
	if n > 1<<63-1 && !(negative && n == 1<<63) {
		return 0, ErrRange
	}
	factor, ok := unit(digits[used:])
	if !ok {
		return 0, ErrUnit
	}
	limit := uint64(max)
	if negative {
		limit++
	}
	if n > limit/factor {
		return 0, ErrRange
	}
	if n *= factor; negative {
		return -int64(n), nil // also where n is 1<<63: it is its own negative
	}
	return int64(n), nil
}

// numberPrefix passes over white space, sign and base, as strtoimax does. A leading 0 stays: it is
// a digit too, and of "0x" with no digit behind it the number is that 0.
func numberPrefix(text string) (digits string, negative bool, base uint64) {
	text = strings.TrimLeft(text, " \t\n\v\f\r")
	if text != "" && (text[0] == '-' || text[0] == '+') {
		negative = text[0] == '-'
		text = text[1:]
	}
	switch {
	case len(text) > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X') && digitValue(text[2]) < 16:
		return text[2:], negative, 16
	case text != "" && text[0] == '0':
		return text, negative, 8
	}
	return text, negative, 10
}

func digitValue(c byte) uint64 {
	switch {
	case c >= '0' && c <= '9':
		return uint64(c - '0')
	case lower(c) >= 'a' && lower(c) <= 'f':
		return uint64(lower(c)-'a') + 10
	}
	return math.MaxUint64
}

func unit(text string) (factor uint64, ok bool) {
	switch text {
	case "":
		return 1, true
	case "k", "K":
		return 1 << 10, true
	case "m", "M":
		return 1 << 20, true
	case "g", "G":
		return 1 << 30, true
	}
	return 0, false
}
