package repair

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"refaudit/finding"
	"refaudit/internal/journal"
	"refaudit/internal/refname"
	"refaudit/internal/vfs"
	"refaudit/oid"
)

// refStore is where refs can be deleted, and brought back.
type refStore interface {
	// Drop deletes the refs of corrupt tags. What is not as it was when it was wanted, and what is
	// no corrupt tag any more, is left.
	Drop(ctx context.Context, wanted []Wanted, brake Brake) (*Outcome, error)
	bringBack(ctx context.Context, e *journal.Entry) (*Outcome, error)
}

// corruptTag are the findings that name a corrupt tag.
var corruptTag = map[finding.ID]bool{finding.TagTypeMismatch: true, finding.TagTargetMissing: true, finding.TagUnreadable: true}

// dropFrom is the store from which --drop-corrupt-tags deletes the ref of a finding; nil for all others. A
// branch is never deleted, whatever it names: somebody may stand on it.
func (s *session) dropFrom(f *finding.Finding) *store {
	if !s.o.DropCorrupt || !corruptTag[f.ID] || f.OID == none || !s.o.id(f.ID) || !s.o.ref([]byte(f.Ref)) {
		return nil
	}
	for _, st := range slices.Backward(s.stores) { // those of worktrees first: theirs have a prefix
		name, ok := strings.CutPrefix(string(f.Ref), st.prefix)
		if ok && goodName(finding.RefName(name)) && !strings.HasPrefix(name, "refs/heads/") {
			return st
		}
	}
	return nil
}

func (st *store) doom(f *finding.Finding) {
	st.doomed = append(st.doomed, Wanted{Ref: finding.RefName(strings.TrimPrefix(string(f.Ref), st.prefix)), ID: f.ID, OID: f.OID})
}

// spare leaves out peels of refs that are to be deleted.
func (st *store) spare() {
	doomed := map[finding.RefName]bool{}
	for _, w := range st.doomed {
		doomed[w.Ref] = true
	}
	st.wanted = slices.DeleteFunc(st.wanted, func(w Wanted) bool { return doomed[w.Ref] })
}

// refStore finds the store of an entry of the kind Refs.
func (r *Repo) refStore(e *journal.Entry) refStore {
	if filepath.Base(e.Store) == "reftable" {
		return &Stack{Repo: r, Dir: e.Store, Label: r.label(e.Store)}
	}
	return &Loose{Repo: r, Dir: e.Store}
}

// finalRefs is why no undo takes refs away that an undo has brought back.
const finalRefs = "the refs that are back are judged anew before they go again: refaudit fix --drop-corrupt-tags does both"

const dropAction = "delete the ref: its tag is corrupt"

// chooseCorrupt keeps what is wanted and still a corrupt tag.
func (r *Repo) chooseCorrupt(ctx context.Context, wanted []Wanted, brake Brake, out *Outcome) (doomed []Wanted, err error) {
	refs := make([]subject, len(wanted))
	for i, w := range wanted {
		refs[i] = subject{string(w.Ref), w.OID, w.Cached}
	}
	decisions, err := r.judged(ctx, refs)
	if err != nil {
		return nil, err
	}
	absent := 0
	for i, w := range wanted {
		switch d := decisions[i]; {
		case !d.corrupt:
			out.Left = append(out.Left, Left{w.Ref, "it is no corrupt tag, or that can't be known here"})
			continue
		case d.absent:
			absent++
		}
		doomed = append(doomed, w)
	}
	slices.SortFunc(doomed, func(a, b Wanted) int { return strings.Compare(string(a.Ref), string(b.Ref)) })
	return doomed, brake.check(absent, len(doomed))
}

// contents reads the objects of refs that are to be deleted, as far as they can be read.
func (r *Repo) contents(doomed []Wanted) (map[oid.ID][]byte, error) {
	db, err := r.Objects()
	if err != nil {
		return nil, err
	}
	out := map[oid.ID][]byte{}
	for _, w := range doomed {
		if kind, content, err := db.Content(w.OID); err == nil && kind == oid.Tag {
			out[w.OID] = append([]byte{}, content...)
		}
	}
	return out, db.Close()
}

// Loose is the folder of a files store: refs in files of their own and, of the main store, packed-refs.
type Loose struct {
	Repo *Repo
	Dir  string // absolute; holds refs/ and logs/
}

// looseRef is a ref file that is locked.
type looseRef struct {
	Wanted
	path string
	lock interface{ Rollback() error }
	file bool // there is a ref file
	log  []byte
	made []string // folders that were made for the lock
}

// release gives the lock back, and takes away the folders that were made for it.
func (l *Loose) release(refs []*looseRef) {
	for _, r := range refs {
		r.lock.Rollback()
	}
	for _, r := range refs {
		for _, dir := range slices.Backward(r.made) {
			l.Repo.FS.Remove(dir) // fails where a ref has come to lie in it
		}
	}
}

