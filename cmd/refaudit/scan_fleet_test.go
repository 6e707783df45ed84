package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"refaudit/finding"
	"refaudit/internal/gittest"
	"refaudit/internal/logging"
	"refaudit/internal/state"
	"refaudit/internal/vfs"
	"refaudit/reports"
	"refaudit/scan"
)

// later runs a command as if so much time had passed since the test began.
func later(t testing.TB, passed time.Duration, args ...string) ran {
	t.Helper()
	var out, errs bytes.Buffer
	e := env{stdin: strings.NewReader(""), stdout: &out, stderr: &errs, log: logging.Discard(), dir: t.TempDir(),
		now:    func() time.Time { return time.Now().Add(passed) },
		getenv: func(string) (string, bool) { return "", false }}
	code := run(context.Background(), e, append([]string{"refaudit"}, args...))
	return ran{out.String(), errs.String(), code}
}

// summary is the last line of a run in JSON.
func (r ran) summary(t testing.TB) map[string]any {
	t.Helper()
	return r.of(t, "summary")[0]
}

func TestWhatHasNotChangedIsPassedOver(t *testing.T) {
	dir := t.TempDir()
	r, _ := gittest.Clean(t, gittest.Options{})
	r.Git("pack-refs", "--all")
	scan := func(passed time.Duration, more ...string) (unchanged bool, out ran) {
		t.Helper()
		out = later(t, passed, append([]string{"scan", "--format=jsonl", "--state", dir, "--max-age=24h", r.Path}, more...)...)
		s := out.summary(t)
		if s["refs"] != float64(8) {
			t.Errorf("the summary is not that of the audit: %v", s)
		}
		_, was := out.of(t, "repository")[0]["unchanged_since"]
		if was != (s["unchanged"] == float64(1)) {
			t.Errorf("%s", out.out)
		}
		return was, out
	}
	expect := func(what string, want bool, passed time.Duration, more ...string) {
		t.Helper()
		if got, out := scan(passed, more...); got != want || out.code != 0 {
			t.Errorf("%s: passed over %v, exit %d: %s", what, got, out.code, out.err)
		}
	}
	expect("the first time", false, time.Hour)
	expect("an hour later", true, 2*time.Hour)
	expect("the whole day", true, 24*time.Hour)
	expect("a day later", false, 26*time.Hour)
	expect("looking deeper", false, 26*time.Hour, "--level=deep")
	expect("not so deep", true, 26*time.Hour, "--level=quick")
	expect("by other rules", false, 26*time.Hour, "--strict")
	expect("by these again", false, 26*time.Hour)
	r.Git("config", "refaudit.tagNameMismatch", "info")
	expect("with another setting", false, 26*time.Hour)
	expect("which stays", true, 26*time.Hour)
	r.EditPacked(func(s string) string { return strings.Replace(s, "^"+r.B, "^"+r.A, 1) })
	if was, out := scan(27 * time.Hour); was || out.code != 1 {
		t.Errorf("a wrong peel: exit %d: %s", out.code, out.out)
	}
	if was, out := scan(28 * time.Hour); was || out.code != 1 {
		t.Errorf("what has findings is read each time: exit %d: %s", out.code, out.out)
	}
}

// C21: a file that was touched within two seconds of our last look is looked at again, whatever stat says.
func TestWhatWasTouchedJustNowIsReadAgain(t *testing.T) {
	dir := t.TempDir()
	r, _ := gittest.Clean(t, gittest.Options{})
	for range 2 {
		out := later(t, 0, "scan", "--format=jsonl", "--state", dir, "--max-age=24h", r.Path)
		if out.code != 0 || out.summary(t)["unchanged"] != nil {
			t.Errorf("exit %d: %s", out.code, out.out)
		}
	}
}

