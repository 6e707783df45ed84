package remotehelper

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"refaudit/internal/remote"
	"refaudit/oid"
)

// fake is a backend that remembers what it was asked.
type fake struct {
	list  remote.Listing
	asked []string
	keeps []string
	rows  []status
	err   error
}

func (f *fake) List(_ context.Context, forPush bool) (*remote.Listing, error) {
	f.asked = append(f.asked, fmt.Sprintf("list %v", forPush))
	return &f.list, f.err
}

func (f *fake) Fetch(_ context.Context, wants []want, o *options, ready func() error) ([]string, error) {
	for _, w := range wants {
		f.asked = append(f.asked, fmt.Sprintf("fetch %.4v %s depth %d", w.id, w.name, o.depth))
	}
	return f.keeps, errors.Join(f.err, ready())
}

func (f *fake) Push(_ context.Context, refspecs []string, o *options) ([]status, error) {
	f.asked = append(f.asked, fmt.Sprintf("push %s %q", strings.Join(refspecs, " "), o.pushOptions))
	return f.rows, f.err
}

// open is a reader whose end does not come until it is closed: git waits for answers.
type open struct {
	io.Reader
	closed chan struct{}
}

func (o open) Read(p []byte) (int, error) {
	n, err := o.Reader.Read(p)
	if err == io.EOF {
		<-o.closed
	}
	return n, err
}

// talk runs a session on what git says, and gives what it hears.
func talk(t *testing.T, f *fake, in string) (string, error) {
	t.Helper()
	o := open{strings.NewReader(in), make(chan struct{})}
	defer close(o.closed)
	var out bytes.Buffer
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	err := (&session{in: newLines(o), out: &out, backend: f}).serve(ctx)
	return out.String(), err
}

func id(digit string) oid.ID { return oid.MustParse(strings.Repeat(digit, 40)) }

var someRefs = remote.Listing{Format: oid.SHA1, Refs: []remote.Ref{
	{Name: "HEAD", OID: id("a"), Symref: "refs/heads/main"},
	{Name: "refs/heads/main", OID: id("a")},
	{Name: "refs/remotes/origin/HEAD", OID: id("b"), Symref: "refs/remotes/origin/gone"},
	{Name: "refs/tags/v1", OID: id("c"), Peel: id("a")},
}}

func TestSession(t *testing.T) {
	a, b, c := id("a").String(), id("b").String(), id("c").String()
	for _, c := range []struct{ name, in, out, asked string }{
		{"capabilities", "capabilities\n\n", "fetch\noption\npush\nobject-format\n\n", ""},
		{"options", "option progress true\noption verbosity 1\noption depth x\noption nonsense 1\noption\n\n", "ok\nok\nerror not a number\nunsupported\nunsupported\n", ""},
		{"list", "list\n\n", "@refs/heads/main HEAD\n" + a + " refs/heads/main\n" + b + " refs/remotes/origin/HEAD\n" + c + " refs/tags/v1\n" + a + " refs/tags/v1^{}\n\n", "list false"},
		{"list for a push", "list for-push\n\n", a + " refs/heads/main\n" + b + " refs/remotes/origin/HEAD\n" + c + " refs/tags/v1\n\n", "list true"},
		{"object format", "option object-format true\nlist\n\n", "ok\n:object-format sha1\n@refs/heads/main HEAD\n" + a + " refs/heads/main\n" + b + " refs/remotes/origin/HEAD\n" + c + " refs/tags/v1\n" + a + " refs/tags/v1^{}\n\n", "list false"},
		{"fetch", "option depth 3\nfetch " + a + " refs/heads/main\nfetch " + c + " refs/tags/v1\n\n\n", "ok\nlock /k.keep\n\n", "fetch aaaa refs/heads/main depth 3, fetch cccc refs/tags/v1 depth 3"},
		{"push", "option push-option \"a \\\"b\\\"\"\npush +refs/heads/a:refs/heads/b\npush :refs/heads/c\n\npush x:y\n\n\n", "ok\nok refs/heads/b\nerror refs/heads/c \"two\\nlines\"\n\nok refs/heads/b\nerror refs/heads/c \"two\\nlines\"\n\n",
			"push +refs/heads/a:refs/heads/b :refs/heads/c [\"a \\\"b\\\"\"], push x:y []"},
	} {
		f := &fake{list: someRefs, keeps: []string{"/k.keep", "/other.keep"}, rows: []status{{ok: true, ref: "refs/heads/b"}, {ref: "refs/heads/c", why: "two\nlines"}}}
		out, err := talk(t, f, c.in)
		if err != nil || out != c.out || strings.Join(f.asked, ", ") != c.asked {
			t.Errorf("%s: %v\n got %q\nwant %q\nasked %s", c.name, err, out, c.out, strings.Join(f.asked, ", "))
		}
	}
}

