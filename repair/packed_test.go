package repair

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"refaudit/finding"
	"refaudit/internal/journal"
	"refaudit/internal/lockfile"
	"refaudit/oid"
)

var ctx = context.Background()

// Each file as it is, and as fix has to make it; "" where it is refused.
var packedCases = []struct {
	name, before, after string
}{
	{"a wrong peel", fullHeader + "c1 refs/heads/main\nt1 refs/tags/v1\n^c2\nt2 refs/tags/v2\n^c2\n", fullHeader + "c1 refs/heads/main\nt1 refs/tags/v1\n^c1\nt2 refs/tags/v2\n^c2\n"},
	{"a peel of a corrupt tag", fullHeader + "bad refs/tags/bad\n^blob\n", fullHeader + "bad refs/tags/bad\n"},
	{"a peel under a branch", fullHeader + "c2 refs/heads/main\n^c1\nt1 refs/tags/v1\n^c1\n", fullHeader + "c2 refs/heads/main\nt1 refs/tags/v1\n^c1\n"},
	{"missing peels", fullHeader + "t1 refs/tags/v1\nt2 refs/tags/v2\n", fullHeader + "t1 refs/tags/v1\n^c1\nt2 refs/tags/v2\n^c2\n"},
	{"two peels, the true one second", fullHeader + "t1 refs/tags/v1\n^c2\n^c1\n", fullHeader + "t1 refs/tags/v1\n^c1\n"},
	{"two peels, the true one first", fullHeader + "t1 refs/tags/v1\n^c1\n^c2\n", fullHeader + "t1 refs/tags/v1\n^c1\n"},
	{"two peels under a branch", fullHeader + "c2 refs/heads/main\n^c2\n^c1\n", fullHeader + "c2 refs/heads/main\n"},
	{"an orphan under the header", fullHeader + "^c1\nc1 refs/heads/main\n", fullHeader + "c1 refs/heads/main\n"},
	{"an orphan, and disorder below", fullHeader + "^c1\nt1 refs/tags/v1\n^c1\nc1 refs/heads/main\n", fullHeader + "c1 refs/heads/main\nt1 refs/tags/v1\n^c1\n"},
	{"disorder under a promise", fullHeader + "t2 refs/tags/v2\n^c2\nc1 refs/heads/main\nt1 refs/tags/v1\n^c2\n", fullHeader + "c1 refs/heads/main\nt1 refs/tags/v1\n^c1\nt2 refs/tags/v2\n^c2\n"},
	{"a last peel without newline", fullHeader + "t1 refs/tags/v1\n^c1", fullHeader + "t1 refs/tags/v1\n^c1\n"},
	{"a last peel without newline, and wrong", fullHeader + "t1 refs/tags/v1\n^c2", fullHeader + "t1 refs/tags/v1\n^c1\n"},
	{"a last tag without newline and peel", fullHeader + "t1 refs/tags/v1", fullHeader + "t1 refs/tags/v1\n^c1\n"},
	{"a cut id", fullHeader + "t1 refs/tags/v1\n!1234567", ""},
	{"equal twins", fullHeader + "c1 refs/heads/main\nt1 refs/tags/v1\n^c1\nt1 refs/tags/v1\n^c1\n", fullHeader + "c1 refs/heads/main\nt1 refs/tags/v1\n^c1\n"},
	{"equal twins with other peels", fullHeader + "t1 refs/tags/v1\n^c2\nt1 refs/tags/v1\n^c1\nt2 refs/tags/v2\n^c2\n", fullHeader + "t1 refs/tags/v1\n^c1\nt2 refs/tags/v2\n^c2\n"},
	{"equal twins far apart", fullHeader + "t1 refs/tags/v1\n^c2\nt2 refs/tags/v2\n^c2\nt1 refs/tags/v1\n", fullHeader + "t1 refs/tags/v1\n^c1\nt2 refs/tags/v2\n^c2\n"},
	{"differing twins", fullHeader + "c1 refs/heads/main\nc2 refs/heads/main\nt1 refs/tags/v1\n^c2\n", ""},
	{"zeros", fullHeader + "c1 refs/heads/ma\x00in\nt1 refs/tags/v1\n^c2\n", ""},
	{"a web page", fullHeader + "c1 refs/heads/main\n!</script>\n", ""},
	{"a header of another kind", "# made by hand\nc1 refs/heads/main\nt1 refs/tags/v1\n", fullHeader + "c1 refs/heads/main\nt1 refs/tags/v1\n^c1\n"},
	{"no header, and a wrong peel", "c1 refs/heads/main\nt2 refs/tags/v2\n^c1\nt1 refs/tags/v1\n", fullHeader + "c1 refs/heads/main\nt1 refs/tags/v1\n^c1\nt2 refs/tags/v2\n^c2\n"},
	{"no header, and nothing else", "c1 refs/heads/main\nt1 refs/tags/v1\n", fullHeader + "c1 refs/heads/main\nt1 refs/tags/v1\n^c1\n"},
	{"JGit's header, true", "# pack-refs with: peeled \nt1 refs/other/x\nt1 refs/tags/v1\n^c2\n", "# pack-refs with: peeled \nt1 refs/other/x\n^c1\nt1 refs/tags/v1\n^c1\n"},
	{"a dangling tag", fullHeader + "dangling refs/tags/d\n^gone\n", fullHeader + "dangling refs/tags/d\n"},
	{"an absent object", fullHeader + "gone refs/heads/gone\n^c1\nt1 refs/tags/v1\n^c2\n", fullHeader + "gone refs/heads/gone\n^c1\nt1 refs/tags/v1\n^c1\n"},
	{"a peel that can't be read", fullHeader + "t1 refs/tags/v1\n!^xyz\nt2 refs/tags/v2\n^c2\n", fullHeader + "t1 refs/tags/v1\n^c1\nt2 refs/tags/v2\n^c2\n"},
	{"empty", "", ""},
}

