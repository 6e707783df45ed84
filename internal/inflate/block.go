package inflate

// block inflates the symbols of one block, up to its end mark.
func (z *Inflater) block(dst []byte, out int) (int, error) {
	lit, litMask := z.lit.entries, uint64(1)<<z.lit.bits-1
	dist, distMask := z.dist.entries, uint64(1)<<z.dist.bits-1
	for {
		z.refill() // a length and a distance take at most 15+5+15+13 bits
		e := lit[z.buf&litMask]
		for i := 0; e&literal != 0; i++ {
			z.take(e.bits())
			if out >= len(dst) {
				return out, ErrLonger
			}
			dst[out] = byte(e >> valueShift)
			out++
			if i == 2 { // the next one may need more than is ready
				z.refill()
				i = -1
			}
			e = lit[z.buf&litMask]
		}
		z.refill()
		if e&special != 0 {
			if e&subtable != 0 {
				z.take(e.bits())
				e = lit[uint64(e>>valueShift&subtableMask)+z.buf&(1<<e.extra()-1)]
			}
			switch {
			case e&literal != 0:
				z.take(e.bits())
				if out >= len(dst) {
					return out, ErrLonger
				}
				dst[out] = byte(e >> valueShift)
				out++
				continue
			case e&special != 0:
				z.take(e.bits())
				if e&blockEnd != 0 {
					return out, nil
				}
				return out, ErrCorrupt
			}
		}
		z.take(e.bits())
		length := int(e>>valueShift&lengthMask) + int(z.take(e.extra()))

		d := dist[z.buf&distMask]
		if d&distSpecial != 0 {
			if d&distSubtable != 0 {
				z.take(d.bits())
				d = dist[uint64(d>>valueShift)+z.buf&(1<<d.extra()-1)]
			}
			if d&distSpecial != 0 {
				return out, ErrCorrupt
			}
		}
		z.take(d.bits())
		back := int(d>>valueShift) + int(z.take(d.extra()))
		if back > out {
			return out, ErrCorrupt
		}
		end := min(out+length, len(dst))
		from := out - back
		for out < end { // what overlaps repeats itself
			out += copy(dst[out:end], dst[from:out])
		}
		if end-from < length+back {
			return out, ErrLonger
		}
	}
}
