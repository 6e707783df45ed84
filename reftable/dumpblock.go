package reftable

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"refaudit/finding"
	"refaudit/oid"
)

// blocks gives all blocks, from the header to the footer, one behind the other.
func (d *dumper) blocks() {
	t := d.t
	d.listStarts()
	for off := int64(0); t.hasBlocks() && off < t.end && d.err == nil; {
		next, bad := d.block(off)
		if bad != nil {
			next = d.skip(off, bad)
		}
		off = next
	}
}

// listStarts collects where blocks should begin, for going on behind damage.
func (d *dumper) listStarts() {
	t := d.t
	for _, x := range []struct {
		root int64
		kind byte
	}{{t.RefIndex, kindRef}, {t.ObjIndex, kindObj}, {t.LogIndex, kindLog}} {
		if x.root != 0 {
			d.starts = append(append(d.starts, x.root), t.leaves(x.root, x.kind)...)
		}
	}
	for _, at := range []int64{t.Obj, t.Log} {
		if at != 0 {
			d.starts = append(d.starts, at)
		}
	}
	slices.Sort(d.starts)
	d.starts = slices.Compact(d.starts)
}

// skip gives a block that can't be read, and tells where the next one begins. If only its
// length can't be, its records are given as far as they can.
func (d *dumper) skip(off int64, bad *finding.Corrupt) int64 {
	d.damage(bad)
	kind, length, _ := d.t.blockAt(&d.w, off)
	to := d.after(off)
	d.blk = off
	head := int64(d.t.head(off)) // which was given
	b := block{kind: kind, off: off, head: int(head), next: to}
	if d.decodes(kind) && to-off >= head+4 {
		b.data = d.read(off, int(min(to-off, MaxBlockSize)))
		b.recs = len(b.data)
		d.begin(&b, fmt.Sprintf("that claims %d bytes", length))
		d.open = true
		d.records(&b)
		d.open = false
		d.raw(PartRaw, off+int64(len(b.data)), to, "not looked at")
	} else {
		d.raw(PartRaw, off+head, to, "block that can't be read")
	}
	if to < d.t.end {
		d.resumed(to, false)
	}
	return to
}

// decodes tells whether blocks of this kind hold their records as they are.
func (d *dumper) decodes(kind byte) bool {
	return kind == kindRef || kind == kindIndex || kind == kindObj
}

// after is the next place behind off at which a block can be read, or the end.
func (d *dumper) after(off int64) int64 {
	t := d.t
	to := t.end
	for len(d.starts) > 0 && to == t.end { // those behind off that can't be read will not be later
		if at := d.starts[0]; at > off && d.readable(at) {
			to = at
			break
		}
		d.starts = d.starts[1:]
	}
	if size := int64(t.BlockSize); size > 0 {
		for at := off + size; at < to; at += size {
			if d.readable(at) {
				return at
			}
		}
	}
	if at := d.inf.search(t, &d.w, max(off+1, int64(headerLen(t.Version))), to); at != 0 {
		return at
	}
	return to
}

func (d *dumper) readable(off int64) bool {
	var b block
	switch kind, _, bad := d.t.blockAt(&d.w, off); {
	case bad != nil || off < int64(headerLen(d.t.Version)):
		return false
	case kind == kindLog:
		return d.inf.try(d.t, &d.w, off, &b)
	default:
		return isKind(kind) && d.t.readBlock(&d.w, off, &b) == nil
	}
}

// block gives one block with its padding, and tells where the next begins.
func (d *dumper) block(off int64) (next int64, bad *finding.Corrupt) {
	kind, length, bad := d.t.blockAt(&d.w, off)
	if bad != nil {
		return 0, bad
	}
	d.blk = off
	var b block
	if kind == kindLog {
		if bad := d.inf.read(d.t, &d.w, off, &b); bad != nil {
			return 0, bad
		}
		d.log(&b)
		return b.next, nil
	}
	if !d.decodes(kind) {
		return 0, d.t.corrupt(finding.ReftableBlockOrder, off, off, 1, "block of kind %q does not exist", kind)
	}
	bad = d.t.readBlock(&d.w, off, &b)
	if bad != nil && b.data == nil {
		return 0, bad
	}
	if bad != nil { // the records are there, and where they end is not known
		d.damage(bad)
		b.restarts, b.recs, d.open = 0, length-2, true
	}
	d.begin(&b, fmt.Sprintf("of %d bytes", length))
	d.records(&b)
	d.open = false
	d.restarts(&b)
	d.padding(&b)
	return b.next, nil
}

func (d *dumper) begin(b *block, how string) {
	names := map[byte]string{kindRef: "refs", kindIndex: "index", kindObj: "objects", kindLog: "logs"}
	d.emit(Part{Kind: PartBlock, Offset: b.off + int64(b.head), Length: 4, Bytes: b.data[b.head:b.first()], Text: "block of " + names[b.kind] + " " + how})
}

func (d *dumper) log(b *block) {
	from := b.off + int64(b.first())
	d.begin(b, fmt.Sprintf("of %d bytes inflated", len(b.data)))
	packed := b.next - from
	d.raw(PartPacked, from, b.next, fmt.Sprintf("%d bytes, the block's records deflated", packed))
	d.records(b)
	d.restarts(b)
}

