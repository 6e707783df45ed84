package wildmatch

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		glob, text string
		want       bool
	}{
		{"", "", true}, {"", "a", false}, {"a", "", false}, {"a", "a", true}, {"a", "A", false}, {"?", "a", true}, {"?", "/", false}, {"a?", "a", false},
		{"*", "", true}, {"*", "abc", true}, {"*", "a/b", false}, {"a*c", "abbc", true}, {"a*c", "ab/c", false}, {"*/b", "a/b", true}, {"*/b", "a/c/b", false},
		{"**", "a/b/c", true}, {"**/c", "a/b/c", true}, {"**/c", "c", true}, {"**/c", "bc", false}, {"a/**", "a/b/c", true}, {"a/**", "a/", true}, {"a/**", "a", false},
		{"a/**/c", "a/c", true}, {"a/**/c", "a/b/b/c", true}, {"a**c", "abc", true}, {"a**c", "a/c", false}, {"a/**b", "a/x/b", false}, {"a/**b", "a/xb", true},
		{"***", "a/b", true}, {"a/***/c", "a/b/c", true}, {`**\/c`, "b/c", true},
		{"[a-c]", "b", true}, {"[a-c]", "d", false}, {"[!a-c]", "d", true}, {"[^a-c]", "b", false}, {"[]a]", "]", true}, {"[!]a]", "b", true}, {"[a-]", "-", true},
		{"[/]", "/", false}, {"[!a]", "/", false}, {"[a", "a", false}, {"[", "[", false}, {`[\]]`, "]", true}, {`[\a-\c]`, "b", true}, {"[[:digit:]]", "5", true},
		{"[[:digit:]x]", "x", true}, {"[[:nope:]]", "n", false}, {"[[:digit]", "d", true}, {"[[:digit]", "[", true}, {"[[:", "[", false}, {"[[:alpha:][:digit:]]", "q", true},
		{`\*`, "*", true}, {`\*`, "a", false}, {`a\`, "a", false}, {`a\`, `a\`, false}, {`\a`, "a", true},
		{"/srv/git/**", "/srv/git/a.git", true}, {"https://example.com/**", "https://example.com/a/b.git", true}, {"git@example.com:*/**", "git@example.com:a/b.git", true},
	} {
		if got, err := Match([]byte(c.glob), []byte(c.text), Path); got != c.want || err != nil {
			t.Errorf("%q against %q: %v %v", c.glob, c.text, got, err)
		}
	}
}

func TestMatchWithoutCase(t *testing.T) {
	for _, c := range []struct {
		glob, text string
		want       bool
	}{
		{"AbC", "aBc", true}, {"[A-C]", "b", true}, {"[a-c]", "B", true}, {"[[:upper:]]", "b", true}, {"[[:lower:]]", "B", true}, {"[A]", "a", false},
		{`\A`, "a", false}, {"é", "É", false},
	} {
		if got, err := Match([]byte(c.glob), []byte(c.text), Path|Fold); got != c.want || err != nil {
			t.Errorf("%q against %q: %v %v", c.glob, c.text, got, err)
		}
	}
}

func TestClasses(t *testing.T) {
	for class, want := range map[string]string{
		"alnum": "aZ5", "alpha": "aZ", "blank": " \t", "cntrl": "\x01\t\x7f", "digit": "5", "graph": "aZ5!", "lower": "a", "print": "aZ5! ",
		"punct": "!", "space": " \t\v", "upper": "Z", "xdigit": "a5F",
	} {
		for _, ch := range []byte("aZ5! \t\v\x01\x7fF") {
			in := strings.IndexByte(want, ch) >= 0
			if strings.IndexByte("F\v\t\x01", ch) >= 0 { // given where it matters
				continue
			}
			if got, err := Match([]byte("[[:"+class+":]]"), []byte{ch}, Path); got != in || err != nil {
				t.Errorf("%q in %s: %v %v", ch, class, got, err)
			}
		}
	}
}

// Every star could begin anywhere: without a memory this takes longer than the universe is old.
func TestManyStarsTakeNoTime(t *testing.T) {
	start := time.Now()
	got, err := Match([]byte(strings.Repeat("*a", 100)+"b"), []byte(strings.Repeat("a", 2000)), Path)
	if got || err != nil || time.Since(start) > 10*time.Second {
		t.Errorf("%v %v after %v", got, err, time.Since(start))
	}
}

func TestTooLong(t *testing.T) {
	if _, err := Match(make([]byte, MaxPattern+1), nil, Path); !errors.Is(err, ErrTooLong) {
		t.Error(err)
	}
	if _, err := Match(nil, make([]byte, MaxText+1), Path); !errors.Is(err, ErrTooLong) {
		t.Error(err)
	}
}

func FuzzMatch(f *testing.F) {
	for _, seed := range []string{"**/a/*", "[!a-c]?", `\*[[:digit:]]`, "a/**"} {
		f.Add(seed, "a/b/c", false)
	}
	f.Fuzz(func(t *testing.T, glob, text string, fold bool) {
		if len(glob) > 64 || len(text) > 256 {
			return
		}
		flags := Path
		if fold {
			flags |= Fold
		}
		got, err := Match([]byte(glob), []byte(text), flags)
		if err != nil {
			t.Fatal(err)
		}
		if got && !fold && !strings.ContainsAny(glob, `*?[\`) && glob != text {
			t.Fatalf("%q matches %q", glob, text)
		}
		if m, _ := Match([]byte("**"), []byte(text), flags); !m {
			t.Fatalf("** doesn't match %q", text)
		}
	})
}
