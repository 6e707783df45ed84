package journal

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"refaudit/finding"
	"refaudit/internal/crashfs"
	"refaudit/oid"
)

var (
	one = oid.MustParse(strings.Repeat("1", 40))
	two = oid.MustParse(strings.Repeat("2", 40))
)

func wholeOf(b []byte) Whole { return Whole{sha256.Sum256(b), int64(len(b))} }

func entry() *Entry {
	before, after := []byte("header\nold\ntail\n"), []byte("header\nnewer\ntail\n")
	return &Entry{
		Kind: PackedRefs, GitDir: "/srv/a\xff.git", Store: "/srv/a\xff.git/packed-refs", Format: oid.SHA1,
		Before: wholeOf(before), After: wholeOf(after), Made: []string{"packed-refs.new"},
		Records: []Record{
			{Ref: "refs/tags/v1", ID: finding.PeelMismatch, OID: one, Before: two, After: one},
			{Ref: "refs/tags/\xfe", OID: one, Deleted: true, Object: []byte("object\x00\xff"), Index: 1 << 60,
				Log: []byte("old new A <a@x> 1 +0000\n"), Logs: []Log{{1 << 63, []byte("\x00\xff")}, {1, []byte{}}}},
			{Ref: "refs/tags/v2", OID: two, Object: []byte{}},
		},
		Pieces: []Piece{{At: 0, Len: 7}, {Text: []byte("old\n")}, {At: 13, Len: 5}},
	}
}

func TestAnEntryComesBackAsItWas(t *testing.T) {
	j := New(crashfs.New(), "/state/refaudit/journal")
	e := entry()
	if err := j.Begin(e); err != nil {
		t.Fatal(err)
	}
	got, state, err := j.Load(e.ID)
	if err != nil || state != Open || !reflect.DeepEqual(got, e) {
		t.Fatalf("%v %v\n got %+v\nwant %+v", state, err, got, e)
	}
	before, err := got.Rebuild([]byte("header\nnewer\ntail\n"))
	if err != nil || string(before) != "header\nold\ntail\n" {
		t.Errorf("%q %v", before, err)
	}
	if _, err := got.Rebuild([]byte("header\nother\ntail\n")); err == nil {
		t.Error("rebuilt from another file")
	}
	for _, to := range []State{Done, Undone} {
		if err := j.Settle(e.ID, state, to); err != nil {
			t.Fatal(err)
		}
		if _, state, err = j.Load(e.ID); err != nil || state != to {
			t.Fatalf("%v %v", state, err)
		}
	}
	if ids, err := j.List(Undone); err != nil || !slices.Equal(ids, []string{e.ID}) {
		t.Errorf("%v %v", ids, err)
	}
	if ids, err := j.List(Open); err != nil || ids != nil {
		t.Errorf("%v %v", ids, err)
	}
}

func TestIDsAreNoPaths(t *testing.T) {
	f := crashfs.New()
	f.Put("/state/secret.open", entry().encode())
	j := New(f, "/state/journal")
	for _, id := range []string{"", "../secret", "a/b", "..", strings.Repeat("a", 100), "x.open", "20250101T000000Z-00"} {
		if _, _, err := j.Load(id); !errors.Is(err, ErrUnknown) {
			t.Errorf("%q: %v", id, err)
		}
	}
	if err := j.Settle("../secret", Open, Done); !errors.Is(err, ErrUnknown) {
		t.Errorf("%v", err)
	}
}

