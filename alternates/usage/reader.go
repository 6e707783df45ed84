package usage

import (
	"bytes"
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"sync"

	"refaudit/internal/delta"
	"refaudit/internal/inflate"
	"refaudit/odb"
	"refaudit/oid"
)

// reader inflates objects of a space. What it has made it keeps in a ring, the oldest is written
// over: objects read in pack order find their bases there. It is for one goroutine.
type reader struct {
	sp     *space
	z      inflate.Inflater
	ring   []byte
	head   uint64 // bytes that were ever put into the ring
	began  uint64 // of these, before the reader was taken
	most   int    // what the ring may grow to
	lost   int    // objects that were written over and wanted once more
	slots  []slot // by the low bits of the number
	marks  marks
	big    [4]bigObject
	turn   int
	delta  []byte
	spare  []byte // a base that would be written over
	way    []step
	copies []delta.Copied
}

// slot tells where in the ring an object is.
type slot struct {
	v     uint32
	size  uint32
	start uint64 // bytes that were in the ring before it; valid while not written over
	kind  oid.Kind
	marks markSpan // of a tree that was parsed: where its entries begin
}

// object is what lies under a number. Of a delta it tells what it is a delta of, and what is the base's.
type object struct {
	kind     oid.Kind
	data     []byte
	isDelta  bool
	base     uint32
	baseData []byte
	copies   []delta.Copied
}

// piece is an object's content, and where in the ring it begins; outside, if it is not there.
type piece struct {
	data  []byte
	start uint64
}

const outside = ^uint64(0)

// bigObject is one too large for the ring.
type bigObject struct {
	v    uint32
	kind oid.Kind
	data []byte
}

// step is one object on the way from a delta to what is stored whole.
type step struct {
	v uint32
	e odb.Entry
}

const (
	// The ring is as small as will do: it lies in the processor's caches then, and each new page of it
	// is a page fault. It doubles when so many objects had to be made twice.
	ringLeast, ringMost = 4 << 20, 16 << 20
	growAfter           = 1 << 10
	slotBytes           = 1 << 9 // of the ring for a slot
	// an object of more than an eighth of the ring doesn't go into it
	ringPart = 8
	// sizeLimit is the largest tree, commit or tag that is read, workLimit how much the deltas on the
	// way to one object may make together.
	sizeLimit = 256 << 20
	workLimit = 1 << 30
)

var (
	errLarge  = errors.New("is larger than the limit")
	errCycle  = errors.New("its deltas lead back to where they came from")
	errNoBase = errors.New("the base of its delta is not in the pack")
)

// readers are those that nobody uses.
var readers = sync.Pool{New: func() any { return newReader(ringLeast, ringMost) }}

// newReader makes a reader with a ring of some size, which may double up to most.
func newReader(size, most int) *reader {
	r := &reader{most: most}
	r.setRing(size)
	return r
}

// setRing forgets everything.
func (r *reader) setRing(size int) {
	r.ring, r.marks, r.lost = make([]byte, size), marks{ring: make([]uint32, size/16)}, 0
	r.slots = make([]slot, 1<<(bits.Len(uint(max(size, ringLeast)/slotBytes))-1))
}

// takeReader is a reader that remembers nothing.
func takeReader(sp *space) *reader {
	r := readers.Get().(*reader)
	r.sp = sp
	// From the start of the ring again, which is memory that was touched before, and so far on that
	// whatever the slots name is too old.
	r.head += 2*uint64(len(r.ring)) - r.head%uint64(len(r.ring))
	r.began, r.lost = r.head, 0
	r.marks.restart()
	clear(r.big[:])
	return r
}

