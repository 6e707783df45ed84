package fleet

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"refaudit/finding"
	"refaudit/internal/state"
	"refaudit/internal/vfs"
	"refaudit/scan"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(when time.Time) func() time.Time { return func() time.Time { return when } }

func bad(repo string) Audit {
	return Audit{Repo: repo, At: noon, Level: scan.Standard, State: scan.Found, Sum: "ab", Rules: "cd", Refs: 7, Peels: 3, Known: 1,
		Severities: map[finding.Severity]int64{finding.Error: 2, finding.Info: 1}, IDs: map[finding.ID]int64{finding.PeelMismatch: 2, finding.HeaderMissing: 1}}
}

func TestAMemoryLasts(t *testing.T) {
	folder := state.New(vfs.OS{}, t.TempDir())
	m := NewMemory(folder, at(noon))
	repos := []string{"/srv/a.git", "/srv/\xff.git"}
	for i := range 200 {
		repos = append(repos, fmt.Sprintf("/srv/r%d.git", i))
	}
	for _, r := range repos {
		if err := m.Note(bad(r)); err != nil {
			t.Fatal(err)
		}
	}
	if a, ok, err := m.Last(repos[0]); !ok || err != nil || a.Refs != 7 {
		t.Errorf("noted: %v %v %v", a, ok, err)
	}
	if err := m.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	m = NewMemory(folder, at(noon))
	for _, r := range repos {
		if a, ok, err := m.Last(r); !ok || err != nil || !reflect.DeepEqual(a, bad(r)) {
			t.Errorf("%q: %+v %v %v", r, a, ok, err)
		}
	}
	if _, ok, err := m.Last("/srv/none.git"); ok || err != nil {
		t.Errorf("never audited: %v %v", ok, err)
	}
}

// Two runs that go on at the same time don't overwrite what the other has noted.
func TestTwoRunsShareAMemory(t *testing.T) {
	folder := state.New(vfs.OS{}, t.TempDir())
	one, two := NewMemory(folder, at(noon)), NewMemory(folder, at(noon))
	for i := range 300 { // both touch every file
		m := one
		if i%2 == 1 {
			m = two
		}
		if err := m.Note(bad(fmt.Sprintf("/r%d", i))); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range []*Memory{one, two, one} {
		if err := m.Flush(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	m := NewMemory(folder, at(noon))
	for i := range 300 {
		if _, ok, err := m.Last(fmt.Sprintf("/r%d", i)); !ok || err != nil {
			t.Fatalf("%d: %v %v", i, ok, err)
		}
	}
}

func TestADamagedMemoryIsToldAndReplaced(t *testing.T) {
	dir := t.TempDir()
	folder := state.New(vfs.OS{}, dir)
	m := NewMemory(folder, at(noon))
	m.Note(bad("/a"))
	if err := m.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, shardName(shardOf("/a")))
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "\x00\x00\x00", string(whole[:len(whole)-1]), strings.Replace(string(whole), "findings", "fine", 1), strings.Replace(string(whole), "standard", "deepest", 1)} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		m = NewMemory(folder, at(noon))
		if _, ok, err := m.Last("/a"); ok || err == nil {
			t.Errorf("%q: %v %v", text, ok, err)
		}
		m.Note(bad("/a"))
		if err := m.Flush(context.Background()); err != nil {
			t.Fatal(err)
		}
		if _, ok, err := NewMemory(folder, at(noon)).Last("/a"); !ok || err != nil {
			t.Errorf("%q was not replaced: %v %v", text, ok, err)
		}
	}
}

func TestWhatNobodyMeetsIsForgotten(t *testing.T) {
	folder := state.New(vfs.OS{}, t.TempDir())
	m := NewMemory(folder, at(noon))
	m.Note(bad("/old"))
	m.Flush(context.Background())
	later := NewMemory(folder, at(noon.Add(forgetAfter+time.Hour)))
	for i := range 300 {
		a := bad(fmt.Sprintf("/r%d", i))
		a.At = noon.Add(forgetAfter)
		later.Note(a)
	}
	if err := later.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	if _, ok, _ := NewMemory(folder, at(noon)).Last("/old"); ok {
		t.Error("it is still there")
	}
}

func TestUnchanged(t *testing.T) {
	s := Stamp{At: noon, Quiet: time.Hour}
	a := bad("/a")
	a.Stamped(&s)
	later := s
	later.At = noon.Add(time.Hour)
	if !a.Unchanged(&later, scan.Standard, "cd") || !a.Unchanged(&later, scan.Quick, "cd") {
		t.Error("it counts as changed")
	}
	other, earlier := later, later
	other.Sum[0]++
	earlier.At = noon.Add(-time.Second)
	for name, same := range map[string]bool{
		"deeper":            a.Unchanged(&later, scan.Deep, "cd"),
		"by other rules":    a.Unchanged(&later, scan.Standard, "ce"),
		"in another state":  a.Unchanged(&other, scan.Standard, "cd"),
		"the clock is back": a.Unchanged(&earlier, scan.Standard, "cd"),
	} {
		if same {
			t.Errorf("%s: it counts as unchanged", name)
		}
	}
	s.Quiet = time.Second
	a.Stamped(&s)
	if a.Unchanged(&later, scan.Standard, "cd") {
		t.Error("what changed a second before the look is relied on")
	}
	s.Quiet, a.Level = 30*time.Second, scan.Deep
	a.Stamped(&s)
	if a.Unchanged(&later, scan.Standard, "cd") {
		t.Error("a lock half a minute old is relied on to stay young")
	}
}

func FuzzAudits(f *testing.F) {
	var b bytes.Buffer
	if err := encodeAudits(&b, map[string]Audit{"/a": bad("/a"), "/\xff": bad("/\xff")}); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte(auditsHead))
	f.Fuzz(func(t *testing.T, text []byte) {
		all, err := decodeAudits(text)
		if err != nil {
			return
		}
		var once, twice bytes.Buffer
		if err := encodeAudits(&once, all); err != nil {
			t.Skip() // a date beyond the year 9999
		}
		again, err := decodeAudits(once.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if err := encodeAudits(&twice, again); err != nil || twice.String() != once.String() {
			t.Errorf("%v: %q, then %q", err, once.String(), twice.String())
		}
	})
}
