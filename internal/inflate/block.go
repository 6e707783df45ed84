package inflate

import "encoding/binary"

// block inflates the symbols of one block, up to its end mark. The bit buffer lives in local
// variables here: this is where large objects spend their time.
func (z *Inflater) block(dst []byte, out int) (int, error) {
	lit, litMask := z.lit.entries, uint64(1)<<(z.lit.bits&63)-1
	dist, distMask := z.dist.entries, uint64(1)<<(z.dist.bits&63)-1
	src, pos, buf, n := z.src, z.pos, z.buf, z.n
	var err error
	for {
		if pos+8 <= len(src) { // as in refill; a length and a distance take at most 15+5+15+13 bits
			buf |= binary.LittleEndian.Uint64(src[pos:]) << (n & 63)
			pos += int((63 - n) >> 3)
			n |= 56
		} else {
			z.pos, z.buf, z.n = pos, buf, n
			z.refill()
			pos, buf, n = z.pos, z.buf, z.n
		}
		e := lit[buf&litMask]
		if e&special != 0 && e&subtable != 0 {
			buf >>= e.bits()
			n -= e.bits()
			e = lit[uint64(e>>valueShift&subtableMask)+buf&(1<<e.extra()-1)]
		}
		if e&literal != 0 {
			buf >>= e.bits()
			n -= e.bits()
			if out >= len(dst) {
				err = ErrLonger
				break
			}
			dst[out] = byte(e >> valueShift)
			out++
			// what is left is enough for two more, unless they have long codes
			if e = lit[buf&litMask]; e&literal == 0 || out >= len(dst) {
				continue
			}
			dst[out] = byte(e >> valueShift)
			out++
			buf >>= e.bits()
			n -= e.bits()
			if e = lit[buf&litMask]; e&literal == 0 || out >= len(dst) {
				continue
			}
			dst[out] = byte(e >> valueShift)
			out++
			buf >>= e.bits()
			n -= e.bits()
			continue
		}
		buf >>= e.bits()
		n -= e.bits()
		if e&special != 0 {
			if e&blockEnd == 0 {
				err = ErrCorrupt
			}
			break
		}
		length := int(e>>valueShift&lengthMask) + int(buf&(1<<e.extra()-1))
		buf >>= e.extra()
		n -= e.extra()

		d := dist[buf&distMask]
		if d&distSpecial != 0 {
			if d&distSubtable != 0 {
				buf >>= d.bits()
				n -= d.bits()
				d = dist[uint64(d>>valueShift)+buf&(1<<d.extra()-1)]
			}
			if d&distSpecial != 0 {
				err = ErrCorrupt
				break
			}
		}
		buf >>= d.bits()
		n -= d.bits()
		back := int(d>>valueShift) + int(buf&(1<<d.extra()-1))
		buf >>= d.extra()
		n -= d.extra()
		if back > out {
			err = ErrCorrupt
			break
		}
		from, end := out-back, min(out+length, len(dst))
		for out < end { // what overlaps repeats itself
			out += copy(dst[out:end], dst[from:out])
		}
		if end-from < length+back {
			err = ErrLonger
			break
		}
	}
	z.pos, z.buf, z.n = pos, buf, n
	return out, err
}
