// Package commitgraph reads commit-graph files: parents and root trees of commits without
// inflating a commit.
//
// A graph proves nothing of what is there: it keeps commits that were pruned. It knows nothing of
// shallow boundaries, grafts and replacements: where a repository has them, git doesn't use its
// graph, and nor should a caller of this package.
//
// What is wrong with a file is a *finding.Corrupt with the id bitmapUnusable: the caller reads the
// commits themselves.
package commitgraph

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"refaudit/finding"
	"refaudit/internal/binread"
	"refaudit/oid"
)

// Layer is one commit-graph file, perhaps one of a chain. It keeps pointing into the bytes it was
// read from and is safe for concurrent use. Specification: gitformat-commit-graph in git. All
// numbers are big-endian.
//
//	0      4            5          6            7           8
//	+------+------------+----------+------------+-----------+
//	| CGPH | u8 version | u8 hash  | u8 chunks  | u8 bases  |
//	+------+------------+----------+------------+-----------+
//	| chunks+1 rows: u32 id, u64 offset; the last has id 0  |
//	+-------------------------------------------------------+
//	| chunks: OIDF fanout, OIDL ids, CDAT commits, EDGE     |
//	| further parents, BASE checksums of the layers below,  |
//	| and others, which are passed over                     |
//	+-------------------------------------------------------+
//	| checksum                                              |
//	+-------------------------------------------------------+
type Layer struct {
	name   string
	size   int    // of an id
	n      uint32 // commits in this layer
	below  uint32 // commits in the layers below; set by Stack
	fanout []byte
	ids    []byte
	data   []byte
	edges  []byte
	bases  []byte // ids of the layers below, the lowest first
	sum    []byte
}

// The chunks that are read.
const (
	chunkFanout = "OIDF"
	chunkIDs    = "OIDL"
	chunkData   = "CDAT"
	chunkEdges  = "EDGE"
	chunkBases  = "BASE"
)

// Parse reads one file and verifies its checksum; name is what messages call it.
func Parse(name string, file []byte, format oid.Format) (*Layer, error) {
	size := format.Size()
	l := &Layer{name: name, size: size}
	if size == 0 || len(file) < 8+size {
		return nil, l.corrupt(0, "is too short: %d bytes", len(file))
	}
	body := file[:len(file)-size]
	l.sum = file[len(file)-size:]
	h := format.New()
	h.Write(body)
	var got [oid.MaxSize]byte
	if !bytes.Equal(h.Sum(got[:0]), l.sum) {
		return nil, l.corrupt(len(body), "the checksum at its end does not fit")
	}
	c := binread.New(body, name, 0, finding.BitmapUnusable)
	if string(c.Bytes(4, "signature")) != "CGPH" {
		return nil, l.corrupt(0, "is no commit-graph")
	}
	if v := c.U8("version"); v != 1 {
		return nil, l.corrupt(4, "version %d, not 1", v)
	}
	if id := c.U8("hash id"); id != uint8(format) {
		return nil, l.corrupt(5, "hash id %d, not %d", id, format)
	}
	chunks, bases := c.U8("chunk count"), c.U8("base count")
	if err := l.readChunks(&c, body, int(chunks)); err != nil {
		return nil, err
	}
	return l, l.check(int(bases))
}

// readChunks finds the chunks by the table, which lists them in the order in which they lie.
func (l *Layer) readChunks(c *binread.Cursor, body []byte, count int) error {
	first := uint64(8 + 12*(count+1))
	var id string
	var at uint64
	for i := range count + 1 {
		row := c.Offset()
		nextID, next := string(c.Bytes(4, "chunk id")), c.U64("chunk offset")
		if err := c.Err(); err != nil {
			return err
		}
		if next < first || next < at || next > uint64(len(body)) {
			return l.corrupt(int(row), "chunk %d is said to be at %d of %d", i, next, len(body))
		}
		if last := i == count; last != (nextID == "\x00\x00\x00\x00") {
			return l.corrupt(int(row), "the table of %d chunks ends at row %d", count, i)
		}
		if i > 0 && !l.place(id, body[at:next]) {
			return l.corrupt(int(row), "a second chunk %q", id)
		}
		id, at = nextID, next
	}
	return nil
}

