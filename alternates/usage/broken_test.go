package usage

import (
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"refaudit/finding"
	"refaudit/internal/gittest"
)

// A way in which a ref is spoilt, and the finding that tells of it; name is what the reason must say.
type spoilt struct {
	spoil func(t *testing.T, r *gittest.Repo)
	name  string
	id    finding.ID
}

func file(name, content string) func(*testing.T, *gittest.Repo) {
	return func(t *testing.T, r *gittest.Repo) {
		content := strings.NewReplacer("ID", r.A, "ZERO", strings.Repeat("0", len(r.A))).Replace(content)
		r.WriteFile(name, []byte(content))
	}
}

func link(name, to string) func(*testing.T, *gittest.Repo) {
	return func(t *testing.T, r *gittest.Repo) {
		if err := os.Symlink(to, r.File(name)); err != nil {
			t.Fatal(err)
		}
	}
}

// packedRef puts another name, of the same length, or another id to a packed ref.
func packedRef(name, id string) func(*testing.T, *gittest.Repo) {
	return func(t *testing.T, r *gittest.Repo) {
		r.Git("update-ref", "refs/heads/aa--a", r.A)
		r.Git("pack-refs", "--all")
		r.EditPacked(func(text string) string {
			return strings.Replace(text, r.A+" refs/heads/aa--a", strings.NewReplacer("ID", r.A, "ZERO", strings.Repeat("0", len(r.A))).Replace(id+" "+name), 1)
		})
	}
}

