package repair

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"refaudit/internal/journal"
	"refaudit/internal/lockfile"
	"refaudit/internal/vfs"
	"refaudit/oid"
	"refaudit/packed"
)

// maxRefFile bounds what is read of a ref file.
const maxRefFile = 4096

// lockRef locks one ref.
func (l *Loose) lockRef(ctx context.Context, w Wanted) (*looseRef, error) {
	if !goodName(w.Ref) {
		return nil, &Refused{Store: string(w.Ref), Reason: "it is no name that git would use", Err: errBadName}
	}
	r := &looseRef{Wanted: w, path: filepath.Join(l.Dir, filepath.FromSlash(string(w.Ref)))}
	var err error
	if r.made, err = l.Repo.mkdirAll(filepath.Dir(r.path)); err != nil {
		return nil, fmt.Errorf("lock %s: %w", w.Ref, err)
	}
	lock, err := lockfile.Acquire(ctx, l.Repo.FS, r.path, l.Repo.locking("core.filesRefLockTimeout", l.Repo.RefTimeout, vfs.Info{}))
	if err != nil {
		return nil, err
	}
	r.lock = lock
	return r, nil
}

// read reads the ref file, if there is one, and the reflog. A symref, and what is no ref at all, has no value.
func (l *Loose) read(r *looseRef) (value oid.ID, err error) {
	st, err := l.Repo.FS.Lstat(r.path)
	if vfs.Missing(err) {
		r.file = false
		return none, l.readLog(r)
	}
	if err != nil {
		return none, err
	}
	r.file = true
	if !st.Mode.IsRegular() {
		return none, nil
	}
	b, _, err := vfs.ReadFile(l.Repo.FS, r.path, maxRefFile)
	if err != nil {
		return none, fmt.Errorf("read %s: %w", r.Ref, err)
	}
	if id, err := oid.Parse(string(bytes.TrimRight(b, " \t\r\n"))); err == nil && id.Format() == l.Repo.Format {
		value = id
	}
	return value, l.readLog(r)
}

func (l *Loose) readLog(r *looseRef) error {
	b, _, err := vfs.ReadFile(l.Repo.FS, l.logPath(r.Ref), maxLog)
	switch {
	case vfs.Missing(err), errors.Is(err, vfs.ErrNotRegular):
		return nil
	case err != nil:
		return fmt.Errorf("read the reflog of %s: %w", r.Ref, err)
	}
	r.log = append([]byte{}, b...)
	return nil
}

// find looks for refs in packed-refs. A file that has lost bytes is refused.
func (h *packedHold) find(ctx context.Context, src *source, refs []*looseRef) (map[string]place, error) {
	names := map[string]bool{}
	for _, r := range refs {
		names[string(r.Ref)] = true
	}
	look, err := h.look(ctx, src, func(e *packed.Entry) bool { return names[string(e.Name)] })
	if err != nil {
		return nil, fmt.Errorf("%s: %w", h.Label, err)
	}
	if err := look.refuse(h.Label); err != nil && !look.sum.Empty {
		return nil, err
	}
	found := map[string]place{}
	for _, p := range look.hit {
		if _, twice := found[p.name]; twice {
			return nil, &Refused{Store: h.Label, Reason: fmt.Sprintf("%q stands twice in it; a plain refaudit fix mends that, then run this again", p.name)}
		}
		found[p.name] = p
	}
	return found, nil
}

// without rewrites the file without some entries; all others stay as they are.
func (h *packedHold) without(ctx context.Context, src *source, gone []place, e *journal.Entry) error {
	slices.SortFunc(gone, func(a, b place) int { return int(min(1, max(-1, a.offset-b.offset))) })
	cut := newCutReader(src.at(), src.info.Size, gone)
	write := func(w io.Writer) error {
		_, err := packed.Rewrite(w, cut, cut.size, h.Repo.Format, packed.Plan{})
		return err
	}
	after, err := h.stage(src, write)
	if err != nil {
		return err
	}
	if err := after.temp.Flush(); err != nil {
		return err
	}
	e.Made = []string{filepath.Base(h.staging())}
	if err := h.publish(ctx, src, after, e); err != nil {
		return err
	}
	return h.readBack(ctx, &journal.Entry{ID: e.ID, After: after.whole()}, after, write)
}

// cutReader is a file without the lines of some entries.
type cutReader struct {
	r     io.ReaderAt
	parts []part
	size  int64
}

// part is a run of bytes: where it is in the file, and where without the entries.
type part struct{ from, at, n int64 }

func newCutReader(r io.ReaderAt, size int64, gone []place) *cutReader {
	c := &cutReader{r: r}
	from := int64(0)
	for _, g := range gone {
		c.keep(from, g.offset)
		from = g.offset + g.length
	}
	c.keep(from, size)
	return c
}

func (c *cutReader) keep(from, to int64) {
	if to > from {
		c.parts = append(c.parts, part{from, c.size, to - from})
		c.size += to - from
	}
}

