package remote

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"refaudit/finding"
	"refaudit/internal/gittest"
	"refaudit/internal/vfs"
	"refaudit/oid"
	"refaudit/repo"
	"refaudit/scan"
)

// auditor audits servers, and looks that nothing is left.
type auditor struct {
	t    *testing.T
	git  *gittest.Program
	tmp  string
	env  []string
	runs int // fetches so far
	max  int // findings
}

func newAuditor(t *testing.T, git *gittest.Program) *auditor {
	a := &auditor{t: t, git: git, tmp: t.TempDir()}
	t.Setenv("TMPDIR", a.tmp)
	a.env = gittest.Env("PATH=" + filepath.Dir(git.Path) + ":" + os.Getenv("PATH"))
	return a
}

// open is Open for this machine's user without configuration.
func (a *auditor) open(ctx context.Context, url string) (*Remote, error) {
	a.t.Helper()
	u, err := Parse(url, a.tmp)
	if err != nil {
		a.t.Fatal(err)
	}
	return Open(ctx, u, Options{Program: a.git.Path, Alone: true, Env: a.env, Dir: a.tmp, Trace: func(args []string) {
		if slices.Contains(args, "fetch") {
			a.runs++
		}
	}})
}

// audit gives the findings as "id ref", and how it ended.
func (a *auditor) audit(ctx context.Context, url string) (found []string, res scan.Result, err error) {
	a.t.Helper()
	r, err := a.open(ctx, url)
	if err != nil {
		return nil, res, err
	}
	config, err := repo.UserConfig(repo.Options{Env: repo.EmptyEnv})
	if err != nil {
		a.t.Fatal(err)
	}
	policy, err := scan.NewRemotePolicy(config, a.tmp, false, time.Now())
	if err != nil {
		a.t.Fatal(err)
	}
	res, err = Audit(ctx, r, policy, scan.Options{MaxFindings: a.max}, func(f *finding.Finding) error {
		found = append(found, fmt.Sprintf("%s %s", f.ID, f.Ref))
		return nil
	})
	if left, _ := os.ReadDir(a.tmp); len(left) > 0 {
		a.t.Errorf("left in TMPDIR: %v", left)
	}
	slices.Sort(found)
	return found, res, err
}

func (a *auditor) want(url string, peels int64, state scan.State, want ...string) scan.Result {
	a.t.Helper()
	found, res, err := a.audit(context.Background(), url)
	if err != nil || res.Peels != peels || res.State != state || !slices.Equal(found, want) {
		a.t.Errorf("%s: %v\n got %q, %d peels, %s, unread %q\nwant %q, %d peels, %s", url, err, found, res.Peels, res.State, res.Unread, want, peels, state)
	}
	return res
}

func TestAuditOfEveryFormat(t *testing.T) {
	for _, o := range gittest.AllFormats {
		t.Run(o.String(), func(t *testing.T) {
			r := gittest.New(t, o)
			a := newAuditor(t, r.Program)
			r.Git("pack-refs", "--all")
			gittest.Unchanged(t, r.Path, func() {
				res := a.want(r.Path, 2, scan.Clean)
				if res.Refs != 4 { // with HEAD
					t.Errorf("%d refs", res.Refs)
				}
			})
			if o.RefFormat == gittest.Reftable {
				r.PatchTables(r.V1+r.A, r.V1+r.B)
			} else {
				r.EditPacked(func(s string) string { return strings.Replace(s, "v1\n^"+r.A, "v1\n^"+r.B, 1) })
			}
			gittest.Unchanged(t, r.Path, func() { a.want("file://"+r.Path, 2, scan.Found, "peelMismatch refs/tags/v1") })
		})
	}
}