// spoiltFiles are refs that are files. git says which of them it dies of.
var spoiltFiles = map[string]spoilt{
	"garbage":                    {file("refs/heads/x", "garbage\n"), `"refs/heads/x"`, finding.BadRefContent},
	"an empty file":              {file("refs/heads/x", ""), `"refs/heads/x"`, finding.BadRefContent},
	"zeros":                      {file("refs/heads/x", "ZERO\n"), `"refs/heads/x"`, finding.BadRefOid},
	"binary":                     {file("refs/heads/x", "\x00\x01\xff"), `"refs/heads/x"`, finding.BadRefContent},
	"half an id":                 {file("refs/heads/x", "1234567\n"), `"refs/heads/x"`, finding.BadRefContent},
	"two dots":                   {file("refs/heads/bad..name", "ID\n"), `"refs/heads/bad..name"`, finding.BadRefName},
	"a space":                    {file("refs/heads/a b", "ID\n"), `"refs/heads/a b"`, finding.BadRefName},
	"a caret":                    {file("refs/heads/q^", "ID\n"), `"refs/heads/q^"`, finding.BadRefName},
	"a symref of a bad name":     {file("refs/heads/q^", "ref: refs/heads/main\n"), `"refs/heads/q^"`, finding.BadRefName},
	"a folder of a bad name":     {file("refs/heads/a..b/c", "ID\n"), `"refs/heads/a..b/c"`, finding.BadRefName},
	"a link to what is no ref":   {link("refs/heads/x", "../../config"), `"refs/heads/x"`, ""},
	"a packed name with dots":    {packedRef("refs/heads/bad..name", "ID"), `"refs/heads/bad..name" in packed-refs`, finding.BadRefName},
	"a packed name that leaves":  {packedRef("refs/heads/../x", "ID"), `"refs/heads/../x" in packed-refs`, finding.BadRefName},
	"a packed hidden name":       {packedRef("refs/heads/.hidden", "ID"), `"refs/heads/.hidden" in packed-refs`, finding.BadRefName},
	"packed-refs cut in a name":  {packedText("ID refs/heads/z\nID refs/heads/zz\n", 2), "packed-refs", finding.PackedRefEntryNotTerminated},
	"packed-refs without its LF": {packedText("ID refs/heads/z\n", 1), "packed-refs", finding.PackedRefEntryNotTerminated},
	"two peels of one ref":       {packedText("ID refs/heads/z\n^ID\n^ID\n", 0), "packed-refs", finding.BadPackedRefEntry},
	"a peel of nothing":          {packedText("^ID\nID refs/heads/z\n", 0), "packed-refs", finding.BadPackedRefEntry},
	"a peel that is no id":       {packedText("ID refs/heads/z\n^zzz\n", 0), "packed-refs", finding.BadPackedRefEntry},
	"a peel with more behind it": {packedText("ID refs/heads/z\n^ID x\n", 0), "packed-refs", finding.BadPackedRefEntry},
	"a packed name with a NUL":   {packedText("ID refs/heads/z\x00\n", 0), "packed-refs", finding.BadPackedRefEntry},
	"a packed line of no ref":    {packedText("\nID refs/heads/z\n", 0), "packed-refs", finding.BadPackedRefEntry},
	"a packed zero":              {packedRef("refs/heads/z", "ZERO"), `"refs/heads/z" in packed-refs`, finding.BadRefOid},
	"a packed ref behind garbage": {func(t *testing.T, r *gittest.Repo) {
		packedRef("refs/heads/x", "ID")(t, r)
		file("refs/heads/x", "garbage\n")(t, r)
	}, `"refs/heads/x"`, finding.BadRefContent},
	"HEAD of zeros": {file("HEAD", "ZERO\n"), `"HEAD"`, finding.BadRefOid},

	"a symref to nothing":       {file("refs/heads/dang", "ref: refs/heads/nothing\n"), "", ""},
	"a symref to itself":        {file("refs/heads/dang", "ref: refs/heads/dang\n"), "", ""},
	"a symref to a bad name":    {file("refs/heads/dang", "ref: refs/heads/a..b\n"), "", ""},
	"a symref to an empty name": {file("refs/heads/dang", "ref:\n"), "", ""},
	"an unborn HEAD":            {file("HEAD", "ref: refs/heads/unborn\n"), "", ""},
	"a hidden file":             {file("refs/heads/.hidden", "garbage\n"), "", ""},
	"a hidden folder":           {file("refs/heads/.hidden/x", "garbage\n"), "", ""},
	"a lock":                    {file("refs/heads/x.lock", ""), "", ""},
	"a folder that is a lock":   {file("refs/heads/x.lock/y", ""), "", ""},
	"no newline":                {file("refs/heads/x", "ID"), "", ""},
	"something behind the id":   {file("refs/heads/x", "ID and more\n"), "", ""},
	"a link to nothing":         {link("refs/heads/x", "nothing"), "", ""},
	"a link to a branch":        {link("refs/heads/x", "refs/heads/main"), "", ""},
	"another root ref":          {file("ORIG_HEAD", "garbage\n"), "", ""},
}

// packedText is a packed-refs file that has lost its last bytes.
func packedText(text string, lost int) func(*testing.T, *gittest.Repo) {
	return func(t *testing.T, r *gittest.Repo) {
		text := "# pack-refs with: peeled fully-peeled sorted \n" + strings.ReplaceAll(text, "ID", r.A)
		r.WriteFile("packed-refs", []byte(text[:len(text)-lost]))
	}
}

// spoiltTables are records of a stack: the branch aa--a is there to be patched.
var spoiltTables = map[string]spoilt{
	"two dots": {patched("aa--a", "aa..a"), `"refs/heads/aa..a"`, finding.BadRefName},
	"a space":  {patched("aa--a", "aa  a"), `"refs/heads/aa  a"`, finding.BadRefName},
	"zeros": {func(t *testing.T, r *gittest.Repo) {
		c := r.Git("commit-tree", r.Tree, "-m", "for one ref alone")
		r.Git("update-ref", "refs/heads/z", c)
		r.PatchTables(c, strings.Repeat("0", len(c)))
	}, `"refs/heads/z"`, finding.BadRefOid},
	"a symref to nothing": {func(t *testing.T, r *gittest.Repo) {
		r.Git("symbolic-ref", "refs/heads/dang", "refs/heads/nothing")
	}, "", ""},
	"an unborn HEAD": {func(t *testing.T, r *gittest.Repo) { r.Git("symbolic-ref", "HEAD", "refs/heads/unborn") }, "", ""},
}