// object reads what lies under a number. Its slices are valid until the next call.
func (r *reader) object(v uint32) (o object, err error) {
	if r.lost >= growAfter && len(r.ring) < r.most {
		r.setRing(2 * len(r.ring))
	}
	si := r.sp.storeOf(v)
	s, first := r.sp.stores[si], r.sp.first[si]
	p, pos := s.packOf(v - first)
	if p == nil {
		o.kind, o.data, err = r.loose(s, s.loose[pos].id)
		return o, err
	}
	if err := r.findWay(p, first+p.first, v); err != nil {
		return o, err
	}
	last := len(r.way) - 1
	at := r.way[last]
	kind, made, ok := r.kept(at.v)
	if !ok {
		kind = at.e.Kind.Kind()
		if made, err = r.whole(p, at); err != nil {
			return o, r.wrong(p, at.v, err)
		}
		r.keep(at.v, kind, made)
	}
	work := uint64(len(made.data))
	for i := last - 1; i >= 0; i-- {
		o.isDelta, o.base = true, r.way[i+1].v
		if made, err = r.apply(p, r.way[i], made, &work, &o); err != nil {
			return o, r.wrong(p, r.way[i].v, err)
		}
		r.keep(r.way[i].v, kind, made)
	}
	o.kind, o.data = kind, made.data
	return o, nil
}

// findWay fills way with the deltas from v on, up to one that is kept or stored whole. first is the
// number of the pack's first object.
func (r *reader) findWay(p *pack, first, v uint32) error {
	r.way = r.way[:0]
	for {
		at := step{v: v}
		if _, _, ok := r.kept(v); ok {
			r.way = append(r.way, at)
			return nil
		}
		var err error
		if at.e, err = p.src.Entry(p.offset(v - first)); err != nil {
			return err
		}
		r.way = append(r.way, at)
		if !at.e.Kind.IsDelta() {
			return nil
		}
		if len(r.way) > len(p.index) {
			return r.wrong(p, v, errCycle)
		}
		pos, ok := p.base(&at.e, v-first, r.sp.format)
		if !ok {
			return r.wrong(p, v, errNoBase)
		}
		v = first + pos
	}
}

// base is the position of the base of a delta at position pos.
func (p *pack) base(e *odb.Entry, pos uint32, format oid.Format) (uint32, bool) {
	if e.Kind == odb.OfsDelta {
		return p.findBelow(e.Base, pos)
	}
	id := oid.FromBytes(format, p.body[e.Ref:])
	i, ok := p.x.Find(&id)
	if !ok {
		return 0, false
	}
	return p.pos[i], true
}

// whole inflates what an entry holds.
func (r *reader) whole(p *pack, at step) (piece, error) {
	src := p.body[at.e.Data:]
	if err := plausible(at.e.Size, len(src)); err != nil {
		return piece{}, err
	}
	made := r.reserve(int(at.e.Size))
	_, err := r.z.InflateChecked(made.data, src)
	return made, err
}

// apply makes the object of a delta from its base, which may have to move, and tells o of it.
func (r *reader) apply(p *pack, at step, base piece, work *uint64, o *object) (made piece, err error) {
	src := p.body[at.e.Data:]
	if err := plausible(at.e.Size, len(src)); err != nil {
		return made, err
	}
	if uint64(cap(r.delta)) < at.e.Size {
		r.delta = make([]byte, max(at.e.Size, 4096))
	}
	text := r.delta[:at.e.Size]
	if _, err := r.z.InflateChecked(text, src); err != nil {
		return made, err
	}
	from, to, code, err := delta.Sizes(text)
	switch {
	case err != nil:
		return made, err
	case from != uint64(len(base.data)):
		return made, fmt.Errorf("its delta is for a base of %d bytes, not %d", from, len(base.data))
	case to > sizeLimit:
		return made, fmt.Errorf("%d bytes: %w", to, errLarge)
	}
	if *work += to; *work > workLimit {
		return made, fmt.Errorf("deltas that make %d bytes: %w", *work, errLarge)
	}
	if base.start != outside && base.start+uint64(len(r.ring)) < r.head+2*r.largest() { // it may be written over
		r.spare = append(r.spare[:0], base.data...)
		base.data = r.spare
	}
	made = r.reserve(int(to))
	o.baseData = base.data
	r.copies = r.copies[:0]
	err = delta.Apply(made.data, base.data, code, &r.copies)
	o.copies = r.copies
	return made, err
}

