package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"refaudit/finding"
	"refaudit/internal/gittest"
	"refaudit/internal/refstore"
	"refaudit/repo"
	"refaudit/scan"
)

var (
	mutations    = flag.Int("mutations", 200, "how often TestMutatedRepositories damages a file")
	mutationSeed = flag.Uint64("mutation-seed", 1, "which damage it does")
)

const (
	longestRun = 10 * time.Second // of one command on a small repository
	mostMemory = 512 << 20        // that it allocates, all in all
)

// A subject is a sound repository, with those that it borrows from, that is damaged in one file at a time.
type subject struct {
	*lab
	name  string
	root  string // the folder that holds them all
	kinds []string
	files map[string][]string // by kind, relative to root
	data  map[string][]byte
	view  view
	truth map[string]string         // what each tag object peels to
	known map[string]bool           // objects that are there
	sizes map[string]map[string]any // figures, by command
	print string                    // the fingerprint

	passed map[string]int // changes that can't be seen, by their kind
}

var longAgo = time.Now().Add(-24 * time.Hour) // young files beside a stack are normal

// newSubject takes a repository as it is now.
func newSubject(t testing.TB, name string, l *lab) *subject {
	t.Helper()
	s := &subject{lab: l, name: name, root: filepath.Dir(l.Path), files: map[string][]string{}, data: map[string][]byte{}, truth: map[string]string{}, sizes: map[string]map[string]any{}, passed: map[string]int{}}
	err := filepath.WalkDir(s.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		rel, err := filepath.Rel(s.root, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if !strings.Contains(rel, ".git/") || strings.Contains(rel, "/hooks/") || strings.HasSuffix(rel, "/description") || strings.HasSuffix(rel, "/index") {
			return nil
		}
		os.Chmod(path, 0o644)
		os.Chtimes(path, longAgo, longAgo)
		if s.data[rel], err = os.ReadFile(path); err != nil {
			return err
		}
		kind := kindOf(rel)
		s.files[kind] = append(s.files[kind], rel)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s.kinds = slices.Sorted(maps.Keys(s.files))
	for _, r := range l.records() {
		if r.peel != "" {
			s.truth[r.id] = r.peel
		}
	}
	s.view = s.look()
	s.known = map[string]bool{}
	for _, r := range s.view {
		s.known[r.oid], s.known[r.peel] = true, true
	}
	if len(s.view) < 5 {
		t.Fatalf("%s: the view is %v", name, s.view)
	}
	for _, args := range s.commands() {
		out := s.run(args...)
		if out.code != 0 {
			t.Fatalf("%s, %v: exit %d\n%s%s", name, args, out.code, out.out, out.err)
		}
		if args[0] == "fingerprint" {
			s.print = fingerprintOf(out)
		}
		if args[0] == "size" {
			s.sizes[strings.Join(args, " ")] = usageOf(out)
		}
	}
	return s
}

// commands are those that read.
func (s *subject) commands() [][]string {
	return [][]string{{"scan"}, {"scan", "--level=deep"}, {"scan", "--level=quick"}, {"dump"}, {"size"}, {"size", "--exclude-alternates", "--method=bitmap"},
		{"fix", "--dry-run"}, {"fingerprint"}, {"guard", "--accept"}}
}

// A view is what readers are served, by ref.
type view map[string]shown

// shown is what is served of one ref.
type shown struct {
	there             bool
	oid, target, peel string
}

// look reads the view as it is at the moment; what can't be read is not in it.
func (s *subject) look() view {
	v := view{}
	target, err := scan.Open(s.Path, scan.ByPath, repo.Options{Env: repo.EmptyEnv})
	if err != nil {
		return v
	}
	target.Refs.Visit(context.Background(), refstore.Options{Objects: true}, func(finding.Finding) error { return nil }, func(r *refstore.Ref) error {
		v[string(r.Name)] = shown{true, fmt.Sprintf("%x", r.OID), string(r.Target), fmt.Sprintf("%x", r.Peel)}
		return nil
	})
	return v
}

// put writes a file of the subject; nil removes it.
func (s *subject) putFile(name string, data []byte) {
	path := filepath.Join(s.root, filepath.FromSlash(name))
	err := os.Remove(path)
	if data != nil {
		err = os.WriteFile(path, data, 0o644)
		os.Chtimes(path, longAgo, longAgo)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.t.Fatal(err)
	}
}

// subjects are repositories in all formats: as archives have them, so that no git is needed; and with packs, indexes,
// bitmaps and all else that git makes, and with a pool.
func subjects(t testing.TB) (all []*subject) {
	for _, o := range gittest.AllFormats {
		all = append(all, newSubject(t, "loose "+o.String(), bareLab(t, o)))
	}
	for _, o := range gittest.AllFormats {
		if _, why := gittest.Find(gittest.Newest); why != "" && o.RefFormat == gittest.Reftable {
			t.Logf("NOT TESTED, packs beside reftables need a git that is not here: %s", why)
			continue
		}
		all = append(all, newSubject(t, "packed "+o.String(), richLab(t, o)), newSubject(t, "pooled "+o.String(), pooledLab(t, o)))
	}
	return all
}

// richLab has two packs under a multi-pack-index with a bitmap, a commit-graph, a worktree, loose refs and objects, info/refs.
func richLab(t testing.TB, o gittest.Options) *lab {
	l := newLab(t, o)
	at := l.B
	for i := range 4 {
		at = l.commit(noise(uint64(i), 300), at)
	}
	l.Git("update-ref", "refs/heads/main", at)
	l.Git("repack", "-adq")
	l.Git("update-ref", "refs/heads/next", l.commit([]byte("next\n"), at))
	l.Git("tag", "-a", "-m", "three", "v3", "refs/heads/next")
	l.Git("repack", "-dq")
	l.Git("multi-pack-index", "write", "--bitmap")
	l.Git("commit-graph", "write", "--reachable")
	tree := filepath.Join(filepath.Dir(l.Path), "wt")
	l.Git("worktree", "add", "-q", "--detach", tree, "refs/heads/main")
	l.Program.Run(t, tree, nil, "", "update-ref", "refs/worktree/t", l.V1)
	l.Git("tag", "-a", "-m", "four", "v4", "refs/heads/main") // stays loose
	l.Git("update-server-info")
	return l
}

// pooledLab is a fork of a pool, both with a bitmap and a reverse index, and with a shallow commit.
func pooledLab(t testing.TB, o gittest.Options) *lab {
	pool := newLab(t, o)
	at := pool.B
	for i := range 3 {
		at = pool.commit(noise(uint64(i), 200), at)
	}
	pool.Git("update-ref", "refs/heads/main", at)
	pool.Git("-c", "pack.writeReverseIndex=true", "repack", "-adbq")
	fork := labOf(t, &gittest.Repo{})
	*fork.Repo = *pool.Repo
	fork.Path = filepath.Join(filepath.Dir(pool.Path), "fork.git")
	copyTree(t, pool.Path, fork.Path)
	os.MkdirAll(fork.File("refs/heads"), 0o755)
	os.RemoveAll(fork.File("objects"))
	fork.WriteFile("objects/info/alternates", []byte("../../repo.git/objects\n"))
	fork.Git("update-ref", "refs/heads/mine", fork.commit([]byte("mine\n"), at))
	fork.Git("tag", "-a", "-m", "mine", "mine", "refs/heads/mine")
	fork.Git("-c", "pack.writeReverseIndex=true", "repack", "-adblq")
	fork.WriteFile("shallow", []byte(at+"\n"))
	return fork
}

// Whatever is damaged in a repository: no command crashes, hangs, takes memory without bound or writes; no right peel
// that is told is a wrong one; and none says "clean" of refs that are served with another value or peel than before,
// but for what the formats can't show (unseen).
func TestMutatedRepositories(t *testing.T) {
	all := subjects(t)
	log := filepath.Join(t.TempDir(), "last") // is left where the program crashes
	passed := map[string]int{}
	for i := range *mutations {
		s := all[i%len(all)]
		seed := *mutationSeed<<32 + uint64(i)
		m := &mutator{rand.New(rand.NewPCG(seed, 0)), s.Format}
		kind := s.kinds[m.IntN(len(s.kinds))]
		name := s.files[kind][m.IntN(len(s.files[kind]))]
		var others [][]byte
		for _, other := range s.files[kind] {
			others = append(others, s.data[other])
		}
		bad, what := m.mutate(s.data[name], append(others, s.data[s.files[s.kinds[0]][0]]))
		if bad != nil && m.IntN(2) == 0 && m.reseal(kind, bad) {
			what += ", with a right checksum"
		}
		if bad != nil && bytes.Equal(bad, s.data[name]) {
			continue
		}
		damage := fmt.Sprintf("mutation %d of seed %d, %s, %s: %s", i, *mutationSeed, s.name, name, what)
		os.WriteFile(log, []byte(damage), 0o644)
		s.putFile(name, bad)
		for _, problem := range s.holds(t, kind) {
			t.Errorf("%s\n  %s", damage, problem)
		}
		if i%3 == 0 {
			for _, problem := range s.repaired() {
				t.Errorf("%s\n  %s", damage, problem)
			}
			s.restore()
		}
		s.putFile(name, s.data[name])
	}
	for _, s := range all {
		for why, n := range s.passed {
			passed[why] += n
		}
	}
	t.Logf("%d mutations; changes that can't be seen: %v", *mutations, passed)
}

// holds runs every command that reads on the damaged subject.
func (s *subject) holds(t *testing.T, kind string) (problems []string) {
	t.Helper()
	say := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	outs := map[string]ran{}
	gittest.Unchanged(t, s.root, func() {
		for _, args := range s.commands() {
			name := strings.Join(args, " ")
			out, trouble := s.bounded(args)
			if trouble != "" {
				say("%s %s", name, trouble)
				continue
			}
			outs[name] = out
			switch out.code {
			case 0, 1, 3, 6, 7:
			default:
				say("%s: exit %d: %s", name, out.code, out.err)
			}
		}
	})
	if len(problems) > 0 {
		return problems
	}
	for _, name := range []string{"scan", "scan --level=deep", "fix --dry-run"} {
		for _, f := range findings(outs[name]) {
			if right, known := s.truth[fmt.Sprint(f["oid"])]; known && f["expected"] != nil && f["expected"] != right {
				say("%s: %s is said to peel to %v, and it peels to %s", name, f["oid"], f["expected"], right)
			}
		}
	}
	now := s.look()
	for _, name := range []string{"size", "size --exclude-alternates --method=bitmap"} {
		problems = append(problems, s.sizesHold(kind, name, outs[name], now)...)
	}
	if p := fingerprintOf(outs["fingerprint"]); p != "" && clean(outs["scan"]) && (p == s.print) != s.view.sameValues(now) {
		say("fingerprint: %s, and of the sound repository %s; it serves %v", p, s.print, s.view.changed(now))
	}
	if code := outs["scan"].code; (code == 3 || code == 7) && outs["guard --accept"].code == 0 && outs["scan --level=quick"].code == code {
		say("guard lets gc run on stores that can't be read: %s", outs["scan --level=quick"].out)
	}
	for _, name := range []string{"scan", "scan --level=deep"} {
		if !clean(outs[name]) {
			continue
		}
		for _, ref := range s.view.changed(now) {
			why := s.unseen(&change{kind: kind, ref: ref, now: now, deep: strings.Contains(name, "deep"), found: findings(outs[name])})
			if why == "" {
				say("%s is clean, and %q was %+v and is %+v", name, ref, s.view[ref], now[ref])
			}
			s.passed[why]++
		}
	}
	return problems
}

// repaired mends what is damaged, as far as that goes, and compares: no ref has another value than before, and what a
// scan says then is what fix has said.
func (s *subject) repaired() (problems []string) {
	before := s.look()
	fix, trouble := s.bounded([]string{"fix", "--yes"})
	if trouble != "" {
		return []string{"fix --yes " + trouble}
	}
	after := s.look()
	for ref, was := range before {
		if is := after[ref]; is.oid != was.oid || is.target != was.target {
			problems = append(problems, fmt.Sprintf("fix --yes: %q was %+v and is %+v; it gave %d", ref, was, is, fix.code))
		}
	}
	scan := s.run("scan")
	if same := fix.code == scan.code || fix.code == exitRefused || fix.code == exitLocked; !same {
		problems = append(problems, fmt.Sprintf("fix --yes gives %d, and a scan afterwards %d\n%s%s", fix.code, scan.code, fix.err, scan.out))
	}
	for _, f := range findings(scan) {
		if f["fixable"] == true && f["severity"] == "error" && fix.code != exitRefused && scan.code == 1 {
			problems = append(problems, fmt.Sprintf("fix --yes gives %d and leaves %v", fix.code, f))
		}
	}
	return problems
}

// restore makes the subject what it was.
func (s *subject) restore() {
	filepath.WalkDir(s.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil
		}
		rel, _ := filepath.Rel(s.root, path)
		rel = filepath.ToSlash(rel)
		if _, known := s.data[rel]; !known && strings.Contains(rel, ".git/") && (strings.Contains(rel, "/reftable/") || strings.Contains(rel, "packed-refs")) {
			os.Remove(path)
		}
		return nil
	})
	for name, data := range s.data {
		if now, err := os.ReadFile(filepath.Join(s.root, filepath.FromSlash(name))); err != nil || !bytes.Equal(now, data) {
			s.putFile(name, data)
		}
	}
}