// maxLog bounds the reflog that the journal keeps of a deleted ref.
const maxLog = 64 << 20

// Drop implements refStore. As git does it locks the refs and packed-refs, takes the entries out of
// packed-refs first and removes the files last: the other way round old values would come to life.
func (l *Loose) Drop(ctx context.Context, wanted []Wanted, brake Brake) (*Outcome, error) {
	out := &Outcome{}
	doomed, err := l.Repo.chooseCorrupt(ctx, wanted, brake, out)
	if err != nil || len(doomed) == 0 {
		return out, err
	}
	var refs []*looseRef
	defer func() { l.release(refs) }()
	for _, w := range doomed {
		r, err := l.lockRef(ctx, w)
		if err != nil {
			return out, err
		}
		refs = append(refs, r)
	}
	p := &Packed{Repo: l.Repo, Path: filepath.Join(l.Dir, "packed-refs"), Label: "packed-refs"}
	if _, err := l.Repo.FS.Lstat(p.Path); vfs.Missing(err) {
		err := l.drop(ctx, refs, nil, out)
		return out, err
	}
	held, err := p.hold(ctx, func(h *packedHold) error { return l.drop(ctx, refs, h, out) })
	out.Notices = append(out.Notices, held.Notices...)
	return out, err
}

// drop deletes the refs that are still as they were wanted. h is nil where nothing is packed.
func (l *Loose) drop(ctx context.Context, refs []*looseRef, h *packedHold, out *Outcome) error {
	var packed map[string]place
	var src *source
	if h != nil {
		var err error
		if src, err = openSource(l.Repo.FS, h.path); err != nil {
			return err
		}
		defer src.Close()
		if packed, err = h.find(ctx, src, refs); err != nil {
			return err
		}
	}
	var doomed []*looseRef
	var gone []place
	for _, r := range refs {
		e, isPacked := packed[string(r.Ref)]
		now, err := l.read(r)
		switch {
		case err != nil:
			return err
		case r.file && now != r.OID, !r.file && (!isPacked || e.oid != r.OID):
			out.Left = append(out.Left, Left{r.Ref, "it has changed since it was looked at"})
			continue
		}
		doomed = append(doomed, r)
		if isPacked {
			gone = append(gone, e)
		}
	}
	if len(doomed) == 0 {
		return nil
	}
	return l.delete(ctx, doomed, gone, h, src, out)
}

// delete writes down what it deletes, and deletes it.
func (l *Loose) delete(ctx context.Context, doomed []*looseRef, gone []place, h *packedHold, src *source, out *Outcome) error {
	e := &journal.Entry{Kind: journal.Refs, GitDir: l.Repo.GitDir, Store: l.Dir, Format: l.Repo.Format}
	wanted := make([]Wanted, len(doomed))
	for i, r := range doomed {
		wanted[i] = r.Wanted
	}
	content, err := l.Repo.contents(wanted)
	if err != nil {
		return err
	}
	for _, r := range doomed {
		e.Records = append(e.Records, journal.Record{Ref: r.Ref, ID: r.ID, OID: r.OID, Before: r.Cached, Deleted: true, Object: content[r.OID], Log: r.log})
	}
	if len(gone) > 0 {
		err = h.without(ctx, src, gone, e)
	} else {
		err = l.Repo.Journal.Begin(e)
	}
	if err != nil {
		return err
	}
	out.Journal, out.Structure = e.ID, true
	for _, r := range doomed {
		if err := l.unlink(r); err != nil {
			return fmt.Errorf("delete %s: %w", r.Ref, err)
		}
		out.Changes = append(out.Changes, Change{Ref: r.Ref, ID: r.ID, OID: r.OID, Before: r.Cached, Action: dropAction})
	}
	if err := l.Repo.close(e, journal.Done); err != nil {
		out.Notices = append(out.Notices, fmt.Sprintf("the journal's entry %s stays open: %v", e.ID, err))
	}
	return nil
}

// unlink removes a ref file and its reflog.
func (l *Loose) unlink(r *looseRef) error {
	for _, path := range []string{r.path, l.logPath(r.Ref)} {
		err := l.Repo.FS.Remove(path)
		switch {
		case vfs.Missing(err):
			continue
		case err != nil:
			return err
		}
		if err := l.Repo.FS.SyncDir(filepath.Dir(path)); err != nil {
			return err
		}
	}
	return nil
}

func (l *Loose) logPath(ref finding.RefName) string {
	return filepath.Join(l.Dir, "logs", filepath.FromSlash(string(ref)))
}

var errBadName = errors.New("git refuses the name")

// goodName tells whether a name may become a path: one that git takes for a ref.
func goodName(ref finding.RefName) bool {
	return strings.HasPrefix(string(ref), "refs/") && refname.Valid([]byte(ref), 0)
}
