package gittest

import (
	"encoding/hex"
	"strings"
	"testing"

	"refaudit/oid"
)

// Refs are the refs as git lists them, by name. Symrefs stand with the id they lead to.
func (r *Repo) Refs() map[string]oid.ID {
	r.t.Helper()
	refs := map[string]oid.ID{}
	for _, line := range lines(r.Git("for-each-ref", "--format=%(objectname) %(refname)")) {
		id, name, _ := strings.Cut(line, " ")
		refs[name] = oid.MustParse(id)
	}
	return refs
}

// Peels is what each ref really peels to, from the objects and without refs/replace: the oracle
// for cached peels. Refs that are no tags, and refs of corrupt tags, are not in it.
func (r *Repo) Peels() map[string]oid.ID {
	r.t.Helper()
	refs := r.Refs()
	var ask strings.Builder
	seen := map[string]bool{}
	for _, id := range refs {
		if !seen[id.String()] {
			seen[id.String()] = true
			ask.WriteString(id.String() + "\n")
		}
	}
	var tags []string
	if ask.Len() > 0 {
		for _, line := range lines(r.truth(ask.String(), "cat-file", "--batch-check=%(objectname) %(objecttype)").must(r.t, "cat-file")) {
			if id, kind, _ := strings.Cut(line, " "); kind == "tag" {
				tags = append(tags, id)
			}
		}
	}
	peeled := map[string]oid.ID{}
	r.peelTags(tags, peeled)
	peels := map[string]oid.ID{}
	for name, id := range refs {
		if p, ok := peeled[id.String()]; ok {
			peels[name] = p
		}
	}
	return peels
}

// peelTags asks for many tags at once, and for each half where one of them is corrupt.
func (r *Repo) peelTags(tags []string, into map[string]oid.ID) {
	r.t.Helper()
	for len(tags) > 500 {
		r.peelTags(tags[:500], into)
		tags = tags[500:]
	}
	if len(tags) == 0 {
		return
	}
	args := []string{"rev-parse"}
	for _, id := range tags {
		args = append(args, id+"^{}")
	}
	res := r.truth("", args...)
	switch {
	case res.Died:
		r.t.Fatalf("git rev-parse died of a signal: %v", res)
	case res.Code == 0:
		got := lines(strings.TrimSuffix(res.Stdout, "\n"))
		if len(got) != len(tags) {
			r.t.Fatalf("git rev-parse printed %d ids for %d tags", len(got), len(tags))
		}
		for i, id := range tags {
			into[id] = oid.MustParse(got[i])
		}
	case len(tags) > 1:
		r.peelTags(tags[:len(tags)/2], into)
		r.peelTags(tags[len(tags)/2:], into)
	}
}

// Kind is the type of an object; "" for an absent one.
func (r *Repo) Kind(id string) string {
	r.t.Helper()
	_, kind, _ := strings.Cut(r.truth(id+"\n", "cat-file", "--batch-check=%(objectname) %(objecttype)").must(r.t, "cat-file"), " ")
	if kind == "missing" {
		return ""
	}
	return kind
}

// truth runs a command that sees the objects as they are.
func (r *Repo) truth(stdin string, args ...string) Result {
	r.t.Helper()
	return r.run([]string{"GIT_NO_REPLACE_OBJECTS=1", "GIT_NO_LAZY_FETCH=1"}, stdin, args...)
}

func lines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

func unhex(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
