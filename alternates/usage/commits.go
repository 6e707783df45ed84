package usage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	"refaudit/internal/bitmap"
	"refaudit/internal/commitgraph"
	"refaudit/internal/vfs"
	"refaudit/oid"
)

// graph is a commit-graph that a walk uses.
type graph struct {
	*commitgraph.Graph
	seen    bitmap.Set
	trees   []uint32 // commits whose root trees are still to be looked up
	finds   int
	numbers []uint32 // of each place, none if it is nowhere; nil until many were asked for
}

// number is the number of a commit; false if it is nowhere. Places are in the order of ids, so all of
// them are found in little more time than a part of them here and there.
func (g *graph) number(sp *space, pos uint32) (uint32, bool) {
	if g.numbers == nil {
		if g.finds++; g.finds*4 < g.Len() {
			return g.find(sp, pos)
		}
		for _, s := range sp.stores {
			s.expect(g.Len())
		}
		g.numbers = make([]uint32, g.Len())
		for i := range g.numbers {
			v, ok := g.find(sp, uint32(i))
			if !ok {
				v = none
			}
			g.numbers[i] = v
		}
	}
	return g.numbers[pos], g.numbers[pos] != none
}

func (g *graph) find(sp *space, pos uint32) (uint32, bool) {
	id := oid.FromBytes(sp.format, g.ID(pos))
	return sp.find(&id)
}

// commitAt is a commit to be visited: a number, or a place in a graph.
type commitAt struct {
	g    int32 // -1: at is a number
	at   uint32
	from uint32 // number of the commit that names it
}

// commitsFrom walks commits, given by number, and gives the numbers of root trees, marked.
func (w *walk) commitsFrom(ctx context.Context, tips []uint32) ([]uint32, error) {
	c := &commitWalk{worker: w.newWorker(w.reader(0))}
	defer c.release()
	err := vfs.Guard(func() error {
		err := c.run(ctx, tips)
		c.lookUp()
		return err
	})
	if err != nil {
		return nil, err
	}
	roots, err := w.rootTrees()
	w.trouble(c.absent, c.broken)
	return append(roots, c.found...), err
}

type commitWalk struct {
	*worker
	todo  []commitAt
	buf   [commitHead]byte
	head  commit
	edges []uint32

	windows windows // of commits that are inflated
}

func (c *commitWalk) run(ctx context.Context, tips []uint32) error {
	if c.cover != nil {
		for _, v := range tips { // first: whatever they cover is not walked
			if _, err := c.cover.add(c.walk, v); err != nil {
				return err
			}
		}
		if err := c.cover.tips(c.walk, tips); err != nil {
			return err
		}
	}
	for _, v := range tips {
		c.todo = append(c.todo, c.place(v, none))
	}
	for n := 0; len(c.todo) > 0; n++ {
		if n&1023 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		at := c.todo[len(c.todo)-1]
		c.todo = c.todo[:len(c.todo)-1]
		if err := c.visit(at); err != nil {
			return err
		}
	}
	return nil
}

// place finds out whether a graph knows a commit.
func (c *commitWalk) place(v, from uint32) commitAt {
	if len(c.graphs) > 0 {
		id := c.sp.id(v)
		for g := range c.graphs {
			if pos, ok := c.graphs[g].Find(id.Bytes()); ok {
				return commitAt{int32(g), pos, from}
			}
		}
	}
	return commitAt{-1, v, from}
}

// visit marks a commit and goes on to its parents.
func (c *commitWalk) visit(at commitAt) error {
	v := at.at
	if at.g >= 0 {
		g := c.graphs[at.g]
		if g.seen.Has(at.at) {
			return nil
		}
		g.seen.Add(at.at)
		var ok bool
		if v, ok = g.number(c.sp, at.at); !ok {
			c.absent = append(c.absent, missing{oid.FromBytes(c.sp.format, g.ID(at.at)), at.from})
			return nil
		}
	}
	if c.stop != nil && c.stop.Has(v) {
		c.hit[oid.Commit].Add(v)
		return nil
	}
	if c.seen.Has(v) {
		return nil
	}
	if c.cover != nil {
		if covered, err := c.cover.add(c.walk, v); covered || err != nil {
			return err
		}
	}
	c.seen.Add(v)
	if c.kinds[oid.Commit] != nil {
		c.kinds[oid.Commit].Add(v)
	}
	if at.g >= 0 {
		return c.fromGraph(at.g, at.at, v)
	}
	known, err := c.ahead(v)
	if err != nil {
		return err
	}
	if known != nil && !c.decreed(v) {
		c.fromWindow(known, v)
		return nil
	}
	if err := c.inflate(v); err != nil {
		c.broken = append(c.broken, err)
	}
	return nil
}

// decreed tells whether a commit has other parents than it says.
func (c *commitWalk) decreed(v uint32) bool {
	if c.parents == nil {
		return false
	}
	_, ok := c.parents[c.sp.id(v)]
	return ok
}

// fromWindow goes on from a commit that was read ahead.
func (c *commitWalk) fromWindow(known *windowCommit, v uint32) {
	c.note(known.tree[:c.sp.format.Size()], true, v)
	for _, p := range known.parent[:known.parents] {
		if !c.seen.Has(p) {
			c.todo = append(c.todo, c.place(p, v))
		}
	}
}

