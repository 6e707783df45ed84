package inflate

import "math/bits"

// An entry tells what the bits that lead to it mean.
//
//	 31      30      29       28..16             11..8        7..0
//	+-------+-------+--------+------------------+------------+-------------+
//	| liter | speci | subtab | value            | extra bits | bits to use |  of literals and lengths
//	+-------+-------+--------+------------------+------------+-------------+
//
// The value is a literal, the base of a length, or where a subtable begins (the extra bits are
// then its width). Distances need all of 31..16 for their base, and have their flags in 13..12.
type entry uint32

const (
	literal      entry = 1 << 31
	special      entry = 1 << 30 // end of block, subtable, or no code at all
	subtable     entry = 1 << 29
	blockEnd     entry = 1 << 16 // with special, without subtable
	distSpecial  entry = 1 << 13
	distSubtable entry = 1 << 12

	valueShift   = 16
	extraShift   = 8
	lengthMask   = 1<<9 - 1
	subtableMask = 1<<13 - 1
)

func (e entry) bits() uint  { return uint(e&0x1f) & 63 }
func (e entry) extra() uint { return uint(e>>extraShift&0xf) & 63 }

// A table is looked up by the next bits of the stream. Codes longer than its width go on in subtables.
type table struct {
	entries []entry
	bits    uint
}

const (
	maxBits  = 15
	litBits  = 10 // widest first table
	distBits = 9
	// of the code of code lengths
	maxLengthBits = 7

	// Room for the first table and any subtables: each of the symbols that is longer than the
	// first table is wide can at worst begin a subtable that is half empty.
	litSpace  = 1<<litBits + 288*2
	distSpace = 1<<distBits + 32*2*8
)

// litEntries and distEntries are what each symbol means, without the bits of its code.
var (
	litEntries    [288]entry
	distEntries   [32]entry
	lengthEntries [19]entry
)

// The codes of blocks that bring none along.
var fixedLit, fixedDist table

func init() {
	for i := range 256 {
		litEntries[i] = literal | entry(i)<<valueShift
	}
	litEntries[256] = special | blockEnd
	base := 3
	for i := range 28 {
		extra := max(i/4-1, 0)
		litEntries[257+i] = entry(base)<<valueShift | entry(extra)<<extraShift
		base += 1 << extra
	}
	litEntries[285] = 258 << valueShift
	litEntries[286], litEntries[287] = special, special
	base = 1
	for i := range 30 {
		extra := max(i/2-1, 0)
		distEntries[i] = entry(base)<<valueShift | entry(extra)<<extraShift
		base += 1 << extra
	}
	distEntries[30], distEntries[31] = distSpecial, distSpecial
	for i := range lengthEntries {
		lengthEntries[i] = entry(i) << valueShift
	}

	var c codes
	for i := range 288 {
		switch {
		case i < 144:
			c.add(i, 8)
		case i < 256:
			c.add(i, 9)
		case i < 280:
			c.add(i, 7)
		default:
			c.add(i, 8)
		}
	}
	fixedLit, _ = c.build(make([]entry, 1<<9), litEntries[:], litBits, special, special|subtable)
	c = codes{}
	for i := range 32 {
		c.add(i, 5)
	}
	fixedDist, _ = c.build(make([]entry, 1<<5), distEntries[:], distBits, distSpecial, distSpecial|distSubtable)
}

// codes collects the symbols that have a code, and builds the table that decodes them.
type codes struct {
	count  [maxBits + 1]uint16 // symbols by the length of their code
	used   int
	symbol [288]uint16 // symbol<<4 | length, in the order of the symbols
	sorted [288]uint16 // by length
}

func (c *codes) add(symbol int, length uint) {
	c.symbol[c.used] = uint16(symbol)<<4 | uint16(length)
	c.count[length]++
	c.used++
}

func (c *codes) reset() {
	c.count = [maxBits + 1]uint16{}
	c.used = 0
}

// build makes the table in space. It is false for lengths that are no prefix code: too many, or
// too few, except for no code at all and for one code of one bit.
func (c *codes) build(space, meaning []entry, width uint, none, sub entry) (table, bool) {
	longest := uint(maxBits)
	for longest > 0 && c.count[longest] == 0 {
		longest--
	}
	if longest == 0 {
		space[0] = none | 1
		return table{space, 0}, true
	}
	left := 1
	for n := uint(1); n <= longest; n++ {
		left = left<<1 - int(c.count[n])
		if left < 0 {
			return table{}, false
		}
	}
	if left > 0 {
		if longest != 1 {
			return table{}, false
		}
		space[0] = meaning[c.symbol[0]>>4] | 1
		space[1] = none | 1
		return table{space, 1}, true
	}
	c.sort(longest)
	width = min(width, longest)
	c.fill(space, meaning, width, longest, sub)
	return table{space, width}, true
}

// sort orders the symbols by the length of their codes.
func (c *codes) sort(longest uint) {
	var next [maxBits + 1]uint16
	at := uint16(0)
	for n := uint(1); n <= longest; n++ {
		next[n] = at
		at += c.count[n]
	}
	for _, s := range c.symbol[:c.used] {
		n := s & 0xf
		c.sorted[next[n]] = s >> 4
		next[n]++
	}
}

// fill writes the entries. Codes stand in the stream with their highest bit first, so they are
// counted up from that end. A table for codes of up to n bits, doubled, is one for n+1 bits.
func (c *codes) fill(space, meaning []entry, width, longest uint, sub entry) {
	code, symbols := uint32(0), c.sorted[:c.used]
	for n := uint(1); n <= width; n++ {
		half := 1 << (n - 1)
		if n > 1 {
			copy(space[half:2*half], space[:half])
		}
		for range c.count[n] {
			space[code] = meaning[symbols[0]] | entry(n)
			symbols = symbols[1:]
			code = following(code, n)
		}
	}
	end := 1 << width // where the next subtable begins
	prefix, bits := uint32(1)<<width, uint(0)
	start := 0
	for n := width + 1; n <= longest; n++ {
		for left := c.count[n]; left > 0; left-- {
			if p := code & (1<<width - 1); p != prefix {
				prefix, start, bits = p, end, c.subtableBits(n-width, width, int(left))
				end += 1 << bits
				space[p] = sub | entry(start)<<valueShift | entry(bits)<<extraShift | entry(width)
			}
			e := meaning[symbols[0]] | entry(n-width)
			symbols = symbols[1:]
			for i := code >> width; i < 1<<bits; i += 1 << (n - width) {
				space[start+int(i)] = e
			}
			code = following(code, n)
		}
	}
}

// subtableBits is how wide a subtable must be that begins with codes of width+n bits, left of which remain.
func (c *codes) subtableBits(n, width uint, left int) uint {
	for left < 1<<n {
		n++
		left = left<<1 + int(c.count[width+n])
	}
	return n
}

// following is the code of n bits after this one, both with the first bit lowest.
func following(code uint32, n uint) uint32 {
	open := code ^ (1<<n - 1) // the bits that are not set
	if open == 0 {
		return code // the last one
	}
	bit := uint32(1) << (bits.Len32(open) - 1)
	return code&(bit-1) | bit
}