func TestSessionsThatEndBadly(t *testing.T) {
	a := id("a").String()
	for name, c := range map[string]struct {
		in   string
		err  error
		text string
	}{
		"no command":           {"hello\n", nil, "not a command"},
		"connect":              {"connect git-upload-pack\n", nil, "not a command"},
		"no id":                {"fetch zz refs/heads/x\n\n", nil, "zz"},
		"two kinds in a batch": {"fetch " + a + " x\npush a:b\n\n", nil, "in a batch of fetch"},
		"a long line":          {"option x " + strings.Repeat("y", 2*maxLine), nil, "too long"},
		"a failing fetch":      {"fetch " + a + " x\n\n", errors.New("no network"), "no network"},
		"a failing list":       {"list\n", errors.New("no network"), "no network"},
		"a failing push":       {"push a:b\n\n", errors.New("no network"), "no network"},
	} {
		out, err := talk(t, &fake{err: c.err}, c.in)
		if err == nil || !strings.Contains(err.Error(), c.text) || strings.HasSuffix(out, "\n\n") || out == "\n" {
			t.Errorf("%s: %v, answered %q", name, err, out)
		}
	}
}

// A batch whose end never came is nothing to act on.
func TestGitGoesAwayInABatch(t *testing.T) {
	f := &fake{}
	var out bytes.Buffer
	err := (&session{in: newLines(strings.NewReader("fetch " + id("a").String() + " x\n")), out: &out, backend: f}).serve(context.Background())
	if !errors.Is(err, errGone) || len(f.asked) > 0 || out.Len() > 0 {
		t.Errorf("%v %v %q", err, f.asked, out.String())
	}
}

// waiting is a backend that works until git goes away.
type waiting struct{ fake }

func (w *waiting) Fetch(ctx context.Context, _ []want, _ *options, ready func() error) ([]string, error) {
	<-ctx.Done()
	return []string{"/k.keep"}, ready()
}

func TestGitGoesAwayDuringAFetch(t *testing.T) {
	o := open{strings.NewReader("fetch " + id("a").String() + " x\n\n"), make(chan struct{})}
	var out bytes.Buffer
	time.AfterFunc(50*time.Millisecond, func() { close(o.closed) })
	err := (&session{in: newLines(o), out: &out, backend: &waiting{}}).serve(context.Background())
	if !errors.Is(err, errGone) || out.Len() > 0 {
		t.Errorf("%v %q", err, out.String())
	}
}

func TestASignalEndsTheSession(t *testing.T) {
	o := open{strings.NewReader("capabilities\n"), make(chan struct{})}
	defer close(o.closed)
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("a signal")
	time.AfterFunc(50*time.Millisecond, func() { cancel(why) })
	if err := (&session{in: newLines(o), out: io.Discard, backend: &fake{}}).serve(ctx); !errors.Is(err, why) {
		t.Error(err)
	}
}

// failing takes so many bytes and no more.
type failing int

func (f *failing) Write(p []byte) (int, error) {
	if *f -= failing(len(p)); *f < 0 {
		return 0, io.ErrClosedPipe
	}
	return len(p), nil
}

