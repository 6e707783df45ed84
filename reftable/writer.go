package reftable

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"refaudit/oid"
)

// Options are how a table is written. The zero value of each field is what git writes with by default.
type Options struct {
	Format          oid.Format // of the ids; SHA1
	Version         int        // 1 for SHA-1, else 2
	BlockSize       int        // reftable.blockSize; 4096
	RestartInterval int        // reftable.restartInterval; 16
	NoObjects       bool       // not reftable.indexObjects: write no object blocks
	Unpadded        bool       // blocks follow one another; the header says block size 0
	Min, Max        uint64     // the range of the records' update indexes
}

// ErrTooBig is a record that does not fit a block of its own.
var ErrTooBig = errors.New("record does not fit a block")

// Stats says what a table that was written holds.
type Stats struct {
	Refs, Logs  int
	RefBlocks   int
	ObjBlocks   int
	LogBlocks   int
	IndexBlocks int
	Size        int64 // of the file in bytes
}

// Writer writes a table: first refs, then logs, each in order.
type Writer struct {
	w       *bufio.Writer
	o       Options
	head    Header
	foot    Footer
	blk     blockWriter
	open    bool   // a section is being written
	logs    bool   // and it is that of the logs, or was
	last    []byte // the last key of the section
	index   []indexEntry
	next    int64 // where the next block begins
	padding int   // what stands between the last block and that
	key     []byte
	value   []byte
	objects objectIndex
	stats   Stats
	err     error
}

// indexEntry is the last key of a block that was written, and where it begins.
type indexEntry struct {
	key []byte
	off int64
}

// NewWriter begins a table.
func NewWriter(w io.Writer, o Options) (*Writer, error) {
	if o.Format == 0 {
		o.Format = oid.SHA1
	}
	if o.Version == 0 {
		o.Version = 1
		if o.Format != oid.SHA1 {
			o.Version = 2
		}
	}
	if o.BlockSize == 0 {
		o.BlockSize = DefaultBlockSize
	}
	if o.RestartInterval == 0 {
		o.RestartInterval = 16
	}
	switch {
	case o.Version != 1 && o.Version != 2 || o.Version == 1 && o.Format != oid.SHA1:
		return nil, fmt.Errorf("a table of version %d can't hold ids of %v", o.Version, o.Format)
	case o.BlockSize < 0 || o.BlockSize > MaxBlockSize:
		return nil, fmt.Errorf("block size %d is not between 1 and %d", o.BlockSize, MaxBlockSize)
	case o.RestartInterval < 0:
		return nil, fmt.Errorf("restart interval %d is negative", o.RestartInterval)
	case o.Min > o.Max:
		return nil, fmt.Errorf("smallest update index %d is above the largest, %d", o.Min, o.Max)
	}
	t := &Writer{w: bufio.NewWriterSize(w, 64<<10), o: o, objects: objectIndex{idLen: o.Format.Size()}}
	t.head = Header{Version: o.Version, BlockSize: o.BlockSize, Min: o.Min, Max: o.Max, Format: o.Format}
	if o.Unpadded {
		t.head.BlockSize = 0
	}
	t.foot.Header = t.head
	t.blk.size, t.blk.interval = o.BlockSize, o.RestartInterval
	return t, nil
}

// AddRef writes a ref record. Its name must be above the last one's, and its place (Block,
// Offset, Length) is not looked at.
func (t *Writer) AddRef(r *Ref) error {
	if t.err != nil {
		return t.err
	}
	if err := t.checkRef(r); err != nil {
		return fmt.Errorf("write ref %q: %w", r.Name, err)
	}
	v := appendVarint(t.value[:0], r.UpdateIndex-t.o.Min)
	switch r.Type {
	case Direct:
		v = append(v, r.Value...)
	case Peeled:
		v = append(append(v, r.Value...), r.Peel...)
	case Symref:
		v = append(appendVarint(v, uint64(len(r.Target))), r.Target...)
	}
	t.value = v
	if err := t.add(kindRef, r.Name, byte(r.Type), v); err != nil {
		return fmt.Errorf("write ref %q: %w", r.Name, err)
	}
	t.stats.Refs++
	if !t.o.NoObjects && (r.Type == Direct || r.Type == Peeled) {
		t.objects.add(r.Value, t.next)
		if r.Type == Peeled {
			t.objects.add(r.Peel, t.next)
		}
	}
	return nil
}