// ReadAt implements io.ReaderAt.
func (c *cutReader) ReadAt(p []byte, off int64) (n int, err error) {
	for _, part := range c.parts {
		if n == len(p) {
			return n, nil
		}
		at := off + int64(n) - part.at
		if at < 0 || at >= part.n {
			continue
		}
		want := p[n:min(len(p), n+int(min(part.n-at, int64(len(p)))))]
		k, err := c.r.ReadAt(want, part.from+at)
		n += k
		if err != nil && !(errors.Is(err, io.EOF) && k == len(want)) {
			return n, err
		}
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// bringBack makes refs anew that were deleted, where their names are still free.
func (l *Loose) bringBack(ctx context.Context, old *journal.Entry) (*Outcome, error) {
	out := &Outcome{}
	e := &journal.Entry{Kind: journal.Refs, GitDir: l.Repo.GitDir, Store: l.Dir, Format: l.Repo.Format, Undoes: old.ID}
	taken, err := l.packedNames(ctx)
	if err != nil {
		return out, err
	}
	var locked []*looseRef
	defer func() { l.release(locked) }()
	for _, rec := range old.Records {
		r, err := l.lockRef(ctx, Wanted{Ref: rec.Ref, ID: rec.ID, OID: rec.OID})
		if err != nil {
			return out, err
		}
		locked = append(locked, r)
		if _, err := l.read(r); err != nil {
			return out, err
		}
		if r.file || taken[string(rec.Ref)] {
			out.Left = append(out.Left, Left{rec.Ref, "there is a ref of that name again"})
			continue
		}
		rec.Deleted = false
		e.Records = append(e.Records, rec)
	}
	if len(e.Records) == 0 {
		return out, nil
	}
	if err := l.Repo.Journal.Begin(e); err != nil {
		return out, err
	}
	out.Journal, out.Structure, out.Final = e.ID, true, finalRefs
	for _, r := range locked {
		i := slices.IndexFunc(e.Records, func(rec journal.Record) bool { return rec.Ref == r.Ref })
		if i < 0 {
			continue
		}
		if err := l.create(ctx, r, &e.Records[i]); err != nil {
			return out, fmt.Errorf("bring back %s: %w", r.Ref, err)
		}
		out.Changes = append(out.Changes, Change{Ref: r.Ref, ID: r.ID, OID: r.OID, Action: "bring the ref back"})
	}
	return out, l.Repo.close(e, journal.Done)
}

// packedNames are the refs that packed-refs has.
func (l *Loose) packedNames(ctx context.Context) (map[string]bool, error) {
	names := map[string]bool{}
	p := &Packed{Repo: l.Repo, Path: filepath.Join(l.Dir, "packed-refs"), Label: "packed-refs"}
	src, err := openSource(l.Repo.FS, p.Path)
	if vfs.Missing(err) {
		return names, nil
	}
	if err != nil {
		return nil, fmt.Errorf("packed-refs: %w", err)
	}
	defer src.Close()
	_, err = p.look(ctx, src, func(e *packed.Entry) bool { names[string(e.Name)] = true; return false })
	return names, err
}

// create writes a ref file by way of its lock and, where it has none now, its reflog; the tag comes
// back first, should it be gone.
func (l *Loose) create(ctx context.Context, r *looseRef, rec *journal.Record) error {
	if err := l.Repo.restoreTag(rec); err != nil {
		return err
	}
	if rec.Log != nil && r.log == nil {
		if err := l.restoreLog(ctx, rec); err != nil {
			return err
		}
	}
	lock := r.lock.(*lockfile.Lock)
	if _, err := fmt.Fprintf(lock, "%v\n", rec.OID); err != nil {
		return err
	}
	return lock.Commit()
}

// restoreLog writes a reflog by way of a lock, as git does when it expires records: it is there whole or not at all.
func (l *Loose) restoreLog(ctx context.Context, rec *journal.Record) error {
	path := l.logPath(rec.Ref)
	if _, err := l.Repo.mkdirAll(filepath.Dir(path)); err != nil {
		return err
	}
	lock, err := lockfile.Acquire(ctx, l.Repo.FS, path, lockfile.Options{PIDFile: l.Repo.PIDFile, Perm: l.Repo.perm(vfs.Info{})})
	if err != nil {
		return err
	}
	if _, err = lock.Write(rec.Log); err == nil {
		err = lock.Commit()
	}
	return errors.Join(err, lock.Rollback())
}

// settle explains deletions of refs that were cut short.
func (l *Loose) settle(ctx context.Context) (notices []string, err error) {
	open, err := l.Repo.openEntries(l.Dir)
	if err != nil {
		return nil, err
	}
	for _, e := range open {
		said, err := l.settleOne(ctx, e)
		if err != nil {
			return notices, err
		}
		if said != "" {
			notices = append(notices, said)
		}
	}
	return notices, nil
}

// settleOne locks the refs of an entry, looks which of them there are, and says what became of it; ""
// if it is settled already.
func (l *Loose) settleOne(ctx context.Context, e *journal.Entry) (said string, err error) {
	var refs []*looseRef
	defer func() { l.release(refs) }()
	packed, err := l.packedNames(ctx)
	if err != nil {
		return "", err
	}
	there := 0
	var absent []*looseRef
	for _, rec := range e.Records {
		r, err := l.lockRef(ctx, Wanted{Ref: rec.Ref, OID: rec.OID})
		if err != nil {
			return "", err
		}
		refs = append(refs, r)
		if _, err := l.read(r); err != nil {
			return "", err
		}
		if r.file || packed[string(rec.Ref)] {
			there++
		} else if r.log != nil && bytes.Equal(r.log, rec.Log) {
			absent = append(absent, r)
		}
	}
	state, err := l.Repo.state(e.ID)
	if err != nil || state != journal.Open {
		return "", err // its writer was alive
	}
	to, all := journal.Done, len(e.Records)
	if deleting := e.Undoes == ""; deleting && there == all || !deleting && there < all {
		to = journal.Void // of refs that were to come back the rest still can
	} else if deleting {
		for _, r := range absent { // its reflog was to go with it
			if err := l.unlink(r); err != nil {
				return "", fmt.Errorf("delete the reflog of %s: %w", r.Ref, err)
			}
		}
	}
	said = explained(e, to, 0)
	if to == journal.Void && e.Undoes != "" && there > 0 {
		said = fmt.Sprintf("repair %s was cut short; it was done in part, and refaudit undo %s brings back the rest", e.ID, e.Undoes)
	}
	return said, l.Repo.close(e, to)
}