func TestPackedRefsAreMended(t *testing.T) { mendAll(t) }

// A file that is too large for the memory is read piecewise.
func TestLargePackedRefsAreMended(t *testing.T) {
	defer func(n int64) { maxHeld = n }(maxHeld)
	maxHeld = 10
	mendAll(t)
}

func mendAll(t *testing.T) {
	for _, format := range formats {
		for _, c := range packedCases {
			t.Run(format.String()+"/"+c.name, func(t *testing.T) {
				w := newWorld(t, format)
				p := w.putPacked(c.before)
				before := w.get("/r/packed-refs")
				wanted := w.wantAll()
				plan, perr := p.Plan(ctx, wanted, Whole, Brake{Tags: 3})
				if w.get("/r/packed-refs") != before {
					t.Fatal("the plan wrote")
				}
				out, err := p.Fix(ctx, wanted, Whole, Brake{Tags: 3})
				if c.after == "" {
					if !errors.Is(err, ErrRefused) || !errors.Is(perr, ErrRefused) || w.get("/r/packed-refs") != before || out.Journal != "" {
						t.Errorf("not refused: %v, %v\n%s", err, perr, w.get("/r/packed-refs"))
					}
					return
				}
				if err != nil || perr != nil {
					t.Fatal(err, perr)
				}
				after := w.get("/r/packed-refs")
				if after != w.expand(c.after) {
					t.Errorf("got\n%swant\n%s", after, w.expand(c.after))
				}
				if got := patch(t, before, plan.Diff); got != after {
					t.Errorf("the diff leads to\n%s\n%s", got, plan.Diff)
				}
				if len(plan.Changes) != len(out.Changes) || len(out.Changes) == 0 {
					t.Errorf("planned %+v, done %+v", plan.Changes, out.Changes)
				}
				if names := w.f.Names("/r"); !slices.Equal(names, []string{"packed-refs"}) {
					t.Errorf("left %v", names)
				}
				e, state, err := w.repo.Journal.Load(out.Journal)
				if err != nil || state != journal.Done {
					t.Fatal(state, err)
				}
				if back, err := e.Rebuild([]byte(after)); err != nil || string(back) != before {
					t.Errorf("the journal leads back to %q, %v", back, err)
				}
				again, err := p.Fix(ctx, w.wantAll(), Whole, Brake{Tags: 3})
				if err != nil || len(again.Changes) > 0 || again.Journal != "" {
					t.Errorf("a second time: %+v %v", again.Changes, err)
				}
			})
		}
	}
}

