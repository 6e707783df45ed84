package refname

import (
	"bytes"
	"testing"
)

func TestCommonPrefix(t *testing.T) {
	long := []byte("refs/heads/0123456789/abcdefghijk")
	for n := range len(long) + 1 {
		for m := range len(long) + 1 {
			if got := CommonPrefix(long[:n], long[:m]); got != min(n, m) {
				t.Fatalf("%d and %d bytes alike: %d", n, m, got)
			}
			if m < n {
				other := bytes.Clone(long[:n])
				other[m] ^= 0x80
				if got := CommonPrefix(long[:n], other); got != m {
					t.Fatalf("%d bytes, the one at %d differs: %d", n, m, got)
				}
			}
		}
	}
}
