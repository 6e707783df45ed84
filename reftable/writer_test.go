package reftable

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"refaudit/oid"
)

// A block size that holds one record of the index only would make level upon level without end.
func TestTooSmallBlocksAreRefused(t *testing.T) {
	for size, fits := range map[int]bool{1: false, 40: false, 56: false, 64: true} {
		w, err := NewWriter(&bytes.Buffer{}, Options{BlockSize: size})
		for i := 0; i < 50 && err == nil; i++ {
			err = w.AddRef(&Ref{Name: fmt.Appendf(nil, "%c%s", '0'+i, strings.Repeat("x", 18))})
		}
		if err == nil {
			err = w.Close()
		}
		if fits != (err == nil) || !fits && !errors.Is(err, ErrTooBig) {
			t.Errorf("block size %d: %v", size, err)
		}
	}
}

func TestTheWriterRefusesWhatNoTableCanHold(t *testing.T) {
	id := idOf(1)
	ref := func(r Ref) func(*Writer) error { return func(w *Writer) error { return w.AddRef(&r) } }
	log := func(l Log) func(*Writer) error { return func(w *Writer) error { return w.AddLog(&l) } }
	a, b := []byte("a"), []byte("b")
	for _, c := range []struct {
		name string
		adds []func(*Writer) error
	}{
		{"no name", []func(*Writer) error{ref(Ref{UpdateIndex: 5})}},
		{"NUL", []func(*Writer) error{ref(Ref{Name: []byte("a\x00"), UpdateIndex: 5})}},
		{"NUL in a target", []func(*Writer) error{ref(Ref{Name: a, UpdateIndex: 5, Type: Symref, Target: []byte("\x00")})}},
		{"index below the range", []func(*Writer) error{ref(Ref{Name: a, UpdateIndex: 4})}},
		{"index above the range", []func(*Writer) error{ref(Ref{Name: a, UpdateIndex: 8})}},
		{"type 4", []func(*Writer) error{ref(Ref{Name: a, UpdateIndex: 5, Type: 4})}},
		{"short id", []func(*Writer) error{ref(Ref{Name: a, UpdateIndex: 5, Type: Direct, Value: id[1:]})}},
		{"no peel", []func(*Writer) error{ref(Ref{Name: a, UpdateIndex: 5, Type: Peeled, Value: id})}},
		{"no target", []func(*Writer) error{ref(Ref{Name: a, UpdateIndex: 5, Type: Symref})}},
		{"out of order", []func(*Writer) error{ref(Ref{Name: b, UpdateIndex: 5}), ref(Ref{Name: a, UpdateIndex: 5})}},
		{"twice", []func(*Writer) error{ref(Ref{Name: a, UpdateIndex: 5}), ref(Ref{Name: a, UpdateIndex: 5})}},
		{"a ref behind logs", []func(*Writer) error{log(Log{Name: a, UpdateIndex: 5}), ref(Ref{Name: b, UpdateIndex: 5})}},
		{"log without name", []func(*Writer) error{log(Log{UpdateIndex: 5})}},
		{"log with NUL", []func(*Writer) error{log(Log{Name: []byte{0}, UpdateIndex: 5})}},
		{"log of type 2", []func(*Writer) error{log(Log{Name: a, UpdateIndex: 5, Type: 2})}},
		{"log above the range", []func(*Writer) error{log(Log{Name: a, UpdateIndex: 8, Type: LogUpdate, Value: id})}},
		{"log without ids", []func(*Writer) error{log(Log{Name: a, UpdateIndex: 5, Type: LogUpdate})}},
		{"deletion with a value", []func(*Writer) error{log(Log{Name: a, UpdateIndex: 5, Value: id})}},
		{"older log first", []func(*Writer) error{log(Log{Name: a, UpdateIndex: 4}), log(Log{Name: a, UpdateIndex: 5})}},
	} {
		w, err := NewWriter(&bytes.Buffer{}, Options{Min: 5, Max: 7})
		if err != nil {
			t.Fatal(err)
		}
		for i, add := range c.adds {
			if err := add(w); (err == nil) != (i < len(c.adds)-1) {
				t.Errorf("%s: record %d: %v", c.name, i, err)
			}
		}
	}
	for _, o := range []Options{{Format: oid.SHA256, Version: 1}, {Version: 3}, {BlockSize: MaxBlockSize + 1}, {BlockSize: -1}, {RestartInterval: -1}, {Min: 2, Max: 1}} {
		if _, err := NewWriter(&bytes.Buffer{}, o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}

// A disk that fails at any byte makes the writer fail, and it says why.
func TestAFailingDiskIsToldOf(t *testing.T) {
	disk := errors.New("no space left on device")
	for n := 0; ; n += 1000 {
		out := &limited{left: n, err: disk}
		w, err := NewWriter(out, Options{BlockSize: 512})
		for i := 0; i < 4000 && err == nil; i++ {
			err = w.AddRef(&Ref{Name: fmt.Appendf(nil, "refs/heads/%05d", i), Type: Direct, Value: idOf(byte(i))})
		}
		for i := 0; i < 2000 && err == nil; i++ {
			err = w.AddLog(&Log{Name: fmt.Appendf(nil, "refs/heads/%05d", i), Type: LogUpdate, Old: idOf(byte(i)), New: idOf(7)})
		}
		if err == nil {
			err = w.Close()
		}
		if !out.failed {
			if err != nil || n < 100_000 {
				t.Errorf("%d bytes: %v", n, err)
			}
			return
		}
		if !errors.Is(err, disk) {
			t.Fatalf("disk full after %d bytes: %v", n, err)
		}
	}
}

type limited struct {
	left   int
	err    error
	failed bool
}

func (l *limited) Write(b []byte) (int, error) {
	if len(b) > l.left {
		l.failed = true
		return l.left, l.err
	}
	l.left -= len(b)
	return len(b), nil
}

func TestEmptyTable(t *testing.T) {
	var out bytes.Buffer
	w, err := NewWriter(&out, Options{Min: 1, Max: 2})
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	want := build(t, "table version=1 block=4096 min=1 max=2\nfooter")
	if !bytes.Equal(out.Bytes(), want) {
		t.Errorf("%x, want %x", out.Bytes(), want)
	}
	if w.Close() == nil || w.AddRef(&Ref{Name: []byte("a"), UpdateIndex: 1}) == nil {
		t.Error("a closed table takes records")
	}
}

// An object that so many blocks name that its record fits no block gets a record without positions.
func TestObjectsOfVeryManyBlocks(t *testing.T) {
	var refs []Ref
	for i := range 2000 {
		refs = append(refs, Ref{Name: fmt.Appendf(nil, "refs/%d/%04d", i%7, i), Type: Direct, Value: idOf(byte(9 * (i / 1990)))})
	}
	tab := write(t, Options{BlockSize: 128}, refs, nil)
	seen := map[byte]int{}
	err := tab.Objs(func(o *Obj) error {
		seen[o.Prefix[0]] = len(o.Blocks)
		return nil
	})
	if err != nil || len(seen) != 2 || seen[0] != 0 || seen[9] == 0 {
		t.Errorf("%v %v", seen, err)
	}
}

// Ids that differ only where the footer's five bits can't tell them apart share a record.
func TestIdsThatNoAbbreviationTells(t *testing.T) {
	var refs []Ref
	for i := range 200 {
		id := bytes.Repeat([]byte{7}, 32)
		id[31] = byte(199 - i)
		refs = append(refs, Ref{Name: fmt.Appendf(nil, "refs/%04d", i), Type: Direct, Value: id})
	}
	tab := write(t, Options{Format: oid.SHA256, BlockSize: 256}, refs, nil)
	n := 0
	err := tab.Objs(func(o *Obj) error {
		n++
		if len(o.Prefix) != 31 || len(o.Blocks) != 0 && len(o.Blocks) != 34 {
			t.Errorf("%d bytes, %d blocks", len(o.Prefix), len(o.Blocks))
		}
		return nil
	})
	if err != nil || n != 1 {
		t.Errorf("%d records, %v", n, err)
	}
}

func TestVarints(t *testing.T) {
	for _, v := range []uint64{0, 1, 127, 128, 255, 16511, 16512, 1<<32 - 1, 1 << 32, 1<<63 - 1, 1 << 63, 1<<64 - 1} {
		b := appendVarint(nil, v)
		if got, n := varint(b, 0); got != v || n != len(b) || n > maxVarint {
			t.Errorf("%d: %x is read as %d", v, b, got)
		}
		for i := range b {
			if _, n := varint(b[:i], 0); n >= 0 {
				t.Errorf("%d: %x is read", v, b[:i])
			}
		}
	}
	for _, bad := range []string{"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "\x80\xfe\xfe\xfe\xfe\xfe\xfe\xfe\xff\x00"} {
		if _, n := varint([]byte(bad), 0); n >= 0 {
			t.Errorf("%x is read", bad)
		}
	}
}