// place keeps a chunk that is read; it tells whether it is the first of its kind.
func (l *Layer) place(id string, chunk []byte) bool {
	var dst *[]byte
	switch id {
	case chunkFanout:
		dst = &l.fanout
	case chunkIDs:
		dst = &l.ids
	case chunkData:
		dst = &l.data
	case chunkEdges:
		dst = &l.edges
	case chunkBases:
		dst = &l.bases
	default:
		return true
	}
	if *dst != nil {
		return false
	}
	*dst = chunk[:len(chunk):len(chunk)]
	return true
}

// check compares the sizes of the chunks with each other.
func (l *Layer) check(bases int) error {
	if len(l.fanout) != 256*4 {
		return l.corrupt(8, "the fanout has %d bytes, not 1024", len(l.fanout))
	}
	last := uint32(0)
	for i := range 256 {
		if n := l.bucket(i); n < last {
			return l.corrupt(8, "the fanout falls at %d", i)
		} else {
			last = n
		}
	}
	l.n = last
	if want := uint64(l.n) * uint64(l.size); uint64(len(l.ids)) != want {
		return l.corrupt(8, "the ids of %d commits have %d bytes, not %d", l.n, len(l.ids), want)
	}
	if want := uint64(l.n) * uint64(l.size+16); uint64(len(l.data)) != want {
		return l.corrupt(8, "the data of %d commits have %d bytes, not %d", l.n, len(l.data), want)
	}
	if len(l.edges)%4 != 0 {
		return l.corrupt(8, "the edges have %d bytes", len(l.edges))
	}
	if len(l.bases) != bases*l.size {
		return l.corrupt(7, "the checksums of %d layers below have %d bytes", bases, len(l.bases))
	}
	return l.checkEdges()
}

// checkEdges makes sure that each list of further parents belongs to one commit: else a small file
// could name the same million parents a million times.
func (l *Layer) checkEdges() error {
	if len(l.edges) == 0 {
		return nil
	}
	used := make([]bool, len(l.edges)/4)
	for i := range l.n {
		second := binary.BigEndian.Uint32(l.data[int(i)*(l.size+16)+l.size+4:])
		if second&moreEdges == 0 {
			continue
		}
		at := int(second &^ moreEdges)
		switch {
		case at >= len(used):
			return l.corrupt(8, "the further parents of commit %d are said to be at %d of %d", i, at, len(used))
		case used[at] || at > 0 && binary.BigEndian.Uint32(l.edges[4*at-4:])&moreEdges == 0:
			return l.corrupt(8, "the further parents of commit %d are another commit's too", i)
		}
		used[at] = true
	}
	return nil
}

// bucket is the number of ids whose first byte is at most b.
func (l *Layer) bucket(b int) uint32 { return binary.BigEndian.Uint32(l.fanout[4*b:]) }

// find looks an id up; the place counts from this layer's first commit.
func (l *Layer) find(id []byte) (uint32, bool) {
	lo, hi := uint32(0), l.bucket(int(id[0]))
	if id[0] > 0 {
		lo = l.bucket(int(id[0]) - 1)
	}
	for lo < hi {
		mid := lo + (hi-lo)/2
		switch c := bytes.Compare(l.id(mid), id); {
		case c == 0:
			return mid, true
		case c < 0:
			lo = mid + 1
		default:
			hi = mid
		}
	}
	return 0, false
}

func (l *Layer) id(i uint32) []byte {
	at := int(i) * l.size
	return l.ids[at : at+l.size : at+l.size]
}

// Checksum is the file's own, by which a chain names it.
func (l *Layer) Checksum() []byte { return l.sum }

func (l *Layer) corrupt(at int, format string, args ...any) error {
	return &finding.Corrupt{
		ID:  finding.BitmapUnusable,
		Pos: finding.Pos{File: l.name, Offset: int64(at), Placed: true},
		Err: fmt.Errorf(format, args...),
	}
}
