package repair

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"refaudit/finding"
	"refaudit/internal/journal"
	"refaudit/internal/vfs"
	"refaudit/oid"
	"refaudit/reftable"
)

const benchRefs = 100_000

// disk is a world on the machine's own file system, with room for many refs.
func disk(b *testing.B) (*world, string) {
	w := newWorld(b, oid.SHA1)
	dir := b.TempDir()
	w.repo.FS, w.repo.GitDir, w.repo.Journal = vfs.OS{}, dir, journal.New(vfs.OS{}, filepath.Join(dir, "journal"))
	return w, dir
}

// One wrong peel among 100,000 packed refs: everything that happens from the lock to the last sync.
func BenchmarkFixPacked(b *testing.B) {
	w, dir := disk(b)
	var text bytes.Buffer
	text.WriteString(fullHeader)
	tag, right, wrong := w.id("t1"), w.id("c1"), w.id("c2")
	for i := range benchRefs {
		fmt.Fprintf(&text, "%v refs/tags/v%07d\n^%v\n", tag, i, map[bool]oid.ID{true: wrong, false: right}[i == benchRefs-5])
	}
	path := filepath.Join(dir, "packed-refs")
	p := &Packed{Repo: w.repo, Path: path, Label: "packed-refs"}
	wanted := []Wanted{{Ref: finding.RefName(fmt.Sprintf("refs/tags/v%07d", benchRefs-5)), ID: finding.PeelMismatch, OID: tag, Cached: wrong}}
	b.SetBytes(int64(text.Len()))
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		if err := os.WriteFile(path, text.Bytes(), 0o644); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		out, err := p.Fix(ctx, wanted, Whole, Brake{Tags: benchRefs})
		if err != nil || len(out.Changes) != 1 {
			b.Fatal(out, err)
		}
	}
}

// One wrong record in a stack of 100,000 refs.
func BenchmarkFixStack(b *testing.B) {
	w, dir := disk(b)
	stack := filepath.Join(dir, "reftable")
	os.Mkdir(stack, 0o755)
	var table bytes.Buffer
	tw, err := reftable.NewWriter(&table, reftable.Options{Min: 1, Max: 1})
	if err != nil {
		b.Fatal(err)
	}
	tag, right, wrong := w.id("t1"), w.id("c1"), w.id("c2")
	for i := range benchRefs {
		peel := right
		if i == benchRefs/2 {
			peel = wrong
		}
		if err := tw.AddRef(&reftable.Ref{Name: fmt.Appendf(nil, "refs/tags/v%07d", i), UpdateIndex: 1, Type: reftable.Peeled, Value: tag.AppendTo(nil), Peel: peel.AppendTo(nil)}); err != nil {
			b.Fatal(err)
		}
	}
	if err := tw.Close(); err != nil {
		b.Fatal(err)
	}
	name := tableName(1, 1)
	os.WriteFile(filepath.Join(stack, name), table.Bytes(), 0o644)
	s := &Stack{Repo: w.repo, Dir: stack, Label: "reftable"}
	wanted := []Wanted{{Ref: finding.RefName(fmt.Sprintf("refs/tags/v%07d", benchRefs/2)), ID: finding.PeelMismatch, OID: tag, Cached: wrong}}
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		if err := os.WriteFile(filepath.Join(stack, listName), []byte(name+"\n"), 0o644); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		out, err := s.Fix(ctx, wanted, Brake{Tags: benchRefs})
		if err != nil || len(out.Changes) != 1 {
			b.Fatal(out, err)
		}
	}
}
