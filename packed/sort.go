package packed

import (
	"bytes"
	"cmp"
	"slices"
)

// A file is sorted in passes. Each takes the least records of those that are not written yet, as many
// as fit into memory, and writes them in order. When the portion grows too large, its greater half is
// dropped and left to the next pass.

// An item is a record of the portion: its ref line, and its ^ line if there is one.
type item struct {
	key
	line        int
	start       int // in the portion's bytes
	refLen, len int // newlines included
}

// A key orders records by name, and equal names by their places in the file.
type key struct {
	name []byte
	off  int64
}

func (k key) compare(l key) int {
	if c := bytes.Compare(k.name, l.name); c != 0 {
		return c
	}
	return cmp.Compare(k.off, l.off)
}

// itemSize is about what an item takes besides its bytes.
const itemSize = 80

// A portion is what one pass puts in order.
type portion struct {
	bytes []byte
	items []item
	after *key // the last one that earlier passes have written
	bound *key // the greatest that is taken, once others were dropped
}

func (rw *rewriter) sorted() error {
	var after *key
	for {
		p := &portion{after: after}
		if err := rw.gather(p); err != nil {
			return err
		}
		p.sort()
		if err := rw.writeItems(p); err != nil {
			return err
		}
		if p.bound == nil {
			return nil
		}
		last := p.items[len(p.items)-1].key
		after = &key{bytes.Clone(last.name), last.off}
		rw.last.name = bytes.Clone(rw.last.name)
	}
}

// gather fills a portion from the file. The first pass writes the header, too.
func (rw *rewriter) gather(p *portion) error {
	w := newWindow(rw.r, rw.size, 1<<20, maxWindow)
	_, header, err := rw.header(w)
	if err == nil && p.after == nil {
		err = rw.out.write(header)
	}
	if err != nil {
		return err
	}
	p.bytes = make([]byte, 0, min(rw.size, int64(rw.limit))+1)
	rw.next, rw.res.Orphans = 0, 0
	var rec record
	var ref parsed
	for w.next(&rec) {
		keep, err := rw.parse(&rec, &ref)
		if err != nil {
			return err
		}
		k := key{ref.name, rec.off}
		if !keep || p.after != nil && k.compare(*p.after) <= 0 || p.bound != nil && k.compare(*p.bound) > 0 {
			continue
		}
		p.add(&rec, k)
		if len(p.bytes)+len(p.items)*itemSize > rw.limit && len(p.items) > 1 {
			p.drop()
		}
	}
	return w.err
}

// add copies a record into the portion, ending its lines.
func (p *portion) add(rec *record, k key) {
	it := item{line: rec.line, start: len(p.bytes), refLen: len(rec.ref) + 1}
	p.bytes = append(append(p.bytes, rec.ref...), '\n')
	if rec.peelLen > 0 {
		p.bytes = append(append(p.bytes, rec.peel...), '\n')
	}
	it.len = len(p.bytes) - it.start
	end := it.start + it.refLen - 1
	it.key = key{p.bytes[end-len(k.name) : end : end], k.off}
	p.items = append(p.items, it)
}

func (p *portion) sort() {
	slices.SortFunc(p.items, func(a, b item) int { return a.compare(b.key) })
}

// drop keeps the lesser half.
func (p *portion) drop() {
	p.sort()
	old := p.bytes
	p.items = slices.Clone(p.items[:(len(p.items)+1)/2])
	p.bytes = make([]byte, 0, cap(old))
	for i := range p.items {
		it := &p.items[i]
		text := old[it.start : it.start+it.len]
		it.start = len(p.bytes)
		p.bytes = append(p.bytes, text...)
		end := it.start + it.refLen - 1
		it.name = p.bytes[end-len(it.name) : end : end]
	}
	bound := p.items[len(p.items)-1].key
	p.bound = &key{bytes.Clone(bound.name), bound.off}
}

// writeItems writes a portion in its order.
func (rw *rewriter) writeItems(p *portion) error {
	var ref parsed
	for i := range p.items {
		it := &p.items[i]
		text := p.bytes[it.start : it.start+it.len]
		rw.again(&ref, it, text)
		merged, err := rw.admit(&ref)
		if err != nil {
			return err
		}
		if merged {
			continue
		}
		if peel, change := rw.peelOf(&ref); change {
			if err := rw.out.write(text[:it.refLen]); err != nil {
				return err
			}
			text = peel
		}
		if err := rw.out.write(text); err != nil {
			return err
		}
	}
	return nil
}

// again takes a record of a portion apart, which parse has accepted.
func (rw *rewriter) again(p *parsed, it *item, text []byte) {
	n := rw.f.Size()
	*p = parsed{line: it.line, text: text[:it.refLen-1], hasPeel: it.len > it.refLen, edit: rw.editAt(it.off)}
	p.name, _ = splitRef(p.text, p.id[:n])
	if p.hasPeel {
		ok, upper := splitPeel(text[it.refLen:it.len-1], p.peel[:n])
		p.peelOK = ok && !upper
	}
}

// editAt finds the edit for an entry, in no order.
func (rw *rewriter) editAt(off int64) *Edit {
	edits := rw.plan.Edits
	i, found := slices.BinarySearchFunc(edits, off, func(e Edit, off int64) int { return cmp.Compare(e.Offset, off) })
	if !found {
		return nil
	}
	return &edits[i]
}
