package usage

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync"

	"refaudit/internal/bitmap"
	"refaudit/oid"
)

// closureCache remembers what some commits of pools reach: forks that have left their pool at the
// same commits share it. It is safe for concurrent use.
type closureCache struct {
	mu   sync.Mutex
	all  []*closure // the last used one last
	size int        // in bytes
}

// closure is what some commits reach in some stores that lie one after another in a space.
type closure struct {
	stores []*store
	key    string
	seen   bitmap.Set
	kinds  [5]bitmap.Set
	used   map[string]int // bitmaps
}

const closureBytes = 256 << 20

// closureKey names commits by their numbers, which rise and are counted from the first of the
// stores, and how they were followed.
func closureKey(commits []uint32, first uint32, kinds, bitmaps bool) string {
	key := fmt.Appendf(nil, "%v %v ", kinds, bitmaps)
	for _, v := range commits {
		key = binary.BigEndian.AppendUint32(key, v-first)
	}
	return string(key)
}

func (c *closureCache) get(stores []*store, key string) *closure {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, one := range c.all {
		if one.key == key && slices.Equal(one.stores, stores) {
			c.all = append(slices.Delete(c.all, i, i+1), one)
			return one
		}
	}
	return nil
}

func (c *closureCache) put(one *closure) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, one)
	c.size += one.bytes()
	for c.size > closureBytes && len(c.all) > 1 {
		c.size -= c.all[0].bytes()
		c.all = slices.Delete(c.all, 0, 1)
	}
}

// drop forgets whatever has to do with a store.
func (c *closureCache) drop(s *store) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = slices.DeleteFunc(c.all, func(one *closure) bool {
		if !slices.Contains(one.stores, s) {
			return false
		}
		c.size -= one.bytes()
		return true
	})
}

func (c *closure) bytes() int {
	n := len(c.key) + 8*len(c.seen)
	for k := oid.Commit; k <= oid.Tag; k++ {
		n += 8 * len(c.kinds[k])
	}
	return n
}
