//go:build unix

package remotehelper

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"refaudit/internal/gittest"
	"refaudit/internal/logging"
	"refaudit/internal/remote"
	"refaudit/internal/vfs"
	"refaudit/oid"
)

// here runs the helper in this process, for the client at c, on what git says. The end of what it
// says comes when the helper has ended.
func (w *world) here(ctx context.Context, url, said string, out io.Writer) error {
	in := open{strings.NewReader(said), make(chan struct{})}
	defer close(in.closed)
	env := gittest.Env(append(append([]string{}, w.env...), "GIT_DIR="+w.in("c/.git"))...)
	return Run(ctx, Options{Name: "origin", URL: url, Env: env, Dir: w.in("c"), In: in, Out: out, Err: io.Discard, Log: logging.Discard(), Now: time.Now})
}

func (w *world) packs(what string) []string {
	w.t.Helper()
	list, err := filepath.Glob(w.in("c/.git/objects/pack/*." + what))
	if err != nil {
		w.t.Fatal(err)
	}
	return list
}

// Nobody takes the answer: objects that are in stay, but nothing holds them, and nothing of ours is left.
func TestNobodyTakesTheKeep(t *testing.T) {
	t.Setenv("PATH", filepath.Dir(gittest.Need(t, gittest.Any).Path)+":"+os.Getenv("PATH"))
	w := newWorld(t, gittest.Options{})
	w.must("", "init", "-q", "c")
	w.env = append(w.env, "GIT_QUARANTINE_PATH="+w.in("c/.git/objects")) // as in a hook
	fetch := "option cloning true\nlist\nfetch " + w.src.B + " refs/heads/main\n\n"
	var out bytes.Buffer
	if err := w.here(context.Background(), w.src.Path, fetch+"\n", &out); err != nil {
		t.Fatal(err)
	}
	keep := strings.TrimSuffix(w.packs("pack")[0], ".pack") + ".keep"
	if !strings.HasSuffix(out.String(), "\n\nlock "+keep+"\n\n") {
		t.Errorf("git was told %q", out.String())
	}
	if list := w.packs("keep"); len(list) > 0 {
		t.Errorf("git left %v, and so did we", list)
	}
	for _, pack := range w.packs("*") {
		os.Remove(pack)
	}
	room := failing(out.Len() - len("lock "+keep+"\n\n"))
	if err := w.here(context.Background(), w.src.Path, fetch, &room); !errors.Is(err, errGone) {
		t.Error(err)
	}
	if len(w.packs("pack")) != 1 || len(w.packs("keep")) != 0 {
		t.Errorf("packs %v, keeps %v", w.packs("pack"), w.packs("keep"))
	}
	w.clean("c/.git")
}

// A .keep that is somebody else's is not told to git, which would remove it.
func TestSomebodysKeepStays(t *testing.T) {
	t.Setenv("PATH", filepath.Dir(gittest.Need(t, gittest.Any).Path)+":"+os.Getenv("PATH"))
	w := newWorld(t, gittest.Options{})
	w.must("", "init", "-q", "c")
	fetch := "option cloning true\noption refetch true\nlist\nfetch " + w.src.B + " refs/heads/main\n\n\n"
	if err := w.here(context.Background(), w.src.Path, fetch, io.Discard); err != nil {
		t.Fatal(err)
	}
	keep := strings.TrimSuffix(w.packs("pack")[0], ".pack") + ".keep"
	if err := os.WriteFile(keep, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := w.here(context.Background(), w.src.Path, fetch, &out); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), keep) {
		t.Errorf("git was told %q", out.String())
	}
	if b, _ := os.ReadFile(keep); string(b) != "mine" {
		t.Errorf("%s holds %q", keep, b)
	}
}

// git goes away when all has come and is judged, and nothing has moved yet.
func TestGoneBeforeTheMove(t *testing.T) {
	t.Setenv("PATH", filepath.Dir(gittest.Need(t, gittest.Any).Path)+":"+os.Getenv("PATH"))
	w := newWorld(t, gittest.Options{})
	w.must("", "init", "-q", "c")
	url, err := remote.Parse(w.src.Path, w.dir)
	if err != nil {
		t.Fatal(err)
	}
	h := &helper{url: url, fs: vfs.OS{}, o: Options{Env: gittest.Env(append(w.env, "GIT_DIR="+w.in("c/.git"))...), Dir: w.dir, Err: io.Discard, Log: logging.Discard(), Now: time.Now}}
	wants := []want{{oid.MustParse(w.src.B), "refs/heads/main"}}
	w.unchanged("c/.git", func() {
		if _, err := h.Fetch(context.Background(), wants, &options{}, func() error { return errGone }); !errors.Is(err, errGone) {
			t.Error(err)
		}
	})
}

