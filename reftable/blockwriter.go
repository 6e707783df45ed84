package reftable

import (
	"bytes"
	"compress/zlib"

	"refaudit/internal/refname"
)

const maxRestarts = 1<<16 - 1

// A blockWriter puts records into one block until it is full. Where git has a choice, it
// chooses as git does: the same records and settings give the same bytes.
type blockWriter struct {
	kind     byte
	head     int    // bytes of file header at the start of buf
	buf      []byte // the block so far
	size     int    // what the block may grow to
	interval int    // a record whose number is a multiple of it is a restart
	entries  int
	restarts []int
	last     []byte // key of the last record
	deflate  *zlib.Writer
	deflated bytes.Buffer
}

// begin empties the block. Its first head bytes are left for the header of the file.
func (b *blockWriter) begin(kind byte, head int) {
	b.kind, b.head, b.entries = kind, head, 0
	b.buf = append(b.buf[:0], make([]byte, head)...)
	b.buf = append(b.buf, kind, 0, 0, 0)
	b.restarts, b.last = b.restarts[:0], b.last[:0]
}

// add appends a record; false, and nothing is changed, if the block has no room for it.
func (b *blockWriter) add(key []byte, extra byte, value []byte) bool {
	start, prefix := len(b.buf), 0
	if b.entries%b.interval != 0 {
		prefix = refname.CommonPrefix(b.last, key)
	}
	b.buf = appendVarint(b.buf, uint64(prefix))
	b.buf = appendVarint(b.buf, uint64(len(key)-prefix)<<3|uint64(extra))
	b.buf = append(append(b.buf, key[prefix:]...), value...)
	restarts := len(b.restarts)
	restart := prefix == 0 && restarts < maxRestarts
	if restart {
		restarts++
	}
	if len(b.buf)+3*restarts+2 > b.size {
		b.buf = b.buf[:start]
		return false
	}
	if restart {
		b.restarts = append(b.restarts, start)
	}
	b.last = append(b.last[:0], key...)
	b.entries++
	return true
}

// finish ends the block and gives its bytes, which are valid until begin.
func (b *blockWriter) finish() ([]byte, error) {
	for _, r := range b.restarts {
		b.buf = append(b.buf, byte(r>>16), byte(r>>8), byte(r))
	}
	b.buf = append(b.buf, byte(len(b.restarts)>>8), byte(len(b.restarts)))
	n := len(b.buf)
	b.buf[b.head+1], b.buf[b.head+2], b.buf[b.head+3] = byte(n>>16), byte(n>>8), byte(n)
	if b.kind != kindLog {
		return b.buf, nil
	}
	b.deflated.Reset()
	if b.deflate == nil {
		z, err := zlib.NewWriterLevel(&b.deflated, zlib.BestCompression)
		if err != nil {
			return nil, err
		}
		b.deflate = z
	} else {
		b.deflate.Reset(&b.deflated)
	}
	if _, err := b.deflate.Write(b.buf[b.head+4:]); err != nil {
		return nil, err
	}
	if err := b.deflate.Close(); err != nil {
		return nil, err
	}
	b.buf = append(b.buf[:b.head+4], b.deflated.Bytes()...)
	return b.buf, nil
}
