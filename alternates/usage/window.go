package usage

import (
	"refaudit/internal/vfs"
	"refaudit/oid"
)

// Commits that no graph knows are inflated. Each leads to the next, so a walk alone would keep one
// processor busy; but they lie close together in a pack. A window is a row of numbers whose commits are
// read at once, by all processors, when the walk has come to a few of them.
type window struct {
	first   uint32 // number
	commits []windowCommit
	left    int // of the commits, those that the walk has not come to
}

// windowCommit is a commit that is stored whole in a pack, whose parents are known. parents is notRead
// where there is no such commit.
type windowCommit struct {
	tree    [oid.MaxSize]byte
	parent  [2]uint32 // numbers
	parents int8
}

const (
	windowBits  = 11
	windowAfter = 32 // commits of it that the walk has read one by one
	windowPart  = 128
	notRead     = -1
)

// windows are those that a walk has met.
type windows struct {
	all  map[uint32]*window // by the higher bits of numbers; one whose commits are all used is nil
	once map[uint32]int     // where there is no window yet: how many commits were read one by one
}

// ahead is what was read of a commit before the walk came to it, nil if nothing.
func (c *commitWalk) ahead(v uint32) (*windowCommit, error) {
	key := v >> windowBits
	w, ok := c.windows.all[key]
	if !ok {
		if c.windows.all == nil {
			c.windows = windows{map[uint32]*window{}, map[uint32]int{}}
		}
		if c.windows.once[key]++; c.workers < 2 || c.windows.once[key] <= windowAfter {
			return nil, nil
		}
		var err error
		if w, err = c.readWindow(key << windowBits); err != nil {
			return nil, err
		}
		c.windows.all[key] = w
	}
	if w == nil || w.commits[v-w.first].parents == notRead {
		return nil, nil
	}
	if w.left--; w.left == 0 {
		c.windows.all[key] = nil
	}
	return &w.commits[v-w.first], nil
}

// readWindow reads the commits from a number on that the walk has not come to.
func (c *commitWalk) readWindow(first uint32) (*window, error) {
	w := &window{first: first, commits: make([]windowCommit, min(1<<windowBits, c.sp.size-first))}
	for _, s := range c.sp.stores {
		s.expect(len(w.commits))
	}
	parts := (len(w.commits) + windowPart - 1) / windowPart
	readers := make(chan *reader, c.workers)
	for i := range c.workers {
		readers <- c.reader(i)
	}
	errs, read := make([]error, parts), make([]int, parts)
	inParallel(c.workers, parts, func(i int) {
		rd := <-readers
		defer func() { readers <- rd }()
		from := i * windowPart
		part := w.commits[from:min(from+windowPart, len(w.commits))]
		errs[i] = vfs.Guard(func() error {
			read[i] = c.readCommits(rd, first+uint32(from), part)
			return nil
		})
	})
	for i, err := range errs {
		if err != nil {
			return nil, err
		}
		w.left += read[i]
	}
	if w.left == 0 {
		return nil, nil
	}
	return w, nil
}

// readCommits fills a part of a window, and counts what it has read.
func (c *commitWalk) readCommits(rd *reader, first uint32, into []windowCommit) (n int) {
	l := parentLookUp{sp: c.sp}
	var buf [commitHead]byte
	var one commit
	for i := range into {
		v, to := first+uint32(i), &into[i]
		to.parents = notRead
		if c.seen.Has(v) || !c.sp.isPacked(v) {
			continue
		}
		text, whole, err := rd.commitText(v, buf[:])
		if err != nil {
			continue // not a commit, or one to be read, and complained of, by itself
		}
		more, err := one.parse(text, c.sp.format)
		if err != nil || more && !whole || len(one.parents) > len(to.parent) {
			continue
		}
		to.parents = int8(len(one.parents))
		copy(to.tree[:], one.tree.Bytes())
		for k := range one.parents {
			l.add(&one.parents[k], to, k)
		}
	}
	l.flush()
	for i := range into {
		if into[i].parents != notRead {
			n++
		}
	}
	return n
}

// isPacked tells whether there is an object in a pack under a number.
func (sp *space) isPacked(v uint32) bool {
	i := sp.storeOf(v)
	p, pos := sp.stores[i].packOf(v - sp.first[i])
	return p != nil && int(pos) < len(p.index)
}

// parentLookUp looks parents up, many at a time. A commit that has a parent that is nowhere is not read.
type parentLookUp struct {
	sp      *space
	n       int
	ids     [together]oid.ID
	of      [together]*windowCommit
	place   [together]int
	touched byte
}

func (l *parentLookUp) add(id *oid.ID, of *windowCommit, place int) {
	l.ids[l.n], l.of[l.n], l.place[l.n] = *id, of, place
	if l.n++; l.n == together {
		l.flush()
	}
}

func (l *parentLookUp) flush() {
	var raw [together][]byte
	var found [together]uint32
	for i := range l.n {
		raw[i] = l.ids[i].Bytes()
	}
	l.touched ^= l.sp.findAll(raw[:l.n], found[:])
	for i := range l.n {
		if l.of[i].parent[l.place[i]] = found[i]; found[i] == none {
			l.of[i].parents = notRead
		}
	}
	l.n = 0
}