func patched(from, to string) func(*testing.T, *gittest.Repo) {
	return func(t *testing.T, r *gittest.Repo) {
		r.Git("update-ref", "refs/heads/aa--a", r.A)
		r.PatchTables(hex.EncodeToString([]byte(from)), hex.EncodeToString([]byte(to)))
	}
}

// spoiltWorktrees are refs of a linked worktree: git dies of them there.
var spoiltWorktrees = map[string]spoilt{
	"HEAD of garbage":        {file("worktrees/wt/HEAD", "garbage\n"), `"worktrees/wt/HEAD"`, finding.BadRefContent},
	"an empty HEAD":          {file("worktrees/wt/HEAD", ""), `"worktrees/wt/HEAD"`, finding.BadRefContent},
	"HEAD of zeros":          {file("worktrees/wt/HEAD", "ZERO\n"), `"worktrees/wt/HEAD"`, finding.BadRefOid},
	"no HEAD":                {func(t *testing.T, r *gittest.Repo) { os.Remove(r.File("worktrees/wt/HEAD")) }, `"worktrees/wt/HEAD"`, finding.WorktreeHeadMissing},
	"a bisect ref":           {file("worktrees/wt/refs/bisect/bad", "garbage\n"), `"worktrees/wt/refs/bisect/bad"`, finding.BadRefContent},
	"a name of a bisect ref": {file("worktrees/wt/refs/bisect/a..b", "ID\n"), `"worktrees/wt/refs/bisect/a..b"`, finding.BadRefName},
	"an unborn HEAD":         {file("worktrees/wt/HEAD", "ref: refs/heads/unborn\n"), "", ""},
	"a branch that is none":  {file("worktrees/wt/refs/heads/x", "garbage\n"), "", ""},
}

// What refs reach can't be known where git dies of one of them, and is known where git doesn't.
func TestBrokenRefs(t *testing.T) {
	gittest.Need(t, gittest.Newest)
	for _, o := range gittest.AllFormats {
		all := spoiltFiles
		if o.RefFormat == gittest.Reftable {
			all = spoiltTables
		}
		for name, c := range all {
			t.Run(o.String()+" "+name, func(t *testing.T) {
				t.Parallel()
				r := gittest.New(t, o)
				c.spoil(t, r)
				checkBroken(t, r, r, c)
			})
		}
		if o.RefFormat == gittest.Reftable {
			continue
		}
		for name, c := range spoiltWorktrees {
			t.Run(o.String()+" in a worktree: "+name, func(t *testing.T) {
				t.Parallel()
				r := gittest.New(t, o)
				r.Git("worktree", "add", "-q", "--detach", "--no-checkout", filepath.Join(t.TempDir(), "wt"), r.A)
				c.spoil(t, r)
				within := *r
				within.Path = r.File("worktrees/wt")
				checkBroken(t, r, &within, c)
			})
		}
	}
}

// checkBroken compares what is said of a repository with what git does in a place of it.
func checkBroken(t *testing.T, r, place *gittest.Repo, c spoilt) {
	_, stderr, code := place.Try("rev-list", "--all", "--objects")
	if dies := code != 0; dies != (c.name != "") {
		t.Fatalf("rev-list exits with %d: %s", code, stderr)
	}
	s := NewSession(2)
	defer s.Close()
	for _, method := range []Method{Auto, Walk} {
		u := measured(t, s, r, Options{Method: method})
		if c.name == "" {
			if !u.Complete() || len(u.Findings) > 0 {
				t.Errorf("%s: %v %v", method, u.Unknown, u.Findings)
			}
			continue
		}
		for _, f := range []Figure{Reachable, Own, Borrowed, Unreachable, OwnStoredElsewhere} {
			if why := u.Unknown[f]; !strings.Contains(why, c.name) {
				t.Errorf("%s: %s is %d, unknown because of %q, want %q in it", method, f, u.Bytes[f], why, c.name)
			}
		}
		if _, known := u.Bytes[Files]; !known {
			t.Errorf("files: %q", u.Unknown[Files])
		}
		if c.id != "" && !slices.ContainsFunc(u.Findings, func(f finding.Finding) bool { return f.ID == c.id }) {
			t.Errorf("%s: no %s: %v", method, c.id, u.Findings)
		}
	}
}

