package remote

import (
	"bytes"
	"context"
	"strconv"

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
	KeepPack       bool   // however few the objects are
	Progress       bool
	Verbosity      int // 1 is normal
}

// Fetch brings objects, and all that they lead to, into a scratch repository. Nothing but objects
// and the file shallow changes there.
func (r *Remote) Fetch(ctx context.Context, s *Scratch, ids []oid.ID, o FetchOptions) error {
	var args []string
	if o.KeepPack {
		args = append(args, "-c", "fetch.unpackLimit=1")
	}
	args = append(args, "--git-dir="+s.Dir, "fetch", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance",
		"--no-recurse-submodules", "--no-prune", "--no-write-commit-graph")
	args = append(args, o.talk()...)
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

// talk are the options for how much git says.
func (o *FetchOptions) talk() []string {
	if !o.Progress {
		return []string{"--no-progress", "-q"}
	}
	args := []string{"--progress"}
	for range min(o.Verbosity-1, 5) {
		args = append(args, "-v")
	}
	return args
}
