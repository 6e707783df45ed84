package bitmap

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"refaudit/internal/gittest"
	"refaudit/oid"
)

// What each git writes, with each option, says of each commit what `rev-list --objects` says.
func TestBitmapsThatGitWrites(t *testing.T) {
	for _, format := range []oid.Format{oid.SHA1, oid.SHA256} {
		for _, which := range []gittest.Which{gittest.Old, gittest.Mid, gittest.Newest} {
			for _, config := range [][]string{nil, {"-c", "pack.writeBitmapLookupTable=true", "-c", "pack.writeBitmapHashCache=false"}, {
				"-c", "bitmapPseudoMerge.all.pattern=refs/heads/", "-c", "bitmapPseudoMerge.all.threshold=now",
				"-c", "bitmapPseudoMerge.all.stableThreshold=now", "-c", "bitmapPseudoMerge.all.stableSize=5", "-c", "bitmapPseudoMerge.more.pattern=refs/heads/b1", "-c", "bitmapPseudoMerge.more.threshold=now", "-c", "bitmapPseudoMerge.more.stableThreshold=now",
				"-c", "pack.writeBitmapLookupTable=true"}} {
				t.Run(fmt.Sprintf("%v/%v/%d", format, which, len(config)), func(t *testing.T) {
					if p, why := gittest.Find(which); p == nil {
						t.Skipf("NOT TESTED: %s", why)
					}
					r := gittest.New(t, gittest.Options{Format: format, Git: which})
					grow(r)
					r.Git(append(config, "repack", "-adbq")...)
					f, list := comparePack(t, r)
					comparePseudoMerges(t, r, f, list, len(config) > 4 && which == gittest.Newest)
				})
			}
		}
	}
}

// grow adds branches of commits with files.
func grow(r *gittest.Repo) {
	var s strings.Builder
	for i := range 240 {
		branch := fmt.Sprintf("refs/heads/b%d", i%24)
		fmt.Fprintf(&s, "commit %s\ncommitter C <c@example.com> %d +0000\ndata 1\nx\n", branch, 1600000000+i)
		if i < 24 {
			fmt.Fprintf(&s, "from %s\n", r.B)
		}
		fmt.Fprintf(&s, "M 100644 inline d%d/f%d\ndata %d\n%d\n\n", i%5, i%7, len(fmt.Sprint(i))+1, i)
	}
	r.GitIn(s.String(), "fast-import", "--quiet", "--force")
}

// comparePack compares the one bitmap of a repository with git's lists; it gives the file and what
// turns a set into ids, one a line.
func comparePack(t *testing.T, r *gittest.Repo) (*File, func(Set) string) {
	t.Helper()
	bitmaps, _ := filepath.Glob(r.File("objects/pack/*.bitmap"))
	if len(bitmaps) != 1 {
		t.Fatalf("bitmaps: %v", bitmaps)
	}
	stem := strings.TrimSuffix(bitmaps[0], ".bitmap")
	data, err := os.ReadFile(bitmaps[0])
	if err != nil {
		t.Fatal(err)
	}
	pack, err := os.ReadFile(stem + ".pack")
	if err != nil {
		t.Fatal(err)
	}
	idx, err := os.ReadFile(stem + ".idx")
	if err != nil {
		t.Fatal(err)
	}
	var byID, byOffset []object
	for _, line := range strings.Split(r.GitIn(string(idx), "show-index"), "\n") {
		var o object
		fmt.Sscan(line, &o.offset, &o.id)
		byID = append(byID, o)
	}
	byOffset = slices.SortedFunc(slices.Values(byID), func(a, b object) int { return cmp.Compare(a.offset, b.offset) })
	owner := Owner{Format: r.Format, Objects: uint32(len(byID)), Checksum: pack[len(pack)-r.Format.Size():]}
	f, err := Parse("b", data, owner)
	if err != nil {
		t.Fatal(err)
	}
	if rev, err := os.ReadFile(stem + ".rev"); err == nil {
		p, err := ParseRev("r", rev, owner)
		if err != nil {
			t.Fatal(err)
		}
		for i, o := range byOffset {
			if byID[p.At(i)] != o {
				t.Fatalf("reverse index at %d", i)
			}
		}
	}
	types, err := f.Types()
	if err != nil {
		t.Fatal(err)
	}
	for i, kind := range []string{"commit", "tree", "blob", "tag"} {
		want := r.GitIn(ids(byOffset, types[i]), "cat-file", "--batch-check=%(objecttype)")
		if got := strings.ReplaceAll(want, kind, ""); strings.TrimSpace(got) != "" {
			t.Fatalf("type %s: %q", kind, got)
		}
	}
	if f.Entries() < 50 {
		t.Fatalf("only %d entries", f.Entries())
	}
	reader := NewReader(f)
	for i := range f.Entries() {
		set, err := reader.Entry(i)
		if err != nil {
			t.Fatal(err)
		}
		if i%7 == 0 {
			sameObjects(t, r, set, ids(byOffset, set), byID[f.Position(i)].id)
		}
	}
	return f, func(s Set) string { return ids(byOffset, s) }
}

func comparePseudoMerges(t *testing.T, r *gittest.Repo, f *File, list func(Set) string, want bool) {
	t.Helper()
	reader := NewReader(f)
	if _, err := reader.Merge(NewSet(f.Bits()), NewSet(f.Bits())); err != nil {
		t.Fatal(err)
	}
	if want && len(reader.merges) == 0 {
		t.Fatal("no pseudo-merge was written")
	}
	for _, m := range reader.merges {
		sameObjects(t, r, m.objects, list(m.objects), strings.Fields(list(m.commits))...)
	}
}

// sameObjects compares a set with what git reaches from commits.
func sameObjects(t *testing.T, r *gittest.Repo, set Set, list string, commits ...string) {
	t.Helper()
	want := strings.Fields(r.GitIn(strings.Join(commits, "\n"), "rev-list", "--objects", "--no-object-names", "--stdin"))
	got := strings.Fields(list)
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Fatalf("commits %v: %d objects, git says %d", commits, set.Count(), len(want))
	}
}

// object is one line of `git show-index`.
type object struct {
	offset int
	id     string
}

func ids(list []object, in Set) string {
	var b strings.Builder
	in.Each(func(i uint32) {
		b.WriteString(list[i].id)
		b.WriteByte('\n')
	})
	return b.String()
}