// A decoder reads the record at hand of its walk.
type decoder interface{ decode() bool }

// indexDecoder reads index blocks as the iterators read theirs.
type indexDecoder struct {
	walk
	rec indexRecord
}

func (x *indexDecoder) decode() bool {
	if x.fresh {
		x.rec.key = x.rec.key[:0]
	}
	last := bytes.Clone(x.rec.key)
	next, bad := x.t.nextIndex(&x.blk, x.p, &x.rec)
	if bad != nil {
		x.fault(bad)
		return false
	}
	if x.ordered && bytes.Compare(x.rec.key, last) <= 0 {
		x.fault(x.t.corrupt(finding.ReftableBlockOrder, x.blk.off, x.blk.place(x.p), int64(next-x.p), "index key %q does not sort behind the one before it", x.rec.key))
	}
	x.p, x.fresh, x.ordered = next, false, true
	return true
}

// records gives the records of a block.
func (d *dumper) records(b *block) {
	switch b.kind {
	case kindRef:
		d.each(b, &d.refs.walk, d.refs, PartRef, d.aboutRef)
	case kindObj:
		d.each(b, &d.objs.walk, d.objs, PartObject, d.aboutObject)
	case kindLog:
		d.each(b, &d.logs.walk, d.logs, PartLog, d.aboutLog)
	case kindIndex:
		x := &indexDecoder{walk: d.walk(kindIndex)}
		d.each(b, &x.walk, x, PartIndex, func() string {
			return fmt.Sprintf("block at %d ends with %q", x.rec.child, x.rec.key)
		})
	}
}

// each gives the records of a block one by one. Where their end is not known, the first that can't be is it.
func (d *dumper) each(b *block, s *walk, dec decoder, kind PartKind, about func() string) {
	s.blk, s.recs, s.p, s.fresh, s.err = *b, b.data[:b.recs], b.first(), true, nil
	for s.p < len(s.recs) && d.err == nil {
		start := s.p
		if dec.decode() {
			d.piece(b, kind, start, s.p, about())
			continue
		}
		to := b.restartAfter(start)
		if to == 0 {
			to = len(s.recs)
		}
		d.piece(b, PartRaw, start, to, "no record")
		if to < len(s.recs) {
			d.resumed(b.offset(to))
		}
		s.p, s.fresh = to, true
	}
}

// piece gives a part of a block.
func (d *dumper) piece(b *block, kind PartKind, from, to int, text string) {
	if from == to {
		return
	}
	off, inflated := b.offset(from)
	d.emit(Part{Kind: kind, Offset: off, Length: int64(to - from), Bytes: b.data[from:to], Inflated: inflated, Text: text})
}

// offset is where in the file, or in the inflated block, a place in a block is.
func (b *block) offset(p int) (off int64, inflated bool) {
	if b.kind == kindLog {
		return int64(p), true
	}
	return b.off + int64(p), false
}

func (d *dumper) restarts(b *block) {
	text := "restarts at"
	for i := range min(b.restarts, maxListed) {
		text += fmt.Sprintf(" %d", b.restart(i))
	}
	if b.restarts > maxListed {
		text += " …"
	}
	if b.restarts == 0 {
		text = "restarts: none that can be"
	}
	d.piece(b, PartRestart, b.recs, len(b.data), text)
}

// maxListed is how many positions a line names.
const maxListed = 16

// padding gives what stands behind a block.
func (d *dumper) padding(b *block) {
	end := b.off + int64(len(b.data))
	next := min(b.next, d.t.end)
	d.raw(PartPadding, end, next, fmt.Sprintf("padding up to %d", next))
	b.next = next
}

func (d *dumper) aboutRef() string {
	r := &d.refs.ref
	text := fmt.Sprintf("%q at update index %d: %v", r.Name, r.UpdateIndex, r.Type)
	switch r.Type {
	case Direct:
		text += " " + d.id(r.Value)
	case Peeled:
		text += " " + d.id(r.Value) + " peeled " + d.id(r.Peel)
	case Symref:
		text += fmt.Sprintf(" to %q", r.Target)
	}
	return text
}

func (d *dumper) id(raw []byte) string { return oid.FromBytes(d.t.Format, raw).String() }

func (d *dumper) aboutObject() string {
	o := &d.objs.obj
	if len(o.Blocks) == 0 {
		return fmt.Sprintf("id %x…: in any block of refs", o.Prefix)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "id %x…: in blocks at", o.Prefix)
	for i, at := range o.Blocks {
		if i == maxListed {
			text.WriteString(" …")
			break
		}
		fmt.Fprintf(&text, " %d", at)
	}
	return text.String()
}

func (d *dumper) aboutLog() string {
	l := &d.logs.log
	if l.Type == LogDeletion {
		return fmt.Sprintf("%q at update index %d: deletion", l.Name, l.UpdateIndex)
	}
	return fmt.Sprintf("%q at update index %d: %s to %s, %q <%s> %d zone %+d, %q", l.Name, l.UpdateIndex,
		d.id(l.Old), d.id(l.New), l.Committer, l.Email, l.Time, l.Zone, l.Message)
}
