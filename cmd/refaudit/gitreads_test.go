package main

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"strings"
	"testing"

	"refaudit/internal/gittest"
	"refaudit/oid"
	"refaudit/reftable"
)

// appendBlockVarint appends a number as tables have it.
func appendBlockVarint(b []byte, v uint64) []byte {
	digits := []byte{byte(v & 127)}
	for v >>= 7; v > 0; v >>= 7 {
		v--
		digits = append(digits, 128|byte(v&127))
	}
	for i := len(digits) - 1; i >= 0; i-- {
		b = append(b, digits[i])
	}
	return b
}

// oneIndexBlock gives a table whose sections, as they are, have each an index of one block, as long as it takes. The
// format allows it, and JGit writes it with reftable.indexLevels=1. There are no object blocks.
func oneIndexBlock(t *testing.T, data []byte) (out []byte, refIndex, logIndex int) {
	t.Helper()
	tab, err := reftable.OpenBytes(data, "t", 0)
	if err != nil {
		t.Fatal(err)
	}
	type leaf struct {
		key []byte
		off int64
	}
	var refs, logs []leaf
	note := func(all *[]leaf, off int64, key []byte) {
		if n := len(*all); n == 0 || (*all)[n-1].off != off {
			*all = append(*all, leaf{off: off})
		}
		(*all)[len(*all)-1].key = key
	}
	if err := tab.Refs(func(r *reftable.Ref) error { note(&refs, r.Block, bytes.Clone(r.Name)); return nil }); err != nil {
		t.Fatal(err)
	}
	if err := tab.Logs(func(l *reftable.Log) error {
		note(&logs, l.Block, binary.BigEndian.AppendUint64(append(bytes.Clone(l.Name), 0), ^l.UpdateIndex))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	header := 24 + 4*(tab.Version-1)
	index := func(all []leaf, moved int64) int {
		start := len(out)
		out = append(out, 'i', 0, 0, 0)
		var restarts []int
		for _, l := range all {
			restarts = append(restarts, len(out)-start)
			out = append(append(out, 0), appendBlockVarint(nil, uint64(len(l.key))<<3)...)
			out = append(append(out, l.key...), appendBlockVarint(nil, uint64(l.off+moved))...)
		}
		for _, r := range restarts {
			out = append(out, byte(r>>16), byte(r>>8), byte(r))
		}
		out = binary.BigEndian.AppendUint16(out, uint16(len(restarts)))
		n := len(out) - start
		out[start+1], out[start+2], out[start+3] = byte(n>>16), byte(n>>8), byte(n)
		return n
	}
	places := [5]uint64{} // ref index, objects, their index, logs, their index
	end := tab.RefIndex   // of what is kept
	if end == 0 {
		end = tab.Log
	}
	if end == 0 {
		t.Fatal("a table without a ref index and logs")
	}
	out = append(out, data[:end]...)
	if tab.RefIndex != 0 {
		for tab.BlockSize > 0 && len(out)%tab.BlockSize != 0 {
			out = append(out, 0)
		}
		places[0] = uint64(len(out))
		refIndex = index(refs, 0)
	}
	if tab.Log != 0 {
		places[3] = uint64(len(out))
		moved := int64(len(out)) - tab.Log
		logEnd := tab.LogIndex
		if logEnd == 0 {
			t.Fatal("a table without a log index")
		}
		out = append(out, data[tab.Log:logEnd]...)
		places[4] = uint64(len(out))
		logIndex = index(logs, moved)
	}
	footer := len(out)
	out = append(out, data[:header]...)
	for _, p := range places {
		out = binary.BigEndian.AppendUint64(out, p)
	}
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out[footer:])), refIndex, logIndex
}

// putStack makes a table the only one of the repository.
func (l *lab) putStack(table []byte) {
	l.t.Helper()
	for _, path := range l.Tables() {
		if err := os.Remove(path); err != nil {
			l.t.Fatal(err)
		}
	}
	tab, err := reftable.OpenBytes(table, "t", l.Format)
	if err != nil {
		l.t.Fatal(err)
	}
	name := reftable.FormatTableName(tab.Min, tab.Max, 0x6c6f6e67)
	l.WriteFile("reftable/"+name, table)
	l.WriteFile("reftable/tables.list", []byte(name+"\n"))
}

