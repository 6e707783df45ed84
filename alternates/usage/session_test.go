package usage

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"refaudit/finding"
	"refaudit/internal/gittest"
	"refaudit/repo"
)

// Many forks of several pools, in parallel and twice: each has git's numbers, whatever was remembered.
func TestForksShareWhatIsKnownOfTheirPool(t *testing.T) {
	gittest.Need(t, gittest.Newest)
	dir := t.TempDir()
	var forks []*gittest.Repo
	var want []map[Figure]int64
	for i := range 3 * keepIdle / 2 { // more pools than a session keeps
		pool := gittest.New(t, gittest.Options{})
		for k := range i {
			addCommit(pool, fmt.Sprint("pool", i, k))
		}
		pool.Git("repack", "-adq", map[bool]string{true: "-b", false: "-f"}[i%2 == 0])
		for j := range 2 {
			f := *pool
			f.Path = filepath.Join(dir, fmt.Sprintf("fork%d-%d.git", i, j))
			pool.Git("clone", "-q", "--bare", "--shared", pool.Path, f.Path)
			if j == 1 {
				f.Git("update-ref", "refs/heads/main", f.A)
			}
			addCommit(&f, fmt.Sprint("fork", i, j))
			forks = append(forks, &f)
			want = append(want, newOracle(t, &f).figures())
		}
	}
	s := NewSession(2)
	defer s.Close()
	var wg sync.WaitGroup
	for range 2 {
		for i, f := range forks {
			wg.Go(func() {
				u := measured(t, s, f, Options{ExcludeAlternates: true})
				for _, name := range Figures {
					if u.Bytes[name] != want[i][name] || len(u.Unknown) > 0 {
						t.Errorf("%s: %s is %d, want %d; %v", f.Path, name, u.Bytes[name], want[i][name], u.Unknown)
					}
				}
			})
			if i%4 == 3 {
				wg.Wait()
			}
		}
		wg.Wait()
	}
	for _, c := range s.closures.all {
		for _, st := range c.stores {
			if !slices.ContainsFunc(s.idle, func(p *folder) bool { return p.store == st }) {
				t.Error("what a pool reaches is remembered longer than the pool")
			}
		}
	}
	if len(s.pools) > keepIdle || len(s.pools) != len(s.idle) {
		t.Errorf("%d pools are kept, %d of them idle", len(s.pools), len(s.idle))
	}
}

// What one fork decrees of parents holds for it alone.
func TestGraftsAreNotShared(t *testing.T) {
	gittest.Need(t, gittest.Newest)
	pool := plain(t)
	one, other := forkOf(t, pool), forkOf(t, pool)
	one.Git("tag", "-d", "v1")
	one.WriteFile("info/grafts", []byte(one.B+"\n"))
	other.Git("tag", "-d", "v1")
	s := NewSession(2)
	defer s.Close()
	for range 2 {
		for _, f := range []*gittest.Repo{one, other} {
			sameNumbers(t, f, measured(t, s, f, Options{Method: Walk}))
			sameNumbers(t, f, measured(t, s, f, Options{By: ByType}))
		}
	}
}

// A pool that changes between two forks is looked at again when an object is missed.
func TestAPoolThatIsRepackedMeanwhile(t *testing.T) {
	gittest.Need(t, gittest.Newest)
	pool := bitmapped(t)
	first := forkOf(t, pool)
	s := NewSession(2)
	defer s.Close()
	sameNumbers(t, first, measured(t, s, first, Options{}))
	addCommit(pool, "later")
	pool.Git("repack", "-adbq")
	second := forkOf(t, pool)
	sameNumbers(t, second, measured(t, s, second, Options{}))
	sameNumbers(t, first, measured(t, s, first, Options{}))
}

