package scan

import (
	"context"
	"errors"

	"refaudit/finding"
	"refaudit/internal/refstore"
	"refaudit/oid"
	"refaudit/peel"
)

// batchSize is how many refs are judged at once: enough that their objects can be visited in
// the order of the packs, few enough that a batch stays in the processor's cache.
const batchSize = 1 << 13

// batch is a number of records on their way from the ref store to the judge, and what the
// store itself had to say of them: so findings come out in the same order each time.
type batch struct {
	bytes []byte // names and peels, one after another
	recs  []record
	ids   []oid.ID // of recs, in order
	files []string // that the records stand in
	found []finding.Finding
}

// record is a refstore.Ref whose bytes lie in the batch.
type record struct {
	offset, block   int64  // finding.Pos of the record
	peelOffset      int64  // of the line that caches the peel
	length          uint32 // at most that of a window of packed-refs
	peelLength      uint32
	line, peelLine  int32
	name            uint32 // where it begins in bytes
	nameEnd         uint32 // the peel follows the name
	peelEnd         uint32
	info            int32 // the line of info/refs that is done with it; 0: none
	file            uint16
	promise         peel.Promise
	source          refstore.Source
	hidden, blocked bool
}

func (b *batch) reset() {
	b.bytes, b.recs, b.ids, b.files = b.bytes[:0], b.recs[:0], b.ids[:0], b.files[:0]
	clear(b.found)
	b.found = b.found[:0]
}

// maxBatchBytes ends a batch of long names early.
const maxBatchBytes = 16 << 20

func (b *batch) full() bool {
	return len(b.recs) == batchSize || len(b.found) == batchSize || len(b.bytes) >= maxBatchBytes
}

func (b *batch) add(f oid.Format, r *refstore.Ref, info int) {
	if n := len(b.files); n == 0 || b.files[n-1] != r.Pos.File {
		b.files = append(b.files, r.Pos.File)
	}
	name := len(b.bytes)
	b.bytes = append(b.bytes, r.Name...)
	nameEnd := len(b.bytes)
	b.bytes = append(b.bytes, r.Peel...)
	b.recs = append(b.recs, record{
		offset: r.Pos.Offset, length: uint32(r.Pos.Length), line: int32(r.Pos.Line), block: r.Pos.Block, blocked: r.Pos.Blocked,
		peelOffset: r.PeelPos.Offset, peelLength: uint32(r.PeelPos.Length), peelLine: int32(r.PeelPos.Line),
		name: uint32(name), nameEnd: uint32(nameEnd), peelEnd: uint32(len(b.bytes)),
		info: int32(info), file: uint16(len(b.files) - 1), promise: r.Promise, source: r.Source, hidden: r.Hidden,
	})
	b.ids = append(b.ids, oid.FromBytes(f, r.OID))
}

func (b *batch) nameOf(c *record) []byte { return b.bytes[c.name:c.nameEnd] }

// peelOf is the cached peel, raw; nil for none.
func (b *batch) peelOf(c *record) []byte {
	if c.nameEnd == c.peelEnd {
		return nil
	}
	return b.bytes[c.nameEnd:c.peelEnd]
}

func (b *batch) posOf(c *record) finding.Pos {
	return finding.Pos{File: b.files[c.file], Line: int(c.line), Offset: c.offset, Length: int64(c.length), Block: c.block, Placed: true, Blocked: c.blocked}
}

// peelPosOf is where the peel is cached: in a line of its own, or in the record.
func (b *batch) peelPosOf(c *record) finding.Pos {
	p := b.posOf(c)
	p.Line, p.Offset, p.Length = int(c.peelLine), c.peelOffset, int64(c.peelLength)
	return p
}

// errStopped ends the reading of a store when its judge has stopped.
var errStopped = errors.New("stopped")

// reader visits a store: it gives what is wrong with the store to report and each record to each, with the line of
// info/refs that is done with it.
type reader func(report func(finding.Finding) error, each func(r *refstore.Ref, info int) error) error

// pipe reads a store in one goroutine and judges batches in the caller's. judge gets each full
// batch, which is used again afterwards.
func pipe(ctx context.Context, f oid.Format, read reader, judge func(*batch) error) error {
	p := &piping{full: make(chan *batch, 1), free: make(chan *batch, 3), stop: make(chan struct{})}
	for range cap(p.free) {
		p.free <- &batch{}
	}
	done := make(chan error, 1)
	go func() {
		err := read(func(x finding.Finding) error {
			return p.put(func(b *batch) { b.found = append(b.found, x) })
		}, func(r *refstore.Ref, info int) error {
			return p.put(func(b *batch) { b.add(f, r, info) })
		})
		if err == nil && p.filling != nil {
			err = p.send()
		}
		close(p.full)
		done <- err
	}()
	var judged error
	for b := range p.full {
		if judged == nil {
			if judged = ctx.Err(); judged == nil {
				judged = judge(b)
			}
			if judged != nil {
				close(p.stop)
			}
		}
		p.free <- b
	}
	if err := <-done; judged == nil {
		return err
	}
	return judged
}

// piping is the reader's end of a pipe.
type piping struct {
	full, free chan *batch
	stop       chan struct{}
	filling    *batch
}

func (p *piping) put(into func(*batch)) error {
	if p.filling == nil {
		select {
		case p.filling = <-p.free:
			p.filling.reset()
		case <-p.stop:
			return errStopped
		}
	}
	into(p.filling)
	if p.filling.full() {
		return p.send()
	}
	return nil
}

func (p *piping) send() error {
	select {
	case p.full <- p.filling:
		p.filling = nil
		return nil
	case <-p.stop:
		return errStopped
	}
}