// A worktree without a gitdir file is none to git, which doesn't look at its HEAD.
func TestBrokenHeadsOfWhatIsNoWorktree(t *testing.T) {
	gittest.Need(t, gittest.Newest)
	for name, spoil := range map[string]func(*testing.T, *gittest.Repo){
		"zeros":        file("worktrees/wt/HEAD", "ZERO\n"),
		"garbage":      file("worktrees/wt/HEAD", "garbage\n"),
		"no HEAD":      file("worktrees/wt/index", ""),
		"a bisect ref": file("worktrees/wt/refs/bisect/bad", "garbage\n"),
	} {
		t.Run(name, func(t *testing.T) {
			r := plain(t)
			spoil(t, r)
			checkBroken(t, r, r, spoilt{})
		})
	}
}

// A broken ref that is left out on purpose makes nothing unknown.
func TestBrokenRefsThatAreLeftOut(t *testing.T) {
	r := plain(t)
	file("refs/heads/x", "garbage\n")(t, r)
	s := NewSession(2)
	defer s.Close()
	if u := measured(t, s, r, Options{Exclude: []string{"refs/heads/x"}}); !u.Complete() {
		t.Errorf("excluded: %v", u.Unknown)
	}
	dead := deadWorktreeRepo(t)
	file("worktrees/wt/HEAD", "garbage\n")(t, dead)
	if u := measured(t, s, dead, Options{IgnoreDeadWorktrees: true}); !u.Complete() {
		t.Errorf("of a dead worktree: %v", u.Unknown)
	}
	if u := measured(t, s, dead, Options{}); u.Complete() {
		t.Error("of a dead worktree that counts: all is known")
	}
}

// What a pool's refs reach can't be known where one of those that count is broken.
func TestBrokenRefsOfAPool(t *testing.T) {
	for _, o := range gittest.AllFormats {
		all := spoiltFiles
		if o.RefFormat == gittest.Reftable {
			all = spoiltTables
		}
		for name, c := range all {
			if name == "HEAD of zeros" { // HEADs of pools don't count
				continue
			}
			t.Run(o.String()+" "+name, func(t *testing.T) {
				t.Parallel()
				pool := gittest.New(t, o)
				f := forkOf(t, pool)
				c.spoil(t, pool)
				s := NewSession(2)
				defer s.Close()
				u := measured(t, s, f, Options{})
				if c.name == "" {
					if !u.Complete() || len(u.Findings) > 0 {
						t.Errorf("%v %v", u.Unknown, u.Findings)
					}
					return
				}
				for _, figure := range []Figure{Own, Borrowed, OwnStoredElsewhere} {
					if why := u.Unknown[figure]; !strings.Contains(why, c.name) {
						t.Errorf("%s is %d, unknown because of %q, want %q in it", figure, u.Bytes[figure], why, c.name)
					}
				}
				if _, known := u.Bytes[Reachable]; !known {
					t.Errorf("reachable: %q", u.Unknown[Reachable])
				}
				if !slices.ContainsFunc(u.Findings, func(f finding.Finding) bool { return f.ID == finding.AlternateRefsUnreadable }) {
					t.Errorf("no alternateRefsUnreadable: %v", u.Findings)
				}
			})
		}
	}
}

// Only the refs of a pool that count can make its own unknown.
func TestBrokenRefsOfAPoolThatDoNotCount(t *testing.T) {
	pool := plain(t)
	f := forkOf(t, pool)
	f.Git("config", "core.alternateRefsPrefixes", "refs/heads")
	file("refs/tags/x", "garbage\n")(t, pool)
	s := NewSession(2)
	defer s.Close()
	if u := measured(t, s, f, Options{}); !u.Complete() {
		t.Errorf("%v", u.Unknown)
	}
}

