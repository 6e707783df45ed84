package reftable

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"slices"

	"refaudit/finding"
)

// namedObjects are the objects that refs name, and the blocks in which they do. Of an id only
// the bytes count that object records keep, and of these no more than eight: ids that begin
// alike so far are taken as one.
type namedObjects struct {
	keep int // bytes
	seen []named
	offs []int64
	cut  map[int64]bool // blocks of which not all records are known
}

type named struct {
	head  uint64 // the first bytes of the id, then zeros
	block uint32 // counted
}

func (n *namedObjects) begin(t *Table) {
	if t.Obj != 0 {
		n.keep = min(t.ObjIDLen, 8)
	}
}

func (n *namedObjects) add(r *Ref) {
	if n.keep == 0 || r.Value == nil {
		return
	}
	if len(n.offs) == 0 || n.offs[len(n.offs)-1] != r.Block {
		n.offs = append(n.offs, r.Block)
	}
	block := uint32(len(n.offs) - 1)
	n.seen = append(n.seen, named{n.head(r.Value), block})
	if r.Peel != nil {
		n.seen = append(n.seen, named{n.head(r.Peel), block})
	}
}

// head is the part of an id that counts; id may be shorter.
func (n *namedObjects) head(id []byte) uint64 {
	var b [8]byte
	copy(b[:n.keep], id)
	return binary.BigEndian.Uint64(b[:])
}

func (n *namedObjects) text(head uint64) string {
	return hex.EncodeToString(binary.BigEndian.AppendUint64(nil, head)[:n.keep])
}

// sort brings together what is of one object, in the order of blocks.
func (n *namedObjects) sort() {
	slices.SortFunc(n.seen, func(a, b named) int {
		return cmp.Or(cmp.Compare(a.head, b.head), cmp.Compare(a.block, b.block))
	})
	n.seen = slices.Compact(n.seen)
}

// take removes the entries of head, which must be the lowest there is, and gives their blocks.
func (n *namedObjects) take(head uint64) []named {
	i := 0
	for i < len(n.seen) && n.seen[i].head == head {
		i++
	}
	found := n.seen[:i]
	n.seen = n.seen[i:]
	return found
}

// objects holds the object records against what the refs name: every object that a ref names
// or peels to must be there, with every block, and no block more.
func (v *verifier) objects() {
	it := v.t.ObjIter()
	v.obj.begin(v, &it.walk)
	n := &v.named
	n.sort()
	g := objGroup{v: v, it: it}
	var last []byte
	for it.Next() {
		o := &it.obj
		v.obj.step(&it.walk, int(o.Offset-o.Block))
		if bytes.Compare(o.Prefix, last) <= 0 {
			v.block(finding.ReftableBlockOrder, o.Block, o.Offset, o.Length, "object record %x does not sort behind the one before it", o.Prefix)
			v.obj.unsorted = true
		}
		last = append(last[:0], o.Prefix...)
		if len(o.Prefix) != v.t.ObjIDLen {
			v.block(finding.ReftableRecord, o.Block, o.Offset, o.Length, "object record keeps %d bytes of an id, the footer says %d", len(o.Prefix), v.t.ObjIDLen)
		}
		if head := n.head(o.Prefix); !g.begun || head != g.head {
			g.finish()
			g = objGroup{v: v, it: it, begun: true, head: head, places: g.places[:0]}
		}
		g.add(o)
	}
	g.finish()
	v.obj.end(&it.walk)
	switch {
	case n.keep == 0:
	case v.obj.lost || v.obj.unsorted:
		v.say(finding.New(finding.AuditSkipped, finding.Pos{File: v.t.file, Offset: v.t.Obj, Placed: true},
			"object records could not all be read in order, so it is not known whether every object has one"))
	default:
		for len(n.seen) > 0 {
			v.missing(n.seen[0].head, v.t.Obj, v.t.Obj, 0)
		}
	}
}

// missing reports all of an object's blocks as missing from the object records.
func (v *verifier) missing(head uint64, blk, off, length int64) {
	for _, e := range v.named.take(head) {
		v.block(finding.ReftableObjIndexStale, blk, off, length, "object records lack the id %s…, which a ref in the block at %d names", v.named.text(head), v.named.offs[e.block])
	}
}

// objGroup is the records of one object, more than one only where ids begin alike for long.
type objGroup struct {
	v                *verifier
	it               *ObjIter
	begun            bool
	head             uint64
	places           []int64
	any              bool // a record without positions: any block may name it
	blk, off, length int64
}

func (g *objGroup) add(o *Obj) {
	g.blk, g.off, g.length = o.Block, o.Offset, o.Length
	if len(o.Blocks) == 0 {
		g.any = true
	}
	for i, at := range o.Blocks {
		if i > 0 && at <= o.Blocks[i-1] {
			g.say(finding.ReftableRecord, "object record of %x… names the block at %d behind the one at %d", o.Prefix, at, o.Blocks[i-1])
		}
	}
	g.places = append(g.places, o.Blocks...)
}

func (g *objGroup) say(id finding.ID, format string, args ...any) {
	g.v.block(id, g.blk, g.off, g.length, format, args...)
}

// finish compares the group with the refs.
func (g *objGroup) finish() {
	n := &g.v.named
	if !g.begun || n.keep == 0 || g.v.obj.unsorted {
		return
	}
	for len(n.seen) > 0 && n.seen[0].head < g.head { // no record speaks of these
		if g.it.lost == 0 {
			g.v.missing(n.seen[0].head, g.blk, g.off, g.length)
		} else {
			n.take(n.seen[0].head)
		}
	}
	refs := n.take(g.head)
	if g.any {
		switch room := cmp.Or(g.v.t.BlockSize, DefaultBlockSize) - 64; {
		case g.v.ref.lost:
		case len(refs) == 0:
			g.say(finding.ReftableObjIndexStale, "object record of %s… is stale: no ref names it any more", n.text(g.head))
		case len(refs)*maxVarint < room:
			g.say(finding.ReftableObjIndexStale, "object record of %s… names no block, as if there were too many: refs in %d blocks name it", n.text(g.head), len(refs))
		}
		return
	}
	slices.Sort(g.places)
	g.places = slices.Compact(g.places)
	for _, at := range g.places {
		for len(refs) > 0 && n.offs[refs[0].block] < at {
			g.lacks(refs[0])
			refs = refs[1:]
		}
		if len(refs) > 0 && n.offs[refs[0].block] == at {
			refs = refs[1:]
			continue
		}
		g.stale(at)
	}
	for _, e := range refs {
		g.lacks(e)
	}
}

func (g *objGroup) lacks(e named) {
	n := &g.v.named
	g.say(finding.ReftableObjIndexStale, "object record of %s… lacks the block at %d, where a ref names it", n.text(g.head), n.offs[e.block])
}

// stale judges a position at which no ref that was read names the object.
func (g *objGroup) stale(at int64) {
	v := g.v
	_, known := slices.BinarySearchFunc(v.ref.leaves, at, func(l leaf, at int64) int { return cmp.Compare(l.off, at) })
	_, cut := v.named.cut[at]
	switch {
	case cut || !known && v.ref.lost: // it may be among what could not be read
	case !known:
		g.say(finding.ReftableObjIndexStale, "object record of %s… leads to %d, where no block of refs begins", v.named.text(g.head), at)
	default:
		g.say(finding.ReftableObjIndexStale, "object record of %s… is stale: no ref in the block at %d names it any more", v.named.text(g.head), at)
	}
}
