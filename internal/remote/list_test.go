package remote

import (
	"fmt"
	"strings"
	"testing"

	"refaudit/oid"
)

func parseList(t testing.TB, text string, chunk int) (*Listing, error) {
	t.Helper()
	var list Listing
	p := listParser{list: &list}
	for len(text) > 0 {
		n := min(chunk, len(text))
		if _, err := p.Write([]byte(text[:n])); err != nil {
			return nil, err
		}
		text = text[n:]
	}
	return &list, p.end()
}

func (l *Listing) dump() string {
	var b strings.Builder
	for _, r := range l.Refs {
		fmt.Fprintf(&b, "%.4v %s", r.OID, r.Name)
		if !r.Peel.IsZero() {
			fmt.Fprintf(&b, " ^%.4v", r.Peel)
		}
		if r.Symref != "" {
			fmt.Fprintf(&b, " -> %s", r.Symref)
		}
		b.WriteByte('\n')
	}
	for _, u := range l.Unusable {
		fmt.Fprintf(&b, "unusable %q (%q)\n", u.Line, u.Name)
	}
	return b.String()
}

func TestListing(t *testing.T) {
	a, b, c := strings.Repeat("a", 40), strings.Repeat("b", 40), strings.Repeat("c", 40)
	text := "ref: refs/heads/main\tHEAD\n" +
		a + "\tHEAD\n" +
		a + "\trefs/heads/main\n" +
		a + "\trefs/heads/a b\n" +
		b + "\trefs/tags/v1\n" +
		a + "\trefs/tags/v1^{}\n" +
		c + "\trefs/tags/v2\n" +
		a + "\trefs/tags/v1^{}\n" +
		"zz" + a[2:] + "\trefs/tags/x\n" +
		"no tab\n" +
		c + "\trefs/tags/\x01\n"
	want := "aaaa HEAD -> refs/heads/main\naaaa refs/heads/main\nbbbb refs/tags/v1 ^aaaa\ncccc refs/tags/v2\n" +
		fmt.Sprintf("unusable %q (%q)\n", a+"\trefs/heads/a b", "refs/heads/a b") +
		fmt.Sprintf("unusable %q (%q)\n", a+"\trefs/tags/v1^{}", "") +
		fmt.Sprintf("unusable %q (%q)\n", "zz"+a[2:]+"\trefs/tags/x", "") +
		fmt.Sprintf("unusable %q (%q)\n", "no tab", "") +
		fmt.Sprintf("unusable %q (%q)\n", c+"\trefs/tags/\x01", "refs/tags/\x01")
	for _, chunk := range []int{1, 7, 1 << 20} {
		list, err := parseList(t, text, chunk)
		if err != nil || list.dump() != want || list.Format != oid.SHA1 {
			t.Errorf("in chunks of %d: %v\n%s\nwant\n%s", chunk, err, list.dump(), want)
		}
	}
}

func TestListingsThatCantBeTrusted(t *testing.T) {
	a := strings.Repeat("a", 40)
	for name, text := range map[string]string{
		"cut in a line": a + "\trefs/heads/main\n" + a,
		"two formats":   a + "\trefs/heads/main\n" + strings.Repeat("b", 64) + "\trefs/heads/b\n",
		"endless line":  strings.Repeat("x", 2*maxListLine),
	} {
		if list, err := parseList(t, text, 4096); err == nil {
			t.Errorf("%s: %s", name, list.dump())
		}
	}
	if list, err := parseList(t, "", 1); err != nil || list.Format != 0 || len(list.Refs) > 0 {
		t.Errorf("nothing at all: %v", err)
	}
}

func FuzzListing(f *testing.F) {
	a := strings.Repeat("a", 40)
	f.Add("ref: refs/heads/main\tHEAD\n"+a+"\tHEAD\n"+a+"\trefs/tags/v\n"+a+"\trefs/tags/v^{}\n", 3)
	f.Add(strings.Repeat("b", 64)+"\trefs/heads/\xff\n", 1)
	f.Fuzz(func(t *testing.T, text string, chunk int) {
		whole, err := parseList(t, text, len(text)+1)
		part, err2 := parseList(t, text, max(1, chunk&0xff))
		if (err == nil) != (err2 == nil) || err == nil && whole.dump() != part.dump() {
			t.Fatalf("in one piece %v, in chunks %v", err, err2)
		}
		if err != nil {
			return
		}
		for _, r := range whole.Refs {
			if strings.ContainsAny(r.Name+r.Symref, " \n\t\x00^") || r.OID.Format() != whole.Format {
				t.Errorf("%q %v -> %q", r.Name, r.OID, r.Symref)
			}
		}
	})
}

func BenchmarkListing(b *testing.B) {
	var text strings.Builder
	for i := range 10000 {
		fmt.Fprintf(&text, "%040x\trefs/tags/v%d\n%040x\trefs/tags/v%d^{}\n", i, i, i+1, i)
	}
	b.SetBytes(int64(text.Len()))
	b.ReportAllocs()
	for b.Loop() {
		if list, err := parseList(b, text.String(), 64<<10); err != nil || len(list.Refs) != 10000 {
			b.Fatal(err)
		}
	}
}