// The HEAD of a dead worktree is named whether it counts or not, and that of another isn't.
func TestADeadWorktreesHeadIsNamed(t *testing.T) {
	gittest.Need(t, gittest.Newest)
	for _, o := range gittest.AllFormats {
		for _, detached := range []bool{true, false} {
			r := gittest.New(t, o)
			dir := t.TempDir()
			r.Git("worktree", "add", "-q", "--detach", "--no-checkout", filepath.Join(dir, "alive"), r.A)
			how := []string{"-b", "new"}
			if detached {
				how = []string{"--detach"}
			}
			r.Git(slices.Concat([]string{"worktree", "add", "-q", "--no-checkout"}, how, []string{filepath.Join(dir, "dead"), r.A})...)
			if err := os.RemoveAll(filepath.Join(dir, "dead")); err != nil {
				t.Fatal(err)
			}
			s := NewSession(2)
			for ignore, want := range map[bool]string{false: "worktrees/dead/HEAD counts", true: "worktrees/dead/HEAD is left out"} {
				u := measured(t, s, r, Options{IgnoreDeadWorktrees: ignore})
				if len(u.Notices) != 1 || !strings.HasPrefix(u.Notices[0], want) || !u.Complete() || len(u.Findings) > 0 {
					t.Errorf("%v, detached %v: %q, want %q; %v %v", o, detached, u.Notices, want, u.Unknown, u.Findings)
				}
			}
			s.Close()
		}
	}
}

// A worktree has refs of its own below refs/bisect/, refs/worktree/ and refs/rewritten/. Where refs are files, git looks for no
// others in its folder.
func TestRefsOfAWorktree(t *testing.T) {
	gittest.Need(t, gittest.Newest)
	for _, o := range gittest.AllFormats {
		if o.RefFormat == gittest.Reftable {
			continue
		}
		for _, name := range []string{"bisect/bad", "worktree/x", "rewritten/x", "heads/x", "tags/x", "worktreex/x"} {
			r := gittest.New(t, o)
			r.Git("worktree", "add", "-q", "--detach", "--no-checkout", filepath.Join(t.TempDir(), "wt"), r.A)
			blob := r.WriteObject("blob", []byte("of one worktree alone"))
			s := NewSession(2)
			before := measured(t, s, r, Options{}).Bytes[Reachable]
			s.Close()
			r.WriteFile("worktrees/wt/refs/"+name, []byte(blob+"\n"))
			within := *r
			within.Path = r.File("worktrees/wt")
			want := before
			if strings.Contains(within.Git("rev-list", "--all", "--objects"), blob) {
				st, err := os.Stat(r.File(r.LooseName(blob)))
				if err != nil {
					t.Fatal(err)
				}
				want += st.Size()
			}
			s = NewSession(2)
			u := measured(t, s, r, Options{})
			s.Close()
			if got, known := u.Bytes[Reachable]; !known || got != want {
				t.Errorf("%v, refs/%s: %d is reachable, want %d; %v", o, name, got, want, u.Unknown)
			}
			if private := name == "bisect/bad" || name == "worktree/x" || name == "rewritten/x"; private != (want > before) {
				t.Errorf("%v, refs/%s: git lists it: %v", o, name, want > before)
			}
		}
	}
}

