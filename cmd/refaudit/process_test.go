//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"refaudit/internal/gittest"
	"refaudit/oid"
)

// The test program is refaudit itself where it is told so, and where it is its own child.
func TestMain(m *testing.M) {
	if os.Getenv("REFAUDIT_TEST_MAIN") == "1" || len(os.Args) == 2 && os.Args[1] == "child" {
		main()
	}
	for _, sig := range []os.Signal{syscall.SIGHUP, syscall.SIGINT} {
		if signal.Ignored(sig) { // as under nohup; and it would be by the programs that the tests start
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
	os.Exit(m.Run())
}

// program is a command that runs refaudit in a process of its own, perhaps under another program.
func program(t testing.TB, state string, under []string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	argv := append(append(slices.Clone(under), self), args...)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(gittest.Env("REFAUDIT_TEST_MAIN=1", "XDG_STATE_HOME="+state), "GOMAXPROCS=2")
	return cmd
}

func exitOf(t testing.TB, err error) int {
	t.Helper()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		if ws := exit.Sys().(syscall.WaitStatus); ws.Signaled() {
			return -int(ws.Signal())
		}
		return exit.ExitCode()
	}
	t.Fatal(err)
	return 0
}

func strace(t testing.TB) string {
	path, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("NOT TESTED, this needs strace")
	}
	if err := exec.Command(path, "-o", "/dev/null", "true").Run(); err != nil {
		t.Skipf("NOT TESTED, strace can't trace here: %v", err)
	}
	return path
}

// kinds are both stores.
var kinds = []gittest.Options{{RefFormat: gittest.Files}, {RefFormat: gittest.Reftable}}

// A kill leaves the page cache alone, so only the order of calls shows a missing sync.
func TestTheOrderOfSyncsAndRenames(t *testing.T) {
	tracer := strace(t)
	for _, o := range kinds {
		r, _ := gittest.Mismatch(t, o)
		state, log := t.TempDir(), filepath.Join(t.TempDir(), "log")
		cmd := program(t, state, []string{tracer, "-f", "-qq", "-y", "-s", "400", "-o", log, "-e", "trace=fsync,fdatasync,rename,renameat,renameat2"}, "fix", "--yes", r.Path)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		text, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		events := strings.Join(simplify(string(text), r.Path, state), "\n")
		want := "sync packed-refs.new\n.*rename journal journal\nsync journal.*\nrename packed-refs.new packed-refs\nsync \\."
		if o.RefFormat == gittest.Reftable {
			want = "sync reftable/temp\n.*sync journal\nrename journal journal\nsync journal\nrename reftable/temp reftable/table\nsync reftable\nsync reftable/tables.list.lock\nrename reftable/tables.list.lock reftable/tables.list\nsync reftable\n"
		}
		if !regexp.MustCompile("(?s)" + want).MatchString(events) {
			t.Errorf("%v:\n%s", o, events)
		}
	}
}

// simplify gives the calls of a trace with names that are the same in every run.
func simplify(trace, repo, state string) (events []string) {
	syncs := regexp.MustCompile(`(?:fsync|fdatasync)\(\d+<([^>]*)>`)
	renames := regexp.MustCompile(`rename(?:at|at2)?\((?:[^"]*)"([^"]*)", (?:[^"]*)"([^"]*)"`)
	name := func(path string) string {
		path = strings.TrimSuffix(path, " (deleted)")
		switch {
		case strings.HasPrefix(path, state):
			return "journal"
		case strings.Contains(path, ".temp."):
			return "reftable/temp"
		case strings.HasSuffix(path, ".ref"):
			return "reftable/table"
		}
		rel, err := filepath.Rel(repo, path)
		if err != nil {
			return path
		}
		return rel
	}
	for _, line := range strings.Split(trace, "\n") {
		if m := syncs.FindStringSubmatch(line); m != nil {
			events = append(events, "sync "+name(m[1]))
		} else if m := renames.FindStringSubmatch(line); m != nil {
			events = append(events, "rename "+name(m[1])+" "+name(m[2]))
		}
	}
	return events
}

