package repo

import (
	"bytes"
	"strings"
	"testing"
)

func TestSmallFiles(t *testing.T) {
	id := strings.Repeat("a", 40)
	for text, is := range map[string]bool{
		"ref: refs/heads/x\n": true, "ref:refs/": true, "ref: \t\n refs/x": true, "ref: heads/x": false, "ref": false, "": false,
		id: true, id + id: true, strings.ToUpper(id) + "\n": true, id[1:]: false, "g" + id[1:]: false, " " + id: false,
	} {
		if canBeHead([]byte(text)) != is {
			t.Errorf("HEAD %q: not %v", text, is)
		}
	}
	for text, want := range map[string]string{
		"gitdir: a\n": "a", "gitdir: a\r\n\n": "a", "gitdir:  a b ": " a b ", "gitdir: a\nb\n": "a\nb", "gitdir: a\x00b": "a", "gitdir: \n": "", "gitdir:a": "", "": "", "GITDIR: a": "",
	} {
		if got, err := parseGitFile([]byte(text)); got != want || (err == nil) != (want != "") {
			t.Errorf(".git %q: %q %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"ref: refs/heads/x\n": "refs/heads/x", "ref:\n\trefs/x \n\n": "refs/x", "ref: a\x00b": "a", id: "", "": "", "ref": "",
	} {
		if got := symrefTarget([]byte(text)); got != want {
			t.Errorf("ref %q: %q", text, got)
		}
	}
}

func FuzzSmallFiles(f *testing.F) {
	for _, seed := range []string{"ref: refs/heads/main\n", "gitdir: ../.git/worktrees/x\r\n", strings.Repeat("0", 64)} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if target, err := parseGitFile(text); err == nil && (target == "" || !bytes.Contains(text, []byte(target)) || strings.Contains(target, "\x00")) {
			t.Fatalf("%q names %q", text, target)
		}
		if target := symrefTarget(text); strings.Trim(target, " \t\n\r") == "" && target != "" { // git knows no other blanks
			t.Fatalf("%q stands for %q", text, target)
		}
		if strings.HasPrefix(symrefTarget(text), "refs/") && !canBeHead(text) {
			t.Fatalf("%q is a symbolic ref and no HEAD", text)
		}
	})
}
