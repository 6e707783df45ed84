package fleet

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"refaudit/finding"
	"refaudit/internal/refname"
	"refaudit/internal/refstore"
	"refaudit/internal/state"
	"refaudit/internal/vfs"
	"refaudit/repo"
	"refaudit/scan"
)

// Guard remembers which refs a repository had, and says when too many of them are gone to let gc
// delete what only they led to.
type Guard struct {
	Folder *state.Folder
	Now    func() time.Time
	Accept bool            // take the refs as they are for right
	Lost   int             // how many refs may be gone in any case
	Ignore []*refname.Glob // names that come and go
}

// How many refs, and how many of a hundred, may be gone before that looks like damage: where
// nothing else has changed, and where other refs have come since, so that somebody is at work.
const (
	fewLost       = 10
	shareLost     = 10
	shareLostWork = 50
)

// Gate is what the guard says of one repository.
type Gate struct {
	Refs       int // that there are
	Recorded   int // that there were
	Lost       int
	Added      int
	First      bool     // no earlier list is known
	Suspicious []string // why gc must not run; none if it may
	Sample     []finding.RefName
	Since      time.Time // of the earlier list
}

// sampled is how many lost refs are named.
const sampled = 10

// Unreadable is a ref store that could not be read whole.
type Unreadable struct{ What []string }

func (u *Unreadable) Error() string {
	s := u.What[0]
	if n := len(u.What) - 1; n > 0 {
		s += fmt.Sprintf(", and %d more", n)
	}
	return s
}

// Check compares the refs of a repository with the ones that it had, and remembers them if nothing
// is suspicious. The error is an *Unreadable where the refs can't be known.
func (g *Guard) Check(ctx context.Context, path string, t *scan.Target) (*Gate, error) {
	names, facts, err := g.gather(ctx, path, t)
	if err != nil {
		return nil, err
	}
	file := guardName(path)
	old, closer, err := g.open(file)
	if err != nil && !g.Accept {
		return nil, fmt.Errorf("%s: %w", filepath.Join(g.Folder.Dir(), file), err)
	}
	gate := &Gate{Refs: names.Len(), First: old == nil}
	same := false
	if old != nil {
		c := &comparison{guard: g, repo: t.Repo, names: names, old: old, spaces: map[string]*space{}}
		err = errors.Join(c.run(gate), closer.Close())
		if err != nil && !g.Accept {
			return nil, fmt.Errorf("%s: %w", filepath.Join(g.Folder.Dir(), file), err)
		}
		gate.Since, gate.Recorded = old.At, old.Refs
		gate.Suspicious = c.suspicions(facts)
		same = err == nil && gate.Lost+gate.Added == 0 && facts.sameAs(&old.Facts)
	} else if gate.Refs == 0 {
		has, err := hasObjects(t.Repo.ObjectDir)
		if err != nil {
			return nil, err
		}
		if has {
			gate.Suspicious = []string{"there are objects and not one ref: gc would delete them all"}
		}
	}
	if g.Accept {
		gate.Suspicious = nil
	}
	if len(gate.Suspicious) > 0 || same {
		return gate, nil
	}
	return gate, g.Folder.Write(file, state.Private, func(w io.Writer) error { return writeRefs(w, names, facts) })
}

func guardName(path string) string {
	sum := sha256.Sum256([]byte(path))
	hex := hex.EncodeToString(sum[:16])
	return "refs/" + hex[:2] + "/" + hex[2:]
}

// open opens the list of earlier refs; nil if there is none.
func (g *Guard) open(file string) (*recorded, io.Closer, error) {
	r, err := g.Folder.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	st, err := r.Stat()
	if err == nil {
		var old *recorded
		if old, err = openRefs(r, st.Size); err == nil {
			return old, r, nil
		}
	}
	return nil, nil, errors.Join(fmt.Errorf("what is remembered of the refs is damaged, and --accept begins anew: %w", err), r.Close())
}

