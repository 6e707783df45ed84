package fleet

import (
	"fmt"
	"testing"
)

func TestSubsetsShareOutAServer(t *testing.T) {
	const parts, repos = 7, 7000
	var in [parts]int
	for i := range repos {
		path := fmt.Sprintf("/srv/git/%d/r%d.git", i%10, i)
		n := 0
		for p := range uint64(parts) {
			if (Subset{p + 1, parts}).Has(path) {
				in[p]++
				n++
			}
		}
		if n != 1 || !(Subset{}).Has(path) {
			t.Fatalf("%s is in %d parts", path, n)
		}
	}
	for p, n := range in {
		if n < repos/parts*8/10 || n > repos/parts*12/10 {
			t.Errorf("part %d has %d of %d", p+1, n, repos)
		}
	}
	// The part of a repository is the same in every version.
	if !(Subset{5, 7}).Has("/srv/git/a.git") {
		for p := range uint64(parts) {
			if (Subset{p + 1, parts}).Has("/srv/git/a.git") {
				t.Errorf("/srv/git/a.git has moved to part %d", p+1)
			}
		}
	}
}

func TestParseSubset(t *testing.T) {
	for text, want := range map[string]Subset{"1/1": {1, 1}, "2/7": {2, 7}, "7/7": {7, 7}} {
		if got, err := ParseSubset(text); got != want || err != nil {
			t.Errorf("%s: %v %v", text, got, err)
		}
	}
	for _, text := range []string{"", "1", "0/7", "8/7", "1/0", "-1/7", "a/b", "1/7/2", "1 /7"} {
		if got, err := ParseSubset(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}
