package usage

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"refaudit/internal/gittest"
)

// oracle computes the figures from what git says: lists of objects from rev-list, sizes from
// show-index and stat.
type oracle struct {
	t     testing.TB
	r     *gittest.Repo
	own   map[string]int64   // smallest copy in the repository's own folder
	pools []map[string]int64 // and in each of those that it borrows from, in git's order
}

func newOracle(t testing.TB, r *gittest.Repo) *oracle {
	o := &oracle{t: t, r: r, own: stored(t, r, r.File("objects"))}
	for _, line := range strings.Split(r.Git("count-objects", "-v"), "\n") {
		if path, ok := strings.CutPrefix(line, "alternate: "); ok {
			if unquoted, err := strconv.Unquote(path); err == nil {
				path = unquoted
			}
			o.pools = append(o.pools, stored(t, r, path))
		}
	}
	return o
}

// stored are the objects of a folder, each with the size of its smallest copy there.
func stored(t testing.TB, r *gittest.Repo, folder string) map[string]int64 {
	t.Helper()
	all := map[string]int64{}
	add := func(id string, size int64) {
		if old, twice := all[id]; !twice || size < old {
			all[id] = size
		}
	}
	loose, _ := filepath.Glob(filepath.Join(folder, "[0-9a-f][0-9a-f]", "*"))
	for _, path := range loose {
		if st, err := os.Stat(path); err == nil && len(filepath.Base(path)) == r.Format.HexLen()-2 {
			add(filepath.Base(filepath.Dir(path))+filepath.Base(path), st.Size())
		}
	}
	idx, _ := filepath.Glob(filepath.Join(folder, "pack", "*.idx"))
	for _, path := range idx {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		st, err := os.Stat(strings.TrimSuffix(path, ".idx") + ".pack")
		if err != nil {
			continue // nobody's
		}
		type object struct {
			at int64
			id string
		}
		var objects []object
		for _, line := range strings.Split(r.GitIn(string(data), "show-index"), "\n") {
			var o object
			if n, _ := fmt.Sscan(line, &o.at, &o.id); n == 2 {
				objects = append(objects, o)
			}
		}
		slices.SortFunc(objects, func(a, b object) int { return int(a.at - b.at) })
		for i, o := range objects {
			end := st.Size() - int64(r.Format.Size())
			if i+1 < len(objects) {
				end = objects[i+1].at
			}
			add(o.id, end-o.at)
		}
	}
	return all
}

// size is what an object takes: where our own folder has it, else the first of the others.
func (o *oracle) size(id string) int64 {
	if n, ok := o.own[id]; ok {
		return n
	}
	for _, p := range o.pools {
		if n, ok := p[id]; ok {
			return n
		}
	}
	return 0 // the empty tree, which nobody needs to have
}

func (o *oracle) list(args ...string) []string {
	return strings.Fields(o.r.Git(append([]string{"rev-list", "--objects", "--no-object-names"}, args...)...))
}

// figures are all of them, with what else is asked of rev-list for our own refs.
func (o *oracle) figures(args ...string) map[Figure]int64 {
	ours := o.list(append(args, "--all")...)
	pool := map[string]bool{}
	if len(o.pools) > 0 {
		for _, id := range o.list("--alternate-refs") {
			pool[id] = true
		}
	}
	f := map[Figure]int64{Reachable: 0, Own: 0, Borrowed: 0, Duplicate: 0, Unreachable: 0, Files: 0, OwnStoredElsewhere: 0}
	reached := map[string]bool{}
	for _, id := range ours {
		reached[id] = true
		n := o.size(id)
		f[Reachable] += n
		if pool[id] {
			f[Borrowed] += n
			continue
		}
		f[Own] += n
		if _, here := o.own[id]; !here {
			f[OwnStoredElsewhere] += n
		}
	}
	if slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "--exclude=") }) {
		for _, id := range o.list("--all") { // refs that are excluded are refs too
			reached[id] = true
		}
	}
	for id, n := range o.own {
		if !reached[id] {
			f[Unreachable] += n
		}
		for _, p := range o.pools {
			if _, there := p[id]; there {
				f[Duplicate] += n
				break
			}
		}
	}
	filepath.Walk(o.r.File("objects"), func(_ string, st os.FileInfo, err error) error {
		if err == nil && st.Mode().IsRegular() {
			f[Files] += st.Size()
		}
		return nil
	})
	return f
}