// gather reads the names of all refs, of worktrees too: each keeps objects alive.
func (g *Guard) gather(ctx context.Context, path string, t *scan.Target) (*Names, *Facts, error) {
	names := &Names{}
	facts := &Facts{At: g.Now().UTC(), Format: t.Repo.Format.String(), Backend: t.Repo.Refs.Backend}
	facts.Repo, facts.RepoRaw = textOrBytes(path)
	var lost []string
	sum, err := t.Refs.Visit(ctx, refstore.Options{Objects: true, Now: g.Now}, func(f finding.Finding) error {
		if hidesValue(&f) {
			lost = append(lost, placed(&f))
		}
		return nil
	}, func(r *refstore.Ref) error {
		switch {
		case r.Root && string(r.Name) == "HEAD":
			facts.Head = bytes.Clone(r.Target)
		case !r.Hidden && !g.ignores(r.Name):
			names.Add(r.Name)
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	if lost = slices.Concat(sum.Unread, sum.Refused, lost); len(lost) > 0 {
		return nil, nil, &Unreadable{lost}
	}
	names.Sort()
	facts.Refs, facts.UpdateIndex, facts.Born = names.Len(), sum.UpdateIndex, names.has(facts.Head)
	return names, facts, nil
}

func (g *Guard) ignores(name []byte) bool {
	for _, glob := range g.Ignore {
		if glob.Match(name) {
			return true
		}
	}
	return false
}

func (n *Names) has(name []byte) bool {
	lo, hi := 0, n.Len()
	for lo < hi {
		mid := (lo + hi) / 2
		if bytes.Compare(n.Get(mid), name) < 0 {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo < n.Len() && bytes.Equal(n.Get(lo), name)
}

func (f *Facts) sameAs(old *Facts) bool {
	return f.Format == old.Format && f.Backend == old.Backend && bytes.Equal(f.Head, old.Head) && f.Born == old.Born && f.UpdateIndex == old.UpdateIndex
}

// comparison goes through the names that there were and those that there are, side by side.
type comparison struct {
	guard  *Guard
	repo   *repo.Repo
	names  *Names
	old    *recorded
	spaces map[string]*space
	lost   int
	added  int
	logged []finding.RefName // lost refs whose reflogs are still there, some of them
}

// space is a namespace: refs/heads/, refs/tags/, …
type space struct{ were, lost int }

func (c *comparison) run(gate *Gate) error {
	at := 0
	for {
		name, more, err := c.old.next()
		if err != nil {
			return err
		}
		if !more {
			c.added += c.names.Len() - at
			break
		}
		for at < c.names.Len() && bytes.Compare(c.names.Get(at), name) < 0 {
			c.added++
			at++
		}
		if at < c.names.Len() && bytes.Equal(c.names.Get(at), name) {
			c.count(name, false)
			at++
			continue
		}
		if c.guard.ignores(name) {
			continue
		}
		c.count(name, true)
		if len(gate.Sample) < sampled {
			gate.Sample = append(gate.Sample, finding.RefName(name))
		}
	}
	gate.Lost, gate.Added = c.lost, c.added
	return nil
}

func (c *comparison) count(name []byte, lost bool) {
	key := namespace(name)
	s := c.spaces[key]
	if s == nil {
		s = &space{}
		c.spaces[key] = s
	}
	s.were++
	if !lost {
		return
	}
	s.lost++
	c.lost++
	if len(c.logged) < sampled && c.repo.Refs.Backend == "files" && bytes.HasPrefix(name, []byte("refs/")) {
		if st, err := c.repo.Common.Lstat("logs/" + string(name)); err == nil && st.Mode().IsRegular() {
			c.logged = append(c.logged, finding.RefName(name))
		}
	}
}

// namespace is a name as far as its second slash: refs/heads/.
func namespace(name []byte) string {
	first := bytes.IndexByte(name, '/')
	if first < 0 {
		return string(name)
	}
	second := bytes.IndexByte(name[first+1:], '/')
	if second < 0 {
		return string(name[:first+1])
	}
	return string(name[:first+1+second+1])
}

// suspicions are the signs that refs were not deleted but lost.
func (c *comparison) suspicions(now *Facts) (why []string) {
	say := func(format string, args ...any) { why = append(why, fmt.Sprintf(format, args...)) }
	old := &c.old.Facts
	if old.Format != now.Format {
		say("it has %s objects, and had %s: it is another repository", now.Format, old.Format)
	}
	if now.UpdateIndex < old.UpdateIndex && now.Backend == old.Backend {
		say("the newest table has update index %d, and there was one with %d: an older stack was put in its place", now.UpdateIndex, old.UpdateIndex)
	}
	if c.lost == 0 {
		return why
	}
	were := 0
	for _, s := range c.spaces {
		were += s.were
	}
	if c.lost == were && were > 0 && c.names.Len() == 0 {
		say("%s", allGone(were, ""))
		return why
	}
	if c.guard.Lost > 0 && c.lost <= c.guard.Lost {
		return why
	}
	if old.Born && !now.Born && len(old.Head) > 0 && bytes.Equal(old.Head, now.Head) {
		say("the branch of HEAD, %s, is gone", finding.RefName(old.Head))
	}
	if len(c.logged) > 0 {
		say("the reflog of %s is there, and the ref is not: git deletes both", c.logged[0])
	}
	for _, key := range []string{"refs/heads/", "refs/tags/"} {
		if s := c.spaces[key]; s != nil && s.lost == s.were && (key == "refs/heads/" || s.were > 1) {
			say("%s", allGone(s.were, " of "+strings.TrimSuffix(key, "/")))
		}
	}
	share := shareLost
	if c.added > 0 {
		share = shareLostWork
	}
	if c.lost > fewLost && c.lost*100 > were*share {
		say("%d of %d refs are gone", c.lost, were)
		return why
	}
	for _, key := range slices.Sorted(maps.Keys(c.spaces)) {
		if s := c.spaces[key]; s.lost > fewLost && s.lost*100 > s.were*share {
			say("%d of %d refs below %s are gone", s.lost, s.were, key)
		}
	}
	return why
}

func allGone(n int, where string) string {
	if n == 1 {
		return "the only ref" + where + " is gone"
	}
	return fmt.Sprintf("all %d refs%s are gone", n, where)
}

// hidesValue tells whether, because of a finding of a store, it can't be said which refs there are and what they hold.
func hidesValue(f *finding.Finding) bool {
	switch f.ID {
	case finding.PeelOrphan, finding.HeaderTraitFalse, finding.PackedRefUnsorted, finding.PackedRefEntryNotTerminated, finding.RefsDirShared,
		finding.RefNameConflict, finding.BadHeadTarget, finding.BadReferentName, finding.BadRefName:
		return false
	}
	return finding.Default(f.ID) >= finding.Error || f.ID == finding.AuditSkipped
}

// placed is what a finding says, and where.
func placed(f *finding.Finding) string {
	if f.File == "" {
		return f.Message
	}
	return f.Pos.String() + ": " + f.Message
}

// hasObjects tells whether an object folder holds anything that gc could delete.
func hasObjects(dir string) (bool, error) {
	list, err := os.ReadDir(dir)
	if err != nil {
		return false, err
	}
	for _, e := range list {
		name := e.Name()
		if len(name) != 2 && name != "pack" {
			continue
		}
		below, err := os.ReadDir(filepath.Join(dir, name))
		if err != nil && !vfs.Missing(err) {
			return false, err
		}
		for _, f := range below {
			if name != "pack" || strings.HasSuffix(f.Name(), ".pack") {
				return true, nil
			}
		}
	}
	return false, nil
}
