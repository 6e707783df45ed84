package peel

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"refaudit/finding"
	"refaudit/oid"
)

var rewrite = flag.Bool("rewrite", false, "write what the cases give now into their files")

// store is an object database in memory. It counts how often each object is asked for.
type store struct {
	facts map[oid.ID]oid.Fact
	asked map[oid.ID]int
	names map[oid.ID]string
}

func (s *store) Look(_ context.Context, ids []oid.ID, out []oid.Fact) error {
	for i, id := range ids {
		s.asked[id]++
		f, ok := s.facts[id]
		if !ok {
			f.State = oid.Absent
		}
		out[i] = f
	}
	return nil
}

// named gives a name of a case an id; NAME~N is the id of NAME with its first N hex digits changed.
func (s *store) named(f oid.Format, name string) oid.ID {
	base, flips, _ := strings.Cut(name, "~")
	id := f.Object("case", []byte(base))
	n, _ := strconv.Atoi(flips)
	for i := range n {
		id.Bytes()[i/2] ^= 0x10 >> (4 * (i % 2))
	}
	s.names[id] = name
	return id
}

func newStore() *store {
	return &store{facts: map[oid.ID]oid.Fact{}, asked: map[oid.ID]int{}, names: map[oid.ID]string{}}
}

// add reads a line of an `objects` section: NAME commit|tree|blob, NAME tag TARGET CLAIMS,
// NAME damaged [KIND], NAME denied, NAME elsewhere.
func (s *store) add(t *testing.T, f oid.Format, line string) {
	w := strings.Fields(line)
	fact := oid.Fact{State: oid.Present}
	switch w[1] {
	case "damaged":
		fact = oid.Fact{State: oid.Unreadable, Err: &finding.Corrupt{ID: finding.TagUnreadable, Err: errors.New("damaged")}}
		if len(w) > 2 {
			fact.Kind, _ = oid.ParseKind([]byte(w[2]))
		}
	case "elsewhere":
		fact = oid.Fact{State: oid.Elsewhere, Err: errors.New("promised")}
	case "denied":
		fact = oid.Fact{State: oid.Unreadable, Err: fs.ErrPermission}
	case "tag":
		fact.Kind, fact.Target = oid.Tag, s.named(f, w[2])
		fact.Claims, _ = oid.ParseKind([]byte(w[3]))
	default:
		k, ok := oid.ParseKind([]byte(w[1]))
		if !ok {
			t.Fatalf("case line %q", line)
		}
		fact.Kind = k
	}
	s.facts[s.named(f, w[0])] = fact
}

// ask reads a line of a `check` section: NAME ^CACHED|- [none|jgit|all], and says what is wrong.
func (s *store) ask(t *testing.T, f oid.Format, j *Judge, line string) string {
	w := strings.Fields(line)
	var cached oid.ID
	if w[1] != "-" {
		cached = s.named(f, w[1][1:])
	}
	promise := AllReaders
	if len(w) > 2 {
		promise = map[string]Promise{"none": NoPromise, "jgit": JGitReads, "all": AllReaders}[w[2]]
	}
	hs, err := j.Learn(context.Background(), []oid.ID{s.named(f, w[0])}, nil)
	if err != nil {
		t.Fatal(err)
	}
	v := j.Verdict(hs[0])
	wrong := j.Cached(hs[0], &v, cached, promise)
	if v.State == Sound && promise == AllReaders {
		var raw []byte
		if cached != (oid.ID{}) {
			raw = cached.Bytes()
		}
		if j.Right(hs[0], raw) != (wrong.ID == "") {
			t.Errorf("%s: Right and Cached disagree", line)
		}
	}
	out := []string{fmt.Sprintf("%s:", w[0])}
	if v.State == Corrupt {
		out = append(out, string(v.CorruptTag()), "("+v.Fault.String()+")")
	}
	if wrong.ID == "" {
		out = append(out, "ok")
	} else {
		out = append(out, fmt.Sprintf("%s %v", wrong.ID, wrong.Severity))
		if wrong.Expected != (oid.ID{}) {
			out = append(out, "want="+wrong.Expected.String())
		}
		if wrong.Cause != "" {
			out = append(out, "cause="+string(wrong.Cause))
		}
		out = append(out, "("+wrong.Message+")")
	}
	text := strings.Join(out, " ")
	for id, name := range s.names {
		text = strings.ReplaceAll(text, id.String(), name)
	}
	return text
}