func TestChangedOnlyStillCountsWhatWasFound(t *testing.T) {
	dir := t.TempDir()
	bad, _ := gittest.Mismatch(t, gittest.Options{})
	broken, _ := gittest.TableCrc(t, gittest.Options{RefFormat: gittest.Reftable})
	args := []string{"scan", "--format=jsonl", "--state", dir, "--changed-only", bad.Path}
	first := later(t, time.Hour, args...)
	again := later(t, 1000*time.Hour, args...)
	if first.code != 1 || again.code != 1 || len(first.of(t, "finding")) != 1 || len(again.of(t, "finding")) != 0 {
		t.Errorf("exit %d, then %d: %s%s", first.code, again.code, first.out, again.out)
	}
	one, two := first.summary(t), again.summary(t)
	for _, key := range []string{"severities", "ids", "refs", "peels_checked", "repositories"} {
		if fmt.Sprint(one[key]) != fmt.Sprint(two[key]) {
			t.Errorf("%s: %v, then %v", key, one[key], two[key])
		}
	}
	if n := again.of(t, "notice"); len(n) != 1 || !strings.Contains(n[0]["message"].(string), "1 error and") {
		t.Errorf("%v", n)
	}
	// What could not be read might be read now.
	args[len(args)-1] = broken.Path
	for range 2 {
		if out := later(t, time.Hour, args...); out.code != 7 || len(out.of(t, "finding")) == 0 {
			t.Errorf("exit %d: %s", out.code, out.out)
		}
	}
}

func TestOnlyKnownBad(t *testing.T) {
	dir, root := t.TempDir(), t.TempDir()
	for _, name := range []string{"a.git", "b.git"} {
		gittest.InitAt(t, gittest.Options{}, filepath.Join(root, name))
	}
	bad, _ := gittest.Mismatch(t, gittest.Options{})
	if err := os.Rename(bad.Path, filepath.Join(root, "bad.git")); err != nil {
		t.Fatal(err)
	}
	scan := func(more ...string) ran {
		return later(t, time.Hour, append([]string{"scan", "--format=jsonl", "--state", dir, "--recursive", root}, more...)...)
	}
	if out := scan("--only-known-bad"); out.code != 3 || !strings.Contains(out.out, "3 repositories were passed over") {
		t.Errorf("nothing is known: exit %d: %s%s", out.code, out.out, out.err)
	}
	if out := scan(); out.code != 1 {
		t.Errorf("exit %d: %s", out.code, out.err)
	}
	out := scan("--only-known-bad")
	if some := out.of(t, "repository"); out.code != 1 || len(some) != 1 || some[0]["repo"] != filepath.Join(root, "bad.git") {
		t.Errorf("exit %d: %s", out.code, out.out)
	}
	bad.Path = filepath.Join(root, "bad.git")
	if out := later(t, 0, "fix", "--yes", "--state", t.TempDir(), bad.Path); out.code != 0 {
		t.Fatalf("%s%s", out.out, out.err)
	}
	if out := scan("--only-known-bad"); out.code != 0 || len(out.of(t, "repository")) != 1 {
		t.Errorf("mended: exit %d: %s", out.code, out.out)
	}
	if out := scan("--only-known-bad"); out.code != 0 || len(out.of(t, "repository")) != 0 {
		t.Errorf("none is bad any more, and that is good: exit %d: %s%s", out.code, out.out, out.err)
	}
}

func TestSubsetsAreScannedInTurn(t *testing.T) {
	root := t.TempDir()
	for i := range 12 {
		gittest.InitAt(t, gittest.Options{}, filepath.Join(root, fmt.Sprintf("r%d.git", i)))
	}
	seen := map[any]int{}
	for n := 1; n <= 30; n++ {
		out := command(t, nil, nil, "scan", "--format=jsonl", "--recursive", fmt.Sprintf("--subset=%d/30", n), root)
		if out.code != 0 {
			t.Errorf("part %d: exit %d: %s", n, out.code, out.err)
		}
		for _, m := range out.of(t, "repository") {
			seen[m["repo"]]++
		}
	}
	if len(seen) != 12 {
		t.Errorf("%v", seen)
	}
	for repo, n := range seen {
		if n != 1 {
			t.Errorf("%v: %d times", repo, n)
		}
	}
	if out := command(t, nil, nil, "scan", "--recursive", "--subset=1/2", t.TempDir()); out.code != 3 {
		t.Errorf("there is nothing at all: exit %d", out.code)
	}
}

