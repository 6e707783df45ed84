package reftable

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"refaudit/finding"
	"refaudit/oid"
)

// seeds gives every table that the case files build.
func seeds(t testing.TB, add func(data []byte)) {
	files, _ := filepath.Glob("testdata/*.txt")
	if len(files) == 0 {
		t.Fatal("no cases")
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range strings.Split(string(text), "\n\n") {
			if rest, ok := strings.CutPrefix(part, "table\n"); ok {
				input, _, _ := strings.Cut(rest, "----")
				add(build(t, input))
			}
		}
	}
}

// sealed makes a table of any bytes: it gives them a magic, a version, equal header and footer
// and a right checksum, or a fuzzer would never come past the door.
func sealed(data []byte) []byte {
	if len(data) < headerLenV1 {
		return data
	}
	data = bytes.Clone(data)
	copy(data, magic)
	version := 1
	if data[4] == 2 {
		version = 2
	}
	data[4] = byte(version)
	h, f := headerLen(version), footerLen(version)
	if len(data) < h+f {
		return data
	}
	if version == 2 {
		id := uint32(hashIDSHA1)
		if data[24]&1 != 0 {
			id = hashIDSHA256
		}
		binary.BigEndian.PutUint32(data[24:], id)
	}
	foot := data[len(data)-f:]
	copy(foot, data[:h])
	binary.BigEndian.PutUint32(foot[f-4:], crc32.ChecksumIEEE(foot[:f-4]))
	return data
}

func FuzzHeaderFooter(f *testing.F) {
	seeds(f, func(data []byte) { f.Add(data) })
	f.Fuzz(func(t *testing.T, data []byte) {
		tab, err := OpenBytes(data, goldenFile, 0)
		if err != nil {
			var bad *finding.Corrupt
			if !errors.As(err, &bad) || bad.Pos.File != goldenFile {
				t.Fatalf("%v is no Corrupt of this file", err)
			}
			return
		}
		if tab.Faults() == nil {
			if got := tab.Footer.append(nil); !bytes.Equal(got, data[len(data)-len(got):]) {
				t.Fatalf("footer %x, written again %x", data[len(data)-len(got):], got)
			}
		}
	})
}

func openSealed(t *testing.T, data []byte) *Table {
	data = sealed(data)
	tab, err := OpenBytes(data, goldenFile, 0)
	if err != nil {
		if len(data) >= headerLenV2+footerLen(2) {
			t.Fatalf("a sealed table: %v", err)
		}
		return nil
	}
	n := 0
	tab.Damage = func(bad *finding.Corrupt) error {
		if n++; n > 4*len(data)+100 {
			t.Fatalf("more faults than bytes")
		}
		return nil
	}
	return tab
}

// steps fails the test if a read gives more records than the table has bytes for.
func steps(t *testing.T, data []byte, least int) func() {
	n := 0
	return func() {
		if n++; n > len(data)*maxRatio/least+10 {
			t.Fatalf("%d records from %d bytes", n, len(data))
		}
	}
}

func FuzzRefBlocks(f *testing.F) {
	seeds(f, func(data []byte) { f.Add(data, []byte("refs/heads/b")) })
	f.Fuzz(func(t *testing.T, data, name []byte) {
		tab := openSealed(t, data)
		if tab == nil {
			return
		}
		count := steps(t, data, 3)
		err := tab.Refs(func(r *Ref) error {
			count()
			if r.Offset < r.Block || r.Offset+r.Length > tab.end || r.Length <= 0 || len(r.Name) == 0 {
				t.Fatalf("record at %d+%d of a table whose blocks end at %d", r.Offset, r.Length, tab.end)
			}
			if n := tab.Format.Size(); r.Value != nil && len(r.Value) != n || r.Peel != nil && len(r.Peel) != n {
				t.Fatalf("ids of %d and %d bytes", len(r.Value), len(r.Peel))
			}
			return nil
		})
		if err != nil && !errors.Is(err, ErrDamaged) {
			t.Fatal(err)
		}
		it := tab.Seek(name)
		if it.Next() && bytes.Compare(it.Ref().Name, name) < 0 {
			t.Fatalf("sought %q, found %q", name, it.Ref().Name)
		}
	})
}

