package usage

import (
	"strings"
	"testing"

	"refaudit/internal/gittest"
)

// Reasons are sentences, for one bitmap and for more.
func TestReasons(t *testing.T) {
	one, two := []string{"A"}, []string{"A", "B"}
	for _, c := range []struct {
		own, pools    []string
		excluded      bool
		used          string
		covered, tips int
		method        Method
		want          string
	}{
		{one, nil, false, "A", 2, 2, Bitmap, "A covers every tip"},
		{two, nil, false, "A", 2, 2, Bitmap, "A, B cover every tip"},
		{one, nil, false, "A", 1, 2, Bitmap, "A covers 1 of 2 tips, the others are walked down to it"},
		{two, nil, false, "B", 1, 2, Bitmap, "A, B cover 1 of 2 tips, the others are walked down to it"},
		{one, nil, false, "", 0, 2, Walk, "A covers nothing that the tips lead to"},
		{two, nil, false, "", 0, 2, Walk, "A, B cover nothing that the tips lead to"},
		{two, nil, false, "", 0, 0, Walk, "no ref or HEAD that counts names a commit"},
		{nil, one, true, "A", 0, 1, Walk, "the only bitmap, A, is of a pool and can"},
		{nil, two, true, "A", 0, 1, Walk, "the only bitmaps, A, B, are of a pool and can"},
		{nil, one, false, "A", 0, 1, Bitmap, "A tells what is borrowed"},
		{nil, two, false, "A", 0, 1, Bitmap, "A, B tell what is borrowed"},
		{nil, one, false, "", 0, 1, Walk, "A, of a pool, covers nothing that was met"},
		{nil, two, false, "", 0, 1, Walk, "A, B, of pools, cover nothing that was met"},
	} {
		p := &plan{bitmaps: true, own: c.own, pools: c.pools, excluded: c.excluded}
		r := &reached{covered: c.covered, tips: c.tips, used: map[string]int{c.used: 1}}
		if method, why := p.told(r); method != c.method || !strings.HasPrefix(why, c.want) {
			t.Errorf("%s: %s\nwant %s: %s", method, why, c.method, c.want)
		}
	}
}

func TestTheReasonWhereNoRefCounts(t *testing.T) {
	gittest.Need(t, gittest.Newest)
	r := bitmapped(t)
	if out := r.Git("rev-list", "--exclude=*", "--all"); out != "" {
		t.Fatal(out)
	}
	s := NewSession(1)
	defer s.Close()
	u := measured(t, s, r, Options{Exclude: []string{"*"}})
	if u.Bytes[Reachable] != 0 || !u.Complete() || u.Reason != "no ref or HEAD that counts names a commit" {
		t.Errorf("%+v", u)
	}
}

// A graft without parents is no shallow commit.
func TestAGraftIsNotToldOfAsShallow(t *testing.T) {
	r := plain(t)
	r.WriteFile("info/grafts", []byte(r.B+"\n"))
	s := NewSession(1)
	defer s.Close()
	u := measured(t, s, r, Options{})
	if told := strings.Join(u.Notices, "\n"); strings.Contains(told, "shallow") || !strings.Contains(told, "1 graft is honoured") {
		t.Errorf("notices: %s", told)
	}
}