func TestABaselineHidesWhatIsKnown(t *testing.T) {
	r, _ := gittest.Mismatch(t, gittest.Options{})
	dir := t.TempDir()
	base, report := filepath.Join(dir, "base"), filepath.Join(dir, "report.jsonl")
	if out := command(t, nil, nil, "scan", "--write-baseline", base, r.Path); out.code != 1 {
		t.Errorf("exit %d: %s", out.code, out.err)
	}
	command(t, nil, nil, "scan", "--format=jsonl", "-o", report, r.Path)
	for _, file := range []string{base, report} {
		out := command(t, nil, nil, "scan", "--format=jsonl", "--baseline", file, r.Path)
		s := out.summary(t)
		if out.code != 0 || len(out.of(t, "finding")) != 0 || s["known"] != float64(1) || out.of(t, "repository")[0]["known"] != float64(1) {
			t.Errorf("%s: exit %d: %s", file, out.code, out.out)
		}
	}
	r.FalseTag("new")
	out := command(t, nil, nil, "scan", "--format=jsonl", "--baseline", base, r.Path)
	if found := out.of(t, "finding"); out.code != 1 || len(found) != 1 || found[0]["ref"] != "refs/tags/new" {
		t.Errorf("exit %d: %s", out.code, out.out)
	}
	clean, _ := gittest.Clean(t, gittest.Options{})
	if out := command(t, nil, nil, "scan", "--baseline", base, clean.Path); out.code != 0 || !strings.Contains(out.out, "1 finding of the baseline was not met again") {
		t.Errorf("exit %d: %s", out.code, out.out)
	}
	broken, _ := gittest.TableCrc(t, gittest.Options{RefFormat: gittest.Reftable})
	command(t, nil, nil, "scan", "--write-baseline", base, broken.Path)
	if out := command(t, nil, nil, "scan", "--baseline", base, broken.Path); out.code != 7 {
		t.Errorf("a broken stack is never old news: exit %d", out.code)
	}
	os.WriteFile(base, []byte("refs/tags/x\n"), 0o644)
	if out := command(t, nil, nil, "scan", "--baseline", base, r.Path); out.code != 129 || !strings.Contains(out.err, "line 1") {
		t.Errorf("exit %d: %s", out.code, out.err)
	}
}

func TestMaxDurationEndsARun(t *testing.T) {
	clean, _ := gittest.Clean(t, gittest.Options{})
	bad, _ := gittest.Mismatch(t, gittest.Options{})
	dir := t.TempDir()
	in, w := io.Pipe() // stays open: the list never ends by itself
	defer w.Close()
	go io.WriteString(w, clean.Path+"\n"+bad.Path+"\n")
	base := filepath.Join(dir, "base")
	r := commandIn(context.Background(), dir, in, nil, "scan", "--repos-from=-", "--format=jsonl", "--max-duration=500ms", "--write-baseline", base)
	if r.code != 7 || r.summary(t)["stopped"] != "max-duration" || !strings.Contains(r.err, "what comes after "+bad.Path+" was not reached") {
		t.Errorf("exit %d: %s%s", r.code, r.out, r.err)
	}
	if _, err := os.Stat(base); err == nil || !strings.Contains(r.out, "the baseline was not written") {
		t.Errorf("a baseline of half a run: %v", err)
	}
}

func TestATimeoutIsIncomplete(t *testing.T) {
	dir := t.TempDir()
	clean, _ := gittest.Clean(t, gittest.Options{})
	r := later(t, 0, "scan", "--format=jsonl", "--timeout-per-repo=1ns", "--state", dir, clean.Path)
	if repo := r.of(t, "repository")[0]; r.code != 3 || repo["state"] != "incomplete" || !strings.Contains(repo["reason"].(string), "took too long") {
		t.Errorf("exit %d: %s%s", r.code, r.out, r.err)
	}
	if r := later(t, 0, "scan", "--format=jsonl", "--only-known-bad", "--state", dir, clean.Path); r.code != 0 || len(r.of(t, "repository")) != 1 {
		t.Errorf("what was not looked at to the end is bad: exit %d: %s", r.code, r.out)
	}
	if r := later(t, 0, "scan", "--timeout-per-repo=1h", clean.Path); r.code != 0 {
		t.Errorf("exit %d: %s", r.code, r.err)
	}
}

func TestASingleInstance(t *testing.T) {
	dir := t.TempDir()
	clean, _ := gittest.Clean(t, gittest.Options{})
	folder := state.New(vfs.OS{}, dir)
	held, err := folder.Lock(context.Background(), "scan", 0)
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "out")
	if r := later(t, 0, "scan", "--single-instance", "--state", dir, "-o", out, clean.Path); r.code != 5 || r.out != "" || !strings.Contains(r.err, "another refaudit is at work") {
		t.Errorf("exit %d: %s%s", r.code, r.out, r.err)
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("the report of no run was written")
	}
	go func() { time.Sleep(200 * time.Millisecond); held.Release() }()
	for range 2 { // the second finds that the first has let go
		if r := later(t, 0, "scan", "--single-instance", "--lock-timeout=1m", "--state", dir, clean.Path); r.code != 0 {
			t.Errorf("exit %d: %s", r.code, r.err)
		}
	}
}

