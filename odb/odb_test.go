package odb

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"refaudit/finding"
	"refaudit/internal/gittest"
	"refaudit/oid"
)

func TestIDsThatNoObjectHas(t *testing.T) {
	dir := t.TempDir()
	loose(t, dir, oid.SHA1, oid.Blob, nil)
	db := open(t, dir, oid.SHA1)
	if got := lookOne(t, db, oid.SHA1.Zero()); got != (oid.Fact{State: oid.Absent}) {
		t.Errorf("all zeros: %+v", got)
	}
	for _, id := range []oid.ID{oid.SHA256.Object("blob", nil), {}} {
		got := lookOne(t, db, id)
		if _, _, err := db.Read(id, 10); err == nil || got.State == oid.Present || got.State == oid.Unasked {
			t.Errorf("%v of another format: %+v", id, got)
		}
	}
	if _, _, err := db.Read(oid.SHA1.Object("blob", []byte("none")), 10); !errors.Is(err, ErrAbsent) {
		t.Errorf("absent: %v", err)
	}
	big := loose(t, dir, oid.SHA1, oid.Blob, make([]byte, 100))
	if _, _, err := db.Read(big, 99); !errors.Is(err, ErrTooLarge) {
		t.Errorf("too large: %v", err)
	}
	if _, content, err := db.Read(big, 100); len(content) != 100 || err != nil {
		t.Errorf("just large enough: %v", err)
	}
}

func TestOpenNeedsAFolderAndAFormat(t *testing.T) {
	if _, _, err := Open(filepath.Join(t.TempDir(), "none"), oid.SHA1, Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if _, _, err := Open(t.TempDir(), 0, Options{}); err == nil {
		t.Error("no format")
	}
}

func TestALookThatIsCancelledSaysSo(t *testing.T) {
	dir := t.TempDir()
	id := loose(t, dir, oid.SHA1, oid.Blob, nil)
	db := open(t, dir, oid.SHA1)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := db.Look(ctx, []oid.ID{id}, make([]oid.Fact, 1)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := db.Look(context.Background(), []oid.ID{id}, nil); err == nil {
		t.Error("no room for the answer")
	}
}

// A folder that can't be listed is no empty folder.
func TestAFolderThatCannotBeListedIsNoAbsence(t *testing.T) {
	f := oid.SHA1
	id := f.Object("blob", []byte("there?"))
	for name, file := range map[string]string{"packs": "pack", "loose objects": id.String()[:2]} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, file), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		other := loose(t, dir, f, oid.Blob, []byte("other"))
		db := open(t, dir, f)
		if got := lookOne(t, db, id); !notSeen(got) || !errors.Is(got.Err, ErrNotLooked) {
			t.Errorf("%s: %+v", name, got)
		}
		if _, _, err := db.Read(id, 10); !errors.Is(err, ErrNotLooked) || errors.Is(err, ErrAbsent) {
			t.Errorf("%s: %v", name, err)
		}
		if got := lookOne(t, db, other); got.Kind != oid.Blob {
			t.Errorf("%s: another object: %+v", name, got)
		}
	}
}

// An index of a version yet to come, or a pack that is not the index's, hides objects: no absence.
func TestAPackThatCannotBeUsedIsNoAbsence(t *testing.T) {
	for _, f := range bothFormats {
		other := newBuilder(f)
		other.whole(oid.Blob, []byte("other"))
		otherPack, _ := other.files(2)
		for name, spoil := range map[string]func(pack, idx string){
			"version 3":    func(_, idx string) { flip(t, idx, 7) },
			"empty index":  func(_, idx string) { os.WriteFile(idx, nil, 0o644) },
			"cut index":    func(_, idx string) { os.Truncate(idx, 1080) },
			"another pack": func(pack, _ string) { os.WriteFile(pack, otherPack, 0o644) },
			"empty pack":   func(pack, _ string) { os.WriteFile(pack, nil, 0o644) },
			"no pack":      func(pack, _ string) { flip(t, pack, 0) },
			"pack version": func(pack, _ string) { flip(t, pack, 7) },
			"pack count":   func(pack, _ string) { flip(t, pack, 11) },
			"pack trailer": func(pack, _ string) { flip(t, pack, -1) },
		} {
			dir := t.TempDir()
			b := newBuilder(f)
			id := b.whole(oid.Blob, []byte("x"))
			b.write(t, dir, "pack-x", 2)
			spoil(filepath.Join(dir, "pack", "pack-x.pack"), filepath.Join(dir, "pack", "pack-x.idx"))
			db := open(t, dir, f)
			if got := lookOne(t, db, id); !notSeen(got) || !errors.Is(got.Err, ErrNotLooked) {
				t.Errorf("%v, %s: %+v", f, name, got)
			}
			if p := db.Problems(); len(p) != 1 || p[0].ID != finding.AuditSkipped || !strings.HasPrefix(p[0].File, "objects/pack/pack-x.") {
				t.Errorf("%v, %s: %+v", f, name, p)
			}
			if _, _, err := db.Read(id, 10); !errors.Is(err, ErrNotLooked) {
				t.Errorf("%v, %s: %v", f, name, err)
			}
			loose(t, dir, f, oid.Blob, []byte("x"))
			if got := lookOne(t, db, id); got != (oid.Fact{State: oid.Present, Kind: oid.Blob}) {
				t.Errorf("%v, %s, and loose: %+v", f, name, got)
			}
		}
	}
}

