package scan_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"refaudit/finding"
	"refaudit/internal/gittest"
	"refaudit/oid"
	"refaudit/scan"
)

// served is what a scan says of info/refs.
func served(t testing.TB, r *gittest.Repo) (scan.Result, []finding.Finding) {
	t.Helper()
	res, all := audit(t, r.Path, scan.Standard)
	var some []finding.Finding
	for _, f := range all {
		if f.ID == finding.ServerInfoPeel {
			some = append(some, f)
		}
	}
	return res, some
}

func TestServerInfoAsGitWritesIt(t *testing.T) {
	for _, o := range gittest.AllFormats {
		r, _ := gittest.Clean(t, o)
		r.Git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/heads/main")
		r.Git("symbolic-ref", "refs/remotes/origin/TAG", "refs/tags/v1")
		r.Git("update-server-info")
		if res, found := served(t, r); len(found) != 0 || res.State != scan.Clean {
			t.Errorf("%v: %v", o, found)
		}
		r.Git("pack-refs", "--all")
		if _, found := served(t, r); len(found) != 0 {
			t.Errorf("%v, packed: %v", o, found)
		}
	}
}

// edit changes info/refs, which must not stay as it is.
func edit(t *testing.T, r *gittest.Repo, old, new string) {
	t.Helper()
	text := string(r.ReadFile("info/refs"))
	if !strings.Contains(text, old) {
		t.Fatalf("no %q in %q", old, text)
	}
	r.WriteFile("info/refs", []byte(strings.Replace(text, old, new, 1)))
}

func TestWrongPeelsInServerInfo(t *testing.T) {
	for _, o := range gittest.AllFormats {
		r := gittest.New(t, o)
		bad, blob := r.FalseTag("bad")
		r.Git("update-server-info")
		text := string(r.ReadFile("info/refs"))
		if !strings.Contains(text, blob+"\trefs/tags/bad^{}") {
			edit(t, r, bad+"\trefs/tags/bad\n", bad+"\trefs/tags/bad\n"+blob+"\trefs/tags/bad^{}\n")
		}
		edit(t, r, r.B+"\trefs/heads/main\n", r.B+"\trefs/heads/main\n"+r.A+"\trefs/heads/main^{}\n")
		edit(t, r, r.A+"\trefs/tags/v1^{}\n", r.B+"\trefs/tags/v1^{}\n")
		edit(t, r, r.B+"\trefs/tags/v2^{}\n", "")
		_, found := served(t, r)
		want := map[finding.RefName]struct {
			cached, expected, says string
			line                   int
		}{
			"refs/heads/main": {r.A, "", "is a commit, no tag", 2},
			"refs/tags/bad":   {blob, "", "it is a corrupt tag", 4},
			"refs/tags/v1":    {r.B, r.A, "it peels to " + r.A, 6},
			"refs/tags/v2":    {"", r.B, "has no peel for the tag", 7},
		}
		if len(found) != len(want) {
			t.Fatalf("%v: %v", o, found)
		}
		lines := strings.SplitAfter(string(r.ReadFile("info/refs")), "\n")
		for _, f := range found {
			w, ok := want[f.Ref]
			if !ok || f.Cached.String() != w.cached || f.Expected.String() != w.expected || !strings.Contains(f.Message, w.says) || f.Line != w.line ||
				f.Severity != finding.Warn || f.File != "info/refs" || f.Fixable {
				t.Errorf("%v: %s", o, describe(&f))
			}
			if at := strings.Join(lines[:f.Line-1], ""); f.Offset != int64(len(at)) || f.Length != int64(len(lines[f.Line-1])) {
				t.Errorf("%v: at %d, %d bytes", f.Ref, f.Offset, f.Length)
			}
		}
	}
}

// What moved on since the file was written is told once, and is no news of any peel.
func TestAnOldServerInfoIsToldOnce(t *testing.T) {
	for name, do := range map[string]func(r *gittest.Repo){
		"a value":    func(r *gittest.Repo) { r.Git("update-ref", "refs/heads/main", r.A) },
		"a new ref":  func(r *gittest.Repo) { r.Git("update-ref", "refs/heads/new", r.A) },
		"a lost ref": func(r *gittest.Repo) { r.Git("update-ref", "-d", "refs/heads/main") },
		"a moved tag": func(r *gittest.Repo) {
			r.Git("update-ref", "refs/tags/v1", r.V2)
			r.Git("update-ref", "refs/tags/v2", r.V1)
		},
		"a tag instead of a commit": func(r *gittest.Repo) { r.Git("update-ref", "refs/tags/v1", r.A) },
		"nothing in it":             func(r *gittest.Repo) { r.WriteFile("info/refs", nil) },
	} {
		for _, backend := range []string{gittest.Files, gittest.Reftable} {
			r := gittest.New(t, gittest.Options{RefFormat: backend})
			r.Git("update-server-info")
			do(r)
			res, found := served(t, r)
			if len(found) != 1 || found[0].Severity != finding.Info || found[0].Ref != "" || !strings.Contains(found[0].Message, "older than the refs") || res.State != scan.Clean {
				t.Errorf("%s in %s: %v", name, backend, found)
			}
		}
	}
}

