package odb

import (
	"fmt"

	"refaudit/internal/delta"
	"refaudit/internal/inflate"
	"refaudit/internal/vfs"
	"refaudit/oid"
)

// A Reader makes whole objects out of packs, deltas applied. It keeps the bases that it met, so that
// objects read in pack order have each base inflated once. It is not safe for concurrent use.
type Reader struct {
	limit uint64 // of one buffer
	bases baseCache
	z     inflate.Inflater
	way   []uint64
	delta []byte
}

// workLimit is how many bytes the deltas on the way to one object may make together. Some chains
// are long and some objects large; what is both was made to keep its readers busy.
const workLimit = 1 << 30

// NewReader makes a reader of objects of at most limit bytes that keeps up to cache bytes of bases.
// It compares zlib's checksums, but does not hash.
func NewReader(limit, cache int64) *Reader {
	return &Reader{limit: uint64(limit), bases: baseCache{limit: int(cache)}}
}

// Object is the kind and content of the object at off in the pack. The content is valid until the
// next call.
func (r *Reader) Object(p *Pack, off uint64) (kind oid.Kind, content []byte, err error) {
	if _, err = p.Body(); err != nil {
		return 0, nil, err
	}
	err = vfs.Guard(func() (err error) {
		kind, content, err = r.object(p, off)
		return err
	})
	return kind, content, err
}

// object is Object inside a guard, with the pack open.
func (r *Reader) object(p *Pack, off uint64) (kind oid.Kind, content []byte, err error) {
	r.bases.release()
	way, cached, err := trail(p, off, r.way[:0], p.index.value.Count()+1, func(at uint64) bool { return r.bases.has(p, at) })
	r.way = way
	last := len(way) - 1
	if err != nil {
		return 0, nil, err
	}
	if cached {
		kind, content = r.bases.get(p, way[last])
	} else if kind, content, err = r.whole(p, way[last]); err != nil {
		return 0, nil, err
	}
	work := uint64(0)
	for i := last - 1; i >= 0; i-- {
		if content, err = r.apply(p, way[i], content, &work); err != nil {
			return 0, nil, err
		}
		r.bases.put(p, way[i], kind, content)
	}
	return kind, content, nil
}

// whole reads an object that is not stored as a delta.
func (r *Reader) whole(p *Pack, off uint64) (oid.Kind, []byte, error) {
	e, err := parseEntry(p.body.value, off, p.store.format.Size())
	if err != nil {
		return 0, nil, p.fault(off, err)
	}
	content, err := r.inflate(p, off, &e, r.bases.buffer)
	if err != nil {
		return 0, nil, err
	}
	r.bases.put(p, off, e.Kind.Kind(), content)
	return e.Kind.Kind(), content, nil
}

// apply makes the object of a delta from its base.
func (r *Reader) apply(p *Pack, off uint64, base []byte, work *uint64) ([]byte, error) {
	e, err := parseEntry(p.body.value, off, p.store.format.Size())
	if err != nil {
		return nil, p.fault(off, err)
	}
	text, err := r.inflate(p, off, &e, func(n int) []byte {
		if cap(r.delta) < n {
			r.delta = make([]byte, n, max(n, 4096))
		}
		return r.delta[:n]
	})
	if err != nil {
		return nil, err
	}
	from, to, code, err := delta.Sizes(text)
	if err == nil && from != uint64(len(base)) {
		err = fmt.Errorf("delta is for a base of %d bytes, not %d", from, len(base))
	}
	if err == nil && to > r.limit {
		err = fmt.Errorf("object of %d bytes %w of %d", to, ErrTooLarge, r.limit)
	}
	if *work += to; err == nil && *work > workLimit {
		err = fmt.Errorf("chain of deltas that make %d bytes %w of %d", *work, ErrTooLarge, uint64(workLimit))
	}
	if err != nil {
		return nil, p.fault(off, err)
	}
	out := r.bases.buffer(int(to))
	if err := delta.Apply(out, base, code, nil); err != nil {
		return nil, p.fault(off, err)
	}
	return out, nil
}

// inflate is what an entry's zlib stream holds, in a buffer that alloc gives.
func (r *Reader) inflate(p *Pack, off uint64, e *Entry, alloc func(int) []byte) ([]byte, error) {
	if e.Size > r.limit {
		return nil, p.fault(off, fmt.Errorf("entry of %d bytes %w of %d", e.Size, ErrTooLarge, r.limit))
	}
	src := p.body.value[e.Data:]
	if err := plausible(e.Size, len(src)); err != nil {
		return nil, p.fault(off, err)
	}
	dst := alloc(int(e.Size))
	if _, err := r.z.InflateChecked(dst, src); err != nil {
		return nil, p.fault(off, err)
	}
	return dst, nil
}

// plausible refuses a size that no zlib stream of src bytes can have, before room is made for it:
// a match of 258 bytes takes at least two bits.
func plausible(size uint64, src int) error {
	if size/1032 > uint64(src) {
		return fmt.Errorf("claims %d bytes, more than %d compressed ones can hold", size, src)
	}
	return nil
}
