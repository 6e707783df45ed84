package usage

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"refaudit/internal/vfs"
	"refaudit/oid"
)

// Objects that lie in one, two and three of a repository's stores, packed and loose, have one number, in whichever
// store they are looked for first.
func TestOneNumberWhereverAnObjectIsFoundFirst(t *testing.T) {
	first := plain(t)
	second := forkOf(t, first)
	fork := forkOf(t, second)
	ids := strings.Fields(fork.Git("cat-file", "--batch-all-objects", "--batch-check=%(objectname)"))
	for i, id := range ids {
		kind := fork.Git("cat-file", "-t", id)
		content := []byte(fork.GitIn(id+"\n", "cat-file", "--batch"))
		_, rest, _ := strings.Cut(string(content), "\n")
		if i%2 == 0 {
			second.WriteLoose(id, kind, []byte(rest))
		}
		if i%3 == 0 {
			fork.WriteLoose(id, kind, []byte(rest))
		}
	}
	fork.Git("repack", "-dq")
	if _, err := os.Stat(filepath.Join(fork.Path, "objects", "info", "alternates")); err != nil {
		t.Fatal(err)
	}
	s := NewSession(1)
	defer s.Close()
	m := &measuring{s: s, repo: open(t, fork, Options{}), u: &Usage{}}
	defer m.close()
	if _, err := m.run(context.Background()); err != nil {
		t.Fatal(err)
	}
	sp := m.view.space
	if len(sp.stores) != 3 || sp.aliases == nil {
		t.Fatalf("%d stores, aliases %v", len(sp.stores), sp.aliases != nil)
	}
	ids = append(ids, strings.Repeat("1", 40))
	for likely := range sp.stores {
		for from := 0; from < len(ids); from += together {
			var raw [][]byte
			var want, found [together]uint32
			for i, text := range ids[from:min(from+together, len(ids))] {
				id := oid.MustParse(text)
				raw = append(raw, id.Bytes())
				v, ok := sp.find(&id)
				if want[i] = v; !ok {
					want[i] = none
				}
			}
			n := len(raw)
			sp.likely.Store(int32(likely))
			if err := vfs.Guard(func() error { sp.findAll(raw, found[:]); return nil }); err != nil {
				t.Fatal(err)
			}
			for i := range n {
				if found[i] != want[i] {
					t.Errorf("store %d first: %s has number %d, not %d", likely, ids[from+i], found[i], want[i])
				}
			}
		}
	}
}