// A pack that is listed and then gone, as when a repack ends, is no missing object.
func TestAPackThatVanishes(t *testing.T) {
	gittest.Need(t, gittest.Newest)
	r := plain(t)
	r.Git("repack", "-adq")
	at := open(t, r, Options{})
	s := NewSession(2)
	defer s.Close()
	m := &measuring{s: s, repo: at, o: Options{Method: Walk}, u: &Usage{Bytes: map[Figure]int64{}, Unknown: map[Figure]string{}}}
	if err := m.open(); err != nil {
		t.Fatal(err)
	}
	r.Git("repack", "-adqFf", "--threads=1")
	addCommit(r, "so that the pack has another name")
	r.Git("repack", "-adq")
	if err := m.readRefs(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := m.long(t.Context()); err != errAgain {
		t.Fatalf("the first look: %v", err)
	}
	m.close()
	sameNumbers(t, r, measured(t, s, r, Options{Method: Walk}))
}

// Pools that borrow from each other, from us, or are one folder under several names.
func TestTangledAlternates(t *testing.T) {
	gittest.Need(t, gittest.Newest)
	for name, tangle := range map[string]func(t *testing.T, a, b, f *gittest.Repo){
		"nested": func(t *testing.T, a, b, f *gittest.Repo) {
			a.WriteFile("objects/info/alternates", []byte(b.File("objects")+"\n"))
			f.WriteFile("objects/info/alternates", []byte(a.File("objects")+"\n"))
		},
		"each other": func(t *testing.T, a, b, f *gittest.Repo) {
			a.WriteFile("objects/info/alternates", []byte(b.File("objects")+"\n"))
			b.WriteFile("objects/info/alternates", []byte(a.File("objects")+"\n"))
			f.WriteFile("objects/info/alternates", []byte(a.File("objects")+"\n"))
		},
		"twice": func(t *testing.T, a, b, f *gittest.Repo) {
			link := filepath.Join(t.TempDir(), "link")
			os.Symlink(a.Path, link)
			f.WriteFile("objects/info/alternates", []byte(a.File("objects")+"\n"+link+"/objects\n"+b.File("objects")+"\n"))
		},
		"ourselves": func(t *testing.T, a, b, f *gittest.Repo) {
			link := filepath.Join(t.TempDir(), "link")
			os.Symlink(f.Path, link)
			f.WriteFile("objects/info/alternates", []byte(link+"/objects\n"+a.File("objects")+"\n"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, b, f := plain(t), plain(t), plain(t)
			addCommit(a, "a")
			addCommit(b, "b")
			addCommit(f, "f")
			a.Git("repack", "-adbq")
			f.WriteFile("objects/pack/keep", nil)
			tangle(t, a, b, f)
			f.Git("update-ref", "refs/heads/a", a.Git("rev-parse", "refs/heads/main"))
			s := NewSession(2)
			defer s.Close()
			want := newOracle(t, f).figures()
			for _, o := range []Options{{}, {Method: Walk}, {Verify: true}} {
				u := measured(t, s, f, o)
				for _, figure := range Figures {
					if got, known := u.Bytes[figure]; known && got != want[figure] {
						t.Errorf("%s: %d, want %d; %v", figure, got, want[figure], u.Unknown)
					}
				}
				if _, known := u.Bytes[Reachable]; !known {
					t.Errorf("not known: %v", u.Unknown)
				}
			}
		})
	}
}

// Which refs of a pool count: as git takes the settings.
func TestSettingsForThePoolsRefs(t *testing.T) {
	gittest.Need(t, gittest.Newest)
	pool := plain(t)
	old := pool.Git("commit-tree", pool.Tree, "-m", "side")
	pool.Git("update-ref", "refs/side/x/one", old)
	pool.Git("update-ref", "refs/sidecar", pool.B)
	pool.Git("symbolic-ref", "refs/sym/side", "refs/side/x/one")
	pool.WriteFile("FOO", []byte(old+"\n"))
	pool.Git("symbolic-ref", "refs/outside/foo", "FOO")
	f := forkOf(t, pool)
	f.Git("update-ref", "refs/heads/side", old)
	for _, prefixes := range []string{"refs/side", "refs/side/", "refs/side/x refs/none", "refs/tags", "refs/*/x/one", "refs/s*", "refs/side* refs/tags/v1", "refs/sym", "refs/outside", ""} {
		f.Git("config", "core.alternateRefsPrefixes", prefixes)
		for _, method := range []Method{Walk, Auto} {
			s := NewSession(2)
			u := measured(t, s, f, Options{Method: method})
			s.Close()
			if len(u.Unknown) > 0 {
				t.Errorf("%q: %v", prefixes, u.Unknown)
			}
			sameNumbers(t, f, u)
		}
	}
	f.Git("config", "--unset", "core.alternateRefsPrefixes")
	text := fmt.Sprintf(`test -d "$1/objects" && test -z "$GIT_DIR" && echo %s #`, old)
	git := *f
	git.ExtraEnv = []string{"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=core.alternateRefsCommand", "GIT_CONFIG_VALUE_0=" + text}
	s := NewSession(2)
	defer s.Close()
	u := measured(t, s, f, withCommand(text))
	if len(u.Unknown) > 0 {
		t.Fatal(u.Unknown)
	}
	sameNumbers(t, &git, u)
}

// What only we reach is ours wherever it lies; it is stored elsewhere if we have no copy.
func TestOwnThatIsStoredElsewhere(t *testing.T) {
	gittest.Need(t, gittest.Newest)
	pool := plain(t)
	f := forkOf(t, pool)
	body := strings.Repeat("borrowed and not in use there\n", 99)
	blob := pool.WriteObject("blob", []byte(body))
	tree := f.GitIn("100644 blob "+blob+"\tfile\n", "mktree")
	f.Git("update-ref", "refs/heads/own", f.Git("commit-tree", tree, "-m", "x"))
	for _, copied := range []bool{false, true} {
		if copied {
			f.WriteObject("blob", []byte(body))
		}
		for _, o := range []Options{{}, {Method: Walk}, {By: ByType}} {
			s := NewSession(1)
			u := measured(t, s, f, o)
			s.Close()
			sameNumbers(t, f, u)
			if (u.Bytes[OwnStoredElsewhere] > 0) == copied || (u.Bytes[Duplicate] > 0) != copied {
				t.Errorf("copied %v: %v", copied, u.Bytes)
			}
		}
	}
}

// In a pre-receive hook what is pushed lies in a quarantine, and git calls the repository itself the alternate.
func TestTheQuarantineOfAPush(t *testing.T) {
	gittest.Need(t, gittest.Newest)
	for _, borrowed := range []bool{false, true} {
		r := plain(t)
		if borrowed {
			r = forkOf(t, plain(t))
		}
		tree := r.GitIn("100644 blob "+r.WriteObject("blob", []byte("ours"))+"\tours\n", "mktree")
		r.Git("update-ref", "refs/heads/own", r.Git("commit-tree", tree, "-m", "ours"))
		r.Git("repack", "-adql")
		s := NewSession(2)
		before := measured(t, s, r, Options{})
		quarantine := r.File("objects/tmp_objdir-incoming-XXX")
		if err := os.Mkdir(quarantine, 0o777); err != nil {
			t.Fatal(err)
		}
		in := *r
		in.ExtraEnv = []string{"GIT_OBJECT_DIRECTORY=" + quarantine, "GIT_ALTERNATE_OBJECT_DIRECTORIES=" + r.File("objects"), "GIT_QUARANTINE_PATH=" + quarantine}
		pushed := in.Git("commit-tree", r.Tree, "-p", r.B, "-m", "pushed")
		env := map[string]string{}
		for _, kv := range in.ExtraEnv {
			name, value, _ := strings.Cut(kv, "=")
			env[name] = value
		}
		o := Options{Repo: repo.Options{Env: repo.MapEnv(env)}}
		u := measured(t, s, r, o)
		for _, f := range Figures {
			if f != Files && f != Unreachable && u.Bytes[f] != before.Bytes[f] {
				t.Errorf("borrowed %v: %s is %d in the hook, %d before", borrowed, f, u.Bytes[f], before.Bytes[f])
			}
		}
		st, err := os.Stat(filepath.Join(quarantine, pushed[:2], pushed[2:]))
		if err != nil {
			t.Fatal(err)
		}
		if len(u.Unknown) > 0 || u.Bytes[Unreachable] != before.Bytes[Unreachable]+st.Size() || u.Bytes[Files] != before.Bytes[Files]+st.Size() {
			t.Errorf("borrowed %v: %v %v, before %v and %d", borrowed, u.Bytes, u.Unknown, before.Bytes, st.Size())
		}
		// what is pushed again lies twice, and its smaller copy counts
		hello, _ := os.ReadFile(pushedAgain(t, quarantine, r))
		again := measured(t, s, r, o)
		if again.Bytes[Reachable] != u.Bytes[Reachable] || again.Bytes[Own] != u.Bytes[Own] || again.Bytes[Files] != u.Bytes[Files]+int64(len(hello)) {
			t.Errorf("borrowed %v: %v, and before the blob came again %v", borrowed, again.Bytes, u.Bytes)
		}
		s.Close()
	}
}

// pushedAgain puts a loose copy of a blob of the repository's own into the quarantine.
func pushedAgain(t *testing.T, quarantine string, r *gittest.Repo) string {
	t.Helper()
	id := r.Git("rev-parse", "refs/heads/own:ours")
	in := *r
	in.Path = filepath.Join(t.TempDir(), "elsewhere")
	in.WriteObject("blob", []byte("ours"))
	path := filepath.Join(quarantine, id[:2], id[2:])
	os.MkdirAll(filepath.Dir(path), 0o777)
	if err := os.WriteFile(path, in.ReadFile(in.LooseName(id)), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// A multi-pack-index that names a pack which is gone: its bitmap is not believed, and what is lost is missed.
func TestAMultiPackIndexThatNamesALostPack(t *testing.T) {
	gittest.Need(t, gittest.Newest)
	for _, lost := range []bool{true, false} {
		r := plain(t)
		r.Git("repack", "-dq")
		addCommit(r, "more")
		r.Git("repack", "-dq")
		r.Git("multi-pack-index", "write", "--bitmap")
		packs, _ := filepath.Glob(r.File("objects/pack/*.pack"))
		if len(packs) != 2 {
			t.Fatal(packs)
		}
		for i, ext := range []string{".pack", ".idx", ".rev"} {
			from := strings.TrimSuffix(packs[0], ".pack") + ext
			to := strings.Replace(from, "pack-", "pack-renamed", 1)
			if lost {
				to = from + ".lost"
			}
			if err := os.Rename(from, to); err != nil && i < 2 {
				t.Fatal(err)
			}
		}
		s := NewSession(2)
		u := measured(t, s, r, Options{})
		s.Close()
		if _, known := u.Bytes[Reachable]; known == lost || u.Method != Walk {
			t.Errorf("lost %v: %v %v, %s", lost, u.Bytes, u.Unknown, u.Method)
		}
		if len(u.Findings) == 0 {
			t.Errorf("lost %v: nothing is said of the multi-pack-index", lost)
		}
	}
}

// What is wrong with a pool's multi-pack-index is told for each fork, and where it lies.
func TestTheMultiPackIndexOfAPoolIsDamaged(t *testing.T) {
	gittest.Need(t, gittest.Newest)
	pool := plain(t)
	pool.Git("repack", "-adq")
	pool.Git("multi-pack-index", "write")
	forks := []*gittest.Repo{forkOf(t, pool), forkOf(t, pool)}
	harm(t, pool, "objects/pack/multi-pack-index", 0)
	s := NewSession(2)
	defer s.Close()
	for _, fork := range forks {
		u := measured(t, s, fork, Options{ExcludeAlternates: true})
		if len(u.Findings) != 1 || u.Findings[0].ID != finding.BitmapUnusable || u.Findings[0].File != pool.File("objects/pack/multi-pack-index") || !u.Complete() {
			t.Errorf("%+v %v", u.Findings, u.Unknown)
		}
	}
}

// A bitmap whose checksum fits and that says something else is found out when it is compared.
func TestVerifyMethodFindsALyingBitmap(t *testing.T) {
	gittest.Need(t, gittest.Newest)
	r := bitmapped(t)
	name, _ := filepath.Glob(r.File("objects/pack/*.bitmap"))
	rel, _ := filepath.Rel(r.Path, name[0])
	good := r.ReadFile(rel)
	h := r.Format.New()
	found := false
	for at := 32; at < len(good)-20 && !found; at++ { // some byte of an entry
		bad := append([]byte{}, good[:len(good)-20]...)
		bad[at] ^= 1
		h.Reset()
		h.Write(bad)
		r.WriteFile(rel, h.Sum(bad))
		s := NewSession(2)
		u := measured(t, s, r, Options{Verify: true})
		s.Close()
		r.WriteFile(rel, good)
		want := newOracle(t, r).figures()
		if u.Bytes[Reachable] != want[Reachable] {
			t.Fatalf("byte %d: %d, want %d", at, u.Bytes[Reachable], want[Reachable])
		}
		for _, f := range u.Findings {
			if strings.Contains(f.Message, "other numbers than walking") {
				if found = true; u.Method != Walk || u.Reason != "bitmaps give other numbers than walking" {
					t.Errorf("byte %d: by %s: %s", at, u.Method, u.Reason)
				}
			}
		}
	}
	if !found {
		t.Error("no bitmap was found to lie")
	}
}
