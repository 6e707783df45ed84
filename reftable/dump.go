package reftable

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"refaudit/finding"
)

// PartKind is what a part of a dump is.
type PartKind string

// The kinds of part. Damage and Resumed are remarks between parts, and have no bytes.
const (
	PartHeader  PartKind = "header"
	PartBlock   PartKind = "block" // kind and length of a block
	PartRef     PartKind = "ref"
	PartIndex   PartKind = "index"
	PartObject  PartKind = "object"
	PartLog     PartKind = "log"
	PartRestart PartKind = "restarts"
	PartPacked  PartKind = "deflated" // what the parts with Inflated, that follow it, are made of
	PartPadding PartKind = "padding"
	PartFooter  PartKind = "footer"
	PartRaw     PartKind = "raw" // bytes that could not be decoded
	PartDamage  PartKind = "damage"
	PartResumed PartKind = "resumed"
)

// Part is one piece of a table and what it means. Its Bytes hold until the callback returns.
type Part struct {
	Kind     PartKind
	Offset   int64 // in the file; with Inflated, in the inflated block, its header counted
	Length   int64
	Bytes    []byte
	Inflated bool
	Block    int64            // where the block at hand begins; -1 outside blocks
	Text     string           // what it means, in one line
	Damage   *finding.Corrupt // of PartDamage
}

// rawChunk is the most that one part of raw bytes or padding has.
const rawChunk = 32 << 10

// Dump gives a table piece by piece, in the order of the file, whatever state it is in: the
// parts that are not Inflated cover each byte once. Damage is told before the bytes that could
// not be decoded, and then where decoding was resumed. The error is fn's, or that of a read.
func Dump(r io.ReaderAt, size int64, file string, fn func(*Part) error) error {
	d := &dumper{fn: fn, blk: -1}
	d.t = &Table{r: r, file: file, size: size, end: size}
	d.w = d.t.window(size, scanWindow)
	d.table()
	return d.err
}

type dumper struct {
	t   *Table
	w   window
	fn  func(*Part) error
	err error
	blk int64 // the block at hand
	// readers of the records of each kind, so that order is judged across blocks
	refs   *RefIter
	objs   *ObjIter
	logs   *LogIter
	inf    inflater
	open   bool    // the end of the records at hand is not known
	starts []int64 // where indexes and the footer say that blocks begin
}

// emit gives one part.
func (d *dumper) emit(p Part) {
	if d.err == nil {
		p.Block = d.blk
		d.err = d.fn(&p)
	}
}

func (d *dumper) damage(bad *finding.Corrupt) {
	d.emit(Part{Kind: PartDamage, Offset: bad.Pos.Offset, Text: fmt.Sprintf("%s: %v", bad.ID, bad.Err), Damage: bad})
}

func (d *dumper) resumed(off int64, inflated bool) {
	d.emit(Part{Kind: PartResumed, Offset: off, Inflated: inflated, Text: fmt.Sprintf("resumed at %d", off)})
}

// read is the bytes [off, off+n), for which the file must be long enough. A read that fails ends the dump.
func (d *dumper) read(off int64, n int) []byte {
	b, bad := d.w.at(off, n)
	if bad != nil && d.err == nil {
		d.err = bad
	}
	return b
}

// raw gives bytes as they are, in pieces.
func (d *dumper) raw(kind PartKind, off, end int64, text string) {
	for off < end && d.err == nil {
		n := int(min(end-off, rawChunk))
		b := d.read(off, n)
		if len(b) < n {
			return
		}
		d.emit(Part{Kind: kind, Offset: off, Length: int64(n), Bytes: b, Text: text})
		off += int64(n)
	}
}

func (d *dumper) table() {
	if !d.frame() {
		d.raw(PartRaw, 0, d.t.size, "no reftable")
		return
	}
	d.w.end = d.t.end
	d.refs = &RefIter{walk: d.walk(kindRef), idLen: d.t.Format.Size()}
	d.objs = &ObjIter{walk: d.walk(kindObj)}
	d.logs = &LogIter{walk: d.walk(kindLog), idLen: d.t.Format.Size()}
	d.header()
	d.blocks()
	d.w = d.t.window(d.t.size, scanWindow)
	d.blk = -1
	d.footer()
}

func (d *dumper) walk(kind byte) walk {
	s := d.t.walk(kind, 0)
	s.told = true
	s.Damage = func(bad *finding.Corrupt) error {
		if !d.open {
			d.damage(bad)
		}
		return d.err
	}
	return s
}

// frame finds out how the table is built, from the footer or, where that is damaged, from the
// header; false if neither says anything. What is wrong with them is told when they are given.
func (d *dumper) frame() bool {
	t := d.t
	head, _ := d.w.at(0, firstLook)
	head = bytes.Clone(head)
	h, err := parseHeader(head, t.file, 0)
	for _, version := range []int{1, 2} {
		at := t.size - int64(footerLen(version))
		if err == nil && version != h.Version || at < int64(headerLen(version)) {
			continue
		}
		tail, bad := d.w.at(at, footerLen(version))
		if bad != nil || !bytes.HasPrefix(tail, []byte(magic)) || int(tail[4]) != version {
			continue
		}
		t.end = at
		if f, err := parseFooter(tail, version, t.file, at); err == nil {
			t.Footer = f
			t.checkPositions()
			t.lookAtFirst(head)
			return true
		}
	}
	if err != nil || t.end < int64(headerLen(h.Version)) {
		d.trouble(err)
		return false
	}
	t.Header = h
	t.lookAtFirst(head)
	return true
}

func (d *dumper) header() {
	n := headerLen(d.t.Version)
	b := d.read(0, n)
	h, err := parseHeader(b, d.t.file, 0)
	d.trouble(err)
	text := fmt.Sprintf("version %d, block size %d, update indexes %d to %d, %v", h.Version, h.BlockSize, h.Min, h.Max, h.Format)
	if err != nil {
		text = "header that can't be read; the footer was"
	} else if i := firstDifference(b, d.t.Header.append(nil)); i >= 0 {
		d.damage(&finding.Corrupt{ID: finding.ReftableCrc, Pos: finding.Pos{File: d.t.file, Offset: int64(i), Placed: true}, Err: errors.New("header differs from its copy in the footer, whose checksum is right")})
	}
	d.emit(Part{Kind: PartHeader, Length: int64(n), Bytes: b, Text: text})
}

// trouble tells of an error that is damage.
func (d *dumper) trouble(err error) {
	if bad, ok := errors.AsType[*finding.Corrupt](err); ok {
		d.damage(bad)
	}
}

func (d *dumper) footer() {
	t := d.t
	n := int(t.size - t.end)
	if n == 0 {
		d.damage(&finding.Corrupt{ID: finding.ReftableUnreadable, Pos: finding.Pos{File: t.file, Offset: t.size, Placed: true}, Err: errors.New("the file ends without a footer")})
		return
	}
	b := d.read(t.end, n)
	f, err := parseFooter(b, t.Version, t.file, t.end)
	d.trouble(err)
	for _, bad := range t.faults {
		d.damage(bad)
	}
	text := "footer that can't be believed"
	if err == nil {
		text = fmt.Sprintf("ref index at %d, objects at %d with %d bytes of each id, object index at %d, logs at %d, log index at %d, checksum is right",
			f.RefIndex, f.Obj, f.ObjIDLen, f.ObjIndex, f.Log, f.LogIndex)
	}
	d.emit(Part{Kind: PartFooter, Offset: t.end, Length: int64(n), Bytes: b, Text: text})
}
