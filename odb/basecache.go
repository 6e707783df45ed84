package odb

import (
	"math/bits"

	"refaudit/oid"
)

// baseCache keeps objects that deltas may need as their base, the most recently used ones, up to
// a limit. It recycles the buffers of those that it drops.
type baseCache struct {
	limit int
	size  int // of the buffers that are kept
	items map[baseKey]*base
	head  base // of a ring: next is the most recently used, prev the least
	spare [65][][]byte
	idle  int    // bytes in spare
	alone []byte // too large to keep: in use until release
}

type baseKey struct {
	pack *Pack
	off  uint64
}

type base struct {
	key        baseKey
	kind       oid.Kind
	content    []byte
	prev, next *base
}

func (c *baseCache) has(p *Pack, off uint64) bool {
	_, ok := c.items[baseKey{p, off}]
	return ok
}

// get is an object that the cache has.
func (c *baseCache) get(p *Pack, off uint64) (oid.Kind, []byte) {
	b := c.items[baseKey{p, off}]
	b.unlink()
	c.push(b)
	return b.kind, b.content
}

// put keeps content, which must come from buffer; it is valid until the object that is put
// after the next one.
func (c *baseCache) put(p *Pack, off uint64, kind oid.Kind, content []byte) {
	if cap(content) > c.limit/4 {
		c.recycle(c.alone)
		c.alone = content
		return
	}
	if c.items == nil {
		c.items = map[baseKey]*base{}
		c.head.prev, c.head.next = &c.head, &c.head
	}
	c.size += cap(content)
	for c.size > c.limit {
		old := c.head.prev
		old.unlink()
		delete(c.items, old.key)
		c.size -= cap(old.content)
		c.recycle(old.content)
	}
	b := &base{key: baseKey{p, off}, kind: kind, content: content}
	c.items[b.key] = b
	c.push(b)
}

// release gives back what was too large to keep.
func (c *baseCache) release() {
	c.recycle(c.alone)
	c.alone = nil
}

// buffer is n bytes of room.
func (c *baseCache) buffer(n int) []byte {
	class := bits.Len(uint(max(n, 64) - 1))
	if s := c.spare[class]; len(s) > 0 {
		b := s[len(s)-1]
		c.spare[class] = s[:len(s)-1]
		c.idle -= cap(b)
		return b[:n]
	}
	return make([]byte, n, 1<<class)
}

func (c *baseCache) recycle(b []byte) {
	if size := cap(b); size >= 64 && size&(size-1) == 0 && c.idle+size <= c.limit/2 {
		class := bits.Len(uint(size - 1))
		c.spare[class] = append(c.spare[class], b)
		c.idle += size
	}
}

func (c *baseCache) push(b *base) {
	b.prev, b.next = &c.head, c.head.next
	b.prev.next, b.next.prev = b, b
}

func (b *base) unlink() {
	b.prev.next, b.next.prev = b.next, b.prev
}