// fromGraph goes on from a commit that a graph knows.
func (c *commitWalk) fromGraph(g int32, pos, v uint32) error {
	var err error
	gr := c.graphs[g]
	if c.edges, err = gr.Parents(c.edges[:0], pos); err != nil {
		return &badGraph{err}
	}
	gr.trees = append(gr.trees, pos)
	for _, p := range c.edges {
		if !gr.seen.Has(p) {
			c.todo = append(c.todo, commitAt{g, p, v})
		}
	}
	return nil
}

// badGraph is a commit-graph that turned out to be wrong: without it the walk can be made again.
type badGraph struct{ err error }

func (e *badGraph) Error() string { return e.err.Error() }
func (e *badGraph) Unwrap() error { return e.err }

// inflate goes on from a commit that is read for itself.
func (c *commitWalk) inflate(v uint32) error {
	if err := c.rd.commit(v, &c.head, c.buf[:]); err != nil {
		return err
	}
	c.note(c.head.tree.Bytes(), true, v)
	parents := c.head.parents
	if c.parents != nil {
		if decreed, ok := c.parents[c.sp.id(v)]; ok {
			parents = decreed
		}
	}
	for i := range parents {
		p, ok := c.sp.find(&parents[i])
		switch {
		case !ok:
			c.absent = append(c.absent, missing{parents[i], v})
		case !c.seen.Has(p):
			c.todo = append(c.todo, c.place(p, v))
		}
	}
	return nil
}

// rootTrees looks up the root trees of commits that came from graphs, and marks them.
func (w *walk) rootTrees() ([]uint32, error) {
	const step = 1 << 15
	type part struct {
		g        *graph
		from, to int
	}
	var parts []part
	for _, g := range w.graphs {
		for from := 0; from < len(g.trees); from += step {
			parts = append(parts, part{g, from, min(from+step, len(g.trees))})
		}
	}
	var mu sync.Mutex
	var roots []uint32
	var failed error
	inParallel(w.workers, len(parts), func(i int) {
		k := w.newWorker(nil)
		defer k.release()
		p := parts[i]
		err := vfs.Guard(func() error {
			for _, pos := range p.g.trees[p.from:p.to] {
				k.note(p.g.Tree(pos), true, none)
			}
			k.lookUp()
			return nil
		})
		mu.Lock()
		defer mu.Unlock()
		failed = errors.Join(failed, err)
		roots = append(roots, k.found...)
		w.trouble(k.absent, nil)
	})
	for _, g := range w.graphs {
		g.trees = g.trees[:0]
	}
	return roots, failed
}

// commit is what a walk needs of a commit.
type commit struct {
	tree    oid.ID
	parents []oid.ID
}

// commitHead is how much of a commit is inflated at first: its tree, and a few parents.
const commitHead = 512

var errCommit = errors.New("a malformed commit")

// commit reads the commit under a number; buf is room to work in.
func (r *reader) commit(v uint32, into *commit, buf []byte) error {
	data, whole, err := r.commitText(v, buf)
	if err == nil {
		if more, bad := into.parse(data, r.sp.format); bad == nil && (whole || !more) {
			return nil
		}
	}
	o, err := r.read(v)
	if err != nil {
		return err
	}
	if o.kind != oid.Commit {
		return fmt.Errorf("object %v is a %v, not a commit", r.sp.id(v), o.kind)
	}
	if _, err = into.parse(o.data, r.sp.format); err != nil {
		return fmt.Errorf("object %v: %w", r.sp.id(v), err)
	}
	return nil
}

var errDelta = errors.New("is a delta")

// commitText is the beginning of a commit that is stored whole in a pack; whole tells that it is all.
func (r *reader) commitText(v uint32, buf []byte) (data []byte, whole bool, err error) {
	si := r.sp.storeOf(v)
	p, pos := r.sp.stores[si].packOf(v - r.sp.first[si])
	if p == nil {
		return nil, false, errDelta
	}
	e, err := p.src.Entry(p.offset(pos))
	if err != nil || e.Kind.Kind() != oid.Commit {
		return nil, false, errDelta
	}
	src := p.body[e.Data:]
	if e.Size <= uint64(len(buf)) {
		_, err = r.z.InflateChecked(buf[:e.Size], src)
		return buf[:e.Size], true, err
	}
	_, err = r.z.Prefix(buf, src)
	return buf, false, err
}

// parse reads the header lines; more tells that the text may end within the parents.
//
//	tree <id>
//	parent <id>      any number of them
//	author ...
func (c *commit) parse(text []byte, format oid.Format) (more bool, err error) {
	hex := format.HexLen()
	c.parents = c.parents[:0]
	if len(text) < 6+hex || !bytes.HasPrefix(text, []byte("tree ")) || text[5+hex] != '\n' || !parseHex(&c.tree, text[5:], format) {
		return false, errCommit
	}
	text = text[6+hex:]
	for bytes.HasPrefix(text, []byte("parent ")) {
		if len(text) < 8+hex {
			return true, errCommit
		}
		var id oid.ID
		if text[7+hex] != '\n' || !parseHex(&id, text[7:], format) {
			return false, errCommit
		}
		c.parents = append(c.parents, id)
		text = text[8+hex:]
	}
	return len(text) < len("parent "), nil
}

func parseHex(id *oid.ID, text []byte, format oid.Format) bool {
	var raw [oid.MaxSize]byte
	ok := oid.DecodeHex(raw[:format.Size()], text)
	*id = oid.FromBytes(format, raw[:])
	return ok
}
