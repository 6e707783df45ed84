package refname

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"refaudit/internal/gittest"
)

func TestValid(t *testing.T) {
	for _, c := range []struct {
		name  string
		flags Flags
		want  bool
	}{
		{"refs/heads/main", 0, true},
		{"heads/main", 0, true},
		{"refs/heads/\xff\xfe", 0, true},
		{"refs/heads/{x}", 0, true},
		{"refs/heads/@", 0, true},
		{"refs/heads/-x", 0, true},
		{"refs/heads/a.lockx", 0, true},
		{"HEAD", 0, false},
		{"HEAD", AllowOneLevel, true},
		{"@", AllowOneLevel, false},
		{"", AllowOneLevel, false},
		{"/", AllowOneLevel, false},
		{"refs/heads/*", AllowPattern, true},
		{"refs/*/a*", AllowPattern, false},
		{"refs/heads/*", 0, false},
		{"refs/heads/a b", 0, false},
		{"refs/heads/a\x00b", 0, false},
		{"refs/heads/a\r", 0, false},
		{"refs/heads/.a", 0, false},
		{"refs/heads/a.", 0, false},
		{"refs/heads/a./b", 0, true},
		{"refs/heads/a..b", 0, false},
		{"refs/heads/a.lock", 0, false},
		{"refs/a.lock/b", 0, false},
		{"refs/heads/a@{b", 0, false},
		{"refs/heads/a@/{b", 0, true},
		{"refs/heads/", 0, false},
		{"/refs/heads", 0, false},
		{"refs//heads", 0, false},
	} {
		if got := Valid([]byte(c.name), c.flags); got != c.want {
			t.Errorf("%q with flags %d: %v", c.name, c.flags, got)
		}
	}
}

// names are built from the pieces that the rules speak of.
func names(n int) []string {
	r := rand.New(rand.NewPCG(1, 2))
	pieces := []string{"a", "refs/", "heads/", "b/c", "x", "y", "z-", "/", "/", ".", "@", "{", "*", ".lock", "-", "~", "^", ":", "?", "[", "\\", " ", "\t", "\x01", "\x7f", "\xff", "é", "k", "lock"}
	seen := map[string]bool{}
	var out []string
	for len(out) < n {
		var s strings.Builder
		for range 1 + r.IntN(7) {
			s.WriteString(pieces[r.IntN(len(pieces))])
		}
		if name := s.String(); !seen[name] && name[0] != '-' { // git would take it for an option
			seen[name] = true
			out = append(out, name)
		}
	}
	return out
}

func TestValidAsGitDoes(t *testing.T) {
	git := gittest.Need(t, gittest.Any)
	options := map[Flags][]string{
		0:                            nil,
		AllowOneLevel:                {"--allow-onelevel"},
		AllowPattern:                 {"--refspec-pattern"},
		AllowOneLevel | AllowPattern: {"--allow-onelevel", "--refspec-pattern"},
	}
	valid := 0
	for i, name := range names(600) {
		flags := Flags(i % 4)
		code := git.Run(t, "", nil, "", append(append([]string{"check-ref-format"}, options[flags]...), name)...).Code
		if got := Valid([]byte(name), flags); got != (code == 0) {
			t.Errorf("%q with flags %d: %v, git exits %d", name, flags, got, code)
		}
		if code == 0 {
			valid++
		}
	}
	if valid < 30 {
		t.Errorf("only %d of the names were valid: the test shows little", valid)
	}
}

// git stops at a packed ref whose name is invalid and unsafe; it passes over one that is invalid alone.
func TestSafeAsGitDoes(t *testing.T) {
	r := gittest.New(t, gittest.Options{})
	for _, name := range []string{"refs/../x", "refs/./x", "refs//x", "refs/x/", "refs/", "refs/x/..", "refs/.x", "refs/x..y", "refs/heads/a.lock", "refs/a ", "A", "A_B", "HEAD", "a", "A-B", "heads/.x", ".."} {
		r.WriteFile("packed-refs", fmt.Appendf(nil, "%s %s\n", r.A, name))
		_, stderr, code := r.Try("for-each-ref")
		n := []byte(name) // of packed-refs, git reads names with one level too
		if read := Valid(n, AllowOneLevel) || Safe(n); read != (code == 0) {
			t.Errorf("%q: safe: %v, git: exit %d %s", name, Safe(n), code, stderr)
		}
	}
	if Safe(nil) || Safe([]byte("refs/a\x00b")) {
		t.Error("an empty name, or one with a NUL, is safe")
	}
}

