package odb

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"refaudit/finding"
	"refaudit/internal/gittest"
	"refaudit/oid"
)

// flip changes a byte of a file.
func flip(t testing.TB, path string, at int) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if at < 0 {
		at += len(data)
	}
	data[at] ^= 0x41
	os.Chmod(path, 0o644)
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// borrow makes dir borrow from pool.
func borrow(t testing.TB, dir, pool string) {
	t.Helper()
	os.MkdirAll(filepath.Join(dir, "info"), 0o755)
	if err := os.WriteFile(filepath.Join(dir, "info", "alternates"), []byte(pool+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestADamagedObjectIsReadWhereItIsSound(t *testing.T) {
	for _, f := range bothFormats {
		commit := f.Object("commit", []byte("c"))
		text := tagOf(commit, oid.Commit, "t", "body\n")
		want := oid.Fact{State: oid.Present, Kind: oid.Tag, Claims: oid.Commit, Target: commit}
		id := f.Object("tag", text)
		bad := bytes.Clone(text)
		bad[len(bad)-2] ^= 1 // zlib is content, the hash isn't

		// one damaged copy, and one other
		for name, other := range map[string]func(dir string){
			"loose": func(dir string) { loose(t, dir, f, oid.Tag, text) },
			"another pack": func(dir string) {
				b := newBuilder(f)
				b.whole(oid.Tag, text)
				b.write(t, dir, "pack-a", 1)
			},
			"an alternate": func(dir string) {
				pool := t.TempDir()
				loose(t, pool, f, oid.Tag, text)
				borrow(t, dir, pool)
			},
			"nowhere": nil,
		} {
			for _, damage := range []string{"pack", "loose"} {
				dir := t.TempDir()
				if damage == "pack" {
					b := newBuilder(f)
					b.entry(id, EntryKind(oid.Tag), uint64(len(text)), nil, bad)
					b.write(t, dir, "pack-b", 2)
					if other != nil {
						other(dir)
					}
				} else {
					if other != nil && name != "loose" {
						other(dir)
					} else if name == "loose" {
						continue
					}
					putLoose(t, dir, id, append(appendHeader(nil, oid.Tag, uint64(len(bad))), bad...))
				}
				db := open(t, dir, f)
				got := lookOne(t, db, id)
				kind, content, err := db.Read(id, 1000)
				if other == nil {
					if !isDamaged(got) || got.Kind != oid.Tag || !strings.Contains(got.Err.Error(), "does not hash to its name") || err == nil {
						t.Errorf("%v, damaged %s: %+v %v", f, damage, got, err)
					}
					continue
				}
				if got != want || kind != oid.Tag || !bytes.Equal(content, text) || err != nil {
					t.Errorf("%v, damaged %s, sound in %s: %+v %v", f, damage, name, got, err)
				}
			}
		}
	}
}

// The base of a delta is damaged, and sound elsewhere: git reads the delta all the same.
func TestABaseIsTakenFromElsewhere(t *testing.T) {
	for _, f := range bothFormats {
		commit := f.Object("commit", []byte("c"))
		text := [][]byte{tagOf(commit, oid.Commit, "t0", "body\n"), tagOf(commit, oid.Commit, "t1", "body\n"), tagOf(commit, oid.Commit, "t2", "body, another\n")}
		want := oid.Fact{State: oid.Present, Kind: oid.Tag, Claims: oid.Commit, Target: commit}
		for _, damage := range []string{"header", "body", "delta header", "delta"} {
			for _, sound := range []bool{true, false} {
				dir := t.TempDir()
				b := newBuilder(f)
				b.level = 0
				ids := []oid.ID{b.whole(oid.Tag, text[0])}
				for i := 1; i < 3; i++ {
					id := f.Object("tag", text[i])
					b.ofs(id, b.rows[i-1].off, deltaOf(text[i-1], text[i]))
					ids = append(ids, id)
				}
				first, second := int(b.rows[0].off), int(b.rows[1].off)
				at := map[string]int{"header": first, "body": first + 30, "delta header": second, "delta": second + 15}[damage]
				pack := b.pack.Bytes()
				pack[at] ^= map[string]byte{"header": 0x10, "body": 1, "delta header": 0x30, "delta": 1}[damage] // kind 5 does not exist
				b.write(t, dir, "pack-x", 2)
				if sound {
					loose(t, dir, f, oid.Tag, text[0])
					loose(t, dir, f, oid.Tag, text[1])
				}
				db := open(t, dir, f)
				got := lookOne(t, db, ids[2])
				_, content, err := db.Read(ids[2], 1000)
				if sound && (got != want || !bytes.Equal(content, text[2])) {
					t.Errorf("%v, damaged %s: %+v; read: %v", f, damage, got, err)
				}
				if !sound && (!isDamaged(got) || err == nil) {
					t.Errorf("%v, damaged %s, no other copy: %+v; read: %v", f, damage, got, err)
				}
			}
		}
	}
}

// A damaged index must not make its objects look absent: not even the one whose name is damaged.
func TestADamagedIndexIsNoAbsence(t *testing.T) {
	for _, f := range bothFormats {
		for _, version := range []int{1, 2} {
			dir := t.TempDir()
			b := newBuilder(f)
			var ids []oid.ID
			for i := range 20 {
				ids = append(ids, b.whole(oid.Blob, []byte{byte(i)}))
			}
			b.write(t, dir, "pack-x", version)
			absent := f.Object("blob", []byte("absent"))
			if got := lookOne(t, open(t, dir, f), absent); got != (oid.Fact{State: oid.Absent}) {
				t.Fatalf("%+v", got)
			}
			idx := filepath.Join(dir, "pack", "pack-x.idx")
			sound, _ := os.ReadFile(idx)
			ask := append(ids, absent)
			for at := 0; at < len(sound); at += 1 + at%7 {
				os.WriteFile(idx, sound, 0o644)
				flip(t, idx, at)
				db := open(t, dir, f)
				for i, got := range lookAll(t, db, ask) {
					id := ask[i]
					switch {
					case got.State == oid.Absent:
						t.Fatalf("%v v%d, byte %d: %v is absent", f, version, at, id)
					case got.State == oid.Present && id == absent:
						t.Fatalf("%v v%d, byte %d: what does not exist is there", f, version, at)
					}
					if id == absent && !notSeen(got) {
						t.Fatalf("%v v%d, byte %d: %+v", f, version, at, got)
					}
				}
				if len(db.Problems()) != 1 || db.Problems()[0].ID != finding.AuditSkipped || db.Problems()[0].File == "" {
					t.Fatalf("%v v%d, byte %d: %v", f, version, at, db.Problems())
				}
			}
		}
	}
}

// Whatever byte of a pack is damaged, a tag is right or damaged, never another.
func TestADamagedPackGivesNoWrongTarget(t *testing.T) {
	for _, f := range bothFormats {
		dir := t.TempDir()
		b := newBuilder(f)
		facts := map[oid.ID]oid.Fact{}
		last, lastText := uint64(0), []byte(nil)
		for i := range 12 {
			target := f.Object("commit", []byte{byte(i)})
			text := tagOf(target, oid.Commit, fmt.Sprint("v", i), "body\n")
			id := f.Object("tag", text)
			if i%3 == 0 {
				b.whole(oid.Tag, text)
			} else {
				b.ofs(id, last, deltaOf(lastText, text))
			}
			last, lastText = b.rows[i].off, text
			facts[id] = oid.Fact{State: oid.Present, Kind: oid.Tag, Claims: oid.Commit, Target: target}
		}
		b.write(t, dir, "pack-x", 2)
		pack := filepath.Join(dir, "pack", "pack-x.pack")
		sound, _ := os.ReadFile(pack)
		damaged := 0
		ids := sortedKeys(facts)
		for at := 0; at < len(sound); at += 1 + at%3 {
			os.WriteFile(pack, sound, 0o644)
			flip(t, pack, at)
			db := open(t, dir, f)
			for i, got := range lookAll(t, db, ids) {
				id, want := ids[i], facts[ids[i]]
				if got.State == oid.Present && got.Kind != oid.Tag { // its header says so
					got, _ = db.Confirm(context.Background(), id)
				}
				if got != want {
					if got.State != oid.Unreadable {
						t.Fatalf("%v, byte %d: %+v, not %+v", f, at, got, want)
					}
					damaged++
				}
			}
		}
		if damaged < len(sound)/3 {
			t.Errorf("%v: only %d damaged answers of %d bytes", f, damaged, len(sound))
		}
	}
}

func TestAMultiPackIndexThatIsBadHidesNothing(t *testing.T) {
	for _, f := range bothFormats {
		r := gittest.Init(t, gittest.Options{Format: f})
		history(r, 20)
		manyPacks(r)
		r.Git("multi-pack-index", "write")
		want := truth(t, r)
		midx := r.File("objects/" + midxFile)
		sound, _ := os.ReadFile(midx)
		absent := f.Object("blob", []byte("absent"))
		ids := append(sortedKeys(want), absent)
		for _, at := range []int{0, 4, 5, 6, 11, 12, 20, 30, 70, 200, len(sound) / 3, len(sound) / 2, len(sound) * 4 / 5, len(sound) - 40, -1} {
			os.WriteFile(midx, sound, 0o644)
			flip(t, midx, at)
			db := open(t, r.File("objects"), f)
			for i, got := range lookAll(t, db, ids) {
				if ids[i] == absent {
					if got.State != oid.Absent {
						t.Errorf("%v, byte %d: absent object: %+v", f, at, got)
					}
				} else if got != want[ids[i]] {
					t.Errorf("%v, byte %d: %v: %+v, want %+v", f, at, ids[i], got, want[ids[i]])
				}
			}
			if p := db.Problems(); len(p) != 1 || p[0].ID != finding.BitmapUnusable || !strings.HasPrefix(p[0].File, "objects/pack/multi-pack-index") {
				t.Errorf("%v, byte %d: %v", f, at, p)
			}
		}
	}
}

// Numbers in a multi-pack-index that lead nowhere: the packs' own indexes know better.
func TestAMultiPackIndexThatLeadsNowhere(t *testing.T) {
	for _, f := range bothFormats {
		r := gittest.Init(t, gittest.Options{Format: f})
		history(r, 5)
		manyPacks(r)
		r.Git("multi-pack-index", "write")
		want := truth(t, r)
		ids := sortedKeys(want)
		path := r.File("objects/" + midxFile)
		sound := r.ReadFile("objects/" + midxFile)
		m, err := ParseMidx(sound, f, "m")
		if err != nil {
			t.Fatal(err)
		}
		places := bytes.Index(sound, m.Chunk("OOFF"))
		for name, row := range map[string][8]byte{
			"pack":       {0xff, 0xff, 0xff, 0xff, 0, 0, 0, 12},
			"offset":     {0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff},
			"far offset": {0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff},
			"header":     {0, 0, 0, 0, 0, 0, 0, 3},
		} {
			bad := bytes.Clone(sound[:len(sound)-f.Size()])
			for i := range m.Count() {
				copy(bad[places+8*i:], row[:])
			}
			os.Chmod(path, 0o644)
			os.WriteFile(path, append(bad, hashed(f, bad)...), 0o644)
			for i, got := range lookAll(t, open(t, r.File("objects"), f), ids) {
				if got != want[ids[i]] {
					t.Fatalf("%v, %s: %v: %+v, want %+v", f, name, ids[i], got, want[ids[i]])
				}
			}
		}
	}
}

// What comes while we look is found, though its folder was listed before.
func TestALooseObjectMayComeLate(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir, oid.SHA1)
	id := oid.SHA1.Object("blob", []byte("late"))
	if got := lookOne(t, db, id); got.State != oid.Absent {
		t.Fatalf("%+v", got)
	}
	loose(t, dir, oid.SHA1, oid.Blob, []byte("late"))
	if got := lookOne(t, db, id); got.Kind != oid.Blob {
		t.Errorf("%+v", got)
	}
	if err := os.Remove(filepath.Join(dir, loosePath(&id))); err != nil {
		t.Fatal(err)
	}
	if got := lookOne(t, db, id); got.State != oid.Absent {
		t.Errorf("%+v", got)
	}
}

func sortedKeys(m map[oid.ID]oid.Fact) (ids []oid.ID) {
	for id := range m {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b oid.ID) int { return a.Compare(b) })
	return ids
}

// A pack that its multi-pack-index still names is gone: what was in it is absent, unless it is elsewhere.
func TestALostPackIsAbsence(t *testing.T) {
	for _, f := range bothFormats {
		r := gittest.Init(t, gittest.Options{Format: f})
		history(r, 20)
		manyPacks(r)
		before := truth(t, r)
		r.Git("multi-pack-index", "write")
		packs, _ := filepath.Glob(r.File("objects/pack/*.pack"))
		for _, p := range packs {
			os.Rename(p, p+".away")
			want := truth(t, r)
			db := open(t, r.File("objects"), f)
			for id := range before {
				got, fact := lookOne(t, db, id), want[id]
				if fact.State == oid.Unasked {
					fact.State = oid.Absent
				}
				if got != fact {
					t.Fatalf("%v: %v: %+v, git says %+v", f, id, got, fact)
				}
			}
			os.Rename(p+".away", p)
		}
	}
}

// A repack between finding an object and reading it is no finding.
func TestPacksMayMoveUnderTheAudit(t *testing.T) {
	for _, f := range bothFormats {
		r := gittest.Init(t, gittest.Options{Format: f})
		history(r, 30)
		manyPacks(r)
		r.Git("multi-pack-index", "write")
		want := truth(t, r)
		ids := sortedKeys(want)
		db := open(t, r.File("objects"), f) // has listed the packs, opened none
		r.Git("repack", "-adq")
		os.Remove(r.File("objects/" + midxFile))
		check := func(when string) {
			t.Helper()
			out := lookAll(t, db, ids)
			for i := range ids {
				if out[i] != want[ids[i]] {
					t.Fatalf("%v, %s: %v: %+v, want %+v", f, when, ids[i], out[i], want[ids[i]])
				}
			}
			if p := db.Problems(); len(p) > 0 {
				t.Errorf("%v, %s: %v", f, when, p)
			}
		}
		check("after a repack")
		unpack(r)
		check("after unpacking, the pack still mapped")
		late := r.WriteObject("blob", []byte("late"))
		if got := lookOne(t, db, oid.MustParse(late)); got.Kind != oid.Blob {
			t.Errorf("an object that came later: %+v", got)
		}
		r.Git("repack", "-adq")
		r.Git("prune-packed")
		if err := db.Refresh(); err != nil {
			t.Fatal(err)
		}
		check("packed again")
	}
}

// Without a change on disk there is no new view.
func TestARefreshThatFindsNothingNewChangesNothing(t *testing.T) {
	r := gittest.Init(t, gittest.Options{})
	history(r, 5)
	manyPacks(r)
	r.Git("multi-pack-index", "write")
	db := open(t, r.File("objects"), oid.SHA1)
	stores, packs, midx := db.Stores(), db.Stores()[0].Packs(), db.Stores()[0].Midx()
	for range 3 {
		if got := lookOne(t, db, oid.SHA1.Object("blob", []byte("absent"))); got.State != oid.Absent {
			t.Errorf("%+v", got)
		}
	}
	if db.Stores()[0] != stores[0] {
		t.Error("a new view of the same folders")
	}
	r.Git("tag", "-a", "-m", "x", "later", "v1")
	r.Git("repack", "-dq")
	if err := db.Refresh(); err != nil {
		t.Fatal(err)
	}
	now := db.Stores()[0]
	if now == stores[0] || len(now.Packs()) != len(packs)+1 {
		t.Errorf("%d packs, %d before", len(now.Packs()), len(packs))
	}
	for _, p := range packs {
		if !slices.Contains(now.Packs(), p) {
			t.Errorf("pack %s was opened anew", p.Name())
		}
	}
	if now.Midx() == nil || now.Midx().mapping != midx.mapping {
		t.Error("the multi-pack-index was mapped anew")
	}
}

// A mapped file that is cut is no crash, and no damage to what other packs have.
func TestAFileThatShrinksUnderTheMap(t *testing.T) {
	for _, ext := range []string{"idx", "pack"} {
		f := oid.SHA1
		dir := t.TempDir()
		b := newBuilder(f)
		b.level = 0
		var ids []oid.ID
		for i := range 6000 { // small files are not mapped
			ids = append(ids, b.whole(oid.Blob, bytes.Repeat([]byte{byte(i), byte(i >> 8)}, 20)))
		}
		b.write(t, dir, "pack-x", 2)
		loose(t, dir, f, oid.Blob, bytes.Repeat([]byte{7, 0}, 20))
		db := open(t, dir, f)
		if _, err := db.Stores()[0].Packs()[0].Body(); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(filepath.Join(dir, "pack", "pack-x."+ext), 0); err != nil {
			t.Skip(err) // a system that locks what is mapped
		}
		for i, got := range lookAll(t, db, ids) {
			if i == 7 {
				if got.Kind != oid.Blob || got.State != oid.Present {
					t.Errorf("%s: the object that is loose too: %+v", ext, got)
				}
			} else if got.State == oid.Absent && ext == "pack" || isDamaged(got) {
				t.Fatalf("%s: object %d: %+v", ext, i, got)
			}
		}
		if _, err := db.Stores()[0].Packs()[0].Entry(12); ext == "pack" && err == nil {
			t.Error("an entry of a pack that is gone")
		}
	}
}

// The kind of an object other than a tag is believed from its header; Confirm reads it whole.
func TestConfirmHashesEveryKind(t *testing.T) {
	for _, f := range bothFormats {
		dir := t.TempDir()
		b := newBuilder(f)
		blob := b.whole(oid.Blob, []byte("content"))
		lie := f.Object("commit", []byte("not a blob"))
		b.entry(lie, EntryKind(oid.Blob), 10, nil, []byte("not a blob"))
		big := b.whole(oid.Blob, make([]byte, 3<<20))
		b.write(t, dir, "pack-x", 2)
		tree := loose(t, dir, f, oid.Tree, nil)
		mended := f.Object("commit", []byte("mended"))
		putLoose(t, dir, mended, []byte("tree 6\x00mended"))
		pool := t.TempDir()
		loose(t, pool, f, oid.Commit, []byte("mended"))
		borrow(t, dir, pool)
		db := open(t, dir, f)
		for id, want := range map[oid.ID]oid.Kind{blob: oid.Blob, big: oid.Blob, tree: oid.Tree, mended: oid.Commit} {
			if got, err := db.Confirm(context.Background(), id); got != (oid.Fact{State: oid.Present, Kind: want}) || err != nil {
				t.Errorf("%v %v: %+v %v", f, want, got, err)
			}
		}
		if got := lookOne(t, db, lie); got.Kind != oid.Blob {
			t.Errorf("%v: %+v", f, got)
		}
		if got, _ := db.Confirm(context.Background(), lie); !isDamaged(got) {
			t.Errorf("%v: a false header was confirmed: %+v", f, got)
		}
		if got, _ := db.Confirm(context.Background(), f.Object("blob", []byte("none"))); got.State != oid.Absent {
			t.Errorf("%v: %+v", f, got)
		}
	}
}
