package scan

import (
	"bufio"
	"bytes"
	"io"

	"refaudit/internal/refstore"
	"refaudit/oid"
)

// beside goes through info/refs beside the refs of packed-refs or of tables, since both are nearly always in the order
// of names. A line that says what the ref at hand says, and has the peel that the store caches for it, is right if
// that is: such lines are done. Whatever differs in any way is left to serverInfo.compare.
type beside struct {
	r       *bufio.Reader
	format  oid.Format
	symrefs map[string]bool // lines for them are done too

	here     bool // a line is at hand: that of a ref, with that of its peel
	line     int  // its number, from 1
	name     []byte
	id, peel [oid.MaxSize]byte
	peeled   bool

	read int      // lines read so far
	left int      // of these: not done
	end  bool     // the last line has been read, and all made sense
	done []uint64 // a bit a line
}

func newBeside(f oid.Format, r *bufio.Reader, symrefs map[string]bool) *beside {
	b := &beside{r: r, format: f, symrefs: symrefs}
	b.next()
	return b
}

// next goes to the next line of a ref. At one that makes no sense it ends.
func (b *beside) next() {
	for b.step() && b.symrefs[string(b.name)] {
		b.finish()
	}
}

func (b *beside) step() bool {
	b.here = false
	text, err := b.r.ReadSlice('\n')
	if err != nil {
		b.end = err == io.EOF && len(text) == 0
		return false
	}
	digits := b.format.HexLen()
	b.line = b.read + 1
	b.read++
	if len(text) < digits+3 || text[digits] != '\t' || !oid.DecodeHex(b.id[:b.format.Size()], text[:digits]) || bytes.HasSuffix(text, peelEnd) {
		b.left++
		return false
	}
	b.name = append(b.name[:0], text[digits+1:len(text)-1]...)
	width := len(text) + len(peelSuffix)
	below, _ := b.r.Peek(width)
	b.peeled = len(below) == width && below[digits] == '\t' && bytes.Equal(below[digits+1:width-len(peelEnd)], b.name) && bytes.HasSuffix(below, peelEnd) &&
		oid.DecodeHex(b.peel[:b.format.Size()], below[:digits])
	if b.peeled {
		b.r.Discard(width)
		b.read++
	}
	b.here = true
	return true
}

var peelEnd = []byte("^{}\n")

// take gives the number of the line that is done with a ref; 0: none.
func (b *beside) take(r *refstore.Ref) (line int) {
	for b.here {
		switch c := bytes.Compare(b.name, r.Name); {
		case c < 0:
			b.leave()
			continue
		case c > 0:
			return 0
		}
		size := b.format.Size()
		if !bytes.Equal(b.id[:size], r.OID) || b.peeled != (r.Peel != nil) || b.peeled && !bytes.Equal(b.peel[:size], r.Peel) {
			b.leave()
			return 0
		}
		line = b.line
		b.finish()
		b.next()
		return line
	}
	return 0
}

// passSymref takes the line for a symref, if it is at hand.
func (b *beside) passSymref(name []byte) {
	if b.here && bytes.Equal(b.name, name) {
		b.finish()
		b.next()
	}
}

// finish notes that the line at hand, and that of its peel, are done.
func (b *beside) finish() {
	for n := b.line; n <= b.read; n++ {
		for n/64 >= len(b.done) {
			b.done = append(b.done, 0)
		}
		b.done[n/64] |= 1 << (n % 64)
	}
}

// leave goes on from a line that is not done.
func (b *beside) leave() {
	b.left += b.read - b.line + 1
	b.next()
}

// undo takes back that a line is done.
func (b *beside) undo(line int) {
	b.left++
	b.done[line/64] &^= 1 << (line % 64)
}

func (b *beside) isDone(line int) bool {
	return line/64 < len(b.done) && b.done[line/64]&(1<<(line%64)) != 0
}

// complete tells whether every line of the file is done.
func (b *beside) complete() bool { return b.end && b.left == 0 }
