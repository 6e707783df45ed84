package usage

import "testing"

// What was given back is lent again, empty, and to no two at once.
func TestLender(t *testing.T) {
	l := &lender{}
	first := &loan{from: l}
	a := first.set(100_000)
	for i := range uint32(100_000) {
		a.Add(i)
	}
	b := first.set(100_000)
	if &a[0] == &b[0] {
		t.Fatal("one set was lent twice")
	}
	first.end()
	second := &loan{from: l}
	c, d, e := second.set(99_000), second.set(100_000), second.set(100_000)
	if &c[0] != &a[0] && &c[0] != &b[0] {
		t.Error("memory that was given back is not used again")
	}
	if len(c) != (99_000+63)/64 {
		t.Errorf("%d words for 99000 positions", len(c))
	}
	if !c.Empty() || !d.Empty() || !e.Empty() {
		t.Error("a set that was lent is not empty")
	}
	if &d[0] == &e[0] || &c[0] == &d[0] || &c[0] == &e[0] {
		t.Error("one set was lent twice")
	}
	second.end()
}

// No more is kept than the limit, whatever was lent.
func TestLenderKeepsLittle(t *testing.T) {
	l := &lender{}
	big := &loan{from: l}
	for range 5 {
		big.set(8 * lendBytes / 3)
	}
	big.end()
	if l.bytes > lendBytes || l.bytes == 0 {
		t.Errorf("keeps %d bytes of at most %d", l.bytes, lendBytes)
	}
	var none *loan
	if s := none.set(65); len(s) != 2 {
		t.Errorf("%d words for 65 positions", len(s))
	}
	none.end()
}