// From servers that can leave out all but tags, from those that can't, and in both versions.
func TestAuditOverTheNetwork(t *testing.T) {
	r := gittest.New(t, gittest.Options{})
	nested := r.WriteTag(r.V1, "tag", "nested")
	r.Git("update-ref", "refs/tags/nested", nested)
	r.Git("update-ref", "refs/tags/light", r.A)
	r.Git("update-ref", "refs/notes/odd", r.V2)
	r.Git("pack-refs", "--all")
	r.EditPacked(func(s string) string {
		s = strings.Replace(s, "nested\n^"+r.A, "nested\n^"+r.V1, 1)
		s = strings.Replace(s, r.A+" refs/tags/light\n", r.A+" refs/tags/light\n^"+r.B+"\n", 1)
		return strings.Replace(s, "refs/notes/odd\n^"+r.B, "refs/notes/odd\n^"+r.A, 1)
	})
	a := newAuditor(t, r.Program)
	clean := a.env
	for _, filter := range []string{"false", "true"} {
		r.Git("config", "uploadpack.allowFilter", filter)
		for _, version := range []string{"0", "1", "2"} {
			for name, s := range map[string]gittest.Server{"https": r.Program.HTTPS(t, r.Path, ""), "ssh": r.Program.SSH(t)} {
				path := r.Path
				if name == "https" {
					path = "/."
				}
				a.env = append(append(slices.Clone(clean), s.Env...), "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=protocol.version", "GIT_CONFIG_VALUE_0="+version)
				a.want(s.URL+path, 4, scan.Found, "peelMismatch refs/notes/odd", "peelPartial refs/tags/nested", "peelUnexpected refs/tags/light")
			}
		}
	}
}

func TestAuditTakesTagsOnly(t *testing.T) {
	r := gittest.New(t, gittest.Options{})
	r.Git("config", "uploadpack.allowFilter", "true")
	r.RemoveLoose(r.Blob) // whoever asks for more gets an error
	a := newAuditor(t, r.Program)
	a.want(r.Path, 2, scan.Clean)
	if a.runs != 1 {
		t.Errorf("%d requests", a.runs)
	}
}

// git's server dies at a corrupt tag and names no ref. Among many tags the few are found by halving.
func TestAuditNamesWhatAServerCantHandOut(t *testing.T) {
	r := gittest.New(t, gittest.Options{})
	for i := range 60 {
		r.Git("update-ref", fmt.Sprintf("refs/tags/t%02d", i), r.WriteTag(r.A, "commit", fmt.Sprint(i)))
	}
	r.FalseTag("bad")
	r.FalseTag("z-bad")
	r.Git("pack-refs", "--all")
	r.EditPacked(func(s string) string { return strings.Replace(s, "refs/tags/t31\n^"+r.A, "refs/tags/t31\n^"+r.B, 1) })
	a := newAuditor(t, r.Program)
	res := a.want(r.Path, 62, scan.Incomplete, "auditSkipped refs/tags/bad", "auditSkipped refs/tags/z-bad", "peelMismatch refs/tags/t31")
	if len(res.Unread) != 2 || !strings.Contains(res.Unread[0], "git upload-pack") {
		t.Errorf("%q", res.Unread)
	}
	if a.runs > 30 {
		t.Errorf("%d requests", a.runs)
	}
	a.max = 1
	if found, res, err := a.audit(context.Background(), r.Path); err != nil || len(found) != 1 || res.Hidden != 2 || res.State != scan.Incomplete {
		t.Errorf("one finding of three: %q %+v %v", found, res, err)
	}
}

// After so many requests no more are made: what was not asked for alone is not clean.
func TestRequestsAreBounded(t *testing.T) {
	r := gittest.New(t, gittest.Options{})
	a := newAuditor(t, r.Program)
	remote, err := a.open(context.Background(), r.Path)
	if err != nil {
		t.Fatal(err)
	}
	s, err := remote.NewScratch(a.tmp, "x-", ScratchOptions{Format: oid.SHA1})
	if err != nil {
		t.Fatal(err)
	}
	ids := []oid.ID{oid.MustParse(r.V1)}
	for i := range 7 {
		ids = append(ids, oid.MustParse(strings.Repeat(fmt.Sprint(i+1), 40)))
	}
	ask := asking{r: remote, scratch: s, failed: map[oid.ID]error{}, left: 5}
	if err := ask.fetch(context.Background(), ids); err != nil {
		t.Fatal(err)
	}
	if a.runs != 5 || len(ask.failed) != 7 {
		t.Errorf("%d requests, %d failed: %v", a.runs, len(ask.failed), ask.failed)
	}
	enough := 0
	for _, err := range ask.failed {
		if errors.Is(err, errEnough) {
			enough++
		}
	}
	if enough == 0 {
		t.Error("nothing was left unasked")
	}
	if err := s.Remove(); err != nil {
		t.Error(err)
	}
}

