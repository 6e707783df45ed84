package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"refaudit/internal/gittest"
	"refaudit/internal/refname"
)

// The kinds of damage that a clean audit may have passed over, as docs/limits.md names them.
const (
	renamed  = "the name of a ref is another one that git allows"
	removed  = "a ref is gone"
	revalued = "the value of a ref is another object that exists"
	rehead   = "HEAD leads to another branch"
	absent   = "a ref names an object that is nowhere, in a shallow repository"
	rekinded = "a tag is another kind of object"
	replaced = "a tag and its cached peel were replaced together"
	older    = "a store is an older one"
	unlisted = "a line of tables.list is gone" // at the deep level it is seen
)

// A change is what became of one ref while a command called the repository clean.
type change struct {
	kind  string // of the damaged file
	ref   string
	now   view
	deep  bool
	found []map[string]any // notes
}

// unseen says which kind of damage keeps a change from being seen; "" if it has to be.
func (s *subject) unseen(c *change) string {
	was, is := s.view[c.ref], c.now[c.ref]
	stores := c.kind == "packed-refs" || c.kind == "table"
	switch {
	case c.kind == "tables.list" && !c.deep:
		return unlisted
	case !was.there:
		hidden := s.known[is.oid] && s.truth[is.oid] == is.peel // another record of its name was served instead
		if stores && refname.Valid([]byte(c.ref), 0) && (hidden || s.gone(c.now, is)) {
			return renamed
		}
	case !is.there:
		if c.kind == "table" && s.added(c.now, was) {
			return renamed
		}
		if c.kind == "packed-refs" || c.kind == "loose ref" {
			return removed
		}
	case was.target != "" && is.target != "":
		if (c.kind == "HEAD" || c.kind == "worktree's HEAD" || c.kind == "table") && refname.Valid([]byte(is.target), 0) {
			return rehead
		}
	case is.oid != was.oid && s.known[is.oid] && (is.peel == was.peel || s.truth[is.oid] == is.peel || c.kind == "loose ref"):
		if stores || c.kind == "loose ref" {
			return revalued
		}
	case is.oid != was.oid && slices.ContainsFunc(c.found, func(f map[string]any) bool { return f["id"] == "peelUnverifiable" && f["ref"] == c.ref }):
		return absent
	}
	return ""
}

// gone tells whether a ref that was served so is not any more: in a table, an older record of it may be instead.
func (s *subject) gone(now view, as shown) bool {
	for ref, was := range s.view {
		if was == as && now[ref] != as {
			return true
		}
	}
	return false
}

// added tells whether there is a new ref that is served so.
func (s *subject) added(now view, as shown) bool {
	for ref, is := range now {
		if is == as && !s.view[ref].there {
			return true
		}
	}
	return false
}