// An index without a pack, and a pack without an index, are nobody's.
func TestHalfAPackIsNone(t *testing.T) {
	f := oid.SHA1
	dir := t.TempDir()
	b := newBuilder(f)
	id := b.whole(oid.Blob, []byte("x"))
	for _, ext := range []string{"pack", "idx"} {
		b.write(t, dir, "pack-"+ext, 2)
		os.Remove(filepath.Join(dir, "pack", "pack-"+ext+"."+ext))
		b = newBuilder(f)
		b.whole(oid.Blob, []byte("x"))
	}
	db := open(t, dir, f)
	if got := lookOne(t, db, id); got.State != oid.Absent || len(db.Problems()) > 0 {
		t.Errorf("%+v %v", got, db.Problems())
	}
}

func TestWhatIsBorrowed(t *testing.T) {
	for _, f := range bothFormats {
		dir, pool := t.TempDir(), t.TempDir()
		b := newBuilder(f)
		inPack := b.whole(oid.Commit, []byte("packed"))
		b.write(t, pool, "pack-pool", 2)
		inLoose := loose(t, pool, f, oid.Tree, nil)
		absent := f.Object("blob", []byte("absent"))
		borrow(t, dir, pool+"\n/no/such/pool")
		db, found, err := Open(dir, f, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if len(found) != 1 || found[0].ID != finding.AlternateMissing || found[0].Line != 2 || found[0].File != "objects/info/alternates" {
			t.Errorf("%+v", found)
		}
		if db.Incomplete() == nil || len(db.Stores()) != 2 || len(db.Alternates().Stores) != 2 {
			t.Errorf("%v, %d stores", db.Incomplete(), len(db.Stores()))
		}
		for id, want := range map[oid.ID]oid.Fact{inPack: {State: oid.Present, Kind: oid.Commit}, inLoose: {State: oid.Present, Kind: oid.Tree}, absent: {State: oid.Absent}} {
			if got := lookOne(t, db, id); got != want {
				t.Errorf("%v: %+v, want %+v", f, got, want)
			}
		}

		// the pool may be named in the environment, and may come back while we look
		env, _, err := Open(t.TempDir(), f, Options{Alternates: pool})
		if err != nil {
			t.Fatal(err)
		}
		defer env.Close()
		if got := lookOne(t, env, inPack); got.Kind != oid.Commit || env.Incomplete() != nil {
			t.Errorf("%v: from the environment: %+v %v", f, got, env.Incomplete())
		}
		os.Remove(filepath.Join(dir, "info", "alternates"))
		if err := db.Refresh(); err != nil || db.Incomplete() != nil || len(db.Stores()) != 1 {
			t.Errorf("%v %v", err, db.Incomplete())
		}
		borrow(t, dir, pool)
		if got := lookOne(t, db, inPack); got.Kind != oid.Commit {
			t.Errorf("%v: borrowed again: %+v", f, got)
		}
	}
}

// Many look, some refresh, and git repacks meanwhile.
func TestReadersDoNotDisturbEachOther(t *testing.T) {
	r := gittest.Init(t, gittest.Options{})
	history(r, 60)
	want := truth(t, r)
	ids := sortedKeys(want)
	db := open(t, r.File("objects"), oid.SHA1)
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for range 3 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for {
				select {
				case <-stop:
					return
				default:
				}
				out := make([]oid.Fact, len(ids))
				if err := db.Look(context.Background(), ids, out); err != nil {
					t.Error(err)
					return
				}
				for i := range out {
					if out[i] != want[ids[i]] {
						t.Errorf("%v: %+v, want %+v", ids[i], out[i], want[ids[i]])
						return
					}
				}
				if err := db.Refresh(); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	r.Git("repack", "-adfq")
	r.Git("repack", "-adfq", "--write-midx")
	r.Git("repack", "-adfq", "--depth=3", "--write-bitmap-index")
	close(stop)
	wg.Wait()
	if p := db.Problems(); len(p) > 0 {
		t.Errorf("%v", p)
	}
}

func TestSortHits(t *testing.T) {
	for _, n := range []int{0, 1, 10, 1023, 1024, 5000} {
		hits := make([]hit, n)
		x := uint64(88172645463325252)
		for i := range hits {
			x ^= x << 13
			x ^= x >> 7
			x ^= x << 17
			hits[i] = hit{key: x & (looseKey | 3<<offsetBits | 1<<20 - 1), i: int32(i)}
		}
		sum := int64(0)
		sorted := sortHits(hits, new([]hit))
		for i := range sorted {
			if sum += int64(sorted[i].i); i > 0 && sorted[i-1].key > sorted[i].key {
				t.Fatalf("%d: not sorted at %d", n, i)
			}
		}
		if want := int64(n) * int64(n-1) / 2; sum != want {
			t.Errorf("%d: hits were lost", n)
		}
	}
}

// What the folder pack holds is told once, with the sizes; a link to a pack stands there as a link.
func TestPackFolder(t *testing.T) {
	r := gittest.Init(t, gittest.Options{})
	history(r, 30)
	r.Git("repack", "-adq")
	packs, err := filepath.Glob(r.File("objects/pack/*.pack"))
	if err != nil || len(packs) != 1 {
		t.Fatal(packs, err)
	}
	r.WriteFile("objects/pack/notes", []byte("four"))
	if err := os.Symlink(filepath.Base(packs[0]), r.File("objects/pack/pack-link.pack")); err != nil {
		t.Fatal(err)
	}
	own := open(t, r.File("objects"), oid.SHA1).Stores()[0]
	want, err := os.ReadDir(r.File("objects/pack"))
	if err != nil {
		t.Fatal(err)
	}
	got := own.PackFolder()
	if len(got) != len(want) {
		t.Fatalf("%v, not %v", got, want)
	}
	for i := range want {
		info, err := got[i].Info()
		real, _ := want[i].Info()
		if err != nil || got[i].Name() != want[i].Name() || got[i].Type() != want[i].Type() || info.Size() != real.Size() || info.Mode() != real.Mode() {
			t.Errorf("%v: %v (%v), not %v", want[i], info, err, real)
		}
	}
	for file, want := range map[string]bool{"pack/notes": true, midxFile: false, midxChain: false} {
		if own.mayHave(file) != want {
			t.Errorf("%s: not %v", file, want)
		}
	}
	if err := os.RemoveAll(r.File("objects/pack")); err != nil {
		t.Fatal(err)
	}
	if own := open(t, r.File("objects"), oid.SHA1).Stores()[0]; own.PackFolder() != nil || !own.mayHave(midxFile) {
		t.Error("a folder that is not there was listed")
	}
}

// What a list of alternates names that can't be read may have any object, and a good copy of one that is damaged here.
func TestAListOfAlternatesThatCannotBeReadIsNoAbsence(t *testing.T) {
	for _, f := range bothFormats {
		for _, nested := range []bool{false, true} {
			dir, pool := t.TempDir(), t.TempDir()
			list := filepath.Join(dir, "info", "alternates")
			if nested {
				borrow(t, dir, pool)
				list = filepath.Join(pool, "info", "alternates")
			}
			there := loose(t, dir, f, oid.Blob, []byte("there"))
			lost := f.Object("blob", []byte("there?"))
			db := open(t, dir, f)
			if got := lookOne(t, db, lost); got.State != oid.Absent {
				t.Errorf("%v: without a list: %+v", f, got)
			}
			if err := os.MkdirAll(list, 0o755); err != nil { // while we look
				t.Fatal(err)
			}
			if got := lookOne(t, db, lost); !notSeen(got) || !errors.Is(got.Err, ErrNotLooked) || !strings.Contains(got.Err.Error(), "info/alternates: alternates can't be read: ") {
				t.Errorf("%v: %+v", f, got)
			}
			if got, err := db.Confirm(context.Background(), lost); err != nil || !notSeen(got) || !errors.Is(got.Err, ErrNotLooked) {
				t.Errorf("%v: confirmed: %+v %v", f, got, err)
			}
			if _, _, err := db.Read(lost, 10); !errors.Is(err, ErrNotLooked) || errors.Is(err, ErrAbsent) {
				t.Errorf("%v: %v", f, err)
			}
			if got := lookOne(t, db, there); got != (oid.Fact{State: oid.Present, Kind: oid.Blob}) {
				t.Errorf("%v: what is here: %+v", f, got)
			}
			if db.Incomplete() == nil {
				t.Errorf("%v: is called complete", f)
			}
			os.Remove(list)
			if got := lookOne(t, db, lost); got.State != oid.Absent {
				t.Errorf("%v: the list is gone: %+v", f, got)
			}
		}
	}
}
