// Package fleet is for runs over whole servers: which repositories a run takes, what earlier runs
// saw of them and of their refs, and how a run keeps out of the way of those that the server is there for.
package fleet

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
)

// Subset is one of several parts of a server, each about as large as the others. Which part a
// repository is in depends on its path alone. The zero Subset is all of them.
type Subset struct{ N, Of uint64 }

// ParseSubset reads "n/t": the n-th of t parts, n from 1 to t.
func ParseSubset(text string) (Subset, error) {
	n, of, ok := strings.Cut(text, "/")
	a, err := strconv.ParseUint(n, 10, 32)
	b, err2 := strconv.ParseUint(of, 10, 32)
	if !ok || err != nil || err2 != nil || a < 1 || a > b {
		return Subset{}, fmt.Errorf("%q is no part: it takes n/t with n from 1 to t, such as 2/7", text)
	}
	return Subset{a, b}, nil
}

// Has tells whether the repository at path is in this part.
func (s Subset) Has(path string) bool {
	if s.Of == 0 {
		return true
	}
	sum := sha256.Sum256([]byte(path))
	return binary.BigEndian.Uint64(sum[:])%s.Of == s.N-1
}
