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
// the order of the packs, few enough that the memory for them doesn't count.
const batchSize = 1 << 15

// batch is a number of records on their way from the ref store to the judge, and what the
// store itself had to say of them: so findings come out in the same order each time.
type batch struct {
	bytes []byte // names and peels, one after another
	recs  []record
	ids   []oid.ID // of recs, in order
	found []finding.Finding
}

// record is a refstore.Ref whose bytes lie in the batch.
type record struct {
	name, nameEnd int
	peelEnd       int // the peel follows the name
	pos, peelPos  finding.Pos
	promise       peel.Promise
	source        refstore.Source
	hidden        bool
}

func (b *batch) reset() {
	b.bytes, b.recs, b.ids = b.bytes[:0], b.recs[:0], b.ids[:0]
	clear(b.found)
	b.found = b.found[:0]
}

func (b *batch) full() bool { return len(b.recs) == batchSize || len(b.found) == batchSize }

func (b *batch) add(f oid.Format, r *refstore.Ref) {
	c := record{name: len(b.bytes), pos: r.Pos, peelPos: r.PeelPos, promise: r.Promise, source: r.Source, hidden: r.Hidden}
	b.bytes = append(b.bytes, r.Name...)
	c.nameEnd = len(b.bytes)
	b.bytes = append(b.bytes, r.Peel...)
	c.peelEnd = len(b.bytes)
	b.recs = append(b.recs, c)
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

// errStopped ends the reading of a store when its judge has stopped.
var errStopped = errors.New("stopped")

// reader visits a store: it gives what is wrong with the store to report and each record to each.
type reader func(report func(finding.Finding) error, each func(*refstore.Ref) error) error

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
		}, func(r *refstore.Ref) error {
			return p.put(func(b *batch) { b.add(f, r) })
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