// helpers are files that only help to find objects: whatever they claim, a figure that is given is the right one.
var helpers = map[string]bool{".rev": true, ".bitmap": true, "multi-pack-index": true, "multi-pack .rev": true, "multi-pack .bitmap": true, "commit-graph": true}

// sizesHold compares the figures with those of the sound repository.
func (s *subject) sizesHold(kind, name string, out ran, now view) (problems []string) {
	if !helpers[kind] || len(s.view.changed(now)) > 0 {
		return nil
	}
	got := usageOf(out)
	for _, figure := range []string{"reachable", "own", "borrowed", "duplicate", "unreachable", "own_stored_elsewhere"} {
		if v := got[figure]; v != nil && v != s.sizes[name][figure] {
			problems = append(problems, fmt.Sprintf("%s: %s is %v, and was %v", name, figure, v, s.sizes[name][figure]))
		}
	}
	return problems
}

// fingerprintOf is the hash that a run has found; "" if none.
func fingerprintOf(out ran) string {
	for _, line := range strings.Split(out.out, "\n") {
		var m struct {
			Type        string
			Fingerprint any
		}
		if json.Unmarshal([]byte(line), &m) == nil && m.Type == "repository" && m.Fingerprint != nil {
			return fmt.Sprint(m.Fingerprint)
		}
	}
	return ""
}

