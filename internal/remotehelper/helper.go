// Package remotehelper is git-remote-refaudit, which git runs for a URL refaudit::<url>. It clones,
// fetches and pushes as git would, and judges on the way what the server says its tags peel to.
//
// Objects arrive in a quarantine: a scratch repository inside of the client's object folder. Only
// when every tag that was asked for is judged do they move into the repository, and git
// gets to know. It never hands the connection over to git (the capabilities connect and
// stateless-connect): git would fetch by itself then, and nothing be judged.
package remotehelper

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"refaudit/internal/logging"
	"refaudit/internal/remote"
	"refaudit/internal/vfs"
)

// Options are what the helper gets from git and from the world.
type Options struct {
	Name string // of the remote; the URL where it has none
	URL  string // what stands behind refaudit::
	Env  []string
	Dir  string // the working folder
	In   io.Reader
	Out  io.Writer
	Err  io.Writer // for people
	Log  *logging.Logger
	Now  func() time.Time
	FS   vfs.FS // nil: the machine's
}

// Run serves git until it has no more commands. An error is one that git has to hear of by our
// exit code; it has not been printed yet.
func Run(ctx context.Context, o Options) error {
	in := newLines(o.In)
	url, err := remote.Parse(o.URL, o.Dir)
	if err != nil {
		in.next(ctx) // git has a command for us, and an older one would die of writing it to nobody
		return err
	}
	h := &helper{o: o, url: url, fs: o.FS}
	if h.fs == nil {
		h.fs = vfs.OS{}
	}
	defer func() {
		if err := h.dropKeeps(); err != nil {
			o.Log.Warn("a .keep file is left", logging.Error(err))
		}
	}()
	s := session{in: in, out: o.Out, backend: h}
	s.options.verbosity = 1
	return s.serve(ctx)
}

// helper does what git asks for.
type helper struct {
	o      Options
	url    remote.URL
	fs     vfs.FS
	remote *remote.Remote
	list   *remote.Listing // what git was told last; nil: nothing yet
	byName map[string]int  // of list.Refs
	keeps  []string        // .keep files of ours
}

// name is the remote's name in the client's configuration; "" where git was given a URL.
func (h *helper) name() string {
	if strings.HasSuffix(h.o.Name, "::"+h.o.URL) || h.o.Name == h.o.URL {
		return ""
	}
	return h.o.Name
}

// open reads the configuration, once.
func (h *helper) open(ctx context.Context) (*remote.Remote, error) {
	if h.remote != nil {
		return h.remote, nil
	}
	r, err := remote.Open(ctx, h.url, remote.Options{Env: h.o.Env, Dir: h.o.Dir, Name: h.name(), Stderr: h.o.Err,
		Trace: func(args []string) { h.o.Log.Debug("run git", logging.Strings("args", args)) }})
	if err != nil {
		return nil, err
	}
	h.remote = r
	return r, nil
}

// List implements backend.
func (h *helper) List(ctx context.Context, forPush bool) (*remote.Listing, error) {
	r, err := h.open(ctx)
	if err != nil {
		return nil, err
	}
	list, err := r.List(ctx, forPush)
	if err != nil {
		return nil, err
	}
	if list.Format == 0 {
		if list.Format, err = r.FormatOfEmpty(ctx); err != nil {
			return nil, err
		}
	}
	for _, u := range list.Unusable {
		h.warn("left out what the remote advertises as %q: git could not use it", u.Line)
	}
	h.list, h.byName = list, nil
	return list, nil
}

// refs is the listing by name.
func (h *helper) refs() map[string]int {
	if h.byName == nil {
		h.byName = make(map[string]int, len(h.list.Refs))
		for i := range h.list.Refs {
			h.byName[h.list.Refs[i].Name] = i
		}
	}
	return h.byName
}

// Push implements backend.
func (h *helper) Push(ctx context.Context, refspecs []string, o *options) ([]status, error) {
	r, err := h.open(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := r.Push(ctx, refspecs, remote.PushOptions{DryRun: o.dryRun, Atomic: o.atomic, Signed: o.pushCert, Leases: o.leases,
		ForceIfIncludes: o.forceIfIncludes, Options: o.pushOptions, Family: o.family, Progress: o.progress, Verbosity: o.verbosity})
	if err != nil && len(rows) == 0 {
		return nil, err
	}
	return statuses(refspecs, rows, err), nil
}

func (h *helper) warn(format string, args ...any) {
	fmt.Fprintf(h.o.Err, "warning: refaudit: "+format+"\n", args...)
}

// env looks a variable up.
func (h *helper) env(name string) (string, bool) { return remote.Lookup(h.o.Env)(name) }

// dropKeeps removes those .keep files that git has left: it removes the ones that it was told of.
func (h *helper) dropKeeps() error {
	var errs []error
	for _, path := range h.keeps {
		if err := h.fs.Remove(path); err != nil && !vfs.Missing(err) {
			errs = append(errs, err)
		}
	}
	h.keeps = nil
	return errors.Join(errs...)
}
