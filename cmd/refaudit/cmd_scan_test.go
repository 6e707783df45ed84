package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"refaudit/internal/gittest"
	"refaudit/internal/logging"
)

// ran is what a command printed and its exit code.
type ran struct {
	out, err string
	code     int
}

// command runs refaudit in memory, in a clean environment.
func command(t testing.TB, in io.Reader, vars map[string]string, args ...string) ran {
	t.Helper()
	return commandIn(context.Background(), t.TempDir(), in, vars, args...)
}

func commandIn(ctx context.Context, dir string, in io.Reader, vars map[string]string, args ...string) ran {
	var out, errs bytes.Buffer
	e := env{stdin: in, stdout: &out, stderr: &errs, log: logging.Discard(), now: time.Now, dir: dir,
		getenv: func(name string) (string, bool) { v, ok := vars[name]; return v, ok }}
	code := run(ctx, e, append([]string{"refaudit"}, args...))
	return ran{out.String(), errs.String(), code}
}

// lines are the JSON objects of a run, which has to end in a summary that tells its exit code.
func (r ran) lines(t testing.TB) []map[string]any {
	t.Helper()
	var all []map[string]any
	for _, l := range strings.Split(strings.TrimSuffix(r.out, "\n"), "\n") {
		var m map[string]any
		if err := json.Unmarshal([]byte(l), &m); err != nil {
			t.Fatalf("%v: %q; %s", err, l, r.err)
		}
		all = append(all, m)
	}
	last := all[len(all)-1]
	if last["type"] != "summary" || last["exit"] != float64(r.code) {
		t.Errorf("exit %d, and the last line is %v", r.code, last)
	}
	return all
}

func (r ran) of(t testing.TB, kind string) (some []map[string]any) {
	for _, m := range r.lines(t) {
		if m["type"] == kind {
			some = append(some, m)
		}
	}
	return some
}

func TestExitCodes(t *testing.T) {
	clean, _ := gittest.Clean(t, gittest.Options{})
	bad, _ := gittest.Mismatch(t, gittest.Options{})
	warns, _ := gittest.MissingPeel(t, gittest.Options{})
	broken, _ := gittest.TableCrc(t, gittest.Options{RefFormat: gittest.Reftable})
	future := gittest.New(t, gittest.Options{})
	future.Git("config", "core.repositoryFormatVersion", "1")
	future.Git("config", "extensions.shinyNew", "true")
	none := filepath.Join(t.TempDir(), "none")
	for _, c := range []struct {
		args string
		want int
	}{
		{"scan " + clean.Path, 0},
		{"scan " + bad.Path, 1},
		{"scan --fail-on never " + bad.Path, 0},
		{"scan " + warns.Path, 0},
		{"scan --strict " + warns.Path, 1},
		{"scan --fail-on warn " + warns.Path, 1},
		{"scan " + broken.Path, 7},
		{"scan " + future.Path, 3},
		{"scan " + none, 3},
		{"scan " + none + " " + bad.Path, 7},
		{"scan --recursive " + filepath.Dir(none), 3}, // nothing matched
		{"scan --no-such-flag", 129},
		{"scan --level deeper", 129},
		{"scan --format yaml", 129},
		{"scan --fail-on sometimes", 129},
		{"scan -z " + clean.Path, 129},
		{"scan --git-dir " + clean.Path + " " + bad.Path, 129},
		{"scan --git-dir " + clean.Path, 0},
		{"scan --repos-from /no/such/list", 129},
		{"scan -o / " + clean.Path, 129},
		{"scan --metrics-textfile /no/such/folder/x " + clean.Path, 129},
		{"scan --timeout-per-repo 5 " + clean.Path, 129},
		{"hook", 129},
		{"hook nonsense", 129},
		{"help nonsense", 129},
		{"nonsense", 129},
		{"--help", 0},
		{"scan --help", 0},
	} {
		r := command(t, nil, nil, strings.Fields(c.args)...)
		if r.code != c.want {
			t.Errorf("%s: exit %d, want %d; %s%s", c.args, r.code, c.want, r.out, r.err)
		}
		if c.want == 129 && (r.out != "" && !strings.Contains(r.out, "errors") || r.err == "") {
			t.Errorf("%s: a usage error belongs on stderr: %q %q", c.args, r.out, r.err)
		}
	}
}

