// Package remote talks to the servers of other repositories. git programs do the talking: they
// know every protocol, credential and proxy that the user has set up, SHA-256 and protocol v2, and
// what a child process receives can't hurt us. Ours is what they are asked, in which environment,
// and what is made of the answers.
//
// Commands run in one of two places. What concerns the client as it is (its configuration, the
// list of a server's refs, a push) runs in its own repository. What receives objects runs in a
// Scratch repository: nothing enters the client that nobody has judged.
package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"refaudit/internal/vfs"
)

// Options say who talks, and in whose name.
type Options struct {
	// Program is the git program; "" is the one on PATH.
	Program string
	// Env is the environment as we got it, such as os.Environ. Credentials, prompts, GIT_SSH and
	// the like are the user's and stay.
	Env []string
	// Dir is the working folder: relative paths start there.
	Dir string
	// Alone tells that no repository is the client, whatever Env says and wherever we stand: the
	// user's configuration counts, and the system's.
	Alone bool
	// Name is the remote's name in the client's configuration; "" for none.
	Name string
	// Stderr gets what the git programs have to say.
	Stderr io.Writer
	// Limit is how long one git program may take; 0: no limit.
	Limit time.Duration
	// FS is where scratch repositories are made; nil is the machine's.
	FS vfs.FS
	// Trace is called with the arguments of every git program that is started; it may be nil.
	Trace func(args []string)
}

// Remote is one server's repository, as one client sees it.
type Remote struct {
	URL URL

	o        Options
	fs       vfs.FS
	client   []string // environment of commands that run in the client's repository
	scratch  []string // environment of commands that run in a Scratch
	rules    []string // arguments that hold git to our protocols
	settings Settings
}

// Open reads the client's configuration, and looks where it leads the URL. It does not talk to the
// server yet. A URL that is not for us, or that git's protocol rules forbid, is a *Refused.
func Open(ctx context.Context, url URL, o Options) (*Remote, error) {
	r := &Remote{URL: url, o: o, fs: o.FS}
	if r.o.Program == "" {
		r.o.Program = "git"
	}
	if r.o.Stderr == nil {
		r.o.Stderr = io.Discard
	}
	if r.fs == nil {
		r.fs = vfs.OS{}
	}
	r.client = without(o.Env, "GIT_QUARANTINE_PATH")
	if o.Alone {
		r.client = append(without(r.client, localVariables...), "GIT_DIR="+os.DevNull)
	}
	r.scratch = append(without(o.Env, localVariables...), "GIT_NO_REPLACE_OBJECTS=1")
	var err error
	if r.settings, err = r.readSettings(ctx); err != nil {
		return nil, err
	}
	allow, err := newRules(r.settings, Lookup(o.Env))
	if err != nil {
		return nil, err
	}
	r.rules = allow.arguments()
	if list, set := allow.environment(); set {
		r.client = append(without(r.client, allowVariable), allowVariable+"="+list)
		r.scratch = append(without(r.scratch, allowVariable), allowVariable+"="+list)
	}
	final, err := r.rewritten(ctx)
	if err != nil {
		return nil, err
	}
	return r, allow.check(final)
}

// Settings is the client's configuration.
func (r *Remote) Settings() Settings { return r.settings }

// rewritten is the URL after url.<base>.insteadOf. It is what git will open, so it has to be one of ours too.
func (r *Remote) rewritten(ctx context.Context) (URL, error) {
	out, err := r.output(ctx, r.client, "ls-remote", "--get-url", "--", r.URL.text)
	if err != nil {
		return URL{}, err
	}
	text := strings.TrimSuffix(string(out), "\n")
	if text == r.URL.text {
		return r.URL, nil
	}
	u, err := Parse(text, r.o.Dir)
	if refused := (*Refused)(nil); errors.As(err, &refused) {
		refused.Why += fmt.Sprintf(" (url.<base>.insteadOf makes it of %s)", r.URL)
	}
	return u, err
}

// Alternates is GIT_ALTERNATE_OBJECT_DIRECTORIES of the client: it holds in a scratch repository too.
func (r *Remote) Alternates() string {
	v, _ := Lookup(r.o.Env)(alternatesVariable)
	return v
}

const alternatesVariable = "GIT_ALTERNATE_OBJECT_DIRECTORIES"

// localVariables tie a git program to a repository, or to a half of one. They don't hold in a
// scratch repository. (What configures git by command, GIT_CONFIG_COUNT and GIT_CONFIG_PARAMETERS,
// is not among them, nor are the alternates: they hold everywhere.)
var localVariables = []string{
	"GIT_DIR", "GIT_COMMON_DIR", "GIT_WORK_TREE", "GIT_IMPLICIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY",
	"GIT_QUARANTINE_PATH", "GIT_NAMESPACE", "GIT_PREFIX", "GIT_SHALLOW_FILE", "GIT_GRAFT_FILE", "GIT_REPLACE_REF_BASE",
	"GIT_NO_REPLACE_OBJECTS", "GIT_REFERENCE_BACKEND", "GIT_DEFAULT_HASH", "GIT_DEFAULT_REF_FORMAT", "GIT_CONFIG",
	"GIT_ATTR_SOURCE", "GIT_INTERNAL_SUPER_PREFIX",
}

// without is an environment that lacks some variables.
func without(env []string, names ...string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains(names, name)
	})
}

// Lookup finds variables in an environment; the last one of a name counts.
func Lookup(env []string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for _, kv := range slices.Backward(env) {
			if k, v, _ := strings.Cut(kv, "="); k == name {
				return v, true
			}
		}
		return "", false
	}
}

// TempDir is the folder for scratch repositories that belong to no other: TMPDIR.
func TempDir() string { return os.TempDir() }