// plausible refuses a size that no zlib stream of so many bytes can have, before room is made for it.
func plausible(size uint64, src int) error {
	if size > sizeLimit {
		return fmt.Errorf("%d bytes: %w", size, errLarge)
	}
	if size/1032 > uint64(src) {
		return fmt.Errorf("claims %d bytes, more than %d compressed ones can hold", size, src)
	}
	return nil
}

// largest is the size of the largest object that goes into the ring.
func (r *reader) largest() uint64 { return uint64(len(r.ring)) / ringPart }

// reserve is room for an object of n bytes.
func (r *reader) reserve(n int) piece {
	if uint64(n) > r.largest() {
		return piece{data: make([]byte, n), start: outside}
	}
	at := int(r.head % uint64(len(r.ring)))
	if at+n > len(r.ring) {
		r.head += uint64(len(r.ring) - at)
		at = 0
	}
	start := r.head
	r.head += uint64(n)
	return piece{data: r.ring[at : at+n : at+n], start: start}
}

// kept is an object that was made before and not written over since.
func (r *reader) kept(v uint32) (oid.Kind, piece, bool) {
	if s := r.slot(v); s.kind != 0 && s.v == v {
		if r.head-s.start <= uint64(len(r.ring)) {
			at := s.start % uint64(len(r.ring))
			return s.kind, piece{data: r.ring[at : at+uint64(s.size)], start: s.start}, true
		}
		if s.start >= r.began {
			r.lost++
		}
	}
	for i := range r.big {
		if b := &r.big[i]; b.kind != 0 && b.v == v {
			return b.kind, piece{data: b.data, start: outside}, true
		}
	}
	return 0, piece{}, false
}

// slot is where a number's object would be noted.
func (r *reader) slot(v uint32) *slot { return &r.slots[v&uint32(len(r.slots)-1)] }

// keep remembers an object.
func (r *reader) keep(v uint32, kind oid.Kind, made piece) {
	if made.start == outside {
		r.big[r.turn%len(r.big)] = bigObject{v: v, kind: kind, data: made.data}
		r.turn++
		return
	}
	*r.slot(v) = slot{v: v, size: uint32(len(made.data)), start: made.start, kind: kind}
}

// elsewhere is object for another copy of what could not be read under v.
func (r *reader) elsewhere(v uint32, why error) (object, error) {
	for _, other := range r.sp.copiesOf(v) {
		if o, err := r.object(other); err == nil {
			return o, nil
		}
	}
	return object{}, why
}

// read is object, or another copy of it.
func (r *reader) read(v uint32) (object, error) {
	o, err := r.object(v)
	if err != nil {
		return r.elsewhere(v, err)
	}
	return o, nil
}

func (r *reader) wrong(p *pack, v uint32, err error) error {
	return fmt.Errorf("object %v in %s: %w", r.sp.id(v), p.src.Name(), err)
}

// loose reads a loose object.
func (r *reader) loose(s *store, id oid.ID) (oid.Kind, []byte, error) {
	hex := id.String()
	file, err := s.src.Dir().ReadFile(hex[:2]+"/"+hex[2:], sizeLimit)
	if err != nil {
		return 0, nil, err
	}
	fail := func(err error) (oid.Kind, []byte, error) {
		return 0, nil, fmt.Errorf("%s%s/%s: %w", s.label, hex[:2], hex[2:], err)
	}
	var head [32]byte
	n, err := r.z.Prefix(head[:], file)
	if err != nil {
		return fail(err)
	}
	word, rest, _ := bytes.Cut(head[:n], []byte(" "))
	digits, _, ok := bytes.Cut(rest, []byte("\x00"))
	kind, known := oid.ParseKind(word)
	size, err := strconv.ParseUint(string(digits), 10, 63)
	if !ok || !known || err != nil {
		return fail(fmt.Errorf("header %q", head[:n]))
	}
	skip := len(word) + 1 + len(digits) + 1
	if err := plausible(size, len(file)); err != nil {
		return fail(err)
	}
	data := make([]byte, skip+int(size))
	if _, err := r.z.InflateChecked(data, file); err != nil {
		return fail(err)
	}
	return kind, data[skip:], nil
}
