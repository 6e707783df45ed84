package usage

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"refaudit/finding"
	"refaudit/internal/child"
	"refaudit/internal/refname"
	"refaudit/internal/refstore"
	"refaudit/oid"
	"refaudit/repo"
)

// poolRefs says which refs of a pool count.
type poolRefs struct {
	command  string // core.alternateRefsCommand
	asked    bool   // the command is set, perhaps to nothing, which can't be run
	prefixes string // core.alternateRefsPrefixes
	set      bool   // prefixes are set
	ignored  string // where a command stands that is not run, since the repository itself could have set it
}

// poolRefsOf reads the settings. A command is taken only from where the repository can't set it.
func poolRefsOf(c *repo.Config) (poolRefs, error) {
	var p poolRefs
	if v, ok := c.Protected("core.alternateRefsCommand"); ok {
		if v.NoValue {
			return p, fmt.Errorf("%s: core.alternateRefsCommand has no value", v.Origin)
		}
		p.command, p.asked = v.Text, true
	}
	if v, ok := c.Get("core.alternateRefsCommand"); ok && !v.Scope.Protected() {
		p.ignored = v.Origin.String()
	}
	v, ok := c.Get("core.alternateRefsPrefixes")
	if ok && v.NoValue {
		return p, fmt.Errorf("%s: core.alternateRefsPrefixes has no value", v.Origin)
	}
	p.prefixes, p.set = v.Text, ok
	return p, nil
}

func (p *poolRefs) key() string {
	return fmt.Sprintf("%q %v %q %v", p.command, p.asked, p.prefixes, p.set)
}

// tips are the ids that a pool's refs lead to, and its repository, as far as that can be opened. They
// are nil, with a finding, where they can't be known.
func (p *poolRefs) tips(ctx context.Context, objects string, format oid.Format, o repo.Options) (ids []oid.ID, owner *repo.Repo, bad *finding.Finding, err error) {
	dir, ok := strings.CutSuffix(objects, string(filepath.Separator)+"objects")
	if !ok {
		return nil, nil, unreadable(objects, "is not the objects folder of a repository: nothing tells which of its objects are in use"), nil
	}
	owner, all, kept, why, err := p.read(ctx, dir, format, o)
	switch {
	case err != nil:
		return nil, nil, nil, err
	case why != "" && !p.asked:
		return nil, owner, unreadable(objects, "%s", why), nil
	}
	if p.asked {
		if kept, err = p.run(ctx, dir, format); err != nil {
			if ctx.Err() != nil {
				return nil, nil, nil, ctx.Err()
			}
			return nil, owner, unreadable(objects, "core.alternateRefsCommand: %v", err), nil
		}
	}
	if len(kept) == 0 && all > 0 {
		what := "core.alternateRefsPrefixes match none"
		if p.asked {
			what = "core.alternateRefsCommand prints none"
		}
		f := finding.New(finding.AlternateExclusionEmpty, finding.Pos{File: objects}, "the repository there has %s, and %s: nothing would be left out", finding.Count(all, "ref", "refs"), what)
		return nil, owner, &f, nil
	}
	if kept == nil {
		kept = []oid.ID{}
	}
	return kept, owner, nil, nil
}

func unreadable(objects, format string, args ...any) *finding.Finding {
	f := finding.New(finding.AlternateRefsUnreadable, finding.Pos{File: objects}, format, args...)
	return &f
}

// read counts the refs of the repository at dir, and gives those that the prefixes match; why they
// can't be read is a sentence.
func (p *poolRefs) read(ctx context.Context, dir string, format oid.Format, o repo.Options) (r *repo.Repo, all int, kept []oid.ID, why string, err error) {
	r, err = repo.OpenGitDir(dir, repo.Options{Env: withoutRepository(o.Env), Cwd: o.Cwd, Head: o.Head, UserFiles: o.UserFiles})
	if err != nil {
		return nil, 0, nil, fmt.Sprintf("its repository can't be read: %v", err), nil
	}
	stores, err := refstore.Open(r)
	if err != nil {
		return r, 0, nil, fmt.Sprintf("its refs can't be read: %v", err), nil
	}
	match := p.matcher()
	broken := ""
	var symrefs []symbolic
	var others []tip // that the prefixes don't match
	sum, err := stores.Visit(ctx, refstore.Options{Broken: true}, func(finding.Finding) error { return nil }, func(ref *refstore.Ref) error {
		if ref.Broken != "" {
			if broken == "" && !ref.Hidden && bytes.HasPrefix(ref.Name, []byte("refs/")) && match(ref.Name) {
				broken = told(ref)
			}
			return nil
		}
		if ref.Hidden || !bytes.HasPrefix(ref.Name, []byte("refs/")) {
			return nil
		}
		id, target := ref.Leads()
		matches := match(ref.Name)
		switch {
		case id == nil:
			symrefs = append(symrefs, symbolic{string(ref.Name), string(target), matches})
			return nil
		case matches:
			kept = append(kept, oid.FromBytes(r.Format, id))
		default:
			others = append(others, tip{string(ref.Name), oid.FromBytes(r.Format, id)})
		}
		all++
		return nil
	})
	for _, t := range ledTo(symrefs, others) {
		kept = append(kept, t.id)
	}
	if err != nil {
		return r, 0, nil, "", err
	}
	if r.Format != format {
		why = fmt.Sprintf("its objects are of %v, and ours of %v", r.Format, format)
	}
	if broken == "" && len(sum.Refused) > 0 {
		broken = sum.Refused[0]
	}
	if len(sum.Unread) > 0 {
		broken = sum.Unread[0]
	}
	if broken != "" {
		why = "its refs can't be read: " + broken
	}
	return r, all, kept, why, nil
}

