package fleet

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"refaudit/internal/gittest"
	"refaudit/internal/refname"
	"refaudit/internal/state"
	"refaudit/internal/vfs"
	"refaudit/repo"
	"refaudit/scan"
)

// guarded is a repository and a guard that remembers it.
type guarded struct {
	*gittest.Repo
	Guard
	t testing.TB
}

func newGuarded(t testing.TB, o gittest.Options) *guarded {
	return &guarded{Repo: gittest.New(t, o), Guard: Guard{Folder: state.New(vfs.OS{}, t.TempDir()), Now: at(noon)}, t: t}
}

func (g *guarded) check() (*Gate, error) {
	g.t.Helper()
	target, err := scan.Open(g.Path, scan.ByPath, repo.Options{Env: repo.EmptyEnv})
	if err != nil {
		g.t.Fatal(err)
	}
	return g.Check(context.Background(), g.Path, target)
}

// expect checks what the guard says: "" for nothing, else a part of its reasons.
func (g *guarded) expect(what, want string) *Gate {
	g.t.Helper()
	gate, err := g.check()
	if err != nil {
		g.t.Fatalf("%s: %v", what, err)
	}
	got := strings.Join(gate.Suspicious, "; ")
	if (got == "") != (want == "") || !strings.Contains(got, want) {
		g.t.Errorf("%s: %q, want %q", what, got, want)
	}
	return gate
}

// update runs commands of git update-ref.
func (g *guarded) update(format string, n int) {
	var in strings.Builder
	for i := range n {
		fmt.Fprintf(&in, format+"\n", i)
	}
	g.GitIn(in.String(), "update-ref", "--stdin")
}

func TestWhatPeopleDeleteIsNoDamage(t *testing.T) {
	for _, o := range gittest.AllFormats {
		t.Run(o.String(), func(t *testing.T) {
			g := newGuarded(t, o)
			g.update("create refs/heads/topic/%d "+g.A, 200)
			g.Git("config", "core.logAllRefUpdates", "always")
			if gate := g.expect("the first time", ""); !gate.First || gate.Refs != 203 {
				t.Errorf("%+v", gate)
			}
			if gate := g.expect("again", ""); gate.First || gate.Refs != 203 || gate.Lost+gate.Added != 0 {
				t.Errorf("%+v", gate)
			}
			g.update("update refs/heads/topic/%d "+g.B, 50)
			g.update("delete refs/heads/topic/%d", 10)
			if gate := g.expect("ten branches", ""); gate.Lost != 10 || gate.Recorded != 203 {
				t.Errorf("%+v", gate)
			}
			g.Git("branch", "-m", "topic/100", "topic/renamed")
			if gate := g.expect("a rename", ""); gate.Lost != 1 || gate.Added != 1 {
				t.Errorf("%+v", gate)
			}
			g.Git("pack-refs", "--all")
			if gate := g.expect("packed", ""); gate.Lost+gate.Added != 0 {
				t.Errorf("%+v", gate)
			}
			g.Git("tag", "-d", "v1")
			g.expect("a tag", "")
			g.Git("symbolic-ref", "HEAD", "refs/heads/topic/150")
			g.Git("update-ref", "-d", "refs/heads/main")
			g.expect("the branch that HEAD was on", "")
		})
	}
}

func TestOneRefIsWordedAsOne(t *testing.T) {
	if got := allGone(1, " of refs/heads"); got != "the only ref of refs/heads is gone" {
		t.Error(got)
	}
	if got := allGone(2, ""); got != "all 2 refs are gone" {
		t.Error(got)
	}
}

func TestWhatIsLostLooksSo(t *testing.T) {
	for _, o := range []gittest.Options{{}, {RefFormat: gittest.Reftable}} {
		for _, c := range []struct {
			name string
			want string
			do   func(g *guarded)
		}{
			{"all", "all 203 refs are gone", func(g *guarded) {
				g.update("delete refs/heads/topic/%d", 200)
				g.Git("update-ref", "-d", "refs/heads/main")
				g.Git("tag", "-d", "v1", "v2")
			}},
			{"many", "21 of 203 refs are gone", func(g *guarded) { g.update("delete refs/heads/topic/%d", 21) }},
			{"half, with work going on", "120 of 203 refs are gone", func(g *guarded) {
				g.update("delete refs/heads/topic/%d", 120)
				g.Git("branch", "new", g.A)
			}},
			{"fewer, with work going on", "", func(g *guarded) {
				g.update("delete refs/heads/topic/%d", 60)
				g.Git("branch", "new", g.A)
			}},
			{"all tags", "all 2 refs of refs/tags are gone", func(g *guarded) { g.Git("tag", "-d", "v1", "v2") }},
			{"HEAD's branch", "the branch of HEAD, refs/heads/main, is gone", func(g *guarded) { g.Git("update-ref", "-d", "refs/heads/main") }},
		} {
			t.Run(o.RefFormat+"/"+c.name, func(t *testing.T) {
				g := newGuarded(t, o)
				g.update("create refs/heads/topic/%d "+g.A, 200)
				g.expect("the first time", "")
				c.do(g)
				gate := g.expect(c.name, c.want)
				if c.want == "" {
					return
				}
				if len(gate.Sample) == 0 || len(gate.Sample) > sampled || gate.Since.IsZero() {
					t.Errorf("%+v", gate)
				}
				g.expect("it is not taken for right by looking again", c.want)
				g.Accept = true
				g.expect("accepted", "")
				g.Accept = false
				g.expect("from then on", "")
			})
		}
	}
}