// kill -9 at each system call that changes something: always git reads the old state or the new,
// and a later fix gets through.
func TestKilledAtEachSystemCall(t *testing.T) {
	tracer := strace(t)
	calls := []string{"rename", "renameat", "fsync", "unlinkat", "linkat", "fchmod", "utimensat"}
	if testing.Short() {
		calls = calls[:3]
	}
	for _, o := range kinds {
		kills := map[string]int{}
		for _, call := range calls {
			for n := 1; n < 40 && killedAt(t, tracer, o, call, n); n++ {
				kills[call]++
			}
		}
		// strace counts the calls of each thread by itself, and which thread makes one is chance: what is the
		// n-th of the program may be the first of its thread.
		if kills["fsync"] < 2 || kills["rename"]+kills["renameat"] < 2 {
			t.Errorf("%v: killed only at %v", o, kills)
		}
		t.Logf("%v: killed at %v", o, kills)
	}
}

func killedAt(t *testing.T, tracer string, o gittest.Options, call string, n int) (killed bool) {
	t.Helper()
	r, want := gittest.Mismatch(t, o)
	refs, state := r.Refs(), t.TempDir()
	under := []string{tracer, "-f", "-qq", "-o", "/dev/null", "-e", "trace=" + call, "-e", "inject=" + call + ":signal=SIGKILL:when=" + strconv.Itoa(n)}
	cmd := program(t, state, under, "fix", "--yes", r.Path)
	code := exitOf(t, cmd.Run())
	what := fmt.Sprintf("%v, killed at %s %d", o, call, n)
	if code != 0 && code != -9 && code != 137 {
		t.Fatalf("%s: exit %d", what, code)
	}
	if now := r.Refs(); fmt.Sprint(now) != fmt.Sprint(refs) {
		t.Errorf("%s: git reads %v, not %v", what, now, refs)
	}
	ref := string(want[0].Ref)
	if got := served(t, r, r.Program)[ref]; got != want[0].Expected && got != want[0].Cached {
		t.Errorf("%s: the peel is neither old nor new: %v", what, got)
	}
	for _, lock := range []string{"packed-refs.lock", "reftable/tables.list.lock"} {
		os.Remove(r.File(lock))
	}
	out := command(t, nil, map[string]string{"XDG_STATE_HOME": state}, "fix", "--yes", r.Path)
	if got := served(t, r, r.Program)[ref]; got != want[0].Expected || out.code != 0 {
		t.Errorf("%s: a later fix gives %d and %v: %s", what, out.code, got, out.err)
	}
	left, _ := filepath.Glob(filepath.Join(state, "refaudit", "journal", "*.open"))
	if len(left) > 0 {
		t.Errorf("%s: entries stay open: %v; %s", what, left, out.out)
	}
	return code != 0
}

