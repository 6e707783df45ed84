package packed

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"runtime"
	"testing"

	"refaudit/finding"
	"refaudit/internal/gittest"
	"refaudit/oid"
)

// C04, libgit2 issue 4355: whatever a ^ line says is handed on as it is; only the objects can tell.
// C06, libgit2 pull request 1531: also below a branch.
func TestPeelsAreHandedOnAsTheyAre(t *testing.T) {
	f := oid.SHA1
	c, zero := hexOf(f, "c"), f.Zero().String()
	sum, rows, found := readAll(t, []byte(fullHeader+c+" refs/heads/main\n^"+c+"\n"+c+" refs/tags/v1\n^"+zero+"\n"), f, Options{})
	if len(found) > 0 || sum.Peels != 2 || rows[0].peel != c || rows[1].peel != zero {
		t.Errorf("%+v %v %v", sum, rows, found)
	}
}

// C25, jj pull request 10147: hundreds of thousands of refs to one object, in bounded memory.
func TestManyRefsAreAStream(t *testing.T) {
	var file bytes.Buffer
	file.WriteString(fullHeader)
	id := hexOf(oid.SHA1, "c")
	for i := range 300_000 {
		fmt.Fprintf(&file, "%s refs/changes/00/%06d/1\n", id, i)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	sum, err := Read(bytes.NewReader(file.Bytes()), int64(file.Len()), oid.SHA1, Options{}, nil, nil)
	runtime.ReadMemStats(&after)
	if err != nil || sum.Refs != 300_000 || !sum.Sorted {
		t.Fatalf("%+v %v", sum, err)
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > 1<<20 {
		t.Errorf("%d bytes allocated", got)
	}
	res, err := Rewrite(io.Discard, bytes.NewReader(file.Bytes()), int64(file.Len()), oid.SHA1, Plan{})
	if err != nil || res.Writes != 1 {
		t.Errorf("%+v %v", res, err)
	}
}

// What git says of a packed-refs that is no file. (It would wait for ever at a named pipe.)
func TestFiletypesAsGitSays(t *testing.T) {
	gittest.Need(t, gittest.Newest)
	r := gittest.New(t, gittest.Options{Git: gittest.Newest})
	r.WriteFile("pr", []byte(fullHeader))
	for _, c := range []struct {
		what string
		make func() error
	}{
		{"a file", func() error { return os.WriteFile(r.Packed(), []byte(fullHeader), 0o600) }},
		{"a link", func() error { return os.Symlink("pr", r.Packed()) }},
		{"a dangling link", func() error { return os.Symlink("nowhere", r.Packed()) }},
		{"a folder", func() error { return os.Mkdir(r.Packed(), 0o700) }},
	} {
		os.Remove(r.Packed())
		if err := c.make(); err != nil {
			t.Fatal(err)
		}
		st, err := os.Lstat(r.Packed())
		if err != nil {
			t.Fatal(err)
		}
		_, stderr, _ := r.Try("refs", "verify")
		var got []string
		if f, bad := Filetype(st.Mode()); bad {
			got = append(got, "error: "+f.GitText)
		}
		if want := reports(stderr); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %q, git says %q", c.what, got, want)
		}
	}
}

// git is silent of a zero id in packed-refs, and so is Read: the entry says it.
func TestZeroIDs(t *testing.T) {
	for _, f := range []oid.Format{oid.SHA1, oid.SHA256} {
		_, rows, found := readAll(t, []byte(fullHeader+f.Zero().String()+" refs/heads/x\n"+hexOf(f, "a")+" refs/heads/y\n"), f, Options{})
		if len(found) > 0 || rows[0].style != ZeroOID || rows[1].style != 0 {
			t.Errorf("%v %v", found, rows)
		}
	}
}

func TestZeroOIDFinding(t *testing.T) {
	e := Entry{Name: []byte("refs/heads/x"), Line: 3, Offset: 70, Length: 54}
	if f := e.ZeroOIDFinding("packed-refs"); f.ID != finding.BadRefOid || f.Ref != "refs/heads/x" || f.Line != 3 || f.Offset != 70 || f.Length != 54 || f.GitText != "" {
		t.Errorf("%+v", f)
	}
}

// The duplicates of a large file in no order are found a share of the hashes at a time.
func BenchmarkReadShuffled(b *testing.B) {
	data := bigFile(100_000)
	half := bytes.Index(data[len(data)/2:], []byte("\n")) + 1 + len(data)/2
	if data[half] == '^' {
		half += 42
	}
	swapped := append(bytes.Clone(data[half:]), data[len(fullHeader):half]...)
	b.SetBytes(int64(len(swapped)))
	b.ReportAllocs()
	for b.Loop() {
		sum, err := Read(bytes.NewReader(swapped), int64(len(swapped)), oid.SHA1, Options{}, nil, nil)
		if err != nil || sum.Sorted || sum.Duplicates > 0 || sum.Refs != 100_000 {
			b.Fatal(sum, err)
		}
	}
}