// usageOf is the figures of a run of size.
func usageOf(out ran) map[string]any {
	for _, line := range strings.Split(out.out, "\n") {
		var m map[string]any
		if json.Unmarshal([]byte(line), &m) == nil && m["type"] == "usage" {
			return m
		}
	}
	return nil
}

// bounded runs a command; trouble says which bound it broke.
func (s *subject) bounded(args []string) (out ran, trouble string) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	done := make(chan string, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				done <- fmt.Sprintf("panics: %v\n%s", p, debug.Stack())
			}
		}()
		out = s.run(args...)
		done <- ""
	}()
	select {
	case trouble = <-done:
	case <-time.After(longestRun):
		stacks := make([]byte, 1<<20)
		s.t.Fatalf("%v hangs\n%s", args, stacks[:runtime.Stack(stacks, true)])
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > mostMemory {
		trouble += fmt.Sprintf("allocates %d bytes", n)
	}
	return out, trouble
}

// findings are those of a run, however it ended.
func findings(out ran) (all []map[string]any) {
	for _, line := range strings.Split(out.out, "\n") {
		var m map[string]any
		if json.Unmarshal([]byte(line), &m) == nil && m["type"] == "finding" {
			all = append(all, m)
		}
	}
	return all
}

// clean tells of a run that has nothing to say but notes.
func clean(out ran) bool {
	return out.code == 0 && !slices.ContainsFunc(findings(out), func(f map[string]any) bool { return f["severity"] != "info" })
}

// sameValues tells whether the refs that a repository shares have the same values in a later view, whatever is cached.
func (v view) sameValues(now view) bool {
	return !slices.ContainsFunc(v.changed(now), func(ref string) bool {
		return strings.HasPrefix(ref, "refs/") && (v[ref].there != now[ref].there || v[ref].oid != now[ref].oid || v[ref].target != now[ref].target)
	})
}

// changed are the refs that are another in a later view.
func (v view) changed(now view) (refs []string) {
	for ref, was := range v {
		if now[ref] != was {
			refs = append(refs, ref)
		}
	}
	for ref := range now {
		if _, there := v[ref]; !there {
			refs = append(refs, ref)
		}
	}
	return refs
}
