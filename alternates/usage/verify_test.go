package usage

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"refaudit/internal/gittest"
)

// A bitmap knows which objects are reached, and not whether they are sound. What walking can't know for that reason is
// no fault of the bitmap's.
func TestVerifyWhereAnObjectIsDamaged(t *testing.T) {
	gittest.Need(t, gittest.Newest)
	for _, o := range gittest.AllFormats {
		for _, borrowed := range []bool{false, true} {
			r := gittest.New(t, o)
			r.Git("repack", "-adbq")
			harmed := r
			if borrowed {
				r = forkOf(t, r)
			}
			path := only(t, harmed, "objects/pack/*.pack")
			os.Chmod(path, 0o644)
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, line := range strings.Split(harmed.Git("verify-pack", "-v", strings.TrimSuffix(path, "pack")+"idx"), "\n") {
				if f := strings.Fields(line); len(f) > 4 && f[0] == harmed.Tree {
					at, err := strconv.Atoi(f[4])
					if err != nil {
						t.Fatal(err)
					}
					data[at+4] ^= 0xff
				}
			}
			if err := os.WriteFile(path, data, 0o644); err != nil {
				t.Fatal(err)
			}
			if _, _, code := r.Try("rev-list", "--all", "--objects"); code == 0 {
				t.Fatal("git walks through it")
			}
			s := NewSession(2)
			plain := measured(t, s, r, Options{})
			u := measured(t, s, r, Options{Verify: true})
			s.Close()
			if !plain.Complete() || plain.Method != Bitmap {
				t.Errorf("%v: the bitmap alone: %+v", o, plain)
			}
			for _, f := range []Figure{Reachable, Own, Borrowed, Unreachable, OwnStoredElsewhere} {
				if _, known := u.Bytes[f]; known || !strings.Contains(u.Unknown[f], harmed.Tree) {
					t.Errorf("%v, borrowed %v: %s is %d, unknown because of %q", o, borrowed, f, u.Bytes[f], u.Unknown[f])
				}
			}
			if u.Bytes[Files] != plain.Bytes[Files] || u.Bytes[Duplicate] != plain.Bytes[Duplicate] || len(u.Findings) > 0 {
				t.Errorf("%v, borrowed %v: %+v, without a walk %+v", o, borrowed, u, plain)
			}
			if u.Method != Walk || !strings.Contains(u.Reason, "walking can't be done to the end, which bitmaps don't see: ") {
				t.Errorf("%v, borrowed %v: %s: %s", o, borrowed, u.Method, u.Reason)
			}
		}
	}
}
