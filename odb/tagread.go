package odb

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"crypto/sha256"
	"errors"
	"io"
	"strconv"

	"refaudit/internal/inflate"
	"refaudit/oid"
)

const (
	// deltaLimit bounds each buffer that is needed to make a tag from deltas.
	deltaLimit = 64 << 20
	// tagBases is how much of bases is kept between tags.
	tagBases = 16 << 20
	// wholeLimit is the largest tag or file that is read in one piece; what is larger is streamed.
	wholeLimit = 1 << 20
)

var errHash = errors.New("does not hash to its name")

// tagReader reads tags whole, hashes them and learns their first two lines. It holds one worker's
// buffers and is not safe for concurrent use.
type tagReader struct {
	format oid.Format
	z      inflate.Inflater
	buf    []byte // room for a header, then content
	chunk  []byte // of a stream
	deltas *Reader
	file   []byte // of a loose object
}

// packed reads the tag at off in p, whose entry is e.
func (r *tagReader) packed(p *Pack, off uint64, e *Entry, id *oid.ID) oid.Fact {
	target, claims, err := r.readPacked(p, off, e, id)
	if err != nil {
		return oid.Fact{State: oid.Unreadable, Kind: oid.Tag, Err: p.fault(off, err)}
	}
	return oid.Fact{State: oid.Present, Kind: oid.Tag, Target: target, Claims: claims}
}

func (r *tagReader) readPacked(p *Pack, off uint64, e *Entry, id *oid.ID) (target oid.ID, claims oid.Kind, err error) {
	switch {
	case e.Kind.IsDelta():
		if r.deltas == nil {
			r.deltas = NewReader(deltaLimit, tagBases)
			r.deltas.checked = false
		}
		_, content, _, err := r.deltas.object(p, off)
		if err != nil {
			return target, 0, err
		}
		object := r.room(len(content))
		copy(object[looseHeaderMax:], content)
		return r.judge(object, id)
	case e.Size > wholeLimit:
		z, err := zlib.NewReader(bytes.NewReader(p.body.value[e.Data:]))
		if err != nil {
			return target, 0, err
		}
		return r.stream(z, e.Size, id)
	}
	object := r.room(int(e.Size))
	if _, err := r.z.Inflate(object[looseHeaderMax:], p.body.value[e.Data:]); err != nil {
		return target, 0, err
	}
	return r.judge(object, id)
}

// room is a buffer for a tag of n bytes behind looseHeaderMax ones.
func (r *tagReader) room(n int) []byte {
	n += looseHeaderMax
	if cap(r.buf) < n {
		r.buf = make([]byte, n, max(n, 4096))
	}
	return r.buf[:n]
}

// judge hashes the tag that stands in object behind looseHeaderMax bytes, and parses it.
func (r *tagReader) judge(object []byte, id *oid.ID) (target oid.ID, claims oid.Kind, err error) {
	content := object[looseHeaderMax:]
	var space [looseHeaderMax]byte
	header := appendHeader(space[:0], oid.Tag, uint64(len(content)))
	object = object[looseHeaderMax-len(header):]
	copy(object, header)
	if sum := hashOf(r.format, object); string(sum[:r.format.Size()]) != string(id.Bytes()) {
		return target, 0, errHash
	}
	return parseTag(r.format, content, int64(len(content)), int64(bytes.LastIndexByte(content, '\n')))
}

// stream is judge for a tag that is too large to be held: size bytes that must come from z.
func (r *tagReader) stream(z io.Reader, size uint64, id *oid.ID) (target oid.ID, claims oid.Kind, err error) {
	if r.chunk == nil {
		r.chunk = make([]byte, 64<<10)
	}
	var space [looseHeaderMax]byte
	h := r.format.New()
	h.Write(appendHeader(space[:0], oid.Tag, size))
	head := make([]byte, 0, tagHeadLen)
	done, newline := uint64(0), int64(-1)
	for {
		n, err := z.Read(r.chunk)
		b := r.chunk[:n]
		if uint64(n) > size-done {
			return target, 0, inflate.ErrLonger
		}
		h.Write(b)
		head = append(head, b[:min(n, tagHeadLen-len(head))]...)
		if i := bytes.LastIndexByte(b, '\n'); i >= 0 {
			newline = int64(done) + int64(i)
		}
		done += uint64(n)
		if err == io.EOF {
			break
		}
		if err != nil {
			return target, 0, err
		}
	}
	if done < size {
		return target, 0, inflate.ErrShorter
	}
	var sum [oid.MaxSize]byte
	if string(h.Sum(sum[:0])) != string(id.Bytes()) {
		return target, 0, errHash
	}
	return parseTag(r.format, head, int64(size), newline)
}

// appendHeader appends what stands before an object's content when it is hashed.
func appendHeader(b []byte, kind oid.Kind, size uint64) []byte {
	b = append(append(b, kind.String()...), ' ')
	return append(strconv.AppendUint(b, size, 10), 0)
}

func hashOf(f oid.Format, b []byte) (sum [oid.MaxSize]byte) {
	if f == oid.SHA256 {
		return sha256.Sum256(b)
	}
	s := sha1.Sum(b)
	copy(sum[:], s[:])
	return sum
}

// loose reads a loose object: its kind from its header, and of a tag the rest too.
func (r *tagReader) loose(s *Store, id *oid.ID) oid.Fact {
	kind, target, claims, err := r.readLoose(s, id)
	if err != nil {
		return oid.Fact{State: oid.Unreadable, Kind: kind, Err: s.looseFault(id, err)}
	}
	return oid.Fact{State: oid.Present, Kind: kind, Target: target, Claims: claims}
}

func (r *tagReader) readLoose(s *Store, id *oid.ID) (kind oid.Kind, target oid.ID, claims oid.Kind, err error) {
	f, err := openLoose(s, id, &r.z, &r.file)
	if err != nil {
		return 0, target, 0, err
	}
	defer f.Close()
	if f.kind != oid.Tag {
		return f.kind, target, 0, nil
	}
	if f.size > wholeLimit || f.fileSize > wholeLimit {
		z, err := f.content()
		if err == nil {
			target, claims, err = r.stream(z, uint64(f.size), id)
		}
		if err == nil {
			err = f.atEnd()
		}
		return oid.Tag, target, claims, err
	}
	object := r.room(f.headerLen + int(f.size))
	src, err := f.readAll(&r.file)
	if err != nil {
		return oid.Tag, target, 0, err
	}
	n, err := r.z.Inflate(object[looseHeaderMax:], src)
	if err != nil {
		return oid.Tag, target, 0, err
	}
	if n < len(src) {
		return oid.Tag, target, 0, errGarbage
	}
	target, claims, err = r.judge(object[f.headerLen:], id)
	return oid.Tag, target, claims, err
}
