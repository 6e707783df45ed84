package remotehelper

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"refaudit/internal/remote"
	"refaudit/internal/vfs"
	"refaudit/oid"
	"refaudit/repo"
	"refaudit/scan"
)

// quarantinePrefix begins the name of a quarantine. git prune clears what begins with tmp_objdir-
// and is old, should we be killed.
const quarantinePrefix = "tmp_objdir-refaudit-"

// errTwoFormats is a client whose objects have names in two formats: nobody would give them the second one.
var errTwoFormats = errors.New("a repository with extensions.compatObjectFormat can't fetch this way")

var errNoRepository = errors.New("there is no repository to fetch into: GIT_DIR is not set")

// Fetch implements backend.
func (h *helper) Fetch(ctx context.Context, wants []want, o *options, ready func() error) (keeps []string, err error) {
	b, err := h.newBatch(ctx, wants, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.scratch.Remove()) }()
	if err := b.receive(ctx); err != nil {
		return nil, err
	}
	if err := ready(); err != nil {
		return nil, err
	}
	m := migration{fs: h.fs, from: b.scratch.Objects(), to: b.client.ObjectDir}
	err = m.run()
	h.keeps = append(h.keeps, m.keeps...)
	if err != nil {
		return nil, fmt.Errorf("move objects into the repository: %w", err)
	}
	return m.keeps, b.moveShallow(ctx)
}

// batch is one fetch.
type batch struct {
	h       *helper
	remote  *remote.Remote
	client  *repo.Repo
	policy  *scan.Policy
	lenient bool // refaudit.remote.onFinding = warn
	shared  repo.Shared
	shallow []byte // the client's file, as it was; nil: there is none
	scratch *remote.Scratch
	wants   []want
	options remote.FetchOptions
}

func (h *helper) newBatch(ctx context.Context, wants []want, o *options) (*batch, error) {
	b := &batch{h: h, wants: wants, options: o.fetchOptions()}
	var err error
	if b.remote, err = h.open(ctx); err != nil {
		return nil, err
	}
	if h.list == nil {
		if _, err := h.List(ctx, false); err != nil {
			return nil, err
		}
	}
	if err := b.openClient(); err != nil {
		return nil, err
	}
	if b.lenient, err = onFinding(b.remote.Settings()); err != nil {
		return nil, err
	}
	settings := b.remote.Settings()
	scratch := remote.ScratchOptions{Format: b.client.Format, Borrow: b.client.ObjectDir, Shallow: b.shallow,
		Partial: settings.Promisor() || b.client.PartialClone != "", Filter: o.filter,
		Promises: o.filter != "" || h.name() != "" && settings.Bool("remote."+h.name()+".promisor")}
	b.scratch, err = b.remote.NewScratch(b.client.ObjectDir, quarantinePrefix, scratch)
	return b, err
}

// openClient opens the repository that the objects are for, as it is now: a clone gets its object
// format only when it has seen the list.
func (b *batch) openClient() error {
	dir, set := b.h.env("GIT_DIR")
	if !set {
		return errNoRepository
	}
	var err error
	if b.client, err = repo.OpenGitDir(dir, repo.Options{Env: b.h.env, Cwd: b.h.o.Dir}); err != nil {
		return err
	}
	for _, w := range b.wants {
		if w.id.Format() != b.client.Format {
			return fmt.Errorf("the remote has %v objects, this repository has %v", w.id.Format(), b.client.Format)
		}
	}
	if b.client.CompatFormat != 0 {
		return errTwoFormats
	}
	if b.policy, err = scan.NewPolicy(b.client, false, b.h.o.Now()); err != nil {
		return err
	}
	if b.shared, err = b.client.Shared(); err != nil {
		return err
	}
	b.shallow, err = b.readShallow()
	return err
}

// onFinding reads refaudit.remote.onFinding: refuse, which is what happens without it, or warn.
func onFinding(s remote.Settings) (lenient bool, err error) {
	word, set := s.Get("refaudit.remote.onfinding")
	switch {
	case !set || strings.EqualFold(word, "refuse"):
		return false, nil
	case strings.EqualFold(word, "warn"):
		return true, nil
	}
	return false, fmt.Errorf("refaudit.remote.onFinding takes refuse or warn, not %q", word)
}

// receive brings the objects into the quarantine and judges them.
func (b *batch) receive(ctx context.Context) error {
	var ids []oid.ID
	seen := map[oid.ID]bool{}
	for _, w := range b.wants {
		if !seen[w.id] {
			seen[w.id] = true
			ids = append(ids, w.id)
		}
	}
	if err := b.remote.Fetch(ctx, b.scratch, ids, b.options); err != nil {
		if ctx.Err() == nil {
			b.judgeWhatCame(ctx)
		}
		return err
	}
	return b.judge(ctx)
}

// maxShallow bounds the file shallow.
const maxShallow = 128 << 20

// readShallow is the client's file shallow; nil if there is none.
func (b *batch) readShallow() ([]byte, error) {
	text, err := b.client.Common.ReadFile("shallow", maxShallow)
	if vfs.Missing(err) {
		return nil, nil
	}
	if err == nil && text == nil {
		text = []byte{}
	}
	return text, err
}

// shallowPath is where git keeps the boundary of histories that were cut.
func (b *batch) shallowPath() string { return filepath.Join(b.client.CommonDir, "shallow") }
