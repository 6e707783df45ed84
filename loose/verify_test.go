package loose

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strings"
	"testing"

	"refaudit/finding"
	"refaudit/internal/gittest"
	"refaudit/oid"
)

var reportStart = regexp.MustCompile(`(?m)^(error|warning): `)

// reports takes apart what git prints: a report may hold newlines.
func reports(stderr string) []string {
	var out []string
	starts := reportStart.FindAllStringIndex(stderr, -1)
	for i, at := range starts {
		end := len(stderr)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		out = append(out, strings.TrimSuffix(stderr[at[0]:end], "\n"))
	}
	sort.Strings(out)
	return out
}

// find takes a loose ref from a repository as its reader has to: lstat below refs/, stat beside it.
func find(t *testing.T, r *gittest.Repo, name string) File {
	t.Helper()
	path := filepath.Join(r.Path, name)
	stat := os.Lstat
	if !strings.Contains(name, "refs/") {
		stat = os.Stat
	}
	st, err := stat(path)
	if err != nil {
		t.Fatal(err)
	}
	file := File{Name: name, Mode: st.Mode()}
	if st.Mode().IsRegular() || st.Mode()&fs.ModeSymlink != 0 {
		if c, err := os.ReadFile(path); err == nil {
			file.Content = c
		}
	}
	if st.Mode()&fs.ModeSymlink != 0 {
		file.Link, _ = os.Readlink(path)
		root, err := filepath.EvalSymlinks(r.Path)
		if err != nil {
			t.Fatal(err)
		}
		real, err := filepath.EvalSymlinks(path)
		if err != nil { // the last part may be missing
			if !filepath.IsAbs(file.Link) {
				real = filepath.Join(filepath.Dir(path), file.Link)
			} else {
				real = file.Link
			}
		}
		file.Referent = Referent(root, real)
	}
	return file
}