func (t *Writer) checkRef(r *Ref) error {
	n := t.o.Format.Size()
	switch {
	case t.logs:
		return errors.New("refs come before logs")
	case len(r.Name) == 0:
		return errors.New("a ref needs a name")
	case bytes.IndexByte(r.Name, 0) >= 0 || bytes.IndexByte(r.Target, 0) >= 0:
		return errors.New("names hold no NUL")
	case r.UpdateIndex < t.o.Min || r.UpdateIndex > t.o.Max:
		return fmt.Errorf("update index %d is not between %d and %d", r.UpdateIndex, t.o.Min, t.o.Max)
	case r.Type > Symref:
		return fmt.Errorf("value type %d does not exist", r.Type)
	case (r.Type == Direct || r.Type == Peeled) && len(r.Value) != n, r.Type == Peeled && len(r.Peel) != n:
		return fmt.Errorf("ids have %d bytes", n)
	case r.Type == Symref && len(r.Target) == 0:
		return errors.New("a symref needs a target")
	}
	return nil
}

// AddLog writes a log record. Its key must be above the last one's. Its Value, if there is
// one, is written as it is; else it is made of the other fields.
func (t *Writer) AddLog(l *Log) error {
	if t.err != nil {
		return t.err
	}
	if err := t.checkLog(l); err != nil {
		return fmt.Errorf("write log of %q at update index %d: %w", l.Name, l.UpdateIndex, err)
	}
	if !t.logs {
		if err := t.finishRefs(); err != nil {
			return err
		}
		t.logs = true
	}
	t.next -= int64(t.padding) // log blocks are not aligned
	t.padding = 0
	t.key = append(append(t.key[:0], l.Name...), 0)
	t.key = binary.BigEndian.AppendUint64(t.key, ^l.UpdateIndex)
	value := l.Value
	if value == nil && l.Type == LogUpdate {
		t.value = l.appendValue(t.value[:0])
		value = t.value
	}
	if err := t.add(kindLog, t.key, byte(l.Type), value); err != nil {
		return fmt.Errorf("write log of %q at update index %d: %w", l.Name, l.UpdateIndex, err)
	}
	t.stats.Logs++
	return nil
}

func (t *Writer) checkLog(l *Log) error {
	n := t.o.Format.Size()
	switch {
	case len(l.Name) == 0:
		return errors.New("a log needs a name")
	case bytes.IndexByte(l.Name, 0) >= 0:
		return errors.New("names hold no NUL")
	case l.Type > LogUpdate:
		return fmt.Errorf("type %d does not exist", l.Type)
	case l.Type == LogDeletion && len(l.Value) > 0:
		return errors.New("a deletion has no value")
	case l.Type == LogUpdate && l.UpdateIndex > t.o.Max: // lower than Min is right: a record may replace an older one
		return fmt.Errorf("update index is above %d", t.o.Max)
	case l.Type == LogUpdate && l.Value == nil && (len(l.Old) != n || len(l.New) != n):
		return fmt.Errorf("ids have %d bytes", n)
	}
	return nil
}

// appendValue appends the value of an update as a table holds it.
func (l *Log) appendValue(b []byte) []byte {
	b = append(append(b, l.Old...), l.New...)
	b = append(appendVarint(b, uint64(len(l.Committer))), l.Committer...)
	b = append(appendVarint(b, uint64(len(l.Email))), l.Email...)
	b = appendVarint(b, l.Time)
	b = binary.BigEndian.AppendUint16(b, uint16(l.Zone))
	return append(appendVarint(b, uint64(len(l.Message))), l.Message...)
}

// Close ends the table with its footer. Without any record it is an empty table, which git
// itself never lists.
func (t *Writer) Close() error {
	if t.err != nil {
		return t.err
	}
	if t.err = t.finish(); t.err != nil {
		return t.err
	}
	t.err = errors.New("the table is closed")
	return nil
}

func (t *Writer) finish() error {
	var err error
	if t.logs {
		t.foot.LogIndex, err = t.finishSection()
	} else {
		err = t.finishRefs()
	}
	if err != nil {
		return err
	}
	t.next -= int64(t.padding) // the last block is not padded
	t.padding = 0
	if t.next == 0 {
		if err := t.write(t.head.append(nil)); err != nil {
			return err
		}
	}
	if err := t.write(t.foot.append(nil)); err != nil {
		return err
	}
	t.stats.Size = t.next
	return t.w.Flush()
}

