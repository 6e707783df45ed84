package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"refaudit/alternates/usage"
	"refaudit/internal/gittest"
	"refaudit/reports"
)

func TestSizeSaysWhatGitSays(t *testing.T) {
	for _, o := range gittest.AllFormats {
		r := gittest.New(t, o)
		r.Git("repack", "-adq")
		want := r.Git("rev-list", "--all", "--objects", "--disk-usage")
		n, err := strconv.ParseInt(want, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		ran := command(t, nil, nil, "size", "--format=jsonl", r.Path)
		u := ran.of(t, "usage")
		if ran.code != 0 || len(u) != 1 || u[0]["reachable"] != float64(n) || u[0]["own"] != float64(n) || u[0]["method"] == "" || u[0]["reason"] == "" {
			t.Errorf("%v: exit %d, %v, git says %s; %s", o, ran.code, u, want, ran.err)
		}
		if text := command(t, nil, nil, "size", r.Path).out; !strings.Contains(text, reports.Thousands(n)) {
			t.Errorf("%v: no %s in\n%s", o, want, text)
		}
	}
}

// Globs are taken as they stand, with commas and blanks, as git takes them.
func TestSizeExcludesWhatGitExcludes(t *testing.T) {
	gittest.Need(t, gittest.Newest)
	r := gittest.New(t, gittest.Options{})
	tree := r.GitIn("100644 blob "+r.WriteObject("blob", []byte("more"))+"\tmore\n", "mktree")
	for _, ref := range []string{"refs/heads/a,b", "refs/heads/b"} {
		r.Git("update-ref", ref, r.Git("commit-tree", tree, "-m", ref))
	}
	seen := map[string]bool{}
	for _, globs := range [][]string{{}, {"refs/heads/a,b"}, {" refs/heads/b"}, {"refs/heads/b "}, {"refs/heads/b"}, {"refs/heads/a,refs/heads/b"}, {"refs/heads/b", "refs/heads/a,*"}} {
		args, git := []string{"size", "--format=jsonl"}, []string{"rev-list"}
		for _, g := range globs {
			args, git = append(args, "--exclude="+g), append(git, "--exclude="+g)
		}
		want := r.Git(append(git, "--all", "--objects", "--disk-usage")...)
		ran := command(t, nil, nil, append(args, r.Path)...)
		if got := fmt.Sprint(ran.of(t, "usage")[0]["reachable"]); ran.code != 0 || got != want {
			t.Errorf("%q: exit %d, %s, git says %s", globs, ran.code, got, want)
		}
		seen[want] = true
	}
	if len(seen) < 3 {
		t.Errorf("the globs make no difference: %v", seen)
	}
}

// A format that leaves figures out is told of once, unless notes aren't wanted.
func TestSizeInAFormatWithoutFigures(t *testing.T) {
	a, b := gittest.New(t, gittest.Options{}), gittest.New(t, gittest.Options{})
	for _, format := range reports.Formats {
		want := 1
		if format == "text" || format == "jsonl" {
			want = 0
		}
		ran := command(t, nil, nil, "size", "--format="+format, a.Path, b.Path)
		if got := strings.Count(ran.err, "text and jsonl have all"); ran.code != 0 || got != want {
			t.Errorf("%s: exit %d, told %d times: %s", format, ran.code, got, ran.err)
		}
		if ran := command(t, nil, nil, "size", "--quiet", "--format="+format, a.Path); ran.err != "" {
			t.Errorf("%s, quiet: %s", format, ran.err)
		}
	}
}

// What can't be known is null in JSON and no number in the text; what can be known stays.
func TestSizeOfWhatCanNotBeKnown(t *testing.T) {
	r, _ := gittest.RefTargetMissing(t, gittest.Options{})
	ran := command(t, nil, nil, "size", "--format=jsonl", r.Path)
	u := ran.of(t, "usage")[0]
	if v, ok := u["reachable"]; ran.code != 3 || !ok || v != nil || u["files"] == nil {
		t.Errorf("exit %d: %v", ran.code, u)
	}
	if why := u["unknown"].(map[string]any)["reachable"]; !strings.Contains(why.(string), "refs/heads/gone") {
		t.Errorf("the ref is not named: %v", why)
	}
	text := command(t, nil, nil, "size", r.Path).out
	for _, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "reachable") && !strings.Contains(line, "unknown") {
			t.Errorf("%q", line)
		}
	}
	broken, _ := gittest.TableMissing(t, gittest.Options{RefFormat: gittest.Reftable})
	if ran := command(t, nil, nil, "size", "--format=jsonl", broken.Path); ran.code != 7 || len(ran.of(t, "finding")) == 0 {
		t.Errorf("a stack that can't be read: exit %d %s", ran.code, ran.out)
	}
}

func TestSizeOfManyForksOfOnePool(t *testing.T) {
	dir := t.TempDir()
	pool := gittest.InitAt(t, gittest.Options{}, filepath.Join(dir, "pool.git"))
	pool.Git("update-ref", "refs/heads/main", pool.Git("commit-tree", pool.GitIn("", "mktree"), "-m", "x"))
	args := []string{"size", "--format=jsonl", "--exclude-alternates", "--jobs=3"}
	for i := range 7 {
		path := filepath.Join(dir, "fork"+strconv.Itoa(i)+".git")
		pool.Git("clone", "-q", "--bare", "--shared", pool.Path, path)
		args = append(args, path)
	}
	os.RemoveAll(filepath.Join(dir, "fork3.git"))
	ran := command(t, nil, nil, args...)
	all := ran.of(t, "usage")
	if ran.code != 3 || len(all) != 6 {
		t.Fatalf("exit %d, %d of 6 forks: %s", ran.code, len(all), ran.out)
	}
	for i, u := range all {
		want := filepath.Join(dir, "fork"+strconv.Itoa([]int{0, 1, 2, 4, 5, 6}[i])+".git")
		if u["repo"] != want || u["own"] != 0.0 || u["borrowed"] == 0.0 {
			t.Errorf("%v", u)
		}
	}
}

func TestSizeHelpDefinesEachFigure(t *testing.T) {
	help := command(t, nil, nil, "size", "--help").out
	for _, f := range usage.Figures {
		if !strings.Contains(help, "  "+string(f)) {
			t.Errorf("%s is not explained", f)
		}
	}
	for _, bad := range []string{"--method=magic", "--by=size", "--fail-on=x"} {
		if ran := command(t, nil, nil, "size", bad); ran.code != 129 {
			t.Errorf("%s: exit %d", bad, ran.code)
		}
	}
}

func TestSizeIsSplit(t *testing.T) {
	r := gittest.New(t, gittest.Options{})
	for by, want := range map[string]string{"type": "commit tree blob tag", "ref-namespace": "refs/heads refs/tags"} {
		u := command(t, nil, nil, "size", "--format=jsonl", "--by="+by, r.Path).of(t, "usage")[0]
		var names []string
		sum := 0.0
		for _, part := range u["by"].([]any) {
			p := part.(map[string]any)
			names = append(names, p[by].(string))
			sum += p["reachable"].(float64)
		}
		if strings.Join(names, " ") != want || sum != u["reachable"] {
			t.Errorf("--by=%s: %v of %v", by, u["by"], u["reachable"])
		}
	}
}
