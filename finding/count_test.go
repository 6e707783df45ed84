package finding

import "testing"

func TestCount(t *testing.T) {
	for n, want := range map[uint64]string{0: "0 refs", 1: "1 ref", 2: "2 refs", 1<<64 - 1: "18446744073709551615 refs"} {
		if got := Count(n, "ref", "refs"); got != want {
			t.Errorf("%d: %q", n, got)
		}
	}
	if got := Count(1, "table lies", "tables lie"); got != "1 table lies" {
		t.Errorf("%q", got)
	}
}
