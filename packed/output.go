package packed

import (
	"bytes"
	"errors"
	"fmt"
	"hash/maphash"
	"io"

	"refaudit/oid"
)

// gather is how much is gathered before it is written; a run that is larger is written by itself.
const gather = 128 << 10

// An output writes what Rewrite makes, and reads it back on its way.
type output struct {
	w      io.Writer
	buf    []byte
	last   byte // written or gathered last
	size   int64
	writes int
	proof  proof
}

func newOutput(w io.Writer, f oid.Format, seed maphash.Seed) *output {
	return &output{w: w, last: '\n', proof: proof{digits: f.HexLen(), found: digest{seed: seed}}}
}

// write takes bytes that may be overwritten once it has returned.
func (o *output) write(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	o.last = b[len(b)-1]
	if len(o.buf)+len(b) > gather {
		if err := o.flush(); err != nil {
			return err
		}
		if len(b) >= gather/2 {
			return o.put(b)
		}
	}
	o.buf = append(o.buf, b...)
	return nil
}

// endLine writes a newline where the last one is missing.
func (o *output) endLine() error {
	if o.last == '\n' {
		return nil
	}
	return o.write([]byte{'\n'})
}

func (o *output) flush() error {
	b := o.buf
	o.buf = o.buf[:0]
	if len(b) == 0 {
		return nil
	}
	return o.put(b)
}

func (o *output) put(b []byte) error {
	proved := make(chan struct{})
	go func() {
		o.proof.read(b)
		close(proved)
	}()
	n, err := o.w.Write(b)
	<-proved
	o.size += int64(n)
	o.writes++
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	return err
}

func (o *output) finish() error {
	if err := o.flush(); err != nil {
		return err
	}
	o.proof.end()
	return nil
}

// A digest stands for a set of lines, whatever their order: the sum of their hashes.
type digest struct {
	seed maphash.Seed
	sum  uint64
	n    int
}

func newDigest() digest { return digest{seed: maphash.MakeSeed()} }

func (d *digest) add(line []byte) {
	d.sum += maphash.Bytes(d.seed, line)
	d.n++
}

// A proof reads what is written, knowing nothing of how it came about.
type proof struct {
	digits       int
	claimsSorted bool
	found        digest // of the ref lines
	lines        int
	afterRef     bool   // the line before is a ref: a ^ line may follow
	rest         []byte // a line of which not all has come
	prev         []byte // name of the ref before
	unsorted     int    // line of a name that is not greater than the one before; 0: none
	stray        int    // line that may not stand where it does; 0: none
}

func (p *proof) read(b []byte) {
	if len(p.rest) > 0 {
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			p.rest = append(p.rest, b...)
			return
		}
		p.line(append(p.rest, b[:i]...))
		p.rest, b = nil, b[i+1:]
	}
	for {
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			break
		}
		p.line(b[:i])
		b = b[i+1:]
	}
	p.rest = append(p.rest, b...)
	p.prev = bytes.Clone(p.prev) // b is not ours
}

func (p *proof) line(line []byte) {
	p.lines++
	first := byte(0)
	if len(line) > 0 {
		first = line[0]
	}
	switch {
	case first == '#' && p.lines == 1:
	case first == '^' && p.afterRef && len(line) == p.digits+1:
		p.afterRef = false
	case first == '#', first == '^', len(line) <= p.digits+1:
		p.note(&p.stray)
	default:
		name := line[p.digits+1:]
		if p.found.n > 0 && bytes.Compare(p.prev, name) >= 0 {
			p.note(&p.unsorted)
		}
		p.found.add(line)
		p.prev, p.afterRef = name, true
	}
}

func (p *proof) note(where *int) {
	if *where == 0 {
		*where = p.lines
	}
}

// end is told that nothing more comes.
func (p *proof) end() {
	if len(p.rest) > 0 {
		p.lines++
		p.note(&p.stray)
	}
}

var errProof = errors.New("what was written is not what was read")

// holds compares what was written with what had to be.
func (p *proof) holds(want *digest) error {
	switch {
	case p.claimsSorted && p.unsorted != 0:
		return fmt.Errorf("line %d of the new file: %w", p.unsorted, ErrUnsorted)
	case p.stray != 0:
		return fmt.Errorf("line %d of the new file: %w", p.stray, errProof)
	case p.found.n != want.n || p.found.sum != want.sum:
		return fmt.Errorf("%d refs were written, %d are to stay, or their values differ: %w", p.found.n, want.n, errProof)
	}
	return nil
}