// Stats says what was written. It is complete after Close.
func (t *Writer) Stats() Stats { return t.stats }

// write appends bytes to the file.
func (t *Writer) write(b []byte) error {
	n, err := t.w.Write(b)
	t.next += int64(n)
	return err
}

// add puts a record into the section of its kind, which begins with the first one.
func (t *Writer) add(kind byte, key []byte, extra byte, value []byte) error {
	if bytes.Compare(key, t.last) <= 0 {
		return fmt.Errorf("does not sort behind %q", t.last)
	}
	if !t.open {
		t.begin(kind)
	}
	if !t.blk.add(key, extra, value) {
		if t.err = t.flush(); t.err != nil {
			return t.err
		}
		t.begin(kind)
		if !t.blk.add(key, extra, value) {
			t.err = fmt.Errorf("%w of %d bytes", ErrTooBig, t.o.BlockSize)
			return t.err
		}
	}
	t.last = append(t.last[:0], key...)
	return nil
}

// begin starts a block.
func (t *Writer) begin(kind byte) {
	head := 0
	if t.next == 0 {
		head = headerLen(t.o.Version)
	}
	t.blk.begin(kind, head)
	t.open = true
}

// flush writes the block at hand and remembers its last key for the index.
func (t *Writer) flush() error {
	if !t.open || t.blk.entries == 0 {
		return nil
	}
	b, err := t.blk.finish()
	if err != nil {
		return err
	}
	if t.next == 0 {
		copy(b, t.head.append(nil))
	} else if err := t.pad(); err != nil {
		return err
	}
	t.count()
	t.index = append(t.index, indexEntry{key: bytes.Clone(t.blk.last), off: t.next})
	if err := t.write(b); err != nil {
		return err
	}
	if !t.o.Unpadded && t.blk.kind != kindLog {
		t.padding = t.o.BlockSize - len(b)
		t.next += int64(t.padding)
	}
	t.open = false
	return nil
}

// pad writes the padding that t.next counts already.
func (t *Writer) pad() error {
	_, err := t.w.Write(make([]byte, t.padding))
	t.padding = 0
	return err
}

// count counts the block at hand, and notes where sections begin.
func (t *Writer) count() {
	switch t.blk.kind {
	case kindRef:
		t.stats.RefBlocks++
	case kindIndex:
		t.stats.IndexBlocks++
	case kindObj:
		if t.stats.ObjBlocks++; t.stats.ObjBlocks == 1 {
			t.foot.Obj = t.next
		}
	case kindLog:
		if t.stats.LogBlocks++; t.stats.LogBlocks == 1 {
			t.foot.Log = t.next
		}
	}
}

// finishSection writes what is left of a section and its index, level upon level until one
// has so few blocks that they can be searched. It gives the position of that one, 0 for no index.
func (t *Writer) finishSection() (root int64, err error) {
	if err := t.flush(); err != nil {
		return 0, err
	}
	enough := 3
	if t.o.Unpadded {
		enough = 1
	}
	for len(t.index) > enough {
		below := t.index
		t.index, t.last, root = nil, t.last[:0], t.next
		for _, e := range below {
			t.value = appendVarint(t.value[:0], uint64(e.off))
			if err := t.add(kindIndex, e.key, 0, t.value); err != nil {
				return 0, fmt.Errorf("write index record %q: %w", e.key, err)
			}
		}
		if err := t.flush(); err != nil {
			return 0, err
		}
		if len(t.index) == len(below) {
			t.err = fmt.Errorf("%w of %d bytes together with another: the index would never end", ErrTooBig, t.o.BlockSize)
			return 0, t.err
		}
	}
	t.index, t.last, t.open = nil, t.last[:0], false
	return root, nil
}

// finishRefs ends the refs: their index and, if they have one, the object blocks.
func (t *Writer) finishRefs() error {
	root, err := t.finishSection()
	if err != nil {
		return err
	}
	if t.foot.RefIndex = root; root == 0 || t.o.NoObjects {
		return nil
	}
	if err := t.writeObjects(); err != nil {
		return err
	}
	t.foot.ObjIndex, err = t.finishSection()
	return err
}