func TestBeginSurvivesACrashOrHasNotHappened(t *testing.T) {
	for n, fired := 1, true; fired; n++ {
		for _, how := range []crashfs.Fault{crashfs.Fail, crashfs.FailDone, crashfs.Crash} {
			f := crashfs.New()
			f.PutDir("/state")
			j := New(f, "/state/refaudit/journal")
			f.FailAt(n, how)
			e := entry()
			err := j.Begin(e)
			fired = f.Fired()
			if fired != (err != nil) {
				t.Fatalf("operation %d: fired %v, error %v", n, fired, err)
			}
			f.Survivors(2000, func(lost string, after *crashfs.FS) {
				got, state, lerr := New(after, j.Dir()).Load(e.ID)
				switch {
				case err == nil && (lerr != nil || state != Open || !reflect.DeepEqual(got, e)):
					t.Errorf("begun, then a crash (%s): %v", lost, lerr)
				case lerr != nil && !errors.Is(lerr, ErrUnknown):
					t.Errorf("operation %d, then a crash (%s): %v", n, lost, lerr)
				}
			})
		}
	}
}

// An entry that changes its state, while another is taken back by it, is never lost, and has one state.
func TestStatesSurviveACrash(t *testing.T) {
	for _, how := range []crashfs.Fault{crashfs.Fail, crashfs.FailDone, crashfs.Crash} {
		for n, fired := 1, true; fired; n++ {
			f := crashfs.New()
			f.PutDir("/state")
			j := New(f, "/state/journal")
			e := entry()
			if err := j.Begin(e); err != nil {
				t.Fatal(err)
			}
			f.FailAt(n, how)
			err := errors.Join(j.Settle(e.ID, Open, Done), j.Sync(), j.Settle(e.ID, Done, Undone), j.Sync())
			if fired = f.Fired(); fired != (err != nil) {
				t.Fatalf("operation %d: fired %v, error %v", n, fired, err)
			}
			f.FailAt(0, 0)
			f.Survivors(200, func(lost string, after *crashfs.FS) {
				got, state, lerr := New(after, j.Dir()).Load(e.ID)
				if lerr != nil || !reflect.DeepEqual(got, e) || state == Void || err == nil && state != Undone {
					t.Errorf("fault %v at operation %d, then a crash (%s): %s %v", how, n, lost, state, lerr)
				}
				if names := after.Names(j.Dir()); len(names) != 1 {
					t.Errorf("fault %v at operation %d, then a crash (%s): %q", how, n, lost, names)
				}
			})
		}
	}
}

// A sweep that is cut short takes nothing but what was never begun, and the next one gets through.
func TestASweepSurvivesACrash(t *testing.T) {
	for n, fired := 1, true; fired; n++ {
		f := crashfs.New()
		f.PutDir("/state")
		j := New(f, "/state/journal")
		e := entry()
		if err := j.Begin(e); err != nil {
			t.Fatal(err)
		}
		f.Put(j.Dir()+"/20250101T000000Z-0000000000.tmp", []byte("half"))
		f.Settle()
		f.FailAt(n, crashfs.Crash)
		j.Sweep(time.Unix(1<<40, 0))
		fired = f.Fired()
		f.FailAt(0, 0)
		f.Survivors(100, func(lost string, after *crashfs.FS) {
			again := New(after, j.Dir())
			if _, err := again.Sweep(time.Unix(1<<40, 0)); err != nil {
				t.Fatal(err)
			}
			if names := after.Names(j.Dir()); len(names) != 1 || names[0] != e.ID+".open" {
				t.Errorf("operation %d, then a crash (%s): %q", n, lost, names)
			}
		})
	}
}

func TestUnfinishedEntriesAreSwept(t *testing.T) {
	f := crashfs.New()
	j := New(f, "/j")
	f.Put("/j/20250101T000000Z-0000000000.tmp", []byte("half"))
	f.Put("/j/README", nil)
	st, _ := f.Stat("/j/README")
	if ids, err := j.Sweep(st.ModTime.Add(59 * time.Minute)); err != nil || ids != nil {
		t.Errorf("%v %v", ids, err)
	}
	ids, err := j.Sweep(st.ModTime.Add(2 * time.Hour))
	if err != nil || len(ids) != 1 || !slices.Equal(f.Names("/j"), []string{"README"}) {
		t.Errorf("%v %v %v", ids, err, f.Names("/j"))
	}
	if ids, err := New(f, "/none").Sweep(time.Now()); err != nil || ids != nil {
		t.Errorf("%v %v", ids, err)
	}
}