// Each file is one story: objects, what may be elsewhere, refs with cached peels, and what the rules say.
func TestCases(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.txt")
	if len(files) == 0 {
		t.Fatal("no cases")
	}
	for _, file := range files {
		for _, f := range []oid.Format{oid.SHA1, oid.SHA256} {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s := newStore()
			j := NewJudge(s)
			var given, want, got []string
			section := ""
			for _, line := range strings.Split(strings.TrimRight(string(text), "\n"), "\n") {
				if section == "want" {
					want = append(want, line)
					continue
				}
				given = append(given, line)
				switch word, rest, _ := strings.Cut(line, " "); {
				case line == "" || line[0] == '#':
				case word == "elsewhere":
					j.AbsenceUnknown = rest
				case line == "objects" || line == "check":
					section = line
				case line == "----":
					if section == "check" {
						section = "want"
					}
				case section == "objects":
					s.add(t, f, line)
				case section == "check":
					got = append(got, s.ask(t, f, j, line))
				}
			}
			for id, n := range s.asked {
				if n > 1 {
					t.Errorf("%s: %s was looked at %d times", file, s.names[id], n)
				}
			}
			if *rewrite {
				os.WriteFile(file, []byte(strings.Join(append(given, got...), "\n")+"\n"), 0o644)
			} else if strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Errorf("%s, %v:\n got:\n%s\nwant:\n%s", file, f, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}
	}
}

func TestAChainTenThousandDeep(t *testing.T) {
	s := newStore()
	id := func(i int) oid.ID { return oid.SHA1.Object("tag", []byte(fmt.Sprint(i))) }
	s.facts[id(0)] = oid.Fact{State: oid.Present, Kind: oid.Commit}
	claims := oid.Commit
	for i := 1; i <= 10_000; i++ {
		s.facts[id(i)] = oid.Fact{State: oid.Present, Kind: oid.Tag, Target: id(i - 1), Claims: claims}
		claims = oid.Tag
	}
	j := NewJudge(s)
	hs, err := j.Learn(context.Background(), []oid.ID{id(10_000), id(5_000)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, h := range hs {
		if v := j.Verdict(h); v.State != Sound || v.Peel != id(0) {
			t.Errorf("%+v", v)
		}
		if d := j.Depth(h, 20_000); d != []int{10_000, 5_000}[i] || j.Depth(h, 10) != 10 {
			t.Errorf("depth %d", d)
		}
	}
}

// Objects that lie about their ids could make a circle; a real hash can't.
func TestACircleOfTagsEnds(t *testing.T) {
	s := newStore()
	a, b := s.named(oid.SHA1, "a"), s.named(oid.SHA1, "b")
	s.facts[a] = oid.Fact{State: oid.Present, Kind: oid.Tag, Target: b, Claims: oid.Tag}
	s.facts[b] = oid.Fact{State: oid.Present, Kind: oid.Tag, Target: a, Claims: oid.Tag}
	j := NewJudge(s)
	hs, err := j.Learn(context.Background(), []oid.ID{a, b}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range hs {
		if v := j.Verdict(h); v.State != Corrupt || v.CorruptTag() != finding.TagUnreadable {
			t.Errorf("%+v", v)
		}
	}
}

func TestReplacementsAreTheCause(t *testing.T) {
	s := newStore()
	for _, line := range []string{"c1 commit", "c2 commit", "t1 tag c1 commit", "t2 tag c2 commit", "n tag t1 tag"} {
		s.add(t, oid.SHA1, line)
	}
	id := func(name string) oid.ID { return s.named(oid.SHA1, name) }
	r := Replacements{id("t1"): id("t2")}
	for _, c := range []struct {
		from, cached string
		r            Replacements
		want         bool
	}{
		{"t1", "c2", r, true}, {"n", "c2", r, true}, {"t1", "c1", r, false}, {"t1", "c2", nil, false},
		{"t2", "c2", r, false}, // right without any replacement
		{"t1", "c2", Replacements{id("t1"): id("t2"), id("t2"): id("t1")}, false},
		{"t1", "c2", Replacements{id("t1"): id("t2"), id("c2"): id("c1")}, true}, // the commit keeps its name
		{"t1", "c1", Replacements{id("t1"): id("t2"), id("c2"): id("c1")}, false},
	} {
		got, err := NewJudge(s).ThroughReplacements(context.Background(), id(c.from), id(c.cached), c.r)
		if err != nil || got != c.want {
			t.Errorf("%s cached %s: %v %v", c.from, c.cached, got, err)
		}
	}
}

// A second look asks for nothing that was there, and afresh for all else.
func TestAgainAsksForWhatMayHaveChanged(t *testing.T) {
	s := newStore()
	for _, line := range []string{"c1 commit", "t1 tag c1 commit", "t2 tag gone commit", "d1 damaged tag", "p1 denied"} {
		s.add(t, oid.SHA1, line)
	}
	var ids []oid.ID
	for _, name := range []string{"t1", "t2", "d1", "p1"} {
		ids = append(ids, s.named(oid.SHA1, name))
	}
	first := NewJudge(s)
	if _, err := first.Learn(context.Background(), ids, nil); err != nil {
		t.Fatal(err)
	}
	clear(s.asked)
	for _, line := range []string{"gone commit", "d1 tag c1 commit", "p1 commit"} { // a repack had moved them
		s.add(t, oid.SHA1, line)
	}
	again := first.Again(s)
	hs, err := again.Learn(context.Background(), ids, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []State{Sound, Sound, Sound, NotTag} {
		if v := again.Verdict(hs[i]); v.State != want {
			t.Errorf("%s: %+v", s.names[ids[i]], v)
		}
	}
	var asked []string
	for id := range s.asked {
		asked = append(asked, s.names[id])
	}
	slices.Sort(asked)
	if got := strings.Join(asked, " "); got != "d1 gone p1" {
		t.Errorf("asked for %s", got)
	}
}

func TestAStoppedLearnForgets(t *testing.T) {
	s := newStore()
	s.add(t, oid.SHA1, "c1 commit")
	j := NewJudge(failing{})
	id := s.named(oid.SHA1, "c1")
	if _, err := j.Learn(context.Background(), []oid.ID{id}, nil); err == nil {
		t.Fatal("no error")
	}
	j.objects = s
	hs, err := j.Learn(context.Background(), []oid.ID{id}, nil)
	if err != nil || j.Verdict(hs[0]).State != NotTag {
		t.Errorf("%v %+v", err, j.Verdict(hs[0]))
	}
}

type failing struct{}

func (failing) Look(context.Context, []oid.ID, []oid.Fact) error { return errors.New("disk") }

// A hundred thousand refs on as many objects, half of them tags: what the rules cost beside the objects.
func BenchmarkLearnAndCompare(b *testing.B) {
	s := newStore()
	var ids []oid.ID
	for i := range 50_000 {
		c, t := oid.SHA1.Object("commit", []byte(fmt.Sprint(i))), oid.SHA1.Object("tag", []byte(fmt.Sprint(i)))
		s.facts[c] = oid.Fact{State: oid.Present, Kind: oid.Commit}
		s.facts[t] = oid.Fact{State: oid.Present, Kind: oid.Tag, Target: c, Claims: oid.Commit}
		ids = append(ids, c, t)
	}
	still := &answered{facts: s.facts}
	for b.Loop() {
		j := NewJudge(still)
		hs, err := j.Learn(context.Background(), ids, nil)
		if err != nil {
			b.Fatal(err)
		}
		for i, h := range hs {
			if i%2 == 1 && !j.Right(h, ids[i-1].Bytes()) {
				b.Fatal("wrong")
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100_000, "ns/ref")
}

type answered struct{ facts map[oid.ID]oid.Fact }

func (a *answered) Look(_ context.Context, ids []oid.ID, out []oid.Fact) error {
	for i := range ids {
		out[i] = a.facts[ids[i]]
	}
	return nil
}