// patch applies a unified diff, strictly.
func patch(t testing.TB, before, diff string) string {
	t.Helper()
	old, out := strings.SplitAfter(before, "\n"), []string{}
	if old[len(old)-1] == "" {
		old = old[:len(old)-1]
	}
	lines, at := strings.SplitAfter(diff, "\n"), 0
	take := func(text string) {
		if at >= len(old) || old[at] != text {
			t.Fatalf("line %d of the file is not %q\n%s", at+1, text, diff)
		}
		at++
	}
	for i := 0; i < len(lines)-1; i++ {
		l := lines[i]
		text := l[1:]
		if i+1 < len(lines) && strings.HasPrefix(lines[i+1], "\\ No newline") {
			text = strings.TrimSuffix(text, "\n")
		}
		switch {
		case i < 2, l[0] == '\\':
		case l[0] == '@':
			from := 0
			for _, d := range strings.TrimPrefix(strings.Fields(l)[1], "-") {
				if d == ',' {
					break
				}
				from = from*10 + int(d-'0')
			}
			if !strings.Contains(strings.Fields(l)[1], ",0") {
				from--
			}
			for at < from {
				out = append(out, old[at])
				at++
			}
		case l[0] == ' ':
			take(text)
			out = append(out, text)
		case l[0] == '-':
			take(text)
		case l[0] == '+':
			out = append(out, text)
		}
	}
	return strings.Join(append(out, old[at:]...), "")
}

func TestWhatHasChangedSinceIsLeft(t *testing.T) {
	w := newWorld(t, oid.SHA1)
	p := w.putPacked(fullHeader + "t1 refs/tags/v1\n^c3\nt2 refs/tags/v2\n^c1\nt4 refs/tags/v4\n^c4\n")
	out, err := p.Fix(ctx, []Wanted{
		w.want("refs/tags/v1", "t1", "c2"), // its peel is another by now
		w.want("refs/tags/v2", "t2", "c1"),
		w.want("refs/tags/v3", "t3", "c1"), // gone
		w.want("refs/tags/v4", "t4", "c4"), // right by now
	}, Whole, Brake{Tags: 4})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := w.get("/r/packed-refs"), w.expand(fullHeader+"t1 refs/tags/v1\n^c3\nt2 refs/tags/v2\n^c2\nt4 refs/tags/v4\n^c4\n"); got != want {
		t.Errorf("got\n%s", got)
	}
	if len(out.Left) != 2 || out.Left[0].Ref != "refs/tags/v1" || out.Left[1].Ref != "refs/tags/v3" {
		t.Errorf("%+v", out.Left)
	}
}

// The object may have come back, or be known better, by the time the lock is held.
func TestObjectsAreLookedAtUnderTheLock(t *testing.T) {
	w := newWorld(t, oid.SHA1)
	p := w.putPacked(fullHeader + "dangling refs/tags/d\n^gone\n")
	before := w.get("/r/packed-refs")
	w.repo.Step = func(step string) {
		if step == "lock" {
			w.objects.facts[w.id("gone")] = oid.Fact{State: oid.Present, Kind: oid.Commit}
		}
	}
	out, err := p.Fix(ctx, []Wanted{w.want("refs/tags/d", "dangling", "gone")}, Whole, Brake{Tags: 1})
	if err != nil || len(out.Changes) > 0 || w.get("/r/packed-refs") != before {
		t.Errorf("%+v %v", out, err)
	}
	w = newWorld(t, oid.SHA1)
	w.objects.absence = "a partial clone"
	p = w.putPacked(fullHeader + "dangling refs/tags/d\n^gone\nt1 refs/tags/v1\n^c2\n")
	out, err = p.Fix(ctx, []Wanted{w.want("refs/tags/d", "dangling", "gone"), w.want("refs/tags/v1", "t1", "c2")}, Whole, Brake{Tags: 2})
	if got := w.get("/r/packed-refs"); err != nil || got != w.expand(fullHeader+"dangling refs/tags/d\n^gone\nt1 refs/tags/v1\n^c1\n") || len(out.Left) != 1 {
		t.Errorf("%+v %v\n%s", out, err, got)
	}
}

