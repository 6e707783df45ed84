// Package gittest builds repositories for tests with real git programs, in an environment that
// takes nothing from the machine: no configuration, one identity, one date.
//
// Three gits serve, because each of them damages repositories in its own way:
//
//	Old   before 2.45   no reftables; pack-refs caches the peel of a tag whose type line is false
//	Mid   2.45 .. 2.52  the same in a reftable
//	New   from 2.55 on  refs migrate and rewrites of old packed-refs files lose peels
//
// They are looked for in the environment (REFAUDIT_GIT_OLD, REFAUDIT_GIT_MID, REFAUDIT_GIT_NEW),
// then where tools/modern-git installs them, then on PATH.
package gittest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Which chooses a git.
type Which uint8

// The gits. The zero Which is the newest there is that can do what is asked.
const (
	Any Which = iota
	Old
	Mid
	Newest
)

// A place says how one kind of git is recognised and where it may be found.
type place struct {
	name     string
	env      string
	suite    string // below the cache folder that tools/modern-git fills
	from, to version
}

var places = map[Which]place{
	Any:    {"any (2.28 or later)", "", "", version{2, 28}, version{1000, 0}},
	Old:    {"old (before 2.45)", "REFAUDIT_GIT_OLD", "bookworm", version{2, 28}, version{2, 45}},
	Mid:    {"middle (2.45 to 2.52)", "REFAUDIT_GIT_MID", "trixie", version{2, 45}, version{2, 53}},
	Newest: {"new (2.55 or later)", "REFAUDIT_GIT_NEW", "sid", version{2, 55}, version{1000, 0}},
}

// Program is one git program.
type Program struct {
	Path    string // absolute
	Version string // as `git version` prints it, without "git version "
	version version
}

// start is the environment the test program was started with: a test may change HOME later.
var start = func() (e struct {
	cache, path string
	vars        map[Which]string
}) {
	e.cache, _ = os.UserCacheDir()
	e.path, _ = exec.LookPath("git")
	e.vars = map[Which]string{}
	for w, p := range places {
		e.vars[w] = os.Getenv(p.env)
	}
	return e
}()

// Find looks for a git; why says what was looked for where it is nil.
func Find(w Which) (p *Program, why string) {
	found.Do(findAll)
	if w == Any {
		for _, w := range []Which{Newest, Mid, Old} {
			if gits[w] != nil {
				return gits[w], ""
			}
		}
	}
	return gits[w], missing[w]
}

// Need is Find for a test, which is skipped without a git of that kind. Where
// REFAUDIT_REQUIRE_GITS=1 is set, as in CI, it fails.
func Need(t testing.TB, w Which) *Program {
	t.Helper()
	p, why := Find(w)
	switch {
	case p != nil:
	case os.Getenv("REFAUDIT_REQUIRE_GITS") == "1" || w == Any:
		t.Fatalf("this test needs a git that is not here: %s", why)
	default:
		t.Skipf("NOT TESTED, this needs a git that is not here: %s", why)
	}
	return p
}

var (
	found   sync.Once
	gits    = map[Which]*Program{}
	missing = map[Which]string{}
)

func findAll() {
	os.UserCacheDir() // both are asked again so that go test sees what a cached result depends on
	for w, p := range places {
		os.Getenv(p.env)
		gits[w], missing[w] = findOne(w, p)
	}
}

func findOne(w Which, p place) (*Program, string) {
	candidates := []string{start.vars[w]}
	if start.vars[w] == "" {
		candidates = candidates[:0]
		if p.suite != "" && start.cache != "" {
			candidates = append(candidates, filepath.Join(start.cache, "modern-git", p.suite, "bin", "git"))
		}
		if start.path != "" {
			candidates = append(candidates, start.path)
		}
	}
	var tried []string
	for _, path := range candidates {
		text, v, err := askVersion(path)
		switch {
		case err != nil:
			tried = append(tried, fmt.Sprintf("%s: %v", path, err))
		case v.less(p.from) || !v.less(p.to):
			tried = append(tried, fmt.Sprintf("%s is %s", path, text))
		default:
			return &Program{Path: path, Version: text, version: v}, ""
		}
	}
	return nil, fmt.Sprintf("%s, set %s or run tools/modern-git (tried: %s)", p.name, p.env, strings.Join(tried, "; "))
}

type version struct{ major, minor int }

func (v version) less(w version) bool {
	return v.major < w.major || v.major == w.major && v.minor < w.minor
}

func askVersion(path string) (string, version, error) {
	cmd := exec.Command(path, "version")
	cmd.Env = Env()
	out, err := cmd.Output()
	if err != nil {
		return "", version{}, err
	}
	text := strings.TrimPrefix(strings.TrimSpace(string(out)), "git version ")
	var v version
	parts := strings.SplitN(text, ".", 3)
	if len(parts) < 2 {
		return text, v, fmt.Errorf("%q is no version", text)
	}
	if v.major, err = strconv.Atoi(parts[0]); err == nil {
		v.minor, err = strconv.Atoi(parts[1])
	}
	return text, v, err
}

// Reftable tells whether the program knows the reftable backend.
func (p *Program) Reftable() bool { return !p.version.less(version{2, 45}) }