func FuzzIndexBlocks(f *testing.F) {
	seeds(f, func(data []byte) { f.Add(data, []byte("refs/heads/b")) })
	f.Fuzz(func(t *testing.T, data, key []byte) {
		tab := openSealed(t, data)
		if tab == nil {
			return
		}
		w := tab.window(tab.end, seekWindow)
		for _, root := range []int64{tab.RefIndex, tab.ObjIndex, tab.LogIndex} {
			if root == 0 {
				continue
			}
			for _, kind := range []byte{kindRef, kindObj, kindLog} {
				if off, ok, _ := tab.descend(&w, root, kind, key); ok {
					if k, _, _ := tab.blockAt(&w, off); k != kind {
						t.Fatalf("leads to a block of kind %q, not %q", k, kind)
					}
				}
				if n := len(tab.leaves(root, kind)); n > len(data) {
					t.Fatalf("%d leaves in %d bytes", n, len(data))
				}
			}
		}
	})
}

func FuzzObjBlocks(f *testing.F) {
	seeds(f, func(data []byte) { f.Add(data, bytes.Repeat([]byte{0xab}, oid.MaxSize)) })
	f.Fuzz(func(t *testing.T, data, id []byte) {
		tab := openSealed(t, data)
		if tab == nil {
			return
		}
		count := steps(t, data, 3)
		err := tab.Objs(func(o *Obj) error {
			count()
			if len(o.Prefix) == 0 || len(o.Blocks) > len(data) {
				t.Fatalf("%d bytes of id, %d positions", len(o.Prefix), len(o.Blocks))
			}
			return nil
		})
		if err != nil && !errors.Is(err, ErrDamaged) {
			t.Fatal(err)
		}
		if o, _ := tab.FindObj(id); o != nil && !bytes.HasPrefix(id, o.Prefix) {
			t.Fatalf("sought %x, found %x", id, o.Prefix)
		}
	})
}

// FuzzLogBlocks reads a table as it is, and then one whose only block holds the bytes deflated.
func FuzzLogBlocks(f *testing.F) {
	seeds(f, func(data []byte) {
		f.Add(data, []byte("refs/heads/b"))
		f.Add(data, []byte("refs/heads/b\x00\xff")) // sorts among the keys of refs/heads/b
		if tab, err := OpenBytes(data, goldenFile, 0); err == nil {
			it := tab.LogIter()
			it.Damage = func(*finding.Corrupt) error { return nil }
			if it.Next() {
				f.Add(bytes.Clone(it.blk.data[it.blk.first():]), []byte("refs/heads/a"))
			}
		}
	})
	f.Fuzz(func(t *testing.T, data, name []byte) {
		fuzzLogs(t, data, name)
		if n := headerLenV1 + 4 + len(data); n <= MaxBlockSize {
			h := Header{Version: 1, Max: 1, Format: oid.SHA1}
			b := append(h.append(nil), kindLog, byte(n>>16), byte(n>>8), byte(n))
			b = append(b, deflated(data)...)
			foot := Footer{Header: h}
			fuzzLogs(t, foot.append(b), name)
		}
	})
}

func fuzzLogs(t *testing.T, data, name []byte) {
	tab := openSealed(t, data)
	if tab == nil {
		return
	}
	count := steps(t, data, 12)
	err := tab.Logs(func(l *Log) error {
		count()
		if len(l.Name) == 0 || l.Length <= 0 || l.Type > LogUpdate {
			t.Fatalf("%+v", l)
		}
		return nil
	})
	if err != nil && !errors.Is(err, ErrDamaged) {
		t.Fatal(err)
	}
	it := tab.LogIter()
	it.Seek(name)
	if it.Next() && bytes.Compare(it.Log().Name, name) < 0 {
		t.Fatalf("sought %q, found %q", name, it.Log().Name)
	}
}

