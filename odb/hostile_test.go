package odb

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"refaudit/oid"
)

// within fails the test if fn takes so much longer than it ought to that no load of the machine
// explains it, or allocates more than limit bytes.
func within(t *testing.T, d time.Duration, limit uint64, fn func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	fn()
	if took := time.Since(start); took > d {
		t.Errorf("took %v", took)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > limit {
		t.Errorf("allocated %d bytes", n)
	}
}

// git hangs on these, and eats memory until it is killed.
func TestDeltasThatAreTheirOwnBase(t *testing.T) {
	for _, f := range bothFormats {
		for _, length := range []int{1, 2, 3, 100, 50000} {
			dir := t.TempDir()
			b := newBuilder(f)
			b.level = 0
			id := func(i int) oid.ID { return f.Object("blob", binary.BigEndian.AppendUint32(nil, uint32(i%length))) }
			for i := range length {
				b.ref(id(i), id(i+1), []byte{1, 1, 1, 'x'})
			}
			tail := f.Object("blob", []byte("leads into the circle"))
			b.ref(tail, id(0), []byte{1, 1, 1, 'x'})
			b.write(t, dir, "pack-circle", 2)
			db := open(t, dir, f)
			within(t, 20*time.Second, 16<<20, func() {
				if got := lookOne(t, db, id(0)); !isDamaged(got) || !strings.Contains(got.Err.Error(), "its own base") {
					t.Errorf("%d: %+v", length, got)
				}
				if got := lookOne(t, db, tail); !isDamaged(got) {
					t.Errorf("%d: tail: %+v", length, got)
				}
			})
			if length > 100 {
				continue
			}
			if _, _, err := db.Read(tail, 1000); err == nil {
				t.Errorf("%d: was read", length)
			}
		}
	}
}

// A chain in which each delta has the one before as its base; git reads such packs.
func TestChainsMayBeAMillionDeep(t *testing.T) {
	depth := 1000000
	if testing.Short() {
		depth = 100000
	}
	f := oid.SHA1
	dir := t.TempDir()
	b := newBuilder(f)
	b.level = 0
	base := b.whole(oid.Commit, []byte("x"))
	off := b.rows[0].off
	var ids []oid.ID
	for i := range depth {
		id := f.Object("commit", binary.BigEndian.AppendUint32(nil, uint32(i)))
		off = b.ofs(id, off, []byte{1, 1, 0x90, 1}) // copies the one byte
		ids = append(ids, id)
	}
	b.write(t, dir, "pack-deep", 2)
	db := open(t, dir, f)
	within(t, 20*time.Second, 32<<20, func() {
		if got := lookOne(t, db, ids[depth-1]); got.State != oid.Present || got.Kind != oid.Commit {
			t.Errorf("%+v", got)
		}
	})
	// many of them: no part of the chain may be walked for each
	ids = append(ids[depth*9/10:], base)
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	var out []oid.Fact
	within(t, 60*time.Second, 64<<20, func() { out = lookAll(t, db, ids) })
	for i := range out {
		if out[i].Kind != oid.Commit {
			t.Fatalf("%+v", out[i])
		}
	}
}

// What a header or a delta claims is not made room for.
func TestBombs(t *testing.T) {
	for _, f := range bothFormats {
		dir := t.TempDir()
		b := newBuilder(f)
		commit := b.whole(oid.Commit, []byte("c"))
		base := b.whole(oid.Blob, make([]byte, 1<<16))
		tag := b.whole(oid.Tag, tagOf(commit, oid.Commit, "t", "x"))
		tagOff := b.rows[2].off
		bomb := binary.AppendUvarint(binary.AppendUvarint(nil, 1<<16), 1<<30)
		for range 1 << 14 {
			bomb = append(bomb, 0x80) // copies 64 KiB from 0
		}
		blobBomb, tagBomb, liar := f.Object("blob", []byte("b")), f.Object("tag", []byte("t")), f.Object("tag", []byte("l"))
		b.ref(blobBomb, base, bomb)
		tagDelta := binary.AppendUvarint(binary.AppendUvarint(nil, uint64(len(tagOf(commit, oid.Commit, "t", "x")))), 1<<30)
		b.ofs(tagBomb, tagOff, append(tagDelta, bytes.Repeat([]byte{0x90, 50}, 1000)...))
		b.entry(liar, EntryKind(oid.Tag), 1<<40, nil, []byte("object"))
		huge := f.Object("blob", []byte("h"))
		b.entry(huge, EntryKind(oid.Blob), 1<<62, nil, []byte("object"))
		b.write(t, dir, "pack-bomb", 2)
		db := open(t, dir, f)
		within(t, 20*time.Second, 4<<20, func() {
			for _, id := range []oid.ID{blobBomb, huge} {
				if got := lookOne(t, db, id); got != (oid.Fact{State: oid.Present, Kind: oid.Blob}) {
					t.Errorf("%v: %+v", f, got)
				}
			}
			if got := lookOne(t, db, tagBomb); !notSeen(got) || got.Kind != oid.Tag || !strings.Contains(got.Err.Error(), "larger than the limit") {
				t.Errorf("%v: tag bomb: %+v", f, got)
			}
			if got := lookOne(t, db, liar); !isDamaged(got) || got.Kind != oid.Tag {
				t.Errorf("%v: tag that claims a tebibyte: %+v", f, got)
			}
			if _, _, err := db.Read(blobBomb, 1<<20); !errors.Is(err, ErrTooLarge) {
				t.Errorf("%v: read of the bomb: %v", f, err)
			}
			if _, _, err := db.Read(huge, math.MaxInt64); err == nil || errors.Is(err, ErrTooLarge) {
				t.Errorf("%v: read of a blob that claims 2^62 bytes: %v", f, err)
			}
			if got := lookOne(t, db, tag); got.State != oid.Present || got.Target != commit {
				t.Errorf("%v: the tag beside them: %+v", f, got)
			}
		})
	}
}

func TestATagShorterOrLongerThanItsHeaderSays(t *testing.T) {
	for _, f := range bothFormats {
		text := tagOf(f.Object("commit", nil), oid.Commit, "t", "body\n")
		id := f.Object("tag", text)
		for name, size := range map[string]int{"shorter": len(text) + 1, "longer": len(text) - 1, "much longer": 3 << 20} {
			dir := t.TempDir()
			b := newBuilder(f)
			b.entry(id, EntryKind(oid.Tag), uint64(size), nil, text)
			b.write(t, dir, "pack-x", 2)
			if got := lookOne(t, open(t, dir, f), id); !isDamaged(got) || got.Kind != oid.Tag {
				t.Errorf("%v %s: %+v", f, name, got)
			}
			dir = t.TempDir()
			putLoose(t, dir, id, append(appendHeader(nil, oid.Tag, uint64(size)), text...))
			if got := lookOne(t, open(t, dir, f), id); !isDamaged(got) || got.Kind != oid.Tag {
				t.Errorf("%v loose %s: %+v", f, name, got)
			}
		}
	}
}

// A tag of 40 MB is hashed as it streams by; as a delta it is put together, within bounds.
func TestTagsOfAnySize(t *testing.T) {
	body := strings.Repeat("all the release notes of all the years\n", 1<<20)
	for _, f := range bothFormats {
		commit := f.Object("commit", []byte("c"))
		text := tagOf(commit, oid.Commit, "t", body)
		want := oid.Fact{State: oid.Present, Kind: oid.Tag, Claims: oid.Commit, Target: commit}
		dir := t.TempDir()
		b := newBuilder(f)
		b.level = 1
		id := b.whole(oid.Tag, text)
		oneLine := b.whole(oid.Tag, []byte(fmt.Sprintf("object %v\ntype commit\ntag %s", commit, strings.Repeat("x", 2<<20))))
		lie, lieDelta := f.Object("tag", []byte("another")), f.Object("tag", []byte("and another"))
		b.entry(lie, EntryKind(oid.Tag), uint64(len(text)), nil, text)
		small := tagOf(commit, oid.Commit, "small", "")
		b.whole(oid.Tag, small)
		b.ofs(lieDelta, b.rows[len(b.rows)-1].off, deltaOf(small, append(small, '!')))
		lateLine := b.whole(oid.Tag, []byte(fmt.Sprintf("object %v\ntype commit\ntag %s\n", commit, strings.Repeat("x", 2<<20))))
		b.write(t, dir, "pack-big", 2)
		looseDir := t.TempDir()
		loose(t, looseDir, f, oid.Tag, text)
		for _, dir := range []string{dir, looseDir} {
			db := open(t, dir, f)
			within(t, 20*time.Second, 4<<20, func() {
				if got := lookOne(t, db, id); got != want {
					t.Errorf("%v: %+v", f, got)
				}
			})
		}
		db := open(t, dir, f)
		for _, id := range []oid.ID{lie, lieDelta} {
			if got := lookOne(t, db, id); !isDamaged(got) || !strings.Contains(got.Err.Error(), "does not hash to its name") {
				t.Errorf("%v: under another name: %+v", f, got)
			}
		}
		if got := lookOne(t, db, oneLine); !isDamaged(got) {
			t.Errorf("%v: a tag line that never ends: %+v", f, got)
		}
		if got := lookOne(t, db, lateLine); got != want {
			t.Errorf("%v: a tag line of 2 MB: %+v", f, got)
		}

		dir = t.TempDir()
		b = newBuilder(f)
		b.level = 1
		base := b.whole(oid.Tag, text)
		text2 := append(bytes.Clone(text), "one more\n"...)
		id2 := f.Object("tag", text2)
		b.ref(id2, base, bigDelta(text, "one more\n"))
		b.write(t, dir, "pack-delta", 2)
		db = open(t, dir, f)
		within(t, 20*time.Second, 256<<20, func() {
			if got := lookOne(t, db, id2); got != want {
				t.Errorf("%v: as a delta: %+v", f, got)
			}
		})
	}
}

// bigDelta copies all of base, and appends.
func bigDelta(base []byte, more string) []byte {
	out := binary.AppendUvarint(binary.AppendUvarint(nil, uint64(len(base))), uint64(len(base)+len(more)))
	for off := 0; off < len(base); off += 0xffffff {
		n := min(len(base)-off, 0xffffff)
		out = append(out, 0xff)
		out = binary.LittleEndian.AppendUint32(out, uint32(off))
		out = append(out, byte(n), byte(n>>8), byte(n>>16))
	}
	return append(append(out, byte(len(more))), more...)
}

func TestOffsetsBeyondTwoGigabytesAreChecked(t *testing.T) {
	f := oid.SHA1
	dir := t.TempDir()
	b := newBuilder(f)
	good := b.whole(oid.Blob, []byte("good"))
	far := f.Object("blob", []byte("far"))
	b.rows = append(b.rows, row{id: far, off: 1 << 33})
	b.write(t, dir, "pack-far", 2)
	db := open(t, dir, f)
	if got := lookOne(t, db, good); got.Kind != oid.Blob {
		t.Errorf("%+v", got)
	}
	if got := lookOne(t, db, far); !isDamaged(got) {
		t.Errorf("%+v", got)
	}

	// a far offset that the index doesn't have
	dir = t.TempDir()
	b = newBuilder(f)
	b.whole(oid.Blob, []byte("good"))
	pack, idx := b.files(2)
	idx = idx[:len(idx)-f.Size()]
	binary.BigEndian.PutUint32(idx[len(idx)-f.Size()-4:], 1<<31|5)
	put(t, dir, "pack-x.pack", pack)
	put(t, dir, "pack-x.idx", append(idx, hashed(f, idx)...))
	if got := lookOne(t, open(t, dir, f), good); got.State != oid.Unreadable {
		t.Errorf("%+v", got)
	}
}