func TestAuditOfOddRemotes(t *testing.T) {
	empty := gittest.Init(t, gittest.Options{})
	a := newAuditor(t, empty.Program)
	if res := a.want(empty.Path, 0, scan.Clean); len(res.Notices) != 1 || !strings.Contains(res.Notices[0], "no refs") {
		t.Errorf("%q", res.Notices)
	}
	if _, _, err := a.audit(context.Background(), filepath.Join(a.tmp, "nowhere")); err == nil {
		t.Error("a remote that is not there")
	}
	r := gittest.New(t, gittest.Options{})
	r.Git("replace", "-f", r.V1, r.V2)
	r.Git("pack-refs", "--all") // stores the peel of what stands in for v1
	a.want(r.Path, 3, scan.Found, "peelMismatch refs/tags/v1")
	for base, ok := range map[string]bool{"http://localhost:1/": false, "ext::sh ": false, "--upload-pack=x": false, "file://" + r.Path: true} {
		b := *a
		b.env = append(slices.Clone(a.env), "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=url."+base+".insteadOf", "GIT_CONFIG_VALUE_0=/short")
		if _, _, err := b.audit(context.Background(), "/short"); ok != (err == nil) || !ok && (!errors.As(err, new(*Refused)) || !strings.Contains(err.Error(), "insteadOf")) {
			t.Errorf("%s for /short: %v", base, err)
		}
	}
	b := *a
	b.env = append(slices.Clone(a.env), "GIT_ALLOW_PROTOCOL=file", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=url.https://localhost:1/.insteadOf", "GIT_CONFIG_VALUE_0=/short")
	if _, _, err := b.audit(context.Background(), "/short"); !errors.As(err, new(*Refused)) {
		t.Errorf("a protocol that is not allowed, by way of insteadOf: %v", err)
	}
	a.env = append(a.env, "GIT_ALLOW_PROTOCOL=ssh")
	if _, _, err := a.audit(context.Background(), r.Path); !errors.As(err, new(*Refused)) {
		t.Errorf("a protocol that is not allowed: %v", err)
	}
}

// A signal ends the programs that were started, and what they were to fill is removed.
func TestAuditIsEnded(t *testing.T) {
	r := gittest.New(t, gittest.Options{})
	a := newAuditor(t, r.Program)
	s := r.Program.SSH(t)
	begun := filepath.Join(t.TempDir(), "begun")
	script := filepath.Join(t.TempDir(), "slow")
	text := "#!/bin/sh\nmkdir " + begun + "-once 2>/dev/null && exec " + strings.TrimPrefix(s.Env[0], "GIT_SSH_COMMAND=") + ` "$@"` + "\ntouch " + begun + "\nwhile read line; do :; done\n"
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	a.env = append(a.env, "GIT_SSH_COMMAND="+script, "GIT_SSH_VARIANT=ssh")
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("a signal")
	go func() {
		for {
			if _, err := os.Stat(begun); err == nil {
				cancel(why)
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	started := time.Now()
	if _, _, err := a.audit(ctx, "ssh://host"+r.Path); !errors.Is(err, why) {
		t.Error(err)
	}
	if took := time.Since(started); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestALimitOfTime(t *testing.T) {
	r := gittest.New(t, gittest.Options{})
	a := newAuditor(t, r.Program)
	script := filepath.Join(t.TempDir(), "slow")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nwhile read line; do :; done\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	a.env = append(a.env, "GIT_SSH_COMMAND="+script, "GIT_SSH_VARIANT=ssh")
	remote, err := a.open(context.Background(), "ssh://host"+r.Path)
	if err != nil {
		t.Fatal(err)
	}
	remote.o.Limit = 300 * time.Millisecond
	if _, err := remote.List(context.Background(), false); err == nil || !strings.Contains(err.Error(), "longer than 300ms") {
		t.Error(err)
	}
}

// A program that a signal has ended gave no answer, however much it had printed before.
func TestDeathBySignalIsAnError(t *testing.T) {
	a := newAuditor(t, gittest.Need(t, gittest.Any))
	fake := filepath.Join(t.TempDir(), "git")
	text := "#!/bin/sh\ncase \"$*\" in *ls-remote*--symref*) printf '%040d\\trefs/heads/x\\n' 1; kill -SEGV $$;; *get-url*) for last; do :; done; echo \"$last\";; esac\n"
	if err := os.WriteFile(fake, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	a.git = &gittest.Program{Path: fake}
	if _, _, err := a.audit(context.Background(), "/srv/x"); err == nil || !strings.Contains(err.Error(), "segmentation fault") {
		t.Error(err)
	}
	a.git = &gittest.Program{Path: filepath.Join(a.tmp, "no-git")}
	if _, _, err := a.audit(context.Background(), "/srv/x"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// The client's configuration and the folder we stand in are none of an audit's business.
func TestAnAuditStandsAlone(t *testing.T) {
	r := gittest.New(t, gittest.Options{})
	a := newAuditor(t, r.Program)
	here := gittest.New(t, gittest.Options{})
	here.Git("config", "url./nowhere.insteadOf", r.Path)
	a.env = append(a.env, "GIT_DIR="+here.Path, "GIT_OBJECT_DIRECTORY="+here.File("objects"), "GIT_QUARANTINE_PATH="+here.File("objects"))
	gittest.Unchanged(t, here.Path, func() { a.want(r.Path, 2, scan.Clean) })
}

func TestScratchRepositoriesGoWhole(t *testing.T) {
	a := newAuditor(t, gittest.Need(t, gittest.Any))
	remote, err := a.open(context.Background(), "/srv/x")
	if err != nil {
		t.Fatal(err)
	}
	outside := filepath.Join(t.TempDir(), "outside")
	os.WriteFile(outside, nil, 0o600)
	for _, name := range []string{"plain", "# odd", "\"quoted\"", "line\nfeed"} {
		borrow := filepath.Join(t.TempDir(), name)
		s, err := remote.NewScratch(a.tmp, "x-", ScratchOptions{Format: oid.SHA256, Borrow: borrow, Shallow: []byte{}})
		if err != nil {
			t.Fatal(err)
		}
		os.Symlink(outside, filepath.Join(s.Dir, "link"))
		line, err := os.ReadFile(filepath.Join(s.Dir, "objects/info/alternates"))
		got := strings.TrimSuffix(string(line), "\n")
		if strings.HasPrefix(got, `"`) {
			got, _, err = Unquote(got)
		}
		if err != nil || got != borrow {
			t.Errorf("alternates: %q %v", line, err)
		}
		if out := a.git.Run(t, "", nil, "", "--git-dir="+s.Dir, "rev-parse", "--show-object-format", "--is-bare-repository", "--is-shallow-repository"); out.Stdout != "sha256\ntrue\ntrue\n" {
			t.Error(out)
		}
		if err := s.Remove(); err != nil {
			t.Error(err)
		}
	}
	if left, _ := os.ReadDir(a.tmp); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if _, err := os.Stat(outside); err != nil {
		t.Error("a link was followed")
	}
	if err := removeAll(vfs.OS{}, filepath.Join(a.tmp, "none")); err != nil {
		t.Error(err)
	}
	if _, err := remote.NewScratch(filepath.Join(a.tmp, "none"), "x-", ScratchOptions{Format: oid.SHA1}); err == nil {
		t.Error("a scratch repository nowhere")
	}
}