func TestASettingForAllThatCannotBeFollowedEndsTheRun(t *testing.T) {
	clean, _ := gittest.Clean(t, gittest.Options{})
	vars := map[string]string{"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "refaudit.peelMismatch", "GIT_CONFIG_VALUE_0": "loud"}
	if r := command(t, nil, vars, "scan", clean.Path); r.code != 129 || r.out != "" || !strings.Contains(r.err, "peelmismatch") {
		t.Errorf("%+v", r)
	}
}

func TestOneBadRepositoryStopsNobody(t *testing.T) {
	root := t.TempDir()
	gittest.InitAt(t, gittest.Options{}, filepath.Join(root, "a", "one.git"))
	gittest.InitAt(t, gittest.Options{RefFormat: gittest.Reftable}, filepath.Join(root, "b", "two.git"))
	bad := filepath.Join(root, "z.git")
	gittest.InitAt(t, gittest.Options{}, bad)
	os.WriteFile(filepath.Join(bad, "config"), []byte("[core\n"), 0o644)
	for _, jobs := range []string{"1", "4"} {
		r := command(t, nil, nil, "scan", "--recursive", "--format=jsonl", "--jobs", jobs, root)
		if r.code != 3 {
			t.Errorf("exit %d: %s%s", r.code, r.out, r.err)
		}
		var order []string
		for _, m := range r.of(t, "repository") {
			order = append(order, strings.TrimPrefix(m["repo"].(string), root)+" "+m["state"].(string))
		}
		if got := strings.Join(order, ", "); got != "/a/one.git clean, /b/two.git clean, /z.git incomplete" {
			t.Errorf("--jobs %s: %s", jobs, got)
		}
	}
	list := filepath.Join(root, "a", "one.git") + "\x00" + bad + "\x00"
	if r := command(t, strings.NewReader(list), nil, "scan", "--repos-from=-", "-z", "--format=jsonl"); len(r.of(t, "repository")) != 2 {
		t.Errorf("--repos-from: %s", r.out)
	}
}

func TestQuietIsSilentWhenClean(t *testing.T) {
	clean, _ := gittest.Clean(t, gittest.Options{})
	if r := command(t, nil, nil, "scan", "--quiet", clean.Path); r.out+r.err != "" || r.code != 0 {
		t.Errorf("%q %q %d", r.out, r.err, r.code)
	}
}

// The report for a person: the ref first, what is wrong, what is seen, and the command that mends it.
func TestTheTextNamesTheTagAndTheWayOut(t *testing.T) {
	bad, _ := gittest.FalseType(t, gittest.Options{})
	r := command(t, nil, nil, "scan", bad.Path)
	for _, want := range []string{"refs/tags/bad", "tagTypeMismatch", "peelOfCorruptTag", "says 'type commit' but its target", "is a blob", "seen:", "refaudit fix " + bad.Path} {
		if !strings.Contains(r.out, want) {
			t.Errorf("no %q in:\n%s", want, r.out)
		}
	}
}

func TestMaxFindingsCountsTheRest(t *testing.T) {
	bad, _ := gittest.Migrated(t, gittest.Options{RefFormat: gittest.Reftable})
	r := command(t, nil, nil, "scan", "--format=jsonl", "--max-findings=1", bad.Path)
	shown, last := r.of(t, "finding"), r.of(t, "summary")[0]
	if len(shown) != 1 || last["severities"].(map[string]any)["warn"] != float64(2) {
		t.Errorf("%d shown, %v", len(shown), last)
	}
}

func TestSkipLists(t *testing.T) {
	bad, want := gittest.FalseType(t, gittest.Options{})
	scan := func() ran { return command(t, nil, nil, "scan", "--format=jsonl", bad.Path) }
	list := filepath.Join(t.TempDir(), "list")
	os.WriteFile(list, []byte("# known\n"+want[0].OID.String()+" # and this\n"), 0o644)
	bad.Git("config", "fsck.skipList", list)
	if r := scan(); r.code != 0 {
		t.Errorf("fsck.skipList: %d %s", r.code, r.out)
	}
	bad.Git("config", "--unset", "fsck.skipList")
	bad.Git("config", "refaudit.skipList", list)
	for text, code := range map[string]int{
		"refs/tags/b*\n": 0,
		"refs/heads/*\n": 1,
		"refs/tags/bad peelOfCorruptTag\nrefs/tags/bad tagTypeMismatch until=2999-12-31\n": 0,
		"refs/tags/bad until=2001-01-01\n":                                                 1,
		"refs/tags/bad " + want[0].OID.String() + "\n":                                     0,
		"refs/tags/bad " + strings.Repeat("0", 40) + "\n":                                  1,
		"refs/tags/bad until=soon\n":                                                       3,
		"refs/tags/bad noSuchId\n":                                                         3,
	} {
		os.WriteFile(list, []byte(text), 0o644)
		r := scan()
		if r.code != code {
			t.Errorf("%q: exit %d, want %d: %s", text, r.code, code, r.err)
		}
		if strings.Contains(text, "2001") && !strings.Contains(r.out, "expired on 2001-01-01") {
			t.Errorf("the expired line is not told: %s", r.out)
		}
		if strings.Contains(text, "heads") && !strings.Contains(r.out, "hides nothing") {
			t.Errorf("the unused line is not told: %s", r.out)
		}
	}
}

func TestTheSummarySurvivesASignal(t *testing.T) {
	clean, _ := gittest.Clean(t, gittest.Options{})
	in, w := io.Pipe() // stays open: the list never ends by itself
	defer w.Close()
	ctx, cancel := context.WithCancelCause(context.Background())
	go func() {
		io.WriteString(w, clean.Path+"\n")
		time.Sleep(200 * time.Millisecond)
		cancel(&signalError{syscall.SIGTERM})
	}()
	r := commandIn(ctx, t.TempDir(), in, nil, "scan", "--repos-from=-", "--format=jsonl")
	if r.code != 128+15 || len(r.of(t, "summary")) != 1 {
		t.Errorf("exit %d: %s%s", r.code, r.out, r.err)
	}
}

func TestAnOutputFileIsWhole(t *testing.T) {
	bad, _ := gittest.Mismatch(t, gittest.Options{})
	file := filepath.Join(t.TempDir(), "out.jsonl")
	r := command(t, nil, nil, "scan", "--format=jsonl", "-o", file, bad.Path)
	text, err := os.ReadFile(file)
	if err != nil || r.out != "" || r.code != 1 {
		t.Fatalf("%v %q %d %s", err, r.out, r.code, r.err)
	}
	ran{out: string(text), code: r.code}.lines(t)
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(file), ".refaudit*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