func TestRootRefsAsGitDoes(t *testing.T) {
	gittest.Need(t, gittest.Newest)
	r := gittest.New(t, gittest.Options{Git: gittest.Newest})
	all := []string{"HEAD", "ORIG_HEAD", "FETCH_HEAD", "MERGE_HEAD", "X-Y_HEAD", "_HEAD", "HEAD2_HEAD", "Orig_HEAD", "AUTO_MERGE", "BISECT_EXPECTED_REV",
		"NOTES_MERGE_PARTIAL", "NOTES_MERGE_REF", "MERGE_AUTOSTASH", "FOO", "CHERRY_PICK_HEAD"}
	for _, name := range all {
		if name != "HEAD" {
			r.WriteFile(name, []byte(r.A+"\n"))
		}
	}
	listed := map[string]bool{}
	for _, name := range strings.Fields(r.Git("for-each-ref", "--include-root-refs", "--format=%(refname)")) {
		listed[name] = true
	}
	for _, name := range all {
		if got := IsRoot([]byte(name)); got != listed[name] {
			t.Errorf("%s: %v, git lists it: %v", name, got, listed[name])
		}
	}
}

func TestSplitWorktree(t *testing.T) {
	for _, c := range []struct {
		name string
		kind Worktree
		id   string
		rest string
	}{
		{"refs/heads/main", Shared, "", "refs/heads/main"},
		{"HEAD", Current, "", "HEAD"},
		{"refs/bisect/bad", Current, "", "refs/bisect/bad"},
		{"main-worktree/HEAD", Main, "", "HEAD"},
		{"main-worktree/refs/heads/x", Shared, "", "main-worktree/refs/heads/x"},
		{"worktrees/wt/HEAD", Other, "wt", "HEAD"},
		{"worktrees/wt/refs/worktree/x", Other, "wt", "refs/worktree/x"},
		{"worktrees/wt/refs/heads/x", Shared, "", "worktrees/wt/refs/heads/x"},
		{"worktrees/wt", Other, "wt", ""},
		{"worktrees/wt/", Other, "wt", ""},
	} {
		kind, id, rest := SplitWorktree([]byte(c.name))
		if kind != c.kind || string(id) != c.id || string(rest) != c.rest {
			t.Errorf("%s: %d %q %q", c.name, kind, id, rest)
		}
	}
}

func FuzzValid(f *testing.F) {
	for _, name := range names(50) {
		f.Add([]byte(name))
	}
	f.Fuzz(func(t *testing.T, name []byte) {
		for flags := range Flags(4) {
			valid := Valid(name, flags)
			if valid && bytes.IndexByte(name, 0) >= 0 {
				t.Errorf("%q has a NUL", name)
			}
			if valid && flags == 0 && !(Valid(name, AllowOneLevel) && Valid(name, AllowPattern)) {
				t.Errorf("%q: a flag made it invalid", name)
			}
			for i := range len(name) + 1 {
				if flags == 0 && Valid(append(bytes.Clone(name[:i]), "x/x"...), 0) && ValidAfter(name, i) != valid {
					t.Errorf("%q is valid: %v, and otherwise from byte %d on", name, valid, i)
				}
			}
			if valid && bytes.HasPrefix(name, []byte("refs/")) && !Safe(name) {
				t.Errorf("%q is valid and unsafe", name)
			}
		}
		IsRoot(name)
		SplitWorktree(name)
	})
}

func BenchmarkValid(b *testing.B) {
	name := []byte("refs/changes/00/0012345/1")
	b.SetBytes(int64(len(name)))
	for b.Loop() {
		if !Valid(name, 0) {
			b.Fatal("invalid")
		}
	}
}