// An index of one block that is longer than the block size is as the format allows, and git 2.50 and later list no refs
// of its table, with exit code 0. Around the boundary the audit says so just where git does it.
func TestAnIndexBlockAboveTheBlockSize(t *testing.T) {
	inFormats(t, tableFormats, func(t *testing.T, l *lab) {
		l.Use(gittest.Newest)
		refs, last := 54, 28 // of eight blocks: the length of the last name makes the index one of about 256 bytes
		if l.Format == oid.SHA256 {
			refs, last = 39, 8
		}
		sizes, shown, hidden := "", 0, 0
		for extra := range 24 {
			for _, unpadded := range []bool{false, true} {
				var buf bytes.Buffer
				w, err := reftable.NewWriter(&buf, reftable.Options{Format: l.Format, BlockSize: 256, NoObjects: true, Unpadded: unpadded, Min: 1, Max: 1})
				if err != nil {
					t.Fatal(err)
				}
				names := []string{"HEAD"}
				for i := range refs {
					names = append(names, fmt.Sprintf("refs/heads/a%012d", i))
				}
				for _, name := range append(names, "refs/heads/main", "refs/heads/z"+strings.Repeat("x", last+extra)) {
					r := reftable.Ref{Name: []byte(name), UpdateIndex: 1, Type: reftable.Direct, Value: l.raw(l.A)}
					if name == "HEAD" {
						r = reftable.Ref{Name: []byte(name), UpdateIndex: 1, Type: reftable.Symref, Target: []byte("refs/heads/main")}
					}
					if err := w.AddRef(&r); err != nil {
						t.Fatal(err)
					}
				}
				if err := w.Close(); err != nil {
					t.Fatal(err)
				}
				table, length, _ := oneIndexBlock(t, buf.Bytes())
				l.putStack(table)
				out, _, code := l.Try("for-each-ref")
				if code != 0 {
					t.Fatalf("for-each-ref gives %d", code)
				}
				listed := strings.Count(out, "\n")
				sizes += fmt.Sprintln(length, unpadded, listed)
				for _, level := range []string{"quick", "standard", "deep"} {
					scan := l.run("scan", "--level="+level)
					told := strings.Contains(scan.out, "reftableIndexMismatch")
					if told != (listed == 0) || scan.code != map[bool]int{true: 1}[told] || told && !strings.Contains(scan.out, "don't run gc") {
						t.Errorf("index block of %d, unpadded %v: git lists %d refs; %s gives %d: %s", length, unpadded, listed, level, scan.code, scan.out)
					}
				}
				guard := l.run("guard", "--max-lost=99")
				if (guard.code == 0) != (listed > 0) {
					t.Errorf("index block of %d: git lists %d refs; guard gives %d", length, listed, guard.code)
				}
				if listed == 0 {
					hidden++
					l.refuses(1)
				} else {
					shown++
				}
			}
		}
		t.Log(sizes)
		if shown < 5 || hidden < 5 {
			t.Errorf("not both sides of the boundary")
		}
	})
}