// A symref that counts for itself leads to what counts for none: git excludes by the names of refs, not of what they lead to.
func TestExcludedTargets(t *testing.T) {
	gittest.Need(t, gittest.Newest)
	for _, o := range gittest.AllFormats {
		r := gittest.New(t, o)
		r.Git("update-ref", "refs/heads/far", r.Git("commit-tree", r.Tree, "-m", "far"))
		for i := 1; i <= 6; i++ {
			target := "refs/heads/far"
			if i > 1 {
				target = fmt.Sprintf("refs/sym/%d", i-1)
			}
			r.Git("symbolic-ref", fmt.Sprintf("refs/sym/%d", i), target)
		}
		for name, exclude := range map[string][]string{
			"HEAD leads to it":        {"refs/heads/*"},
			"HEAD is excluded too":    {"refs/heads/*", "refs/sym/*", "HEAD"},
			"a chain":                 {"refs/heads/main", "refs/heads/far"},
			"the middle of a chain":   {"refs/heads/main", "refs/heads/far", "refs/sym/1", "refs/sym/3"},
			"all but what is too far": {"refs/heads/*", "refs/sym/[1-5]"},
			"nothing is left":         {"*"},
		} {
			var args []string
			for _, glob := range exclude {
				args = append(args, "--exclude="+glob)
			}
			want := newOracle(t, r).figures(args...)
			for _, method := range []Method{Auto, Walk} {
				s := NewSession(2)
				if u := measured(t, s, r, Options{Method: method, Exclude: exclude}); !maps.Equal(u.Bytes, want) || !u.Complete() {
					t.Errorf("%v, %s, %s: %v %v, want %v", o, name, method, u.Bytes, u.Unknown, want)
				}
				s.Close()
			}
		}
	}
}

// The symref of a worktree leads to the ref that this worktree has for itself.
func TestExcludedTargetsOfAWorktree(t *testing.T) {
	gittest.Need(t, gittest.Newest)
	for _, o := range gittest.AllFormats {
		r := gittest.New(t, o)
		r.Git("worktree", "add", "-q", "--detach", "--no-checkout", filepath.Join(t.TempDir(), "wt"), r.A)
		within := *r
		within.Path = r.File("worktrees/wt")
		private := within.Git("commit-tree", r.Tree, "-m", "of the worktree")
		within.Git("update-ref", "refs/bisect/bad", private)
		within.Git("symbolic-ref", "refs/worktree/sym", "refs/bisect/bad")
		if list := within.Git("rev-list", "--exclude=refs/bisect/*", "--all"); !strings.Contains(list, private) {
			t.Fatalf("%v: git lists %s", o, list)
		}
		s := NewSession(2)
		all := measured(t, s, r, Options{}).Bytes[Reachable]
		for exclude, less := range map[string]bool{"worktrees/wt/refs/bisect/*": false, "worktrees/wt/refs/*": true} {
			if got := measured(t, s, r, Options{Exclude: []string{exclude}}).Bytes[Reachable]; got < all != less || got > all {
				t.Errorf("%v, without %s: %d, of %d", o, exclude, got, all)
			}
		}
		s.Close()
	}
}

// What an excluded ref reaches is not unreachable; where that can't be known, only this figure is not.
func TestExcludedRefsOfAbsentObjects(t *testing.T) {
	for _, o := range gittest.AllFormats {
		r := gittest.New(t, o)
		r.Git("update-ref", "refs/heads/gone", r.Git("commit-tree", r.Tree, "-p", r.A, "-m", "gone"))
		gone := r.Git("rev-parse", "refs/heads/gone")
		s := NewSession(2)
		before := measured(t, s, r, Options{Exclude: []string{"refs/heads/gone"}})
		s.Close()
		if err := os.Remove(r.File(r.LooseName(gone))); err != nil {
			t.Fatal(err)
		}
		for _, method := range []Method{Auto, Walk} {
			s := NewSession(2)
			u := measured(t, s, r, Options{Method: method, Exclude: []string{"refs/heads/gone"}})
			s.Close()
			if why := u.Unknown[Unreachable]; len(u.Unknown) != 1 || !strings.Contains(why, `"refs/heads/gone" names `+gone+", which is absent") {
				t.Errorf("%v, %s: unknown are %q", o, method, u.Unknown)
			}
			if u.Bytes[Reachable] != before.Bytes[Reachable] || before.Bytes[Unreachable] != 0 {
				t.Errorf("%v, %s: %v, before %v", o, method, u.Bytes, before.Bytes)
			}
		}
	}
}
