package reftable

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"testing"

	"refaudit/finding"
	"refaudit/oid"
)

// everything is a table with all sections; without padding its indexes have two levels.
func everything(t testing.TB, unpadded bool) []byte {
	var out bytes.Buffer
	w, err := NewWriter(&out, Options{Format: oid.SHA1, BlockSize: 160, RestartInterval: 4, Unpadded: unpadded, Min: 3, Max: 6})
	if err != nil {
		t.Fatal(err)
	}
	id := func(i int) []byte {
		return append([]byte{byte(i * 37), byte(i * 91)}, bytes.Repeat([]byte{byte(i)}, 18)...)
	}
	for i := range 90 {
		r := Ref{Name: fmt.Appendf(nil, "refs/heads/topic-%02d", i), UpdateIndex: 3 + uint64(i%4), Type: Direct, Value: id(i)}
		switch i % 9 {
		case 4:
			r.Type, r.Value, r.Target = Symref, nil, []byte("refs/heads/main")
		case 5:
			r.Type, r.Value = Deletion, nil
		case 6:
			r.Type, r.Peel = Peeled, id(100+i)
		}
		err = errors.Join(err, w.AddRef(&r))
	}
	for i := range 5 {
		l := Log{Name: fmt.Appendf(nil, "refs/heads/topic-%02d", i), UpdateIndex: 4, Type: LogUpdate, Old: id(i), New: id(i + 1), Committer: []byte("A U Thor"), Email: []byte("a@x"), Time: 1700000000, Zone: 100, Message: []byte("m\n")}
		err = errors.Join(err, w.AddLog(&l))
	}
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	if s := w.Stats(); s.RefBlocks < 8 || s.ObjBlocks < 4 || s.LogBlocks < 4 || s.IndexBlocks < 4 || unpadded && s.IndexBlocks < 5 {
		t.Fatalf("%+v", s)
	}
	return out.Bytes()
}

// When a bit of a table flips, Verify or Open must say so. What the format can't show is what
// blocks of refs hold, without a checksum: an id, a name that still sorts, an update index in
// the range, a target; there the flipped record must be read as it stands. (And the bits that
// no deflated stream uses, at its end: there nothing may change.)
func TestEveryFlippedBitIsSeen(t *testing.T) {
	everyFlippedBitIsSeen(t, everything(t, true), "")
	everyFlippedBitIsSeen(t, everything(t, false), PartPadding)
}