// Of the index of the logs the same is true; refs are read as before.
func TestALogIndexBlockAboveTheBlockSize(t *testing.T) {
	inFormats(t, tableFormats, func(t *testing.T, l *lab) {
		l.Use(gittest.Newest)
		for _, c := range []struct {
			logs int
			seen bool
		}{{10, true}, {30, false}} {
			var buf bytes.Buffer
			w, err := reftable.NewWriter(&buf, reftable.Options{Format: l.Format, BlockSize: 256, NoObjects: true, Min: 1, Max: 30})
			if err != nil {
				t.Fatal(err)
			}
			head := reftable.Ref{Name: []byte("HEAD"), UpdateIndex: 1, Type: reftable.Symref, Target: []byte("refs/heads/main")}
			main := reftable.Ref{Name: []byte("refs/heads/main"), UpdateIndex: 1, Type: reftable.Direct, Value: l.raw(l.A)}
			if err := errors.Join(w.AddRef(&head), w.AddRef(&main)); err != nil {
				t.Fatal(err)
			}
			for i := c.logs; i > 0; i-- {
				if err := w.AddLog(&reftable.Log{Name: main.Name, UpdateIndex: uint64(i), Type: reftable.LogUpdate, Old: l.raw(l.A), New: l.raw(l.B),
					Committer: []byte("a"), Email: []byte("a@x"), Time: 1700000000, Message: []byte("m\n")}); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			table, _, length := oneIndexBlock(t, buf.Bytes())
			l.putStack(table)
			log := l.Git("reflog", "show", "refs/heads/main")
			if (log != "") != c.seen {
				t.Fatalf("index block of %d: git shows %q", length, log)
			}
			want := map[bool]int{false: 1}[c.seen]
			if deep := l.run("scan", "--level=deep"); deep.code != want || strings.Contains(deep.out, "reftableLog") == c.seen {
				t.Errorf("index block of %d: deep gives %d: %s", length, deep.code, deep.out)
			}
			l.sees(0)
			if guard := l.run("guard"); guard.code != 0 {
				t.Errorf("index block of %d: guard gives %d, and git reads every ref", length, guard.code)
			}
		}
	})
}

// storedLog gives a table of two refs and a log of one record with a message of n bytes; the log block is deflated with a level of zlib.
func (l *lab) storedLog(n, blockSize, level int) []byte {
	l.t.Helper()
	var buf bytes.Buffer
	w, err := reftable.NewWriter(&buf, reftable.Options{Format: l.Format, BlockSize: 1 << 16, NoObjects: true, Min: 1, Max: 1})
	if err != nil {
		l.t.Fatal(err)
	}
	head := reftable.Ref{Name: []byte("HEAD"), UpdateIndex: 1, Type: reftable.Symref, Target: []byte("refs/heads/main")}
	main := reftable.Ref{Name: []byte("refs/heads/main"), UpdateIndex: 1, Type: reftable.Direct, Value: l.raw(l.A)}
	log := reftable.Log{Name: main.Name, UpdateIndex: 1, Type: reftable.LogUpdate, Old: l.raw(l.A), New: l.raw(l.B),
		Committer: []byte("a"), Email: []byte("a@x"), Time: 1700000000, Message: append(bytes.Repeat([]byte("m"), n), '\n')}
	if err := errors.Join(w.AddRef(&head), w.AddRef(&main), w.AddLog(&log), w.Close()); err != nil {
		l.t.Fatal(err)
	}
	tab, err := reftable.OpenBytes(buf.Bytes(), "t", l.Format)
	if err != nil {
		l.t.Fatal(err)
	}
	header, out := 24+4*(tab.Version-1), bytes.Clone(buf.Bytes()[:tab.Log])
	z, err := zlib.NewReader(bytes.NewReader(buf.Bytes()[tab.Log+4:]))
	if err != nil {
		l.t.Fatal(err)
	}
	inflated, err := io.ReadAll(z)
	if err != nil {
		l.t.Fatal(err)
	}
	out = append(out, buf.Bytes()[tab.Log:tab.Log+4]...)
	var deflated bytes.Buffer
	d, err := zlib.NewWriterLevel(&deflated, level)
	if err != nil {
		l.t.Fatal(err)
	}
	if _, err := d.Write(inflated); err != nil {
		l.t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		l.t.Fatal(err)
	}
	out = append(out, deflated.Bytes()...)
	footer := len(out)
	out = append(out, buf.Bytes()[buf.Len()-header-44:buf.Len()-4]...)
	for _, start := range []int{0, footer} {
		out[start+5], out[start+6], out[start+7] = byte(blockSize>>16), byte(blockSize>>8), byte(blockSize)
	}
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out[footer:]))
}

// Of a log block git reads as many bytes as it has inflated or, if that is more, as the block size says. Of what didn't
// shrink the stream is longer, and git reflog ends with exit code 0.
func TestALogBlockThatGitReadsInPart(t *testing.T) {
	inFormats(t, tableFormats, func(t *testing.T, l *lab) {
		l.Use(gittest.Newest)
		shown, cut := 0, 0
		try := func(n, blockSize, level int) {
			t.Helper()
			l.putStack(l.storedLog(n, blockSize, level))
			whole := l.Git("reflog", "show", "refs/heads/main") != ""
			deep := l.run("scan", "--level=deep")
			if told := strings.Contains(deep.out, "reftableLog"); told == whole || deep.code != map[bool]int{true: 1}[told] {
				t.Errorf("a message of %d bytes, block size %d, zlib level %d: git shows the log: %v; deep gives %d: %s", n, blockSize, level, whole, deep.code, deep.out)
			}
			if whole {
				shown++
			} else {
				cut++
			}
		}
		room := 1000 - len(l.raw(l.A))*2
		for n := room - 80; n < room; n++ {
			try(n, 1000, zlib.NoCompression)
		}
		for _, n := range []int{900, 1100, 4000} {
			try(n, 1000, zlib.NoCompression)
			try(n, 1000, zlib.BestCompression)
			try(n, 0, zlib.NoCompression)
			try(n, 0, zlib.BestCompression)
		}
		if shown < 10 || cut < 10 {
			t.Errorf("git shows %d logs and ends at %d", shown, cut)
		}
		l.sees(0)
	})
}