// A run over many repositories reads a large journal once, and sees what others add.
func TestTheFolderIsReadAgainWhenItChanges(t *testing.T) {
	f := crashfs.New()
	f.Put("/j/20250101T000000Z-0000000001.open", nil)
	j := New(f, "/j")
	reads := func() (n int) {
		for _, op := range f.Trace() {
			if strings.HasPrefix(op, "readdir") {
				n++
			}
		}
		return n
	}
	f.FailAt(0, 0)
	for range 5 {
		if ids, err := j.List(Open); err != nil || len(ids) != 1 {
			t.Fatal(ids, err)
		}
	}
	if n := reads(); n != 1 {
		t.Errorf("the folder was read %d times", n)
	}
	if err := f.Rename("/j/20250101T000000Z-0000000001.open", "/j/20250101T000000Z-0000000001.done"); err != nil {
		t.Fatal(err)
	}
	if ids, err := j.List(Open); err != nil || len(ids) != 0 {
		t.Errorf("%v %v", ids, err)
	}
}

func TestDamageIsSeen(t *testing.T) {
	e := entry()
	e.ID, e.Time = "20250101T000000Z-0000000000", time.Unix(1700000000, 0).UTC()
	good := e.encode()
	if _, err := Decode(good); err != nil {
		t.Fatal(err)
	}
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 0x11
		if _, err := Decode(bad); err == nil {
			t.Fatalf("a flip at byte %d is not seen", i)
		}
		if _, err := Decode(good[:i]); err == nil {
			t.Fatalf("a cut at byte %d is not seen", i)
		}
	}
}

func TestRebuildTrustsNoPiece(t *testing.T) {
	after := []byte("0123456789")
	for _, pieces := range [][]Piece{
		{{At: -1, Len: 3}}, {{At: 0, Len: -1}}, {{At: 11, Len: 0}}, {{At: 1 << 62, Len: 1 << 62}}, {{At: 5, Len: 6}},
		{{At: 0, Len: 10}, {At: 0, Len: 10}}, {{Text: []byte("other")}}, nil,
	} {
		e := &Entry{After: wholeOf(after), Before: wholeOf([]byte("before")), Pieces: pieces}
		if b, err := e.Rebuild(after); err == nil {
			t.Errorf("%v: %q", pieces, b)
		}
	}
}

func TestPlace(t *testing.T) {
	for _, c := range []struct {
		xdg, home string
		root      bool
		want      string
	}{
		{"/x", "/home/u", false, "/x/refaudit/journal"},
		{"/x", "", true, "/x/refaudit/journal"},
		{"", "/root", true, "/var/lib/refaudit/journal"},
		{"relative", "/home/u", false, "/home/u/.local/state/refaudit/journal"},
		{"", "", false, ""},
	} {
		got, err := Place(func(k string) string { return map[string]string{"XDG_STATE_HOME": c.xdg, "HOME": c.home}[k] }, c.root)
		if filepath.ToSlash(got) != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%+v: %q %v", c, got, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	e := entry()
	e.ID, e.Time = "20250101T000000Z-0000000000", time.Unix(1700000000, 0).UTC()
	f.Add(e.encode())
	f.Add([]byte("{\"refaudit-journal\":1}\n{\"sha256\":\"\"}\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		Decode(b)
		body := append(bytes.TrimRight(b, "\n"), '\n')
		sealed := append(body, `{"sha256":"`+sumOf(body)+"\"}\n"...)
		got, err := Decode(sealed)
		if err != nil {
			return
		}
		got.Rebuild([]byte("some file\n"))
		again, err := Decode(got.encode())
		if err != nil || !reflect.DeepEqual(got, again) {
			t.Fatalf("%v\n%+v\n%+v", err, got, again)
		}
	})
}
