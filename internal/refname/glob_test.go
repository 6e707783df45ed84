package refname

import (
	"math/rand/v2"
	"sort"
	"strings"
	"testing"

	"refaudit/internal/gittest"
)

func TestGlob(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		flags         GlobFlags
		want          bool
	}{
		{"refs/tags/b*", "refs/tags/bad", PathName, true},
		{"refs/tags/*", "refs/tags/a/b", PathName, false},
		{"refs/tags/*", "refs/tags/a/b", 0, true},
		{"refs/tags/**", "refs/tags/a/b", PathName, true},
		{"refs/**/b", "refs/b", PathName, true},
		{"refs/**/b", "refs/x/y/b", PathName, true},
		{"refs/a**/b", "refs/ax/y/b", PathName, false},
		{"**", "refs/heads/x", PathName, true},
		{"a?c", "a/c", PathName, false},
		{"a[/]c", "a/c", PathName, false},
		{"a[!b]c", "axc", 0, true},
		{"a[^b]c", "abc", 0, false},
		{"a[]-]c", "a-c", 0, true},
		{"[[:digit:][:upper:]]", "7", 0, true},
		{"[[:nonsense:]]", "7", 0, false},
		{"[[:digit:]-z]", "a", 0, false}, // a class begins no range
		{"[[:digit:]-z]", "-", 0, true},
		{"[", "[", 0, false},
		{`\`, `\`, 0, false},
		{`\*`, "*", 0, true},
		{"REFS/*", "refs/X", PathName | CaseFold, true},
		{"[A-C]x", "bX", CaseFold, true},
		{"", "", 0, true},
		{"*", "", 0, true},
	} {
		if got := NewGlob(c.pattern, c.flags).Match([]byte(c.name)); got != c.want {
			t.Errorf("%q on %q with flags %d: %v", c.pattern, c.name, c.flags, got)
		}
	}
}

var globNames = []string{
	"a", "b", "ab", "ba", "abc", "A", "aB", "0", "a-b", "a]b", "a!b", "a/b", "a0/b", "x/a/b", "x/y/a/b", "x/y/z", "x/ab/cd/e", "é/ü", "a,b", "z-", "k/m-1/Q", "aaab/b", "ab/ab/ab/abc",
}

func globPattern(r *rand.Rand) string {
	pieces := []string{"a", "b", "A", "x", "/", "*", "*", "**", "?", "[ab]", "[a-y]", "[!a]", "[^b-z]", "[]a]", "[a-]", "[[:alpha:]]", "[[:upper:]]", "[[:digit:]x]", "[[:punct:]]", "[[a]", "[[:a]", "[[:bad:]]", "[\\]a]",
		"[a\\-z]", "[--0]", "\\", "\\a", "\\*", "[", "]", "!", "-", "**/", "/**", "/**/", "0", "é"}
	var s strings.Builder
	for range 1 + r.IntN(5) {
		s.WriteString(pieces[r.IntN(len(pieces))])
	}
	return s.String()
}

// git's tag --list matches the name below refs/tags/ without PathName, for-each-ref the whole name with
// it, or as a leading folder.
func TestGlobAsGitDoes(t *testing.T) {
	r := gittest.Init(t, gittest.Options{})
	id := r.WriteObject("blob", []byte("x"))
	var packed strings.Builder
	names := append([]string(nil), globNames...)
	sort.Strings(names)
	for _, name := range names {
		packed.WriteString(id + " refs/tags/" + name + "\n")
	}
	r.WriteFile("packed-refs", []byte(packed.String()))
	listed := func(args ...string) map[string]bool {
		m := map[string]bool{}
		for _, name := range strings.Split(r.Git(args...), "\n") {
			m[strings.TrimPrefix(name, "refs/tags/")] = true
		}
		return m
	}
	rnd := rand.New(rand.NewPCG(3, 4))
	matches := 0
	for range 300 {
		pattern := globPattern(rnd)
		plain, folded := listed("tag", "--list", "--", pattern), listed("tag", "--list", "-i", "--", pattern)
		byPath := listed("for-each-ref", "--format=%(refname)", "--", "refs/tags/"+pattern)
		for _, name := range names {
			if got := NewGlob(pattern, 0).Match([]byte(name)); got != plain[name] {
				t.Errorf("%q on %q: %v", pattern, name, got)
			}
			if got := NewGlob(pattern, CaseFold).Match([]byte(name)); got != folded[name] {
				t.Errorf("%q on %q without regard to case: %v", pattern, name, got)
			}
			folder := strings.HasPrefix(name+"/", strings.TrimSuffix(pattern, "/")+"/")
			if got := NewGlob("refs/tags/"+pattern, PathName).Match([]byte("refs/tags/" + name)); got != byPath[name] && !(folder && byPath[name]) {
				t.Errorf("%q on %q by path: %v", pattern, name, got)
			} else if got {
				matches++
			}
		}
	}
	if matches < 200 {
		t.Errorf("only %d matches: the test shows little", matches)
	}
}

func FuzzGlob(f *testing.F) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for _, name := range globNames {
		f.Add(globPattern(rnd), []byte(name), uint8(0))
	}
	f.Fuzz(func(t *testing.T, pattern string, name []byte, flags uint8) {
		if len(pattern) > 200 || len(name) > 2000 {
			return
		}
		if NewGlob(pattern, PathName).Match(name) && !NewGlob(pattern, PathName|CaseFold).Match(name) && !strings.ContainsAny(pattern, `\[`) {
			t.Errorf("%q covers %q, and without regard to case it doesn't", pattern, name)
		}
		NewGlob(pattern, GlobFlags(flags&3)).Match(name)
		var literal []byte
		for _, c := range name {
			literal = append(literal, '\\', c)
		}
		if !NewGlob(string(literal), PathName).Match(name) {
			t.Errorf("%q does not cover itself", name)
		}
	})
}
