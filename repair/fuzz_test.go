package repair

import (
	"bytes"
	"crypto/sha256"
	"testing"

	"refaudit/internal/journal"
)

// From any file to any other there is a way back, and a diff that leads there.
func FuzzWayBack(f *testing.F) {
	f.Add([]byte("# h\na\n^1\nb\n"), []byte("# h\na\n^2\nb\n^3\n"))
	f.Add([]byte("a\nb"), []byte("b\na\n"))
	f.Add([]byte(""), []byte("x"))
	f.Add([]byte("\n\n^\n"), []byte("^\n#\n"))
	f.Add(bytes.Repeat([]byte("same line\n"), 300), append(bytes.Repeat([]byte("same line\n"), 200), "other\n"...))
	f.Fuzz(func(t *testing.T, before, after []byte) {
		pieces, whole, err := wayBack(bytes.NewReader(before), bytes.NewReader(after))
		if err != nil {
			t.Fatal(err)
		}
		e := journal.Entry{Before: whole, After: journal.Whole{SHA256: sha256.Sum256(after), Size: int64(len(after))}, Pieces: pieces}
		back, err := e.Rebuild(after)
		if err != nil || !bytes.Equal(back, before) {
			t.Fatalf("%q, not %q: %v", back, before, err)
		}
		diff := unified("f", before, after)
		if (diff == "") != bytes.Equal(before, after) {
			t.Fatalf("diff %q", diff)
		}
		if got := patch(t, string(before), diff); got != string(after) {
			t.Fatalf("the diff leads to %q, not %q\n%s", got, after, diff)
		}
	})
}