func TestServerInfoThatMakesNoSense(t *testing.T) {
	r := gittest.New(t, gittest.Options{})
	r.Git("update-server-info")
	good := string(r.ReadFile("info/refs"))
	for _, bad := range []string{
		"\n", "x\n", r.A + "\n", r.A + " refs/heads/x\n", r.A[:39] + "\trefs/heads/x\n", r.A + "\trefs/heads/x", strings.Repeat("g", 40) + "\trefs/heads/x\n",
		r.A + "\trefs/heads/other^{}\n", strings.Repeat("x", 3<<20) + "\n", "\x00\x00\x00",
	} {
		r.WriteFile("info/refs", []byte(good+bad+"yet more\n"))
		_, found := served(t, r)
		if len(found) != 1 || found[0].Severity != finding.Warn || found[0].Offset != int64(len(good)) || found[0].Line != strings.Count(good, "\n")+1 {
			t.Errorf("%.50q: %v", bad, found)
		}
	}
	r.WriteFile("info/refs", []byte(r.A+"\trefs/heads/main^{}\n"+good))
	if _, found := served(t, r); len(found) != 1 || found[0].Line != 1 {
		t.Errorf("a peel above all: %v", found)
	}
}

func TestServerInfoThatCantBeRead(t *testing.T) {
	r := gittest.New(t, gittest.Options{})
	r.WriteFile("info/refs", nil)
	if err := os.Remove(r.File("info/refs")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(r.File("info/refs"), 0o755); err != nil {
		t.Fatal(err)
	}
	res, found := audit(t, r.Path, scan.Standard)
	if res.State != scan.Incomplete || len(found) != 1 || found[0].ID != finding.AuditSkipped {
		t.Errorf("%v %v", res.State, found)
	}
	r.Git("config", "refaudit.serverInfoPeel", "ignore")
	if res, found := audit(t, r.Path, scan.Standard); res.State != scan.Clean || len(found) != 0 {
		t.Errorf("nobody asks: %v %v", res.State, found)
	}
}

// More refs than are judged at once, each with a peel, and a few of them wrong.
func TestALargeServerInfo(t *testing.T) {
	r := gittest.New(t, gittest.Options{})
	var packed, info strings.Builder
	packed.WriteString("# pack-refs with: peeled fully-peeled sorted \n")
	line := func(name, peel string) {
		fmt.Fprintf(&packed, "%s %s\n^%s\n", r.V1, name, r.A)
		fmt.Fprintf(&info, "%s\t%s\n%s\t%s^{}\n", r.V1, name, peel, name)
	}
	want := map[finding.RefName]bool{}
	for i := range 20000 {
		name, peel := fmt.Sprintf("refs/tags/t%06d", i), r.A
		if i == 0 || i == 8191 || i == 8192 || i == 19999 {
			peel = r.B
			want[finding.RefName(name)] = true
		}
		line(name, peel)
	}
	r.Git("pack-refs", "--all")
	for _, ref := range []string{"refs/tags/v1", "refs/tags/v2", "refs/heads/main"} {
		r.Git("update-ref", "-d", ref)
	}
	r.Git("symbolic-ref", "HEAD", "refs/heads/none")
	r.WriteFile("packed-refs", []byte(packed.String()))
	r.WriteFile("info/refs", []byte(info.String()))
	_, found := served(t, r)
	if len(found) != len(want) {
		t.Fatalf("%d findings: %v", len(found), found)
	}
	for _, f := range found {
		if !want[f.Ref] || f.Expected != oid.MustParse(r.A) {
			t.Error(describe(&f))
		}
	}
}

func BenchmarkServerInfo(b *testing.B) {
	for _, with := range []bool{false, true} {
		b.Run(fmt.Sprintf("with=%v", with), func(b *testing.B) {
			r := gittest.New(b, gittest.Options{})
			var packed, info strings.Builder
			packed.WriteString("# pack-refs with: peeled fully-peeled sorted \n")
			for i := range 200000 {
				fmt.Fprintf(&packed, "%s refs/tags/t%06d\n^%s\n", r.V1, i, r.A)
				fmt.Fprintf(&info, "%s\trefs/tags/t%06d\n%s\trefs/tags/t%06d^{}\n", r.V1, i, r.A, i)
			}
			r.WriteFile("packed-refs", []byte(packed.String()))
			if with {
				r.WriteFile("info/refs", []byte(info.String()))
			}
			for b.Loop() {
				audit(b, r.Path, scan.Standard)
			}
		})
	}
}

// twins are one repository with its refs loose, packed with right peels, and packed with wrong ones: whatever info/refs
// says, the same is to be told of it in each.
func twins(t testing.TB, o gittest.Options) (r *gittest.Repo, paths []string) {
	r = gittest.New(t, o)
	bad, blob := r.FalseTag("bad")
	r.Git("update-server-info")
	paths = []string{r.Path}
	for _, swap := range []bool{false, true} {
		one, two := r.A, r.B
		if swap {
			one, two = two, one
		}
		p := filepath.Join(t.TempDir(), "x.git")
		if err := os.CopyFS(p, os.DirFS(r.Path)); err != nil {
			t.Fatal(err)
		}
		for _, ref := range []string{"heads/main", "tags/bad", "tags/v1", "tags/v2"} {
			if err := os.Remove(filepath.Join(p, "refs", ref)); err != nil {
				t.Fatal(err)
			}
		}
		text := fmt.Sprintf("# pack-refs with: peeled fully-peeled sorted \n%s refs/heads/main\n%s refs/tags/bad\n^%s\n%s refs/tags/v1\n^%s\n%s refs/tags/v2\n^%s\n", r.B, bad, blob, r.V1, one, r.V2, two)
		if err := os.WriteFile(filepath.Join(p, "packed-refs"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, p)
	}
	return r, paths
}

// alike audits all with the same info/refs.
func alike(t testing.TB, paths []string, info []byte) (findings int) {
	var first string
	for i, p := range paths {
		if err := os.WriteFile(filepath.Join(p, "info/refs"), info, 0o644); err != nil {
			t.Fatal(err)
		}
		_, all := audit(t, p, scan.Standard)
		var text strings.Builder
		for _, f := range all {
			if f.ID == finding.ServerInfoPeel {
				text.WriteString(f.Severity.String() + " " + describe(&f) + "\n")
				findings++
			}
		}
		if i == 0 {
			first = text.String()
		} else if text.String() != first {
			t.Errorf("%q\nwith loose refs:\n%swith packed ones:\n%s", info, first, text.String())
		}
	}
	return findings
}

// infoSeeds are files that touch each way a line can be judged.
func infoSeeds(r *gittest.Repo) (seeds []string) {
	good := string(r.ReadFile("info/refs"))
	lines := strings.SplitAfter(good, "\n")
	for i := range lines[:len(lines)-1] {
		without := append(append([]string{}, lines[:i]...), lines[i+1:]...)
		seeds = append(seeds, strings.Join(without, ""))
		for j := range lines[:len(lines)-1] {
			seeds = append(seeds, strings.Join(append(append(append([]string{}, lines[:j]...), lines[i]), lines[j:]...), ""))
		}
	}
	slices.Reverse(lines)
	return append(seeds, good, strings.ReplaceAll(good, r.A, r.B), strings.ReplaceAll(good, r.B, r.A), strings.ToUpper(good), strings.TrimSuffix(good, "\n"), "", "\n"+good,
		strings.Join(lines, ""))
}

func TestServerInfoBesideAnyStore(t *testing.T) {
	for _, format := range []oid.Format{oid.SHA1, oid.SHA256} {
		r, paths := twins(t, gittest.Options{Format: format})
		n := 0
		for _, info := range infoSeeds(r) {
			n += alike(t, paths, []byte(info))
		}
		if n < 200 {
			t.Errorf("only %d findings", n)
		}
	}
}

func FuzzServerInfo(f *testing.F) {
	r, paths := twins(f, gittest.Options{})
	for _, info := range infoSeeds(r) {
		f.Add([]byte(info))
	}
	f.Fuzz(func(t *testing.T, info []byte) { alike(t, paths, info) })
}