// Between the plan and the lock another packs refs: nothing of that may be lost.
func TestTheFileIsReadUnderTheLock(t *testing.T) {
	w := newWorld(t, oid.SHA1)
	p := w.putPacked(fullHeader + "c1 refs/heads/x\nt1 refs/tags/v1\n^c2\n")
	wanted := w.wantAll()
	w.repo.Step = func(step string) {
		if step == "lock" {
			w.putPacked(fullHeader + "c3 refs/heads/x\nc4 refs/heads/y\nt1 refs/tags/v1\n^c2\n")
		}
	}
	if _, err := p.Fix(ctx, wanted, Whole, Brake{Tags: 1}); err != nil {
		t.Fatal(err)
	}
	if got := w.get("/r/packed-refs"); got != w.expand(fullHeader+"c3 refs/heads/x\nc4 refs/heads/y\nt1 refs/tags/v1\n^c1\n") {
		t.Errorf("got\n%s", got)
	}
}

func TestAHeldLockOfPackedRefs(t *testing.T) {
	w := newWorld(t, oid.SHA1)
	p := w.putPacked(fullHeader + "t1 refs/tags/v1\n^c2\n")
	before := w.get("/r/packed-refs")
	w.f.Put("/r/packed-refs.lock", nil)
	if _, err := p.Fix(ctx, w.wantAll(), Whole, Brake{Tags: 1}); !errors.Is(err, lockfile.ErrHeld) || w.get("/r/packed-refs") != before {
		t.Errorf("%v", err)
	}
}

func TestALinkedPackedRefs(t *testing.T) {
	w := newWorld(t, oid.SHA1)
	w.f.Put("/store/pr", []byte(w.expand(fullHeader+"t1 refs/tags/v1\n^c2\n")))
	w.f.PutLink("/r/packed-refs", "../store/pr")
	w.f.Put("/store/pr.lock", nil)
	wanted := []Wanted{w.want("refs/tags/v1", "t1", "c2")}
	if _, err := w.packed().Fix(ctx, wanted, Whole, Brake{Tags: 1}); !errors.Is(err, lockfile.ErrHeld) {
		t.Fatalf("%v", err)
	}
	w.f.Remove("/store/pr.lock")
	w.f.Put("/r/packed-refs.lock", nil) // stops nobody
	if _, err := w.packed().Fix(ctx, wanted, Whole, Brake{Tags: 1}); err != nil {
		t.Fatal(err)
	}
	if got := w.get("/store/pr"); got != w.expand(fullHeader+"t1 refs/tags/v1\n^c1\n") {
		t.Error(got)
	}
	if to, err := w.f.Readlink("/r/packed-refs"); err != nil || to != "../store/pr" {
		t.Errorf("%q %v", to, err)
	}
	if names := w.f.Names("/store"); !slices.Equal(names, []string{"pr"}) {
		t.Errorf("left %v", names)
	}
}

func TestALinkToSomebodyElsesFile(t *testing.T) {
	for _, where := range []string{"/store/pr", "/store"} {
		w := newWorld(t, oid.SHA1)
		w.f.Put("/store/pr", []byte(w.expand(fullHeader+"t1 refs/tags/v1\n^c2\n")))
		w.f.PutLink("/r/packed-refs", "../store/pr")
		w.f.Own(where, 4242)
		if _, err := w.packed().Fix(ctx, []Wanted{w.want("refs/tags/v1", "t1", "c2")}, Whole, Brake{Tags: 1}); !errors.Is(err, ErrRefused) {
			t.Errorf("%s belongs to another: %v", where, err)
		}
		if names := w.f.Names("/store"); !slices.Equal(names, []string{"pr"}) {
			t.Errorf("left %v", names)
		}
	}
}