func TestNobodyHearsTheAnswer(t *testing.T) {
	for in, room := range map[string]failing{"capabilities\n": 0, "list\n": 10, "fetch " + id("a").String() + " x\n\n": 0, "push a:b\n\n": 0} {
		o := open{strings.NewReader(in), make(chan struct{})}
		err := (&session{in: newLines(o), out: &room, backend: &fake{list: someRefs}}).serve(context.Background())
		close(o.closed)
		if !errors.Is(err, errGone) {
			t.Errorf("%q: %v", in, err)
		}
	}
}

func TestOptions(t *testing.T) {
	var o options
	for _, c := range []struct{ name, value, answer string }{
		{"cloning", "true", "ok"}, {"followtags", "true", "ok"}, {"update-shallow", "true", "ok"}, {"refetch", "true", "ok"},
		{"from-promisor", "1", "ok"}, {"no-dependents", "1", "ok"}, {"dry-run", "true", "ok"}, {"atomic", "true", "ok"}, {"force-if-includes", "true", "ok"},
		{"deepen-relative", "true", "ok"}, {"deepen-since", "2 weeks ago", "ok"}, {"deepen-not", "v1", "ok"}, {"deepen-not", `"v 2"`, "ok"},
		{"depth", "-1", "error not a number"}, {"depth", "99999999999", "error not a number"}, {"depth", "2147483647", "ok"},
		{"filter", "blob:none", "ok"}, {"family", "ipv4", "ok"}, {"family", "ipv5", "error takes ipv4 or ipv6"},
		{"pushcert", "if-asked", "ok"}, {"pushcert", "maybe", "error takes true or if-asked"}, {"cas", `"refs/heads/\303\274:1"`, "ok"}, {"push-option", `"a`, "error bad quotes"},
		{"push-option", `"a" b`, "error bad quotes"}, {"filter", `"a\000"`, "error a NUL"},
		{"servpath", "x", "unsupported"}, {"check-connectivity", "true", "unsupported"}, {"force", "true", "unsupported"}, {"", "", "unsupported"},
	} {
		if got := o.set(c.name, c.value); got != c.answer {
			t.Errorf("%s %s: %s", c.name, c.value, got)
		}
	}
	f := o.fetchOptions()
	if f.Depth != 0 || f.Deepen != 2147483647 || f.Filter != "blob:none" || strings.Join(f.ShallowExclude, ",") != "v1,v 2" || !f.UpdateShallow || !f.KeepPack || !f.Refetch || o.leases[0] != "refs/heads/\xc3\xbc:1" {
		t.Errorf("%+v %+v", f, o)
	}
	o.set("depth", "0") // git's way to take it back, before it fetches the tags that follow
	o.set("cloning", "false")
	if f := o.fetchOptions(); f.Deepen != 0 || f.KeepPack {
		t.Errorf("%+v", f)
	}
}

func FuzzSession(f *testing.F) {
	a := id("a").String()
	f.Add("capabilities\noption progress true\nlist\nfetch " + a + " refs/heads/x\n\n\n")
	f.Add("option push-option \"\\303\\274\"\nlist for-push\npush +a:b\npush :c\n\n")
	f.Add("option depth 1\noption cas \"x\n")
	f.Fuzz(func(t *testing.T, in string) {
		var out bytes.Buffer
		b := &fake{list: someRefs, rows: []status{{ok: true, ref: "r"}}}
		err := (&session{in: newLines(strings.NewReader(in)), out: &out, backend: b}).serve(context.Background())
		answers := 0
		for line := range strings.Lines(out.String()) {
			if line == "ok\n" || line == "unsupported\n" || strings.HasPrefix(line, "error ") {
				answers++
			}
		}
		if options := strings.Count("\n"+in, "\noption"); err == nil && answers > options {
			t.Errorf("%d answers to %d options: %q", answers, options, out.String())
		}
	})
}