// matcher tells whether a ref counts, by the prefixes: git hands them to for-each-ref as patterns.
func (p *poolRefs) matcher() func(name []byte) bool {
	fields := strings.Fields(p.prefixes)
	if len(fields) == 0 {
		return func([]byte) bool { return true }
	}
	var globs []*refname.Glob
	for _, f := range fields {
		globs = append(globs, refname.NewGlob(f, refname.PathName))
	}
	return func(name []byte) bool {
		for i, f := range fields {
			if rest, ok := bytes.CutPrefix(name, []byte(f)); ok && (len(rest) == 0 || rest[0] == '/' || f[len(f)-1] == '/') {
				return true
			}
			if globs[i].Match(name) {
				return true
			}
		}
		return false
	}
}

// commandLimit is how long core.alternateRefsCommand may take.
var commandLimit = 2 * time.Minute

// run asks core.alternateRefsCommand, as git does: the shell gets it with the repository's path.
func (p *poolRefs) run(ctx context.Context, dir string, format oid.Format) ([]oid.ID, error) {
	if p.command == "" {
		return nil, errors.New("it is set to nothing: git fails to run it, and leaves nothing out")
	}
	ctx, cancel := context.WithTimeoutCause(ctx, commandLimit, fmt.Errorf("it takes longer than %v", commandLimit))
	defer cancel()
	cmd := exec.Command("sh", "-c", p.command+` "$@"`, p.command, dir)
	for _, kv := range os.Environ() {
		if name, _, _ := strings.Cut(kv, "="); !ofOneRepository[name] {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	cmd.Env = append(cmd.Env, "GIT_NO_REPLACE_OBJECTS=1", "GIT_NO_LAZY_FETCH=1", "GIT_TERMINAL_PROMPT=0")
	return child.Run(ctx, cmd, func(r io.Reader) ([]oid.ID, error) { return readIDs(r, format) })
}

// A line that is longer than any object id is not shown in whole.
const lineMost, lineShown = 80, 16

// readIDs reads object ids, one a line, as git takes them: nothing else may stand there.
func readIDs(r io.Reader, format oid.Format) ([]oid.ID, error) {
	ids := []oid.ID{}
	lines := bufio.NewReader(r)
	for n := 1; ; n++ {
		line, err := lines.ReadSlice('\n')
		line = bytes.TrimSuffix(line, []byte("\n"))
		switch {
		case err == io.EOF && len(line) == 0:
			return ids, nil
		case err != nil && err != io.EOF && err != bufio.ErrBufferFull:
			return nil, err
		case len(line) > lineMost:
			return nil, fmt.Errorf("prints what is no object id: line %d begins with %q and is longer than any", n, line[:lineShown])
		}
		id, err := oid.Parse(string(line))
		if err == nil && id.Format() != format {
			err = fmt.Errorf("object id %q is not of %v", line, format)
		}
		if err != nil {
			return nil, fmt.Errorf("prints what is no object id: line %d: %w", n, err)
		}
		ids = append(ids, id)
	}
}

// ofOneRepository are the variables that hold for the repository we look at and no other.
var ofOneRepository = map[string]bool{
	"GIT_ALTERNATE_OBJECT_DIRECTORIES": true, "GIT_CONFIG": true, "GIT_CONFIG_PARAMETERS": true, "GIT_CONFIG_COUNT": true,
	"GIT_OBJECT_DIRECTORY": true, "GIT_DIR": true, "GIT_WORK_TREE": true, "GIT_IMPLICIT_WORK_TREE": true, "GIT_GRAFT_FILE": true,
	"GIT_INDEX_FILE": true, "GIT_NO_REPLACE_OBJECTS": true, "GIT_REPLACE_REF_BASE": true, "GIT_PREFIX": true,
	"GIT_SHALLOW_FILE": true, "GIT_COMMON_DIR": true, "GIT_REFERENCE_BACKEND": true, "GIT_QUARANTINE_PATH": true,
}

// withoutRepository is an environment for another repository.
func withoutRepository(env repo.Env) repo.Env {
	if env == nil {
		env = os.LookupEnv
	}
	return func(name string) (string, bool) {
		if ofOneRepository[name] {
			return "", false
		}
		return env(name)
	}
}
