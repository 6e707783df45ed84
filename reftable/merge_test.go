package reftable

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand"
	"slices"
	"testing"

	"refaudit/finding"
	"refaudit/oid"
)

// write makes a table of refs and logs, which are sorted first.
func write(t testing.TB, o Options, refs []Ref, logs []Log) *Table {
	t.Helper()
	slices.SortFunc(refs, func(a, b Ref) int { return bytes.Compare(a.Name, b.Name) })
	slices.SortFunc(logs, func(a, b Log) int {
		return cmp.Or(bytes.Compare(a.Name, b.Name), cmp.Compare(b.UpdateIndex, a.UpdateIndex))
	})
	var out bytes.Buffer
	w, err := NewWriter(&out, o)
	if err != nil {
		t.Fatal(err)
	}
	for i := range refs {
		err = errors.Join(err, w.AddRef(&refs[i]))
	}
	for i := range logs {
		err = errors.Join(err, w.AddLog(&logs[i]))
	}
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	tab, err := OpenBytes(out.Bytes(), fmt.Sprintf("reftable/%d", o.Min), o.Format)
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

func idOf(n byte) []byte { return bytes.Repeat([]byte{n}, 20) }

// A stack is held against what a map says of it.
func TestMergeAgreesWithAMap(t *testing.T) {
	rnd := rand.New(rand.NewSource(7))
	for round := range 200 {
		var tables []*Table
		want := map[string][]string{} // records of a name, the newest first
		wantLogs := map[string]string{}
		for i := range rnd.Intn(7) {
			index := uint64(i + 1)
			var refs []Ref
			var logs []Log
			names := map[string]bool{}
			for range rnd.Intn(60) {
				name := fmt.Sprintf("refs/heads/%d", rnd.Intn(80))
				if names[name] {
					continue
				}
				names[name] = true
				r := Ref{Name: []byte(name), UpdateIndex: index, Type: Type(rnd.Intn(4))}
				switch r.Type {
				case Direct, Peeled:
					r.Value = idOf(byte(rnd.Intn(256)))
					if r.Type == Peeled {
						r.Peel = idOf(byte(rnd.Intn(256)))
					}
				case Symref:
					r.Target = []byte("refs/heads/x")
				}
				refs = append(refs, r)
				want[name] = append([]string{fmt.Sprint(i, " ", r.String())}, want[name]...)
				l := Log{Name: r.Name, UpdateIndex: index - uint64(rnd.Intn(2)), Type: LogType(rnd.Intn(2)), Value: []byte{}}
				if l.Type == LogUpdate {
					l.Value = nil
					l.Old, l.New, l.Message = idOf(1), idOf(2), fmt.Appendf(nil, "%d", i)
				}
				logs = append(logs, l)
				wantLogs[fmt.Sprintf("%s %d", name, l.UpdateIndex)] = fmt.Sprintf("%d %s", l.Type, l.Message)
			}
			tables = append(tables, write(t, Options{Min: index, Max: index, BlockSize: 200 + rnd.Intn(2)*4000}, refs, logs))
		}
		m := Merge(tables)
		last := ""
		for m.Next() {
			e := m.Entries()
			name := string(e[0].Name)
			var got []string
			for _, x := range e {
				got = append(got, fmt.Sprint(x.Table, " ", x.String()))
			}
			if !slices.Equal(got, want[name]) || name <= last {
				t.Fatalf("round %d: %q: %v, want %v", round, name, got, want[name])
			}
			if _, same := m.JGit(); !same {
				t.Fatalf("round %d: %q: JGit reads another record of a stack whose indexes rise", round, name)
			}
			delete(want, name)
			last = name
		}
		if len(want) > 0 || m.Err() != nil {
			t.Fatalf("round %d: left %v, %v", round, want, m.Err())
		}
		ml := MergeLogs(tables)
		for ml.Next() {
			l := ml.Log()
			key := fmt.Sprintf("%s %d", l.Name, l.UpdateIndex)
			if got := fmt.Sprintf("%d %s", l.Type, l.Message); wantLogs[key] != got {
				t.Fatalf("round %d: log %s: %q, want %q", round, key, got, wantLogs[key])
			}
			delete(wantLogs, key)
		}
		if len(wantLogs) > 0 || ml.Err() != nil {
			t.Fatalf("round %d: left logs %v, %v", round, wantLogs, ml.Err())
		}
	}
}

func TestMergeSeeks(t *testing.T) {
	tables := []*Table{
		write(t, Options{Min: 1, Max: 1}, []Ref{{Name: []byte("a"), UpdateIndex: 1, Type: Direct, Value: idOf(1)}, {Name: []byte("c"), UpdateIndex: 1, Type: Direct, Value: idOf(1)}}, nil),
		write(t, Options{Min: 2, Max: 2}, []Ref{{Name: []byte("b"), UpdateIndex: 2, Type: Deletion}, {Name: []byte("c"), UpdateIndex: 2, Type: Deletion}}, nil),
	}
	m := Merge(tables)
	for _, c := range []struct{ seek, want string }{{"c", `[1 "c" deletion][0 "c" 0101010101010101010101010101010101010101]`}, {"b", `[1 "b" deletion]`}, {"aa", `[1 "b" deletion]`}, {"d", ""}, {"", `[0 "a" 0101010101010101010101010101010101010101]`}} {
		m.Seek([]byte(c.seek))
		got := ""
		if m.Next() {
			for _, e := range m.Entries() {
				got += fmt.Sprintf("[%d %v]", e.Table, e.Ref)
			}
		}
		if got != c.want || m.Err() != nil {
			t.Errorf("seek %q: %s %v, want %s", c.seek, got, m.Err(), c.want)
		}
	}
}

// A stack of one table is read without any merging, from wherever a search leads.
func TestMergeSeeksInOneTable(t *testing.T) {
	var refs []Ref
	for _, name := range []string{"a", "b", "c", "d"} {
		refs = append(refs, Ref{Name: []byte(name), UpdateIndex: 1, Type: Direct, Value: idOf(1)})
	}
	m := Merge([]*Table{write(t, Options{Min: 1, Max: 1}, refs, nil)})
	for _, seek := range []string{"", "c", "b", "d", "e", "a", "a"} {
		if seek != "" {
			m.Seek([]byte(seek))
		}
		got := ""
		for m.Next() && len(got) < 3 {
			got += string(m.Entries()[0].Name)
		}
		if want := "abcd"[(seek + "a")[0]-'a':]; got != want[:min(3, len(want))] || m.Err() != nil {
			t.Errorf("from %q: %q, not %q; %v", seek, got, want, m.Err())
		}
	}
}

// git takes the record of the newest table, JGit that of the highest update index.
func TestWhereGitAndJGitDiffer(t *testing.T) {
	direct := func(name string, index uint64, id byte) Ref {
		return Ref{Name: []byte(name), UpdateIndex: index, Type: Direct, Value: idOf(id)}
	}
	tables := []*Table{
		write(t, Options{Min: 1, Max: 9}, []Ref{direct("differs", 9, 1), direct("equal", 9, 3), direct("rises", 1, 1), direct("ties", 5, 1)}, nil),
		write(t, Options{Min: 1, Max: 5}, []Ref{direct("differs", 4, 2), direct("equal", 4, 3), direct("rises", 2, 2), direct("ties", 5, 2)}, nil),
	}
	want := map[string]struct {
		git, jgit byte
		same      bool
	}{"differs": {2, 1, false}, "equal": {3, 3, true}, "rises": {2, 2, true}, "ties": {2, 2, true}}
	m := Merge(tables)
	for m.Next() {
		git := m.Entries()[0]
		jgit, same := m.JGit()
		if w := want[string(git.Name)]; git.Value[0] != w.git || jgit.Value[0] != w.jgit || same != w.same {
			t.Errorf("%s: git %v, JGit %v, same %v", git.Name, git.Ref, jgit.Ref, same)
		}
		delete(want, string(git.Name))
	}
	if len(want) != 0 || m.Err() != nil {
		t.Errorf("left %v, %v", want, m.Err())
	}
}

func TestMergeGoesOnPastDamage(t *testing.T) {
	good := write(t, Options{Min: 1, Max: 1}, []Ref{{Name: []byte("a"), UpdateIndex: 1, Type: Deletion}, {Name: []byte("z"), UpdateIndex: 1, Type: Deletion}}, nil)
	data := build(t, "table version=1 block=0 min=2 max=2\nblock r interval=1\n b +0 deletion\n c +0 type 5 00\n d +0 deletion\nfooter")
	bad, err := OpenBytes(data, "reftable/bad", oid.SHA1)
	if err != nil {
		t.Fatal(err)
	}
	names := func() (got string, err error) {
		m := Merge([]*Table{good, bad})
		for m.Next() {
			got += string(m.Entries()[0].Name)
		}
		return got, m.Err()
	}
	var c *finding.Corrupt
	if got, err := names(); got != "a" && got != "ab" || !errors.As(err, &c) || c.ID != finding.ReftableRecord {
		t.Errorf("strict: %q %v", got, err)
	}
	faults := 0
	bad.Damage = func(*finding.Corrupt) error { faults++; return nil }
	if got, err := names(); got != "abdz" || !errors.Is(err, ErrDamaged) || faults != 1 {
		t.Errorf("lenient: %q %v, %d faults", got, err, faults)
	}
	stop := errors.New("enough")
	bad.Damage = func(*finding.Corrupt) error { return stop }
	if _, err := names(); !errors.Is(err, stop) {
		t.Errorf("stopped: %v", err)
	}
}

func TestCheckStack(t *testing.T) {
	table := func(file string, f oid.Format, lo, hi uint64) *Table {
		return &Table{Footer: Footer{Header: Header{Version: 1, Min: lo, Max: hi, Format: f}}, file: "reftable/" + file}
	}
	for _, c := range []struct {
		tables []*Table
		want   string
	}{
		{[]*Table{table("0x1-0x2-a.ref", oid.SHA1, 1, 2), table("0x3-0x3-b.ref", oid.SHA1, 3, 3), table("any", oid.SHA1, 9, 9)}, ""},
		{[]*Table{table("0x1-0x2-a.ref", oid.SHA1, 1, 2), table("0x2-0x3-b.ref", oid.SHA1, 2, 3)},
			"reftableUpdateIndex reftable/0x2-0x3-b.ref update indexes begin at 2, and those of 0x1-0x2-a.ref before it in the stack end at 2\n"},
		{[]*Table{table("0x1-0x2-a.ref", oid.SHA1, 1, 3)}, "reftableUpdateIndex reftable/0x1-0x2-a.ref table is named after update indexes 1 to 2, and its header says 1 to 3\n"},
		{[]*Table{table("a", oid.SHA1, 1, 1), table("b", oid.SHA256, 2, 2)}, "reftableHashMismatch reftable/b table is of sha256, the repository of sha1\n"},
	} {
		got := ""
		err := CheckStack(c.tables, 0, func(f finding.Finding) error {
			got += fmt.Sprintf("%s %s %s\n", f.ID, f.File, f.Message)
			return nil
		})
		if got != c.want || err != nil {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}

// FuzzMerged merges tables of any bytes: no record may be lost or given twice.
func FuzzMerged(f *testing.F) {
	var all [][]byte
	seeds(f, func(data []byte) { all = append(all, data) })
	for i := range all {
		f.Add(all[i], all[(i+7)%len(all)], all[(i+13)%len(all)])
	}
	f.Fuzz(func(t *testing.T, a, b, c []byte) {
		var tables []*Table
		alone := 0
		for _, data := range [][]byte{a, b, c} {
			if tab := openSealed(t, data); tab != nil {
				if err := tab.Refs(func(*Ref) error { alone++; return nil }); err != nil && !errors.Is(err, ErrDamaged) {
					t.Fatal(err)
				}
				tables = append(tables, tab)
			}
		}
		m := Merge(tables)
		merged := 0
		for m.Next() {
			e := m.Entries()
			merged += len(e)
			for i := range e[1:] {
				if !bytes.Equal(e[i].Name, e[i+1].Name) || e[i].Table <= e[i+1].Table {
					t.Fatalf("%q of table %d before %q of table %d", e[i].Name, e[i].Table, e[i+1].Name, e[i+1].Table)
				}
			}
			m.JGit()
		}
		if merged != alone || m.Err() != nil && !errors.Is(m.Err(), ErrDamaged) {
			t.Fatalf("%d records merged, the tables have %d, %v", merged, alone, m.Err())
		}
		for l := MergeLogs(tables); l.Next(); {
			if l.Log().Name == nil {
				t.Fatal("a log without a name")
			}
		}
	})
}

// FuzzWriter writes records made of any bytes; what is read from the table is what was written,
// and written again it is the same table.
func FuzzWriter(f *testing.F) {
	f.Add([]byte("\x01a\x01b\x02c\x03d\x00e"), uint16(0), uint8(0), uint8(0))
	f.Add(bytes.Repeat([]byte("\x02name"), 400), uint16(300), uint8(3), uint8(1))
	f.Add(bytes.Repeat([]byte("\x11\x00\xffxyz"), 900), uint16(128), uint8(1), uint8(6))
	f.Fuzz(func(t *testing.T, data []byte, blockSize uint16, restart, flags uint8) {
		o := Options{Format: oid.SHA1, BlockSize: int(blockSize), RestartInterval: int(restart), NoObjects: flags&1 != 0, Unpadded: flags&2 != 0, Min: 1, Max: 1 << 40}
		if flags&4 != 0 {
			o.Format = oid.SHA256
		}
		var refs []Ref
		var logs []Log
		id := make([]byte, o.Format.Size())
		for i := 0; i+6 <= len(data); i += 6 {
			copy(id, data[i:i+6])
			r := Ref{Name: fmt.Appendf(nil, "%06d%x", i, data[i:i+3]), UpdateIndex: 1 + uint64(binary.BigEndian.Uint32(data[i+2:])), Type: Type(data[i] & 3)}
			switch r.Type {
			case Peeled:
				r.Value, r.Peel = bytes.Clone(id), bytes.Repeat([]byte{data[i+1]}, len(id))
			case Direct:
				r.Value = bytes.Clone(id)
			case Symref:
				r.Target = fmt.Appendf(nil, "%x", data[i:i+6])
			}
			refs = append(refs, r)
			l := Log{Name: r.Name, UpdateIndex: r.UpdateIndex, Type: LogType(data[i+1] & 1), Value: bytes.Clone(data[i : i+int(data[i])%7])}
			if l.Type == LogDeletion {
				l.Value = nil
			} else if data[i+3]&1 != 0 {
				l.Value = nil
				l.Old, l.New, l.Time, l.Zone, l.Message = id, id, uint64(data[i+5])<<20, int16(data[i+4])-9, data[i:i+6]
			}
			logs = append(logs, l)
		}
		var out bytes.Buffer
		w, err := NewWriter(&out, o)
		if err != nil {
			t.Fatal(err)
		}
		for i := range refs {
			if err == nil {
				err = w.AddRef(&refs[i])
			}
		}
		for i := range logs {
			if err == nil {
				err = w.AddLog(&logs[i])
			}
		}
		if err == nil {
			err = w.Close()
		}
		if err != nil {
			if !errors.Is(err, ErrTooBig) || o.BlockSize == 0 || o.BlockSize > 400 {
				t.Fatal(err)
			}
			return
		}
		tab, err := OpenBytes(out.Bytes(), "f", o.Format)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		err = tab.Refs(func(r *Ref) error {
			if !r.Says(&refs[n]) || !bytes.Equal(r.Name, refs[n].Name) || r.UpdateIndex != refs[n].UpdateIndex {
				t.Fatalf("%v, written %v", r, &refs[n])
			}
			n++
			return nil
		})
		if err != nil || n != len(refs) {
			t.Fatalf("%d refs of %d, %v", n, len(refs), err)
		}
		// a value that is no log data can't be read back as a record, but all that can be must come
		tab.Damage = func(c *finding.Corrupt) error {
			if c.ID != finding.ReftableLog {
				t.Fatal(c)
			}
			return nil
		}
		if err := tab.Logs(func(*Log) error { return nil }); err != nil && !errors.Is(err, ErrDamaged) {
			t.Fatal(err)
		}
		var again bytes.Buffer
		w, _ = NewWriter(&again, o)
		for i := range refs {
			err = errors.Join(err, w.AddRef(&refs[i]))
		}
		for i := range logs {
			err = errors.Join(err, w.AddLog(&logs[i]))
		}
		if errors.Join(err, w.Close()) != nil || !bytes.Equal(again.Bytes(), out.Bytes()) {
			t.Fatalf("written twice, two tables: %v", err)
		}
	})
}