func TestASignalEndsTheJitter(t *testing.T) {
	clean, _ := gittest.Clean(t, gittest.Options{})
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(&signalError{syscall.SIGTERM})
	began := time.Now()
	r := commandIn(ctx, t.TempDir(), nil, nil, "scan", "--jitter=100h", clean.Path)
	if r.code != 128+15 || time.Since(began) > time.Minute {
		t.Errorf("exit %d: %s%s", r.code, r.out, r.err)
	}
}

func TestProgressForMachines(t *testing.T) {
	defer func(d time.Duration) { recordEvery = d }(recordEvery)
	recordEvery = 20 * time.Millisecond
	clean, _ := gittest.Clean(t, gittest.Options{})
	for _, c := range []struct {
		args string
		want bool
	}{{"--format=jsonl", true}, {"--format=jsonl --progress=none", false}, {"--format=jsonl --quiet", false}, {"--format=text", false}} {
		in, w := io.Pipe()
		go func() {
			io.WriteString(w, clean.Path+"\n")
			time.Sleep(300 * time.Millisecond)
			w.Close()
		}()
		r := commandIn(context.Background(), t.TempDir(), in, nil, append([]string{"scan", "--repos-from=-"}, strings.Fields(c.args)...)...)
		var p map[string]any
		for _, l := range strings.Split(r.out, "\n") {
			if strings.Contains(l, `"type":"progress"`) {
				if err := json.Unmarshal([]byte(l), &p); err != nil {
					t.Errorf("%q: %v", l, err)
				}
			}
		}
		if (p != nil) != c.want || p != nil && (p["done"] != float64(1) || p["elapsed_ms"] == float64(0)) {
			t.Errorf("%s: exit %d, %v", c.args, r.code, p)
		}
	}
}

func TestFleetUsage(t *testing.T) {
	clean, _ := gittest.Clean(t, gittest.Options{})
	dir := t.TempDir()
	for args, want := range map[string]int{
		"--subset=0/3":             129,
		"--subset=x":               129,
		"--max-age=-1h":            129,
		"--jitter=-1s":             129,
		"--read-rate=fast":         129,
		"--read-rate=0":            129,
		"--page-cache=drop":        129,
		"--baseline=/no/such/file": 129,
		"--write-baseline=" + dir + "/b --subset=1/2": 129,
		"--changed-only":                      129, // and no home to remember anything in
		"--read-rate=100m --page-cache=leave": 0,
		"--io-idle --page-cache=use":          0,
		"--remote=https://h/x --max-age=1h":   129,
	} {
		paths := []string{clean.Path}
		if strings.HasPrefix(args, "--remote") {
			paths = nil
		}
		if want == 129 && args == "--changed-only" && os.Geteuid() == 0 {
			continue // root's is /var/lib
		}
		r := command(t, nil, nil, append(append([]string{"scan"}, strings.Fields(args)...), paths...)...)
		if r.code != want {
			t.Errorf("%s: exit %d, want %d; %s", args, r.code, want, r.err)
		}
	}
}

// Nothing of all this touches a repository.
func TestAFleetScanChangesNothing(t *testing.T) {
	r, _ := gittest.Mismatch(t, gittest.Options{RefFormat: gittest.Reftable})
	gittest.Unchanged(t, r.Path, func() {
		later(t, time.Hour, "scan", "--state", t.TempDir(), "--max-age=1h", "--page-cache=leave", "--timeout-per-repo=1m", r.Path)
	})
}

