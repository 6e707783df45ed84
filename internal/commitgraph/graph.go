package commitgraph

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"

	"refaudit/finding"
	"refaudit/oid"
)

// Graph is a chain of layers, or a single file. A commit is known by its place, which counts
// through the layers from the lowest up. It is safe for concurrent use.
type Graph struct {
	layers []*Layer // the lowest first
	size   int
	n      uint32
}

// MaxCommits is more than what a graph can hold: the numbers from here on have other meanings.
const MaxCommits = 0x70000000

// noParent stands where there is no parent, moreEdges marks the second parent as a place in EDGE,
// and the same bit ends a list there.
const (
	noParent  = 0x70000000
	moreEdges = 0x80000000
)

// ChainNames reads the file commit-graph-chain: one checksum a line, the lowest layer first. The
// file of a layer is graph-<checksum>.graph.
func ChainNames(name, text string, format oid.Format) ([]string, error) {
	var names []string
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		id, err := oid.Parse(line)
		if err != nil || id.Format() != format {
			return nil, &finding.Corrupt{ID: finding.BitmapUnusable, Pos: finding.Pos{File: name, Line: i + 1}, Err: fmt.Errorf("%q is no checksum", line)}
		}
		names = append(names, id.String())
	}
	return names, nil
}

// Stack puts layers on each other, the lowest first, and checks that each names the ones below it.
func Stack(layers ...*Layer) (*Graph, error) {
	g := &Graph{}
	for i, l := range layers {
		if g.size == 0 {
			g.size = l.size
		}
		if l.size != g.size {
			return nil, l.corrupt(5, "is of another object format than the layer below it")
		}
		if len(l.bases) != i*l.size {
			return nil, l.corrupt(7, "lies on %d layers, in a chain where there are %d", len(l.bases)/l.size, i)
		}
		for j, below := range layers[:i] {
			if !bytes.Equal(below.sum, l.bases[j*l.size:(j+1)*l.size]) {
				return nil, l.corrupt(8, "layer %d below it has another checksum", j)
			}
		}
		if uint64(g.n)+uint64(l.n) >= MaxCommits {
			return nil, l.corrupt(8, "%d commits are too many", uint64(g.n)+uint64(l.n))
		}
		own := *l
		own.below = g.n
		g.layers = append(g.layers, &own)
		g.n += l.n
	}
	return g, nil
}

// Len is the number of commits.
func (g *Graph) Len() int { return int(g.n) }

// Find looks a commit up, the upper layers first.
func (g *Graph) Find(id []byte) (uint32, bool) {
	for i := len(g.layers) - 1; i >= 0; i-- {
		if at, ok := g.layers[i].find(id); ok {
			return g.layers[i].below + at, true
		}
	}
	return 0, false
}

// layer is the one that a commit is in, and its place there.
func (g *Graph) layer(pos uint32) (*Layer, uint32) {
	for i := len(g.layers) - 1; i > 0; i-- {
		if l := g.layers[i]; pos >= l.below {
			return l, pos - l.below
		}
	}
	return g.layers[0], pos
}

// ID is the raw id of a commit.
func (g *Graph) ID(pos uint32) []byte {
	l, i := g.layer(pos)
	return l.id(i)
}

// Tree is the raw id of a commit's root tree.
func (g *Graph) Tree(pos uint32) []byte {
	l, i := g.layer(pos)
	at := int(i) * (l.size + 16)
	return l.data[at : at+l.size : at+l.size]
}

// Parents appends the places of a commit's parents to dst.
//
//	0           H               H+4              H+8                  H+16
//	+-----------+---------------+----------------+--------------------+
//	| root tree | u32 parent 1  | u32 parent 2   | generation, date   |
//	+-----------+---------------+----------------+--------------------+
//
// Parents are places in the graph. With the highest bit set, parent 2 is the place in EDGE of the
// second and further ones; the last of those has its highest bit set.
func (g *Graph) Parents(dst []uint32, pos uint32) ([]uint32, error) {
	l, i := g.layer(pos)
	row := l.data[int(i)*(l.size+16)+l.size:]
	first, second := binary.BigEndian.Uint32(row), binary.BigEndian.Uint32(row[4:])
	if first == noParent {
		if second != noParent {
			return dst, g.badParent(l, pos, second)
		}
		return dst, nil
	}
	limit := l.below + l.n
	if first >= limit {
		return dst, g.badParent(l, pos, first)
	}
	dst = append(dst, first)
	if second == noParent {
		return dst, nil
	}
	if second&moreEdges == 0 {
		if second >= limit {
			return dst, g.badParent(l, pos, second)
		}
		return append(dst, second), nil
	}
	for at := uint64(second&^moreEdges) * 4; at+4 <= uint64(len(l.edges)); at += 4 {
		e := binary.BigEndian.Uint32(l.edges[at:])
		if e&^moreEdges >= limit {
			return dst, g.badParent(l, pos, e&^moreEdges)
		}
		dst = append(dst, e&^moreEdges)
		if e&moreEdges != 0 {
			return dst, nil
		}
	}
	return dst, l.corrupt(8, "the list of parents of commit %d has no end", pos)
}

func (g *Graph) badParent(l *Layer, pos, parent uint32) error {
	return l.corrupt(8, "a parent of commit %d is said to be commit %d of %d", pos, parent, l.below+l.n)
}
