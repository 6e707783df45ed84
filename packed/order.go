package packed

import "bytes"

// An order watches whether keys rise strictly.
type order struct {
	prev []byte
	line int // of prev; 0: there was no key yet

	fell  int // line of the first key that is less than the one before; 0: none
	first int // line of the first of those equal to prev

	// the first key that is not greater than the one before; broken is 0 if there is none
	broken              int
	brokenAt, brokenLen int64
	names               [2][]byte // the key before, and the key
}

// add compares a key, on a line at off, with the one before: below 0 if it is greater, as it should be.
func (o *order) add(key []byte, line int, off, length int64) int {
	c := -1
	if o.line != 0 {
		c = bytes.Compare(o.prev, key)
	}
	if c != 0 {
		o.first = line
	}
	if c >= 0 && o.broken == 0 {
		o.broken, o.brokenAt, o.brokenLen = line, off, length
		o.names = [2][]byte{bytes.Clone(o.prev), bytes.Clone(key)}
	}
	if c > 0 && o.fell == 0 {
		o.fell = line
	}
	o.prev, o.line = key, line
	return c
}

// keep makes a copy of the last key, whose bytes are about to be overwritten.
func (o *order) keep() { o.prev = bytes.Clone(o.prev) }

// clone is an order that goes on from here by itself.
func (o *order) clone() *order {
	c := *o
	c.keep()
	return &c
}
