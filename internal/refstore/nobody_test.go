package refstore_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"refaudit/finding"
	"refaudit/internal/gittest"
	"refaudit/internal/refstore"
	"refaudit/oid"
	"refaudit/reftable"
	"refaudit/repo"
)

// seen is all that a visit says.
func seen(t *testing.T, path string, each func(*refstore.Ref) error) string {
	t.Helper()
	r, err := repo.Open(path, repo.Options{Env: repo.EmptyEnv})
	if err != nil {
		t.Fatal(err)
	}
	stores, err := refstore.Open(r)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	sum, err := stores.Visit(context.Background(), refstore.Options{}, func(f finding.Finding) error {
		fmt.Fprintf(&text, "%s %q %v: %s\n", f.ID, f.Ref, f.Pos, f.Message)
		return nil
	}, each)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(&text, "%d refs, unread: %q\n", sum.Refs, sum.Unread)
	return text.String()
}

// names are some that pass, in the main, and of each kind that doesn't.
func names(r *rand.Rand) (all []string) {
	parts := []string{"a", "b", "ab", "B", "a-b", "a.lock", "..", "é", "v1", "v10", "v1/x", "X", "release", "Release", "x@{y", "b//c", "z.", "long-name-of-a-branch"}
	for range 60 {
		name := []string{"refs/heads", "refs/tags", "refs"}[r.IntN(3)]
		for range 1 + r.IntN(3) {
			name += "/" + parts[min(r.IntN(len(parts)), r.IntN(len(parts)))]
		}
		all = append(all, name)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Where nobody wants the records, most are passed without being filled in. What is said of the stores is the same.
func TestWhatIsSaidWhereNobodyWantsTheRecords(t *testing.T) {
	conflicts := 0
	for seed := range uint64(60) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		all := names(rnd)
		for _, backend := range []string{gittest.Files, gittest.Reftable} {
			r := gittest.New(t, gittest.Options{RefFormat: backend})
			value := func() oid.ID {
				if rnd.IntN(30) == 0 {
					return oid.SHA1.Zero()
				}
				return oid.MustParse(r.A)
			}
			if backend == gittest.Files {
				text := "# pack-refs with: peeled fully-peeled sorted \n"
				if seed%3 == 0 {
					rnd.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
				}
				for _, name := range all {
					text += value().String() + " " + name + "\n"
				}
				r.WriteFile("packed-refs", []byte(text))
			} else {
				var b bytes.Buffer
				w, err := reftable.NewWriter(&b, reftable.Options{Format: r.Format, Min: 2, Max: 2, BlockSize: 256})
				if err != nil {
					t.Fatal(err)
				}
				slices.Sort(all)
				for _, name := range all {
					id := value()
					ref := reftable.Ref{Name: []byte(name), UpdateIndex: 2, Type: reftable.Direct, Value: id.Bytes()}
					if rnd.IntN(20) == 0 {
						ref.Type, ref.Value, ref.Target = reftable.Symref, nil, []byte("refs/heads/main")
					}
					if err := w.AddRef(&ref); err != nil {
						t.Fatal(err)
					}
				}
				if err := w.Close(); err != nil {
					t.Fatal(err)
				}
				table := "0x000000000002-0x000000000002-00000001.ref"
				r.WriteFile("reftable/"+table, b.Bytes())
				list := string(r.ReadFile("reftable/tables.list"))
				if err := os.Remove(filepath.Join(r.Path, "reftable", "tables.list")); err != nil {
					t.Fatal(err)
				}
				r.WriteFile("reftable/tables.list", []byte(list+table+"\n"))
			}
			got, want := seen(t, r.Path, nil), seen(t, r.Path, func(*refstore.Ref) error { return nil })
			if got != want {
				t.Errorf("%d, %s:\n%s\nand with somebody:\n%s", seed, backend, got, want)
			}
			conflicts += strings.Count(got, string(finding.RefNameConflict))
		}
	}
	if conflicts < 100 {
		t.Errorf("only %d conflicts", conflicts)
	}
}