// long is how long the tests beside real writers run: REFAUDIT_LONG_TESTS=5m for a real trial.
func long(t testing.TB) time.Duration {
	if word := os.Getenv("REFAUDIT_LONG_TESTS"); word != "" {
		d, err := time.ParseDuration(word)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	return 3 * time.Second
}

// While real gits of all ages write, fix mends what is spoilt again and again, and no update is lost.
func TestNoUpdateIsLostBesideRealGits(t *testing.T) {
	for _, o := range kinds {
		t.Run(o.String(), func(t *testing.T) {
			r, want := gittest.Mismatch(t, o)
			state := t.TempDir()
			ctx, stop := context.WithTimeout(context.Background(), long(t))
			defer stop()
			var wg sync.WaitGroup
			made := make([][]string, len(readers(r)))
			for i, p := range readers(r) {
				wg.Add(1)
				go func() {
					defer wg.Done()
					made[i] = write(ctx, t, r, p, i)
				}()
			}
			healed := 0
			for ctx.Err() == nil {
				spoil(t, r, want[0])
				out := command(t, nil, map[string]string{"XDG_STATE_HOME": state}, "fix", "--yes", "--lock-timeout=5s", r.Path)
				switch out.code {
				case exitOK:
					healed++
				case exitLocked, exitRefused:
				default:
					t.Errorf("fix gives %d: %s%s", out.code, out.out, out.err)
				}
			}
			wg.Wait()
			have := r.Refs()
			total := 0
			for _, list := range made {
				for _, ref := range list {
					total++
					if _, ok := have[ref]; !ok {
						t.Errorf("%s is lost", ref)
					}
				}
			}
			if healed < 2 || total < 5 {
				t.Errorf("%d repairs beside %d updates", healed, total)
			}
			command(t, nil, map[string]string{"XDG_STATE_HOME": state}, "fix", "--yes", "--lock-timeout=5s", r.Path)
			if got := served(t, r, r.Program)[string(want[0].Ref)]; got != want[0].Expected {
				t.Errorf("in the end %v is served", got)
			}
			t.Logf("%d repairs beside %d updates", healed, total)
		})
	}
}

// write makes refs with one git, and packs them now and then; it gives those that were made.
func write(ctx context.Context, t *testing.T, r *gittest.Repo, p *gittest.Program, n int) (made []string) {
	wait := []string{"-c", "core.packedRefsTimeout=10000", "-c", "reftable.lockTimeout=10000", "--git-dir=" + r.Path}
	for i := 0; ctx.Err() == nil; i++ {
		ref := fmt.Sprintf("refs/heads/w%d-%d", n, i)
		res := p.Run(t, "", nil, "", append(wait, "update-ref", ref, r.A)...)
		switch lower := strings.ToLower(res.Stderr); {
		case res.Code == 0 && !res.Died:
			made = append(made, ref)
		case !strings.Contains(lower, "lock") && !strings.Contains(lower, "exists"):
			t.Errorf("git %s: %v", p.Version, res)
		}
		if i%5 == 4 {
			p.Run(t, "", nil, "", append(wait, "pack-refs", "--all")...)
		}
	}
	return made
}

// spoil puts a wrong peel back, under git's own lock.
func spoil(t *testing.T, r *gittest.Repo, w gittest.Want) {
	t.Helper()
	lock := r.File("packed-refs.lock")
	if r.RefFormat == gittest.Reftable {
		lock = r.File("reftable/tables.list.lock")
	}
	for i := 0; ; i++ {
		f, err := os.OpenFile(lock, os.O_CREATE|os.O_EXCL, 0o600)
		if err == nil {
			f.Close()
			break
		}
		if i == 5000 {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Millisecond)
	}
	defer os.Remove(lock)
	if r.RefFormat == gittest.Files {
		text := string(r.ReadFile("packed-refs"))
		text = strings.Replace(text, fmt.Sprintf("%v %s\n^%v\n", w.OID, w.Ref, w.Expected), fmt.Sprintf("%v %s\n^%v\n", w.OID, w.Ref, w.Cached), 1)
		r.WriteFile("packed-refs.new", []byte(text))
		os.Rename(r.File("packed-refs.new"), r.Packed())
		return
	}
	for _, path := range r.Tables() {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if at := bytes.Index(data, append(raw(w.OID), raw(w.Expected)...)); at >= 0 {
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			f.WriteAt(raw(w.Cached), int64(at+len(raw(w.OID))))
			f.Close()
		}
	}
}

func raw(id oid.ID) []byte { return id.AppendTo(nil) }

// A git that runs unlinks tables that it has open and that the list no longer names: all kinds of
// repair and undo must leave every listed table in place, and it must go on reading.
func TestARunningGitDeletesNoTable(t *testing.T) {
	for _, o := range gittest.AllFormats[2:] {
		for _, p := range readers(&gittest.Repo{RefFormat: gittest.Reftable}) {
			r, _ := gittest.FalseType(t, o)
			r.SetPeel("refs/tags/v1", r.V1, r.A, r.B)
			vars := map[string]string{"XDG_STATE_HOME": t.TempDir()}
			ask, end := batchCheck(t, p, r)
			seen := map[string]bool{}
			gone := map[string]bool{}
			look := func(what string) {
				t.Helper()
				if got := ask("refs/heads/main"); !strings.HasPrefix(got, r.B) {
					t.Errorf("git %s, %s: refs/heads/main reads %q", p.Version, what, got)
				}
				listed := map[string]bool{}
				for _, path := range r.Tables() {
					listed[path] = true
					if _, err := os.Stat(path); err != nil {
						t.Errorf("git %s, %s: a listed table is gone: %v", p.Version, what, err)
					}
					if gone[path] {
						t.Errorf("git %s, %s: %s has come back to the list", p.Version, what, path)
					}
				}
				for path := range seen {
					gone[path] = gone[path] || !listed[path]
				}
				for path := range listed {
					seen[path] = true
				}
			}
			look("at first")
			for _, args := range []string{"--yes", "--yes --compact", "--yes --drop-corrupt-tags"} {
				out := command(t, nil, vars, append([]string{"fix", "--format=jsonl", r.Path}, strings.Fields(args)...)...)
				look("after fix " + args)
				done := out.of(t, "repair")
				if len(done) == 0 {
					t.Fatalf("fix %s does nothing: %s%s", args, out.out, out.err)
				}
				if undo := command(t, nil, vars, "undo", done[0]["journal"].(string)); undo.code != 0 {
					t.Fatalf("undo of fix %s: %s", args, undo.err)
				}
				look("after the undo of fix " + args)
			}
			command(t, nil, vars, "fix", "--yes", "--compact", "--drop-corrupt-tags", r.Path)
			look("at the end")
			r.Git("pack-refs", "--all")
			look("after pack-refs")
			end()
			if got := served(t, r, p)["refs/tags/v1"]; got.String() != r.A {
				t.Errorf("git %s: the repair did not last: %v", p.Version, got)
			}
		}
	}
}

// batchCheck keeps a git cat-file --batch-check running.
func batchCheck(t *testing.T, p *gittest.Program, r *gittest.Repo) (ask func(string) string, end func()) {
	t.Helper()
	cmd := exec.Command(p.Path, "--git-dir="+r.Path, "cat-file", "--batch-check")
	cmd.Env = gittest.Env()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	return func(q string) string {
			io.WriteString(in, q+"\n")
			line, _ := lines.ReadString('\n')
			return line
		}, func() {
			in.Close()
			cmd.Wait()
		}
}

// Root does the work on somebody else's repository with that one's id; the journal is root's.
func TestRootWorksAsTheOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("NOT TESTED, this needs root")
	}
	const uid, gid = 4242, 4243
	for _, o := range kinds {
		r, want := gittest.Mismatch(t, o)
		give(t, filepath.Dir(filepath.Dir(r.Path)), uid, gid)
		state := t.TempDir()
		os.Chmod(state, 0o700)
		cmd := program(t, state, nil, "fix", "--yes", "--format=jsonl", r.Path)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", o, err, out)
		}
		give(t, r.Path, 0, 0) // git refuses it otherwise
		if got := served(t, r, r.Program)[string(want[0].Ref)]; got != want[0].Expected {
			t.Errorf("%v: %v is served\n%s", o, got, out)
		}
		if left, _ := filepath.Glob(filepath.Join(state, "refaudit", "journal", "*.done")); len(left) != 1 {
			t.Errorf("%v: the journal has %v", o, left)
		}
		give(t, r.Path, uid, gid)
		id := regexp.MustCompile(`"journal":"([^"]*)"`).FindStringSubmatch(string(out))[1]
		if out, err := program(t, state, nil, "undo", id).CombinedOutput(); err != nil {
			t.Errorf("%v: undo: %v\n%s", o, err, out)
		}
		filepath.WalkDir(r.Path, func(path string, d os.DirEntry, err error) error {
			if st, err := os.Lstat(path); err == nil && st.Sys().(*syscall.Stat_t).Uid != uid {
				t.Errorf("%v: %s is not the owner's", o, path)
			}
			return nil
		})
	}
}

func give(t *testing.T, dir string, uid, gid int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, uid, gid)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// At a signal the locks go, whatever is being waited for.
func TestASignalLeavesNoLock(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT} {
		r, _ := gittest.Mismatch(t, gittest.Options{RefFormat: gittest.Reftable})
		r.WriteFile("reftable/tables.list.lock", nil)
		cmd := program(t, t.TempDir(), nil, "fix", "--yes", "--lock-timeout=1h", r.Path)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(500 * time.Millisecond)
		cmd.Process.Signal(sig)
		if code := exitOf(t, cmd.Wait()); code != 128+int(sig) {
			t.Errorf("%v: exit %d", sig, code)
		}
		names, _ := filepath.Glob(r.File("reftable/*"))
		if len(names) != len(r.Tables())+2 {
			t.Errorf("%v: left %v", sig, names)
		}
	}
}