// A namespace of its own is no less worth than all together.
func TestOneNamespaceIsLost(t *testing.T) {
	g := newGuarded(t, gittest.Options{})
	g.update("create refs/changes/%d "+g.A, 2000)
	g.update("create refs/notes/n%d "+g.A, 40)
	g.expect("the first time", "")
	g.update("delete refs/notes/n%d", 20)
	g.expect("half the notes", "20 of 40 refs below refs/notes/ are gone")
	g.Lost = 20
	g.expect("allowed", "")
	g.Lost = 0
	g.Ignore = []*refname.Glob{refname.NewGlob("refs/changes/*", 0)}
	g.update("delete refs/changes/%d", 2000)
	g.expect("what comes and goes", "")
}

// A line that fell out of packed-refs leaves the reflog behind, which a deletion takes along.
func TestAReflogWithoutItsRef(t *testing.T) {
	g := newGuarded(t, gittest.Options{})
	g.Git("config", "core.logAllRefUpdates", "always")
	g.update("create refs/heads/topic/%d "+g.A, 30)
	g.Git("pack-refs", "--all")
	g.expect("the first time", "")
	g.EditPacked(func(s string) string { return strings.Replace(s, g.A+" refs/heads/topic/7\n", "", 1) })
	if gate := g.expect("a lost line", "the reflog of refs/heads/topic/7 is there"); gate.Lost != 1 {
		t.Errorf("%+v", gate)
	}
}

// An older stack of tables has fewer refs, or the same: its update indexes tell.
func TestAnOlderStack(t *testing.T) {
	g := newGuarded(t, gittest.Options{RefFormat: gittest.Reftable})
	old := t.TempDir()
	copyDir(t, g.File("reftable"), old)
	g.Git("update-ref", "refs/heads/main", g.A)
	g.expect("the first time", "")
	if err := os.RemoveAll(g.File("reftable")); err != nil {
		t.Fatal(err)
	}
	copyDir(t, old, g.File("reftable"))
	g.expect("restored", "an older stack was put in its place")
}