func TestTheNewFileIsAnotherAndLater(t *testing.T) {
	w := newWorld(t, oid.SHA1)
	p := w.putPacked(fullHeader + "t1 refs/tags/v1\n^c2\n")
	st, _ := w.f.Stat("/r/packed-refs")
	future := st.ModTime.Add(1e12)
	w.f.Chtimes("/r/packed-refs", future)
	if _, err := p.Fix(ctx, w.wantAll(), Whole, Brake{Tags: 1}); err != nil {
		t.Fatal(err)
	}
	now, _ := w.f.Stat("/r/packed-refs")
	if now.ID == st.ID || !now.ModTime.After(future) {
		t.Errorf("%+v after %+v", now, st)
	}
}

func TestTheBrake(t *testing.T) {
	w := newWorld(t, oid.SHA1)
	var text strings.Builder
	text.WriteString(fullHeader)
	for i := range 20 {
		text.WriteString("dangling refs/tags/d" + string(rune('a'+i)) + "\n^gone\n")
	}
	p := w.putPacked(text.String())
	before := w.get("/r/packed-refs")
	if _, err := p.Fix(ctx, w.wantAll(), Whole, Brake{Tags: 20}); !errors.Is(err, ErrRefused) || w.get("/r/packed-refs") != before {
		t.Errorf("%v", err)
	}
	if _, err := p.Fix(ctx, w.wantAll(), Whole, Brake{Tags: 20, Max: 19}); !errors.Is(err, ErrRefused) {
		t.Errorf("%v", err)
	}
	if out, err := p.Fix(ctx, w.wantAll(), Whole, Brake{Tags: 20, Max: 20}); err != nil || len(out.Changes) != 20 {
		t.Errorf("%v", err)
	}
	for _, b := range []struct {
		tags   int64
		absent int
		stop   bool
	}{{100, 10, false}, {100, 11, true}, {1100, 11, false}, {1099, 11, true}, {0, 11, true}} {
		if err := (Brake{Tags: b.tags}).check(b.absent, b.absent); (err != nil) != b.stop {
			t.Errorf("%+v: %v", b, err)
		}
	}
}

// A flipped bit in the header of a pack entry makes a commit of a tag. Its peel stays: what it is can't be known.
func TestAPeelStaysWhereTheKindIsNotCertain(t *testing.T) {
	for _, format := range formats {
		w := newWorld(t, format)
		w.objects.misread = map[oid.ID]bool{w.id("t1"): true}
		w.objects.facts[w.id("t1")] = oid.Fact{State: oid.Present, Kind: oid.Commit}
		w.putPacked("# a comment\nc1 refs/heads/main\n^c2\nt1 refs/tags/v1\n^c1\nt2 refs/tags/v2\n^c1\n")
		out, err := w.packed().Fix(ctx, nil, Whole, Brake{Tags: 3})
		if err != nil || len(out.Left) != 1 || out.Left[0].Ref != "refs/tags/v1" || out.Changes[0].ID != finding.PeelUnexpected {
			t.Fatalf("%+v %v", out, err)
		}
		if got, want := w.get("/r/packed-refs"), w.expand("c1 refs/heads/main\nt1 refs/tags/v1\n^c1\nt2 refs/tags/v2\n^c2\n"); !strings.HasSuffix(got, "\n"+want) {
			t.Errorf("became\n%s", got)
		}

		w.putTable(1, "c1 refs/heads/main c2", "t1 refs/tags/v1 c1", "t2 refs/tags/v2 c1")
		if _, err := w.stack().Compact(ctx, Selection{}, Brake{Tags: 3}); err != nil {
			t.Fatal(err)
		}
		w.serves("refs/heads/main c1", "refs/tags/v1 t1 c1", "refs/tags/v2 t2 c2")
	}
}