func FuzzVerify(f *testing.F) {
	seeds(f, func(data []byte) { f.Add(data) })
	f.Fuzz(func(t *testing.T, data []byte) {
		tab := openSealed(t, data)
		if tab == nil {
			return
		}
		count := steps(t, data, 1)
		good := true
		err := Verify(tab, VerifyOptions{}, func(f finding.Finding) error {
			count()
			good = false
			if f.File != goldenFile || !f.Placed || f.Message == "" {
				t.Fatalf("%+v", f)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if !good {
			return
		}
		// of a table in which nothing is wrong, everything can be read and found
		tab.Damage = nil
		err = errors.Join(tab.Objs(func(*Obj) error { return nil }), tab.Logs(func(*Log) error { return nil }))
		last := []byte(nil)
		err = errors.Join(err, tab.Refs(func(r *Ref) error {
			if bytes.Compare(r.Name, last) <= 0 {
				t.Fatalf("%q behind %q", r.Name, last)
			}
			last = append(last[:0], r.Name...)
			it := tab.Seek(r.Name)
			if !it.Next() || !bytes.Equal(it.Ref().Name, r.Name) {
				t.Fatalf("%q is not found: %v", r.Name, it.Err())
			}
			if r.Value != nil && tab.Obj != 0 {
				if o, err := tab.FindObj(r.Value); o == nil || len(o.Blocks) > 0 && !slices.Contains(o.Blocks, r.Block) {
					t.Fatalf("%x of %q is not found as an object: %v %v", r.Value, r.Name, o, err)
				}
			}
			return nil
		}))
		if err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzSearch: where neither a reading of all refs nor a look at the searches finds anything, each name is found.
func FuzzSearch(f *testing.F) {
	seeds(f, func(data []byte) { f.Add(data) })
	f.Fuzz(func(t *testing.T, data []byte) {
		tab := openSealed(t, data)
		if tab == nil {
			return
		}
		count := steps(t, data, 2)
		alone, beside, whole := 0, 0, 0
		said := func(n *int) func(finding.Finding) error {
			return func(f finding.Finding) error {
				count()
				*n++
				if f.File != goldenFile || !f.Placed || f.Message == "" {
					t.Fatalf("%+v", f)
				}
				return nil
			}
		}
		if err := VerifySearch(tab, said(&alone)); err != nil {
			t.Fatal(err)
		}
		if err := Verify(tab, VerifyOptions{}, said(&whole)); err != nil {
			t.Fatal(err)
		}
		git := 0
		if err := VerifyForGit(tab, true, said(&git)); err != nil {
			t.Fatal(err)
		}
		damaged := false
		tab.Damage = func(*finding.Corrupt) error { damaged = true; return nil }
		m := Merge([]*Table{tab})
		m.Searches()
		var names [][]byte
		for m.Next() {
			count()
			names = append(names, bytes.Clone(m.Entries()[0].Name))
		}
		if err := m.JudgeSearches(said(&beside)); err != nil {
			t.Fatal(err)
		}
		if whole == 0 && alone+beside > 0 || !damaged && (alone == 0) != (beside == 0) {
			t.Fatalf("all of it: %d findings; searches alone: %d; beside a reading: %d, damaged %v", whole, alone, beside, damaged)
		}
		if damaged || m.Err() != nil || beside > 0 {
			return
		}
		tab.Damage = nil
		for _, name := range names {
			if it := tab.Seek(name); !it.Next() || !bytes.Equal(it.Ref().Name, name) {
				t.Fatalf("%q is not found: %v", name, it.Err())
			}
		}
	})
}

// FuzzDump dumps any bytes: the parts must cover each byte once, and in order.
func FuzzDump(f *testing.F) {
	seeds(f, func(data []byte) { f.Add(data, false); f.Add(data, true) })
	f.Fuzz(func(t *testing.T, data []byte, seal bool) {
		if seal {
			data = sealed(data)
		}
		count := steps(t, data, 1)
		at := int64(0)
		err := Dump(bytes.NewReader(data), int64(len(data)), goldenFile, func(p *Part) error {
			count()
			switch {
			case p.Kind == PartDamage || p.Kind == PartResumed:
				if len(p.Bytes) != 0 || p.Text == "" {
					t.Fatalf("%+v", p)
				}
			case p.Inflated:
				if int64(len(p.Bytes)) != p.Length {
					t.Fatalf("%+v", p)
				}
			case p.Offset != at || p.Length <= 0 || !bytes.Equal(p.Bytes, data[at:at+p.Length]):
				t.Fatalf("%s at %d+%d, want it at %d", p.Kind, p.Offset, p.Length, at)
			default:
				at += p.Length
			}
			return nil
		})
		if err != nil || at != int64(len(data)) {
			t.Fatalf("%d of %d bytes, %v", at, len(data), err)
		}
	})
}
