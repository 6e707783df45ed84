package usage

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"refaudit/internal/gittest"
	"refaudit/oid"
)

// woven is a branch of n commits or a few more. Now and then one merges a line of its own, or two of
// them, which nothing else leads to.
func woven(t *testing.T, format oid.Format, n int) *gittest.Repo {
	t.Helper()
	r := gittest.Init(t, gittest.Options{Git: gittest.Newest, Format: format})
	rnd := rand.New(rand.NewPCG(3, uint64(n)))
	var s strings.Builder
	mark := 0
	commit := func(branch, file string, parents ...int) {
		mark++
		fmt.Fprintf(&s, "commit refs/heads/%s\nmark :%d\ncommitter C <c@example.com> %d +0000\ndata <<E\n%s\nE\n",
			branch, mark, 1600000000+mark*60, strings.Repeat("text ", rnd.IntN(150)))
		for i, p := range parents {
			fmt.Fprintf(&s, "%s :%d\n", []string{"from", "merge", "merge"}[i], p)
		}
		fmt.Fprintf(&s, "M 100644 inline %s\ndata 7\n%07d\n\n", file, mark)
	}
	commit("main", "file")
	for mark < n {
		last := mark
		parents := []int{last}
		for i := range []int{0, 0, 0, 0, 0, 0, 1, 2}[rnd.IntN(8)] {
			side := fmt.Sprintf("side%d", i)
			commit(side, side, last)
			parents = append(parents, mark)
		}
		commit("main", fmt.Sprintf("file%d", rnd.IntN(9)), parents...)
	}
	r.GitIn(s.String(), "fast-import", "--quiet", "--force")
	for i := range 2 {
		r.Git("update-ref", "-d", fmt.Sprintf("refs/heads/side%d", i))
	}
	r.Git("repack", "-adfq", "--window=0") // commits that are deltas are read by themselves
	return r
}

// Commits that are read ahead lead where they lead when they are read one by one.
func TestWindows(t *testing.T) {
	gittest.Need(t, gittest.Newest)
	for _, format := range []oid.Format{oid.SHA1, oid.SHA256} {
		for what, change := range map[string]func(r *gittest.Repo){
			"whole": func(*gittest.Repo) {},
			"grafts": func(r *gittest.Repo) {
				r.WriteFile("info/grafts", []byte(r.Git("rev-list", "--first-parent", "--max-parents=1", "--skip=150", "-1", "refs/heads/main")+"\n"))
			},
		} {
			r := woven(t, format, 600)
			change(r)
			want := newOracle(t, r).figures()
			for _, workers := range []int{1, 2, 5} {
				s := NewSession(workers)
				u := measured(t, s, r, Options{Method: Walk})
				s.Close()
				if !maps.Equal(u.Bytes, want) {
					t.Errorf("%v, %s, %d workers: %v %v, want %v", format, what, workers, u.Bytes, u.Unknown, want)
				}
			}
		}
	}
}

// A commit in the midst of a window that is damaged, or has a parent that is nowhere, is told of.
func TestWindowsTellOfDamage(t *testing.T) {
	gittest.Need(t, gittest.Newest)
	for want, damage := range map[string]func(parent []byte){
		"1212121212121212121212121212121212121212 is absent": func(parent []byte) { copy(parent, strings.Repeat("12", 20)) },
		"a malformed commit": func(parent []byte) { parent[17] = '-' },
	} {
		r := woven(t, oid.SHA1, 100)
		tip := r.Git("rev-parse", "refs/heads/main")
		text := []byte(r.Git("cat-file", "commit", tip) + "\n")
		damage(text[bytes.Index(text, []byte("parent "))+7:])
		bad := r.WriteObject("commit", text)
		// the last parent is followed first
		last := r.WriteObject("commit", fmt.Appendf(nil, "tree %s\nparent %s\nparent %s\nauthor A <a@b> 1 +0000\ncommitter A <a@b> 1 +0000\n\n",
			r.Git("rev-parse", "refs/heads/main^{tree}"), bad, tip))
		r.WriteFile("refs/heads/main", []byte(last+"\n"))
		list := r.Git("rev-list", "--objects", "--no-object-names", tip)
		old := only(t, r, "objects/pack/*.pack")
		r.GitIn(bad+"\n"+last+"\n"+list+"\n", "pack-objects", "-q", "--window=0", r.File("objects/pack/pack"))
		for _, ext := range []string{".pack", ".idx", ".rev"} {
			os.Remove(strings.TrimSuffix(old, ".pack") + ext)
		}
		r.Git("prune-packed")
		s := NewSession(2)
		u := measured(t, s, r, Options{Method: Walk})
		s.Close()
		if why := u.Unknown[Reachable]; !strings.Contains(why, want) {
			t.Errorf("%v %q, want %q", u.Bytes, why, want)
		}
	}
}
