package remote

import (
	"bytes"
	"context"
	"strconv"
	"strings"

	"refaudit/oid"
)

// FetchOptions are git's, of the same names.
type FetchOptions struct {
	Depth          int // 0: whole histories
	Deepen         int // depth counted from the present boundary
	ShallowSince   string
	ShallowExclude []string
	UpdateShallow  bool
	Refetch        bool
	Filter         string
	Family         string // ipv4, ipv6 or ""
	Progress       bool
	Verbosity      int // 1 is normal
}

// Fetch brings objects, and all that they lead to, into a scratch repository. Nothing but objects
// and the file shallow changes there.
func (r *Remote) Fetch(ctx context.Context, s *Scratch, ids []oid.ID, o FetchOptions) error {
	args := []string{"--git-dir=" + s.Dir, "fetch", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance",
		"--no-recurse-submodules", "--no-prune", "--no-write-commit-graph"}
	args = append(args, r.talk(ctx, o)...)
	option := func(name, value string) { args = append(args, name+"="+value) }
	if o.Depth > 0 {
		option("--depth", strconv.Itoa(o.Depth))
	}
	if o.Deepen > 0 {
		option("--deepen", strconv.Itoa(o.Deepen))
	}
	if o.ShallowSince != "" {
		option("--shallow-since", o.ShallowSince)
	}
	for _, ref := range o.ShallowExclude {
		option("--shallow-exclude", ref)
	}
	if o.UpdateShallow {
		args = append(args, "--update-shallow")
	}
	if o.Refetch {
		args = append(args, "--refetch")
	}
	if o.Filter != "" {
		option("--filter", o.Filter)
	}
	if o.Family != "" {
		args = append(args, "--"+o.Family)
	}
	args = append(args, "--stdin", remoteName)
	var in bytes.Buffer
	for _, id := range ids {
		in.Write(append(id.AppendHex(nil), '\n'))
	}
	return r.run(ctx, child{env: r.scratch, args: args, stdin: &in})
}

// talk are the options for how much git says. Its table of refs would speak of ids and FETCH_HEAD:
// nobody asked for those.
func (r *Remote) talk(ctx context.Context, o FetchOptions) []string {
	var args []string
	if o.Verbosity > 1 {
		for range min(o.Verbosity-1, 5) {
			args = append(args, "-v")
		}
	}
	switch {
	case !o.Progress:
		return append(args, "--no-progress", "-q")
	case r.atLeast(ctx, 2, 41):
		return append(args, "--progress", "--porcelain")
	}
	return append(args, "--progress")
}

// atLeast tells whether the git program is of some version or a later one.
func (r *Remote) atLeast(ctx context.Context, major, minor int) bool {
	out, err := r.output(ctx, r.scratch, "version")
	if err != nil {
		return false
	}
	parts := strings.SplitN(strings.TrimPrefix(string(out), "git version "), ".", 3)
	if len(parts) < 2 {
		return false
	}
	a, err1 := strconv.Atoi(parts[0])
	b, err2 := strconv.Atoi(parts[1])
	return err1 == nil && err2 == nil && (a > major || a == major && b >= minor)
}