// What docs/limits.md says can't be seen is not seen: each kind by one example. What comes to be seen leaves the page.
func TestWhatCanNotBeSeen(t *testing.T) {
	swap := func(l *lab, a, b string) {
		recs := l.records()
		i, j := slices.IndexFunc(recs, func(r rec) bool { return r.ref == a }), slices.IndexFunc(recs, func(r rec) bool { return r.ref == b })
		recs[i].id, recs[j].id, recs[i].peel, recs[j].peel = recs[j].id, recs[i].id, recs[j].peel, recs[i].peel
		l.put(recs...)
	}
	change := func(l *lab, ref string, edit func(*rec)) {
		recs := l.records()
		edit(&recs[slices.IndexFunc(recs, func(r rec) bool { return r.ref == ref })])
		l.put(recs...)
	}
	for _, c := range []struct {
		kind    string
		formats []gittest.Options
		harm    func(*lab)
		deep    string // what a deep look finds all the same
	}{
		{renamed, gittest.AllFormats, func(l *lab) { change(l, "refs/tags/light", func(r *rec) { r.ref = "refs/tags/lighu" }) }, ""},
		{removed, gittest.AllFormats, func(l *lab) { l.put(l.records()[1:]...) }, ""},
		{revalued, gittest.AllFormats, func(l *lab) { change(l, "refs/tags/light", func(r *rec) { r.id = l.B }) }, ""},
		{revalued, gittest.AllFormats, func(l *lab) { swap(l, "refs/tags/light", "refs/heads/main") }, ""},
		{rehead, filesFormats, func(l *lab) { l.WriteFile("HEAD", []byte("ref: refs/heads/mail\n")) }, ""},
		{absent, gittest.AllFormats, func(l *lab) {
			l.WriteFile("shallow", []byte(l.B+"\n"))
			change(l, "refs/tags/light", func(r *rec) { r.id = l.missing() })
		}, ""},
		{rekinded, filesFormats, func(l *lab) {
			l.Git("tag", "-a", "-m", "not packed", "loose", l.A)
			l.Git("repack", "-a", "-d", "-f", "-q", "--window=0") // no tag may need it as the base of a delta
			turnIntoCommit(l, l.Git("rev-parse", "refs/tags/loose"))
		}, ""},
		{replaced, gittest.AllFormats, func(l *lab) { change(l, "refs/tags/v1", func(r *rec) { r.id, r.peel = l.V2, l.B }) }, ""},
		{older, gittest.AllFormats, func(l *lab) {
			before := t.TempDir()
			copyTree(t, l.Path, before)
			l.Git("tag", "-f", "-a", "-m", "anew", "v1", l.B)
			if l.RefFormat == gittest.Files {
				l.Git("pack-refs", "--all")
				l.WriteFile("packed-refs", must1(t)(os.ReadFile(filepath.Join(before, "packed-refs"))))
				return
			}
			os.RemoveAll(l.File("reftable"))
			copyTree(t, filepath.Join(before, "reftable"), l.File("reftable"))
		}, ""},
		{unlisted, tableFormats, func(l *lab) {
			list := l.ReadFile("reftable/tables.list")
			l.Git("tag", "-f", "-a", "-m", "anew", "v1", l.B)
			l.WriteFile("reftable/tables.list", list)
			for _, path := range must2(t)(filepath.Glob(l.File("reftable/*.ref"))) {
				os.Chtimes(path, longAgo, longAgo)
			}
		}, "reftableOrphanTable"},
	} {
		for _, o := range c.formats {
			t.Run(c.kind+"/"+o.String(), func(t *testing.T) {
				l := newLab(t, o)
				l.t = t
				c.harm(l)
				l.sees(0)
				if c.deep == "" {
					l.seesAt([]string{"--level=deep"}, 0)
				} else {
					l.seesAt([]string{"--level=deep"}, 0, c.deep)
				}
			})
		}
	}
	page := must1(t)(os.ReadFile("../../docs/limits.md"))
	for _, kind := range []string{renamed, removed, revalued, rehead, absent, rekinded, replaced, older, unlisted} {
		if !bytes.Contains(page, []byte("\n| "+kind)) {
			t.Errorf("docs/limits.md has no row %q", kind)
		}
	}
	if rows := strings.Count(string(page), "\n| ") - 2*strings.Count(string(page), "\n| ---"); rows != 9 {
		t.Errorf("docs/limits.md has %d rows, and 9 kinds are tried", rows)
	}
}

// turnIntoCommit changes the kind in the header of a whole pack entry.
func turnIntoCommit(l *lab, id string) {
	index := must2(l.t)(filepath.Glob(l.File("objects/pack/*.idx")))[0]
	for _, row := range strings.Split(l.Git("verify-pack", "-v", index), "\n") {
		f := strings.Fields(row) // id, kind, size, size in the pack, offset; a delta has more
		if len(f) != 5 || f[0] != id {
			continue
		}
		at, err := strconv.Atoi(f[4])
		if err != nil {
			l.t.Fatal(err)
		}
		pack := strings.TrimSuffix(index, "idx") + "pack"
		b := must1(l.t)(os.ReadFile(pack))
		const kinds, commit = 7 << 4, 1 << 4
		b[at] = b[at]&^kinds | commit
		os.Remove(pack) // it is read-only
		if err := os.WriteFile(pack, b, 0o444); err != nil {
			l.t.Fatal(err)
		}
		return
	}
	l.t.Fatalf("%s is no whole entry of a pack", id)
}

func must2(t testing.TB) func([]string, error) []string {
	return func(s []string, err error) []string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
}
