package inflate

// The order in which the lengths of the codes of code lengths are stored.
var lengthOrder = [19]uint8{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}

// readTables reads the codes of a block that brings its own:
//
//	 5 bits      5 bits    4 bits     3 bits each     as long as their codes are
//	+-----------+---------+----------+---------------+--------------------------+
//	| HLIT -257 | HDIST-1 | HCLEN -4 | HCLEN lengths | HLIT + HDIST lengths     |
//	+-----------+---------+----------+---------------+--------------------------+
//
// The lengths of the codes of both tables stand in one row, itself coded: 0 to 15 are lengths,
// 16 repeats the last one, 17 and 18 are runs of zeros.
func (z *Inflater) readTables() error {
	hlit, hdist, hclen := int(z.take(5))+257, int(z.take(5))+1, int(z.take(4))+4
	if hlit > 286 || hdist > 30 {
		return ErrCorrupt
	}
	lengths, ok := z.readLengthCodes(hclen)
	if !ok {
		return ErrCorrupt
	}
	mask := uint64(1)<<lengths.bits - 1

	lit, dist := &z.litCodes, &z.distCodes
	lit.reset()
	dist.reset()
	last, total := uint(0), hlit+hdist
	for i := 0; i < total; {
		if z.n < 7+7 {
			z.refill()
		}
		e := lengths.entries[z.buf&mask]
		if e&special != 0 {
			return ErrCorrupt
		}
		z.take(e.bits())
		symbol := uint(e >> valueShift)
		if symbol < 16 {
			last = symbol
			if symbol > 0 {
				if i < hlit {
					lit.add(i, symbol)
				} else {
					dist.add(i-hlit, symbol)
				}
			}
			i++
			continue
		}
		var run int
		switch symbol {
		case 16:
			if i == 0 {
				return ErrCorrupt
			}
			run = 3 + int(z.take(2))
		case 17:
			run, last = 3+int(z.take(3)), 0
		default:
			run, last = 11+int(z.take(7)), 0
		}
		if i+run > total {
			return ErrCorrupt
		}
		if last == 0 {
			i += run
			continue
		}
		for ; run > 0; run-- {
			if i < hlit {
				lit.add(i, last)
			} else {
				dist.add(i-hlit, last)
			}
			i++
		}
	}
	if z.lit, ok = lit.build(z.litTable[:], litEntries[:], litBits, special, special|subtable); !ok {
		return ErrCorrupt
	}
	if z.dist, ok = dist.build(z.distTable[:], distEntries[:], distBits, distSpecial, distSpecial|distSubtable); !ok {
		return ErrCorrupt
	}
	return nil
}

// readLengthCodes reads the codes of code lengths.
func (z *Inflater) readLengthCodes(count int) (table, bool) {
	var lengths [19]uint8
	for _, symbol := range lengthOrder[:count] {
		if z.n < 3 {
			z.refill()
		}
		lengths[symbol] = uint8(z.take(3))
	}
	c := &z.distCodes
	c.reset()
	for symbol, n := range lengths {
		if n > 0 {
			c.add(symbol, uint(n))
		}
	}
	return c.build(z.lengthTable[:], lengthEntries[:], maxLengthBits, special, 0)
}