// everyFlippedBitIsSeen flips the bits of one kind of part; "" of all.
func everyFlippedBitIsSeen(t *testing.T, data []byte, only PartKind) {
	kinds := make([]PartKind, len(data))
	err := Dump(bytes.NewReader(data), int64(len(data)), "t", func(p *Part) error {
		for i := range p.Length {
			if !p.Inflated {
				kinds[p.Offset+i] = p.Kind
			}
		}
		if p.Kind == PartDamage {
			t.Fatalf("a sound table: %s", p.Text)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	refs, logs := recordsText(t, data)
	unseen, bits := 0, 0
	for i, kind := range kinds {
		for bit := range 8 {
			if only != "" && kind != only || (kind == PartRef || kind == PartPacked) && (i+bit)%4 != 0 {
				continue // most are the same again
			}
			bits++
			data[i] ^= 1 << bit
			if !seen(t, data) {
				unseen++
				gotRefs, gotLogs := recordsText(t, data)
				if kind == PartRef && gotRefs == refs || kind == PartPacked && gotLogs != logs || kind != PartRef && kind != PartPacked {
					t.Errorf("bit %d of byte %d (%#02x), %s, is not seen", bit, i, data[i], kind)
				}
			}
			data[i] ^= 1 << bit
		}
	}
	t.Logf("%d of %d flipped bits can't be seen", unseen, bits)
}

func seen(t *testing.T, data []byte) bool {
	tab, err := OpenBytes(data, "t", oid.SHA1)
	if err != nil {
		return true
	}
	stop := errors.New("seen")
	err = Verify(tab, VerifyOptions{}, func(finding.Finding) error { return stop })
	if err != nil && !errors.Is(err, stop) {
		t.Fatal(err)
	}
	return err != nil
}

func recordsText(t *testing.T, data []byte) (refs, logs string) {
	tab, err := OpenBytes(data, "t", oid.SHA1)
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(tab.Refs(func(r *Ref) error {
		refs += fmt.Sprintln(r, r.UpdateIndex)
		return nil
	}), tab.Logs(func(l *Log) error {
		logs += fmt.Sprintf("%q %d %x\n", l.Name, l.UpdateIndex, l.Value)
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	return refs, logs
}

// A table that is cut anywhere is never read as a sound one.
func TestEveryCutIsSeen(t *testing.T) {
	data := everything(t, true)
	for n := range data {
		if _, err := OpenBytes(data[:n], "t", oid.SHA1); err == nil {
			t.Errorf("cut to %d bytes, it opens", n)
		}
	}
}

// An error of the disk is damage that keeps its cause, and no end of the table.
func TestReadErrorsAreNotTheEnd(t *testing.T) {
	data := everything(t, true)
	disk := errors.New("input/output error")
	for _, from := range []int64{0, 200, 1000, int64(len(data)) - 68} {
		r := failing{bytes.NewReader(data), from, disk}
		tab, err := Open(r, int64(len(data)), "t", oid.SHA1)
		if err == nil {
			err = tab.Refs(func(*Ref) error { return nil })
		}
		var bad *finding.Corrupt
		if !errors.Is(err, disk) || !errors.As(err, &bad) || bad.ID != finding.ReftableUnreadable {
			t.Errorf("failing from %d: %v", from, err)
		}
		if err := Dump(r, int64(len(data)), "t", func(*Part) error { return nil }); !errors.Is(err, disk) {
			t.Errorf("failing from %d: dump: %v", from, err)
		}
	}
}

type failing struct {
	r    *bytes.Reader
	from int64
	err  error
}

func (f failing) ReadAt(b []byte, off int64) (int, error) {
	if off+int64(len(b)) > f.from && off < f.from+500 {
		return 0, f.err
	}
	return f.r.ReadAt(b, off)
}

// A file that shrinks while it is read is no end either.
func TestAShrinkingFileIsSeen(t *testing.T) {
	data := everything(t, true)
	r := &shrinking{data: data}
	tab, err := Open(r, int64(len(data)), "t", oid.SHA1)
	if err != nil {
		t.Fatal(err)
	}
	r.data = data[:300]
	var bad *finding.Corrupt
	if err := tab.Refs(func(*Ref) error { return nil }); !errors.As(err, &bad) || bad.ID != finding.ReftableUnreadable {
		t.Errorf("%v", err)
	}
}

type shrinking struct{ data []byte }

func (s *shrinking) ReadAt(b []byte, off int64) (int, error) {
	return bytes.NewReader(s.data).ReadAt(b, off)
}

// One table serves several readers at once.
func TestATableIsSafeForConcurrentUse(t *testing.T) {
	data := everything(t, true)
	tab := openReader(t, data)
	want, wantLogs := recordsText(t, data)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			refs, logs := "", ""
			err := errors.Join(tab.Refs(func(r *Ref) error {
				refs += fmt.Sprintln(r, r.UpdateIndex)
				if it := tab.Seek(r.Name); !it.Next() || !bytes.Equal(it.Ref().Name, r.Name) {
					return fmt.Errorf("%q is not found", r.Name)
				}
				return nil
			}), tab.Logs(func(l *Log) error {
				logs += fmt.Sprintf("%q %d %x\n", l.Name, l.UpdateIndex, l.Value)
				return nil
			}), Verify(tab, VerifyOptions{}, func(f finding.Finding) error { return errors.New(f.Message) }))
			if err != nil || refs != want || logs != wantLogs {
				t.Errorf("reads differ: %v", err)
			}
		})
	}
	wg.Wait()
}