// A signal for the helper alone: what it has started ends, and the quarantine goes.
func TestASignalInTheMiddle(t *testing.T) {
	t.Setenv("PATH", filepath.Dir(gittest.Need(t, gittest.Any).Path)+":"+os.Getenv("PATH"))
	w := newWorld(t, gittest.Options{})
	w.silent("", "clone", "-q", w.url(), "c")
	n := w.commit(w.src.B, "new")
	env, begun := w.slow(t)
	w.env = env
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("a signal")
	go func() {
		for {
			if _, err := os.Stat(begun); err == nil {
				cancel(why)
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	w.unchanged("c/.git", func() {
		if err := w.here(ctx, "ssh://host"+w.src.Path, "list\nfetch "+n+" refs/heads/main\n\n", io.Discard); !errors.Is(err, why) {
			t.Error(err)
		}
	})
}

// Somebody else moves the boundary while we fetch: theirs stays, and the fetch fails.
func TestShallowIsMovedMeanwhile(t *testing.T) {
	t.Setenv("PATH", filepath.Dir(gittest.Need(t, gittest.Any).Path)+":"+os.Getenv("PATH"))
	w := newWorld(t, gittest.Options{})
	w.history(5)
	w.silent("", "clone", "-q", "--depth=1", w.url(), "c")
	tip := w.src.Git("rev-parse", "main")
	shallow := w.in("c/.git/shallow")
	before, err := os.ReadFile(shallow)
	if err != nil {
		t.Fatal(err)
	}
	s := w.src.Program.SSH(t)
	script := filepath.Join(t.TempDir(), "meanwhile")
	text := "#!/bin/sh\ntest -e " + w.in("lists") + " && echo " + w.src.A + " >" + shallow + "\ntouch " + w.in("lists") + "\nexec " + strings.TrimPrefix(s.Env[0], "GIT_SSH_COMMAND=") + ` "$@"` + "\n"
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	w.env = append(w.env, "GIT_SSH_COMMAND="+script, "GIT_SSH_VARIANT=ssh")
	err = w.here(context.Background(), "ssh://host"+w.src.Path, "option depth 3\nlist\nfetch "+tip+" refs/heads/main\n\n", io.Discard)
	if !errors.Is(err, errShallowMoved) {
		t.Error(err)
	}
	if b, _ := os.ReadFile(shallow); string(b) != w.src.A+"\n" {
		t.Errorf("shallow holds %q", b)
	}
	w.clean("c/.git")
	if err := errors.Join(os.WriteFile(shallow, before, 0o600), os.WriteFile(shallow+".lock", nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	w.env = w.env[:len(w.env)-2]
	if err := w.here(context.Background(), w.src.Path, "option depth 4\nlist\nfetch "+tip+" refs/heads/main\n\n", io.Discard); err == nil || !strings.Contains(err.Error(), "shallow.lock") {
		t.Errorf("locked: %v", err)
	}
}

// Nothing to fetch into, and nothing that was listed.
func TestFetchWithoutARepository(t *testing.T) {
	t.Setenv("PATH", filepath.Dir(gittest.Need(t, gittest.Any).Path)+":"+os.Getenv("PATH"))
	w := newWorld(t, gittest.Options{})
	in := open{strings.NewReader("fetch " + w.src.B + " refs/heads/main\n\n"), make(chan struct{})}
	defer close(in.closed)
	err := Run(context.Background(), Options{URL: w.src.Path, Env: gittest.Env(w.env...), Dir: w.dir, In: in, Out: io.Discard, Err: io.Discard, Log: logging.Discard(), Now: time.Now})
	if !errors.Is(err, errNoRepository) {
		t.Error(err)
	}
}

// Nobody would give the objects their second name.
func TestAClientOfTwoFormats(t *testing.T) {
	w := newWorld(t, gittest.Options{})
	for key, value := range map[string]string{"core.repositoryFormatVersion": "1", "extensions.compatObjectFormat": "sha256"} {
		w.src.Git("config", "--file", w.src.File("config"), key, value)
	}
	h := &helper{o: Options{Env: gittest.Env("GIT_DIR=" + w.src.Path), Dir: w.dir, Now: time.Now}}
	if err := (&batch{h: h}).openClient(); !errors.Is(err, errTwoFormats) {
		t.Error(err)
	}
}