// A disk that doesn't answer holds up one repository and nobody else, and the memory has it as bad.
func TestAnAuditThatHangsIsLeftBehind(t *testing.T) {
	one, _ := gittest.Clean(t, gittest.Options{})
	two, _ := gittest.Clean(t, gittest.Options{})
	dead := make(chan struct{})
	defer close(dead)
	var hung atomic.Bool
	e := env{stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard, log: logging.Discard(), dir: t.TempDir(), now: time.Now,
		getenv: func(string) (string, bool) { return "", false }}
	o := scanOptions{fleetOptions: fleetOptions{timeout: 2 * time.Second, stateOptions: stateOptions{dir: t.TempDir()}}}
	w, err := o.fleetOptions.open(context.Background(), e, scan.Standard, finding.Error, false)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	report, err := reports.New("jsonl", &out, reports.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := &scanning{env: e, report: report, told: startProgress(e, "none", nil), tally: newTally(e.now()), whole: w,
		options: scan.Options{Level: scan.Standard, Now: e.now, Pace: func(context.Context) error {
			if hung.CompareAndSwap(false, true) {
				<-dead
			}
			return nil
		}}}
	if err := s.all(context.Background(), &targets{paths: []string{one.Path, two.Path}}, 1); err != nil {
		t.Fatal(err)
	}
	if n := s.tally.sum.Repositories; n[reports.Incomplete] != 1 || n[reports.Clean] != 1 || !strings.Contains(out.String(), "left behind") {
		t.Errorf("%v: %s", n, out.String())
	}
	if a, known, err := w.memory.Last(one.Path); !known || !a.Bad() || err != nil {
		t.Errorf("%+v %v", a, err)
	}
}

// cancelled is a context that a signal has ended.
func cancelled(sig syscall.Signal) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(&signalError{sig})
	return ctx, func() { cancel(nil) }
}

// smallServer makes a number of small repositories, each a copy of one of two.
func smallServer(b *testing.B, n int) string {
	b.Helper()
	root := b.TempDir()
	var from []string
	for _, backend := range []string{gittest.Files, gittest.Reftable} {
		r := gittest.New(b, gittest.Options{RefFormat: backend})
		var in strings.Builder
		for i := range 10 {
			fmt.Fprintf(&in, "create refs/heads/b%d %s\ncreate refs/tags/t%d %s\n", i, r.B, i, r.V1)
		}
		r.GitIn(in.String(), "update-ref", "--stdin")
		r.Git("gc", "-q")
		r.Git("update-ref", "refs/heads/loose", r.A)
		from = append(from, r.Path)
	}
	for i := range n {
		to := filepath.Join(root, fmt.Sprint(i%10), fmt.Sprintf("r%d.git", i))
		if err := os.CopyFS(to, os.DirFS(from[min(i%4/3, 1)])); err != nil {
			b.Fatal(err)
		}
	}
	return root
}

// What a small repository costs in a scan of many, on one processor.
func BenchmarkManySmallRepositories(b *testing.B) {
	const n = 400
	root := smallServer(b, n)
	for _, c := range []struct {
		name  string
		flags []string
	}{
		{"read", nil},
		{"page-cache=use", []string{"--page-cache=use"}},
		{"passed-over", []string{"--state=" + b.TempDir(), "--max-age=1000h"}},
		{"quick", []string{"--level=quick"}},
	} {
		b.Run(c.name, func(b *testing.B) {
			scan := func() {
				if r := later(b, time.Hour, append([]string{"scan", "--recursive", "--quiet", "--jobs=1", root}, c.flags...)...); r.code != 0 {
					b.Fatalf("exit %d: %s%s", r.code, r.out, r.err)
				}
			}
			scan()
			b.ResetTimer()
			for range b.N {
				scan()
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/n, "µs/repository")
		})
	}
}

// A repository that waited for its turn in vain was not looked at, and is named.
func TestWhatWaitedInVainIsNamed(t *testing.T) {
	w := &whole{o: &fleetOptions{maxDuration: time.Second}}
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errMaxDuration)
	says := func(total int64, want string) {
		t.Helper()
		if err := w.stopped(ctx, ctx.Err(), total); !errors.Is(err, errMaxDuration) || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	says(0, "no repository was reached")
	path := "/srv/a.git"
	w.last.Store(&path)
	says(1, "/srv/a.git and what comes after it was not reached")
	w.begun.Add(1)
	says(1, "what comes after /srv/a.git was not reached")
}