func asGitPrints(t *testing.T, file File, f oid.Format, severity func(finding.ID) finding.Severity) []string {
	var out []string
	_, err := Verify(file, f, Options{Severity: severity}, func(f finding.Finding) error {
		word := "error: "
		sev := severity(f.ID)
		if sev < finding.Error {
			word = "warning: "
		}
		if line := word + f.GitText; sev != finding.Ignore {
			out = append(out, strings.TrimSuffix(line[:min(len(line), 4095)], "\n"))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	sort.Strings(out)
	return out
}

func compareWithGit(t *testing.T, r *gittest.Repo, f oid.Format, name string, severity map[finding.ID]finding.Severity) {
	t.Helper()
	var args []string
	for id, sev := range severity {
		args = append(args, "-c", "fsck."+string(id)+"="+sev.String())
	}
	_, stderr, code := r.Try(append(args, "refs", "verify")...)
	if code != 0 && code != 255 {
		t.Fatalf("git itself crashed: exit %d %s", code, stderr)
	}
	got := asGitPrints(t, find(t, r, name), f, func(id finding.ID) finding.Severity {
		if s, ok := severity[id]; ok {
			return s
		}
		return finding.Default(id)
	})
	if want := reports(stderr); !slices.Equal(got, want) {
		t.Errorf("%s with %v, %v:\n%q\ngit:  %q\nours: %q", name, severity, f, find(t, r, name).Content, want, got)
	}
}

var configurations = []map[finding.ID]finding.Severity{
	nil,
	{finding.BadReferentName: finding.Warn, finding.RefMissingNewline: finding.Error},
	{finding.BadHeadTarget: finding.Ignore, finding.BadReferentName: finding.Ignore},
	{finding.BadRefContent: finding.Warn, finding.TrailingRefContent: finding.Error, finding.SymrefTargetIsNotARef: finding.Error, finding.SymlinkRef: finding.Ignore},
}

// contents that a ref file can have, whatever its name.
func contents(f oid.Format) []string {
	a := f.Object("blob", []byte("a")).String()
	other := (oid.SHA1 + oid.SHA256 - f).Object("blob", []byte("a")).String()
	return []string{
		a + "\n", a, a + "\n\n", a + " more\n", a + "\t\n", a + "\r\n", a + "00\n", a + "\x00", a + "\x00\n", a + "\n\x00more", a + " \x00", a + "\v\n",
		strings.ToUpper(a) + "\n", a[1:] + "\n", " " + a + "\n", other + "\n", other,
		"", "\n", " \n\n", "\x00", strings.Repeat("\x00", 41), "xyz\n", "xyz \n \n", "x\ny\n", "control \x01\x7f\xff\n", "x\x00y\n",
		strings.Repeat("0", f.HexLen()) + "\n", strings.Repeat("0", f.HexLen()), strings.Repeat("0", f.HexLen()) + " x\n",
		strings.Repeat("y", 5000) + "\n", a + " " + strings.Repeat("z", 5000) + "\n",
		"ref: refs/heads/main\n", "ref:refs/heads/main\n", "ref: refs/heads/main", "ref: refs/heads/main  \n\n", "ref: refs/heads/main\n\n", "ref: refs/heads/main  ", "ref: refs/heads/main \n",
		"ref: refs/heads/main\r\n", "ref: refs/heads/.bad\n", "ref: refs/heads/.bad", "ref: logs/x\n", "ref: HEAD\n", "ref: ORIG_HEAD\n", "ref: FETCH_HEAD\n", "ref: main\n", "ref: refs/heads/a b\n",
		"ref: refs/tags/x\n", "ref: worktrees/wt/HEAD\n", "ref: worktrees/wt/refs/bisect/x\n", "ref: \t\n refs/heads/main\n", "ref: refs/heads/ma\x00in\n", "ref: refs/heads/main\x00\n", "ref: refs/heads/main\n\x00",
		"ref: /etc/passwd\n", "ref: ../x\n", "ref: refs/../x\n", "ref:x\n", "ref:", "ref: \n", "ref", "REF: refs/heads/main\n", "ref: refs/heads/\xff\x01\n", "ref: refs/heads/" + strings.Repeat("n", 5000) + "\n",
	}
}

func TestSaysWhatGitSaysOfContents(t *testing.T) {
	gittest.Need(t, gittest.Newest)
	for _, f := range []oid.Format{oid.SHA1, oid.SHA256} {
		r := gittest.Init(t, gittest.Options{Format: f, Git: gittest.Newest})
		for _, text := range contents(f) {
			r.WriteFile("refs/heads/n", []byte(text))
			for _, c := range configurations {
				compareWithGit(t, r, f, "refs/heads/n", c)
			}
		}
	}
}

// HEAD must lead to a branch; for a git that finds its repository no content will do that is no HEAD.
func TestSaysWhatGitSaysOfHeads(t *testing.T) {
	gittest.Need(t, gittest.Newest)
	f := oid.SHA1
	r := gittest.New(t, gittest.Options{Git: gittest.Newest})
	r.Git("worktree", "add", "-q", "--detach", filepath.Join(t.TempDir(), "wt"))
	for _, name := range []string{"HEAD", "worktrees/wt/HEAD", "worktrees/wt/refs/bisect/bad", "ORIG_HEAD"} {
		old, _ := os.ReadFile(r.File(name))
		for _, text := range contents(f) {
			if name == "HEAD" && !strings.HasPrefix(text, "ref: refs/") && !strings.HasPrefix(text, r.A) {
				continue
			}
			r.WriteFile(name, []byte(text))
			for _, c := range configurations {
				compareWithGit(t, r, f, name, c)
			}
		}
		if old == nil {
			os.Remove(r.File(name))
		} else {
			r.WriteFile(name, old)
		}
	}
}

func TestSaysWhatGitSaysOfNames(t *testing.T) {
	gittest.Need(t, gittest.Newest)
	r := gittest.New(t, gittest.Options{Git: gittest.Newest})
	for _, name := range []string{"refs/heads/.n", "refs/heads/a..b", "refs/heads/a\x01b", "refs/heads/\xff", "refs/heads/a.lock/c", "refs/heads/@", "refs/x", "refs/heads/.n.lock", "refs/heads/a b", "refs/heads/a."} {
		r.WriteFile(name, []byte(r.A+"\n"))
		compareWithGit(t, r, oid.SHA1, name, nil)
		compareWithGit(t, r, oid.SHA1, name, map[finding.ID]finding.Severity{finding.BadRefName: finding.Warn})
		os.RemoveAll(r.File(name))
	}
	r.WriteFile("refs/heads/n.lock", []byte("rubbish"))
	if _, stderr, _ := r.Try("refs", "verify"); !IsLock("n.lock") || IsLock(".n.lock") || IsLock("n") || len(reports(stderr)) > 0 {
		t.Errorf("lock files: %s", stderr)
	}
}

func TestSaysWhatGitSaysOfLinks(t *testing.T) {
	gittest.Need(t, gittest.Newest)
	r := gittest.New(t, gittest.Options{Git: gittest.Newest})
	outside := filepath.Join(t.TempDir(), "outside")
	os.WriteFile(outside, []byte(r.A+"\n"), 0o600)
	for _, link := range []string{"main", "none", "../../config", "../../HEAD", outside, r.File("refs/heads/main"), "../tags/v1", "../../logs", "../../refs/heads/a b"} {
		if err := os.Symlink(link, r.File("refs/heads/s")); err != nil {
			t.Fatal(err)
		}
		for _, c := range configurations {
			compareWithGit(t, r, oid.SHA1, "refs/heads/s", c)
		}
		os.Remove(r.File("refs/heads/s"))
	}
	// HEAD as a link is asked for what it leads to
	os.Remove(r.File("HEAD"))
	os.Symlink("refs/heads/main", r.File("HEAD"))
	compareWithGit(t, r, oid.SHA1, "HEAD", nil)
}

// What git's look-ups read: compared with rev-parse and symbolic-ref.
func TestReadsWhatGitReads(t *testing.T) {
	for _, f := range []oid.Format{oid.SHA1, oid.SHA256} {
		r := gittest.New(t, gittest.Options{Format: f})
		for _, text := range contents(f) {
			text = strings.ReplaceAll(text, f.Object("blob", []byte("a")).String(), r.A)
			r.WriteFile("refs/heads/n", []byte(text))
			v := Parse(f, []byte(text))
			if v.Kind == Symref {
				out, _, code := r.Try("symbolic-ref", "--no-recurse", "refs/heads/n")
				if code != 0 || strings.TrimSuffix(out, "\n") != string(v.Target) {
					t.Errorf("%.100q leads to %.100q, git says %d %.100q", text, v.Target, code, out)
				}
				continue
			}
			out, _, code := r.Try("rev-parse", "-q", "--verify", "refs/heads/n")
			switch {
			case v.Kind == Object && !v.OID.IsZero():
				if strings.TrimSpace(out) != v.OID.String() {
					t.Errorf("%q is %v, git says %d %q", text, v.OID, code, out)
				}
			case code == 0 && v.Kind == Broken:
				t.Errorf("%q is broken, git reads %q", text, out)
			}
		}
	}
}

func TestFileTypes(t *testing.T) {
	for _, mode := range []fs.FileMode{fs.ModeNamedPipe, fs.ModeSocket, fs.ModeDevice, fs.ModeDevice | fs.ModeCharDevice, fs.ModeDir} {
		var texts []string
		v, err := Verify(File{Name: "refs/heads/fifo", Mode: mode}, oid.SHA1, Options{}, func(f finding.Finding) error {
			texts = append(texts, f.GitText)
			return nil
		})
		if err != nil || v.Kind != Broken || len(texts) != 1 || texts[0] != "refs/heads/fifo: badRefFiletype: unexpected file type" {
			t.Errorf("%v: %v %v %q", mode, v, err, texts)
		}
	}
}

func TestLinkTexts(t *testing.T) {
	for text, want := range map[string]string{"refs/heads/main": "refs/heads/main", "main": "", "refs/heads/a b": "", "/refs/heads/main": "", "refs/heads/../main": ""} {
		v, ok := ParseLink(text)
		if ok != (want != "") || string(v.Target) != want {
			t.Errorf("%q: %v %v", text, v, ok)
		}
	}
}

func TestTheCallbackEndsIt(t *testing.T) {
	stop := errors.New("enough")
	n := 0
	_, err := Verify(File{Name: "refs/heads/.s", Content: []byte("ref: refs/heads/.x")}, oid.SHA1, Options{}, func(finding.Finding) error { n++; return stop })
	if err != stop || n != 1 {
		t.Errorf("%d reports, %v", n, err)
	}
}

func FuzzVerify(f *testing.F) {
	for _, format := range []oid.Format{oid.SHA1, oid.SHA256} {
		for _, text := range contents(format) {
			f.Add("refs/heads/n", []byte(text), uint8(format))
		}
	}
	f.Fuzz(func(t *testing.T, name string, content []byte, format uint8) {
		hash := oid.SHA1
		if format == uint8(oid.SHA256) {
			hash = oid.SHA256
		}
		found := 0
		v, err := Verify(File{Name: name, Content: content}, hash, Options{}, func(f finding.Finding) error {
			found++
			if f.GitText == "" || f.Message == "" || strings.IndexByte(f.GitText, 0) >= 0 {
				t.Errorf("%+v", f)
			}
			return nil
		})
		if err != nil || v.Kind == Broken && found == 0 {
			t.Errorf("broken, and nothing is said: %v %v", v, err)
		}
		if v.Kind == Object {
			if again := Parse(hash, []byte(v.OID.String()+"\n")); again != v {
				t.Errorf("%v, written and read again: %v", v, again)
			}
		}
	})
}
