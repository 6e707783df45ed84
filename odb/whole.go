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
	// deltaLimit bounds each buffer that is needed to make an object from deltas.
	deltaLimit = 64 << 20
	// keptBases is how much of bases is kept from one tag to the next.
	keptBases = 16 << 20
	// wholeLimit is the largest object or file that is read in one piece; what is larger is streamed.
	wholeLimit = 1 << 20
)

var errHash = errors.New("does not hash to its name")

// objectReader reads objects whole, hashes them and learns the first two lines of tags. It holds
// one worker's buffers and is not safe for concurrent use.
type objectReader struct {
	format oid.Format
	z      inflate.Inflater
	buf    []byte // room for a header, then content
	chunk  []byte // of a stream
	deltas *Reader
	file   []byte // of a loose object
}

// reset gives back what a batch may have made large.
func (r *objectReader) reset() {
	r.deltas = nil
	if cap(r.buf) > 2*wholeLimit {
		r.buf = nil
	}
}

// packed reads the object at off in p, whose entry is e.
func (r *objectReader) packed(p *Pack, off uint64, e *Entry, kind oid.Kind, id *oid.ID) oid.Fact {
	fact, err := r.readPacked(p, off, e, kind, id)
	if err != nil {
		return oid.Fact{State: oid.Unreadable, Kind: kind, Err: p.fault(off, err)}
	}
	return fact
}

func (r *objectReader) readPacked(p *Pack, off uint64, e *Entry, kind oid.Kind, id *oid.ID) (oid.Fact, error) {
	switch {
	case e.Kind.IsDelta():
		if r.deltas == nil {
			r.deltas = NewReader(deltaLimit, keptBases)
		}
		_, content, err := r.deltas.object(p, off)
		if err != nil {
			return oid.Fact{}, err
		}
		h := r.format.New()
		h.Write(appendHeader(nil, kind, uint64(len(content))))
		h.Write(content)
		if string(h.Sum(nil)) != string(id.Bytes()) {
			return oid.Fact{}, errHash
		}
		return factOf(r.format, kind, content)
	case e.Size > wholeLimit:
		z, err := zlib.NewReader(bytes.NewReader(p.body.value[e.Data:]))
		if err != nil {
			return oid.Fact{}, err
		}
		return r.stream(z, kind, e.Size, id)
	}
	object := r.room(int(e.Size))
	if _, err := r.z.InflateChecked(object[looseHeaderMax:], p.body.value[e.Data:]); err != nil {
		return oid.Fact{}, err
	}
	return r.judge(object, kind, id)
}

// room is a buffer for an object of n bytes behind looseHeaderMax ones.
func (r *objectReader) room(n int) []byte {
	n += looseHeaderMax
	if cap(r.buf) < n {
		r.buf = make([]byte, n, max(n, 4096))
	}
	return r.buf[:n]
}

// judge hashes the object that stands behind looseHeaderMax bytes, and parses it if it is a tag.
func (r *objectReader) judge(object []byte, kind oid.Kind, id *oid.ID) (oid.Fact, error) {
	content := object[looseHeaderMax:]
	var space [looseHeaderMax]byte
	header := appendHeader(space[:0], kind, uint64(len(content)))
	object = object[looseHeaderMax-len(header):]
	copy(object, header)
	if sum := hashOf(r.format, object); string(sum[:r.format.Size()]) != string(id.Bytes()) {
		return oid.Fact{}, errHash
	}
	return factOf(r.format, kind, content)
}

// factOf is what there is to say of an object that hashes to its name.
func factOf(f oid.Format, kind oid.Kind, content []byte) (fact oid.Fact, err error) {
	fact = oid.Fact{State: oid.Present, Kind: kind}
	if kind == oid.Tag {
		fact.Target, fact.Claims, err = parseTag(f, content, int64(len(content)), int64(bytes.LastIndexByte(content, '\n')))
	}
	return fact, err
}

// stream is judge for an object that is too large to be held: size bytes that must come from z.
func (r *objectReader) stream(z io.Reader, kind oid.Kind, size uint64, id *oid.ID) (fact oid.Fact, err error) {
	if r.chunk == nil {
		r.chunk = make([]byte, 64<<10)
	}
	var space [looseHeaderMax]byte
	h := r.format.New()
	h.Write(appendHeader(space[:0], kind, size))
	head := make([]byte, 0, tagHeadLen)
	done, newline := uint64(0), int64(-1)
	for {
		n, err := z.Read(r.chunk)
		b := r.chunk[:n]
		if uint64(n) > size-done {
			return fact, inflate.ErrLonger
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
			return fact, err
		}
	}
	if done < size {
		return fact, inflate.ErrShorter
	}
	var sum [oid.MaxSize]byte
	if string(h.Sum(sum[:0])) != string(id.Bytes()) {
		return fact, errHash
	}
	fact = oid.Fact{State: oid.Present, Kind: kind}
	if kind == oid.Tag {
		fact.Target, fact.Claims, err = parseTag(r.format, head, int64(size), newline)
	}
	return fact, err
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

// loose reads a loose object: its kind from its header and, of a tag or if all is set, the rest too.
func (r *objectReader) loose(s *Store, id *oid.ID, all bool) oid.Fact {
	fact, err := r.readLoose(s, id, all)
	if err != nil {
		return oid.Fact{State: oid.Unreadable, Kind: fact.Kind, Err: s.looseFault(id, err)}
	}
	return fact
}

// readLoose gives the kind also with an error, if the header could be read.
func (r *objectReader) readLoose(s *Store, id *oid.ID, all bool) (fact oid.Fact, err error) {
	f, err := openLoose(s, id, &r.z, &r.file)
	if err != nil {
		return fact, err
	}
	defer f.Close()
	fact = oid.Fact{State: oid.Present, Kind: f.kind}
	if f.kind != oid.Tag && !all {
		return fact, nil
	}
	read := r.wholeLoose
	if f.size > wholeLimit || f.fileSize > wholeLimit {
		read = r.streamLoose
	}
	full, err := read(f, id)
	if err != nil {
		return fact, err
	}
	return full, nil
}

func (r *objectReader) streamLoose(f *looseFile, id *oid.ID) (fact oid.Fact, err error) {
	z, err := f.content()
	if err == nil {
		fact, err = r.stream(z, f.kind, uint64(f.size), id)
	}
	if err == nil {
		err = f.atEnd()
	}
	return fact, err
}

func (r *objectReader) wholeLoose(f *looseFile, id *oid.ID) (oid.Fact, error) {
	object := r.room(f.headerLen + int(f.size))
	src, err := f.all(&r.file)
	if err != nil {
		return oid.Fact{}, err
	}
	n, err := r.z.InflateChecked(object[looseHeaderMax:], src)
	if err != nil {
		return oid.Fact{}, err
	}
	if n < len(src) {
		return oid.Fact{}, errGarbage
	}
	return r.judge(object[f.headerLen:], f.kind, id)
}