func copyDir(t *testing.T, from, to string) {
	t.Helper()
	os.MkdirAll(to, 0o755)
	list, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		b, err := os.ReadFile(filepath.Join(from, e.Name()))
		if err == nil {
			err = os.WriteFile(filepath.Join(to, e.Name()), b, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// C26: whoever sees no refs in a repository with objects has not looked at it.
func TestObjectsWithoutRefsAreNeverFine(t *testing.T) {
	for _, o := range gittest.AllFormats {
		g := newGuarded(t, o)
		g.Repo = gittest.Init(t, o)
		g.expect("a new repository", "")
		g.WriteObject("blob", []byte("x"))
		g.expect("which had none before", "")
		g.Repo = gittest.Init(t, o)
		g.Folder = state.New(vfs.OS{}, t.TempDir())
		g.WriteObject("blob", []byte("x"))
		g.expect("never seen", "not one ref")
	}
}

func TestWhatCantBeReadIsNotCompared(t *testing.T) {
	for name, do := range map[string]func(g *guarded){
		"cut":    func(g *guarded) { g.WriteFile("refs/heads/main", []byte(g.A[:20])) },
		"zeros":  func(g *guarded) { g.WriteFile("refs/heads/main", []byte(strings.Repeat("0", 40)+"\n")) },
		"packed": func(g *guarded) { g.WriteFile("packed-refs", []byte("\x00\x00\x00")) },
		"a FIFO": func(g *guarded) {
			os.Remove(g.File("refs/heads/main"))
			gittest.Run(g.t, "", nil, "", "mkfifo", g.File("refs/heads/main"))
		},
		"no newline":  func(g *guarded) { g.WriteFile("packed-refs", []byte(g.A+" refs/heads/x\n"+g.A+" refs/heads/y")) },
		"half a line": func(g *guarded) { g.WriteFile("packed-refs", []byte(g.A+" refs/heads/x\n"+g.A[:10])) },
	} {
		g := newGuarded(t, gittest.Options{})
		g.expect(name, "")
		do(g)
		gate, err := g.check()
		u := (*Unreadable)(nil)
		if !errors.As(err, &u) {
			t.Fatalf("%s: %+v %v", name, gate, err)
		}
		for _, why := range u.What {
			if !strings.HasPrefix(why, "packed-refs") && !strings.HasPrefix(why, "refs/heads/main") {
				t.Errorf("%s: no file is named: %s", name, why)
			}
		}
		g.Accept = true
		if _, err := g.check(); err == nil {
			t.Errorf("%s: it can't be accepted unread", name)
		}
	}
	for name, build := range map[string]func(testing.TB, gittest.Options) (*gittest.Repo, []gittest.Want){
		"crc": gittest.TableCrc, "missing": gittest.TableMissing, "empty": gittest.TableListEmpty,
	} {
		g := newGuarded(t, gittest.Options{})
		g.Repo, _ = build(t, gittest.Options{RefFormat: gittest.Reftable})
		gate, err := g.check()
		u := (*Unreadable)(nil)
		if !errors.As(err, &u) {
			t.Fatalf("%s: %+v %v", name, gate, err)
		}
		for _, why := range u.What {
			if !strings.HasPrefix(why, "reftable") {
				t.Errorf("%s: no file is named: %s", name, why)
			}
		}
	}
}

func TestADamagedListIsToldAndCanBeReplaced(t *testing.T) {
	g := newGuarded(t, gittest.Options{})
	g.expect("the first time", "")
	files, err := filepath.Glob(filepath.Join(g.Folder.Dir(), "refs", "*", "*"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	whole, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	for i := range whole {
		bent := bytes.Clone(whole)
		bent[i] ^= 1
		os.WriteFile(files[0], bent, 0o600)
		if _, err := g.check(); err == nil {
			t.Fatalf("byte %d is another, and nobody noticed", i)
		}
	}
	for n := range whole {
		os.WriteFile(files[0], whole[:n], 0o600)
		if _, err := g.check(); err == nil {
			t.Fatalf("cut after %d bytes, and nobody noticed", n)
		}
	}
	g.Accept = true
	g.expect("accepted", "")
	g.Accept = false
	g.expect("again", "")
}

func TestNamesInAnyOrder(t *testing.T) {
	in := []string{"refs/heads/b", "refs/heads/a", "refs/tags/\xff", "refs/heads/a", "refs/heads/ab", "worktrees/a-b/HEAD", "worktrees/a/HEAD"}
	var n Names
	for _, s := range in {
		n.Add([]byte(s))
	}
	n.Sort()
	want := "refs/heads/a refs/heads/ab refs/heads/b refs/tags/\xff worktrees/a-b/HEAD worktrees/a/HEAD"
	var got []string
	for i := range n.Len() {
		got = append(got, string(n.Get(i)))
	}
	if strings.Join(got, " ") != want {
		t.Errorf("%q", got)
	}
	for _, s := range in {
		if !n.has([]byte(s)) {
			t.Errorf("%q is not there", s)
		}
	}
	if n.has([]byte("refs/heads/aa")) || n.has(nil) || (&Names{}).has([]byte("x")) {
		t.Error("what is not there is")
	}
	var file bytes.Buffer
	if err := writeRefs(&file, &n, &Facts{Repo: "/a", Refs: n.Len()}); err != nil {
		t.Fatal(err)
	}
	old, err := openRefs(bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil {
		t.Fatal(err)
	}
	got = nil
	for {
		name, more, err := old.next()
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			break
		}
		got = append(got, string(name))
	}
	if strings.Join(got, " ") != want || old.Repo != "/a" {
		t.Errorf("%q", got)
	}
}

func FuzzRefs(f *testing.F) {
	var n Names
	for _, s := range []string{"refs/heads/a", "refs/heads/ab", "refs/tags/v1"} {
		n.Add([]byte(s))
	}
	n.Sort()
	var b bytes.Buffer
	if err := writeRefs(&b, &n, &Facts{}); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes()[:b.Len()-refsTail])
	f.Add([]byte(refsHead + "\x00\x05refs/\xff\xff\xff\xff\xff\xff\xff\xff\x7f\x01a"))
	f.Fuzz(func(_ *testing.T, body []byte) {
		r := bytes.NewReader(sealed(body))
		old, err := openRefs(r, r.Size())
		for more := err == nil; more; {
			_, more, err = old.next()
			more = more && err == nil
		}
	})
}

// sealed gives a body the tail that it needs to be believed.
func sealed(body []byte) []byte {
	facts := []byte("{}")
	b := append(bytes.Clone(body), facts...)
	b = append(b, byte(len(facts)), 0, 0, 0)
	sum := sha256.Sum256(b)
	return append(b, sum[:]...)
}

func BenchmarkGuard(b *testing.B) {
	g := newGuarded(b, gittest.Options{})
	var packed strings.Builder
	packed.WriteString("# pack-refs with: peeled fully-peeled sorted \n")
	for i := range 100000 {
		fmt.Fprintf(&packed, "%s refs/heads/topic/%06d\n", g.A, i)
	}
	g.Git("pack-refs", "--all")
	g.WriteFile("packed-refs", []byte(packed.String()))
	for b.Loop() {
		if _, err := g.check(); err != nil {
			b.Fatal(err)
		}
	}
}