// A folder that should have repositories and has none may be a disk that is not mounted.
func TestEachFolderHasToHaveRepositories(t *testing.T) {
	root := t.TempDir()
	gittest.InitAt(t, gittest.Options{}, filepath.Join(root, "a.git"))
	empty, file := t.TempDir(), filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, other := range []string{empty, file} {
		for _, flag := range []string{"--level=standard", "--subset=1/2", "--subset=2/2", "--only-known-bad"} {
			r := later(t, 0, "scan", "--state", t.TempDir(), "--recursive", root, other, flag)
			if r.code != exitIncomplete || !strings.Contains(r.err, "no repository was found below "+other) {
				t.Errorf("%s %s: exit %d, %s", other, flag, r.code, r.err)
			}
		}
	}
	for _, args := range []string{"size", "fingerprint", "guard --state=" + t.TempDir(), "fix"} {
		if r := later(t, 0, append(strings.Fields(args), "--recursive", root, empty)...); r.code != exitIncomplete {
			t.Errorf("%s: exit %d, %s", args, r.code, r.err)
		}
	}
}

// What git passes over because a part of it is lost must not be passed over by an audit.
func TestDamagedRepositoriesAreFound(t *testing.T) {
	for _, o := range []gittest.Options{{}, {RefFormat: gittest.Reftable}} {
		for _, lost := range []string{"HEAD", "objects", "refs"} {
			root := t.TempDir()
			gittest.InitAt(t, o, filepath.Join(root, "whole.git"))
			gittest.InitAt(t, o, filepath.Join(root, "broken.git"))
			if err := os.RemoveAll(filepath.Join(root, "broken.git", lost)); err != nil {
				t.Fatal(err)
			}
			r := later(t, 0, "scan", "--recursive", root)
			if r.code != exitIncomplete && r.code != exitBoth || !strings.Contains(r.err+r.out, "broken.git") {
				t.Errorf("%v without %s: exit %d, %s%s", o, lost, r.code, r.out, r.err)
			}
		}
	}
}

// /srv/git is often a link to where the disk is.
func TestTheFolderMayBeALink(t *testing.T) {
	root := t.TempDir()
	gittest.InitAt(t, gittest.Options{}, filepath.Join(root, "sub", "a.git"))
	for link, to := range map[string]string{"root": root, "repo": filepath.Join(root, "sub", "a.git")} {
		link = filepath.Join(t.TempDir(), link)
		if err := os.Symlink(to, link); err != nil {
			t.Skip(err)
		}
		r := later(t, 0, "scan", "--format=jsonl", "--recursive", link)
		if r.code != 0 || len(r.of(t, "repository")) != 1 || !strings.HasPrefix(r.of(t, "repository")[0]["repo"].(string), link) {
			t.Errorf("%s: exit %d, %s%s", link, r.code, r.out, r.err)
		}
	}
	if err := os.Symlink(filepath.Join(root, "sub", "a.git"), filepath.Join(root, "again.git")); err != nil {
		t.Fatal(err)
	}
	if r := later(t, 0, "scan", "--format=jsonl", "--recursive", root); len(r.of(t, "repository")) != 1 {
		t.Errorf("a link below was followed: %s", r.out)
	}
}

// The variable of a script that is not set is no flag that was not given.
func TestNoFlagTakesNothing(t *testing.T) {
	clean, _ := gittest.Clean(t, gittest.Options{})
	for _, args := range []string{"scan --repos-from=", "scan --state= --max-age=1h", "scan --baseline=", "scan --metrics-textfile=", "scan -o=", "scan --subset=",
		"scan --read-rate=", "scan --git-dir=", "scan --level=", "size --exclude=", "fix --only=", "guard --ignore=", "nagios --state=", "hook install --style="} {
		r := later(t, 0, append(strings.Fields(args), clean.Path)...)
		if r.code != exitUsage || !strings.Contains(r.err, "an empty one") {
			t.Errorf("%s: exit %d, %s", args, r.code, r.err)
		}
	}
}

// What could not be written makes a run incomplete, and hides no finding.
func TestFindingsCountWhateverCanNotBeWritten(t *testing.T) {
	wrong, _ := gittest.Mismatch(t, gittest.Options{})
	clean, _ := gittest.Clean(t, gittest.Options{})
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, flag := range []string{"--metrics-textfile=" + t.TempDir(), "--state=" + file, "--write-baseline=" + file + "/x"} {
		for path, code := range map[string]int{wrong.Path: exitBoth, clean.Path: exitIncomplete} {
			if r := command(t, nil, nil, "scan", flag, path); r.code != code || r.err == "" {
				t.Errorf("%s %s: exit %d, want %d: %s", flag, path, r.code, code, r.err)
			}
		}
	}
}
