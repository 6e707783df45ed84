package repair

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"refaudit/internal/lockfile"
	"refaudit/internal/vfs"
	"refaudit/packed"
)

// Packed is the packed-refs file of a repository.
type Packed struct {
	Repo  *Repo
	Path  string // absolute; may be a symbolic link
	Label string // as findings call it: "packed-refs"
}

// PackedPlan is a repair of a packed-refs file that was not made.
type PackedPlan struct {
	Changes []Change
	Left    []Left
	Diff    string // the exact change, as a unified diff
}

// Plan says what Fix would do now, and takes no lock.
func (p *Packed) Plan(ctx context.Context, wanted []Wanted, st Structure, brake Brake) (*PackedPlan, error) {
	path, err := p.resolve()
	if err != nil {
		return nil, err
	}
	src, err := openSource(p.Repo.FS, path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.Label, err)
	}
	defer src.Close()
	plan, err := p.planPacked(ctx, src, byName(wanted), st, p.Repo.judged, brake)
	if err != nil {
		return nil, p.refused(err)
	}
	out := &PackedPlan{Changes: plan.changes, Left: plan.left}
	if plan.empty() {
		return out, nil
	}
	var after bytes.Buffer
	if _, err := packed.Rewrite(&after, src.at(), src.info.Size, p.Repo.Format, plan.plan); err != nil {
		return nil, p.refused(err)
	}
	before, err := io.ReadAll(src.stream())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.Label, err)
	}
	out.Diff = unified(p.Label, before, after.Bytes())
	return out, nil
}

// resolve finds the file that git locks and replaces. A link that leads to somebody else's file is not followed.
func (p *Packed) resolve() (string, error) {
	path, err := lockfile.Resolve(p.Repo.FS, p.Path)
	if err != nil {
		return "", fmt.Errorf("%s: %w", p.Label, err)
	}
	if path == p.Path {
		return path, nil
	}
	here, err := p.Repo.FS.Stat(filepath.Dir(p.Path))
	if err != nil {
		return "", fmt.Errorf("%s: %w", p.Label, err)
	}
	for _, where := range []string{path, filepath.Dir(path)} {
		st, err := p.Repo.FS.Stat(where)
		if err == nil && st.UID != here.UID {
			return "", &Refused{Store: p.Label, Reason: fmt.Sprintf("it is a symbolic link to %s, and %s belongs to another owner", path, where), Err: vfs.ErrOutside}
		}
	}
	return path, nil
}

func byName(wanted []Wanted) map[string]Wanted {
	m := make(map[string]Wanted, len(wanted))
	for _, w := range wanted {
		m[string(w.Ref)] = w
	}
	return m
}

// refused makes a refusal of what the codec refuses.
func (p *Packed) refused(err error) error {
	var r *Refused
	if errors.As(err, &r) {
		if r.Store == "" {
			r.Store = p.Label
		}
		return err
	}
	for _, fault := range []error{packed.ErrLostBytes, packed.ErrDiffering} {
		if errors.Is(err, fault) {
			return &Refused{Store: p.Label, Reason: "it is left alone", Err: err}
		}
	}
	for _, fault := range []error{packed.ErrUnterminated, packed.ErrOrphan, packed.ErrBadPeel, packed.ErrBadHeader, packed.ErrUnsorted, packed.ErrDuplicate} {
		if errors.Is(err, fault) {
			return &Refused{Store: p.Label, Reason: "the file has a fault that must be mended first, which a plain refaudit fix does", Err: err}
		}
	}
	return fmt.Errorf("%s: %w", p.Label, err)
}

// Fix mends the file under git's lock. What is not as it was when it was wanted is left.
func (p *Packed) Fix(ctx context.Context, wanted []Wanted, st Structure, brake Brake) (*Outcome, error) {
	return p.hold(ctx, func(h *packedHold) error {
		return h.withSource(func(src *source) error { return h.mend(ctx, src, wanted, st, p.Repo.judged, brake, "") })
	})
}

// Clear takes away what a writer that died has left beside the file, which need not be there.
func (p *Packed) Clear(ctx context.Context) (*Outcome, error) {
	return p.hold(ctx, func(*packedHold) error { return nil })
}

func (h *packedHold) withSource(fn func(*source) error) error {
	src, err := openSource(h.Repo.FS, h.path)
	if err != nil {
		return fmt.Errorf("%s: %w", h.Label, err)
	}
	return errors.Join(fn(src), src.Close())
}

// mend plans and makes a change of single records and of the structure.
func (h *packedHold) mend(ctx context.Context, src *source, wanted []Wanted, st Structure, decide decider, brake Brake, undoes string) error {
	plan, err := h.planPacked(ctx, src, byName(wanted), st, decide, brake)
	if err != nil {
		return h.refused(err)
	}
	h.out.Left = append(h.out.Left, plan.left...)
	if plan.empty() {
		return nil
	}
	h.out.Structure = plan.structure
	return h.replace(ctx, src, plan.changes, undoes, func(w io.Writer) error {
		_, err := packed.Rewrite(w, src.at(), src.info.Size, h.Repo.Format, plan.plan)
		return err
	})
}

// packedHold is the file while it is locked.
type packedHold struct {
	*Packed
	path string // of the file, symbolic links resolved
	lock *lockfile.Lock
	out  *Outcome
}

// hold locks the file that git locks, settles what repairs before this one have left, and runs fn.
func (p *Packed) hold(ctx context.Context, fn func(*packedHold) error) (*Outcome, error) {
	h := &packedHold{Packed: p, out: &Outcome{}}
	return h.out, h.run(ctx, fn)
}

func (h *packedHold) run(ctx context.Context, fn func(*packedHold) error) (err error) {
	fsys := h.Repo.FS
	if h.path, err = h.resolve(); err != nil {
		return err
	}
	open, err := h.Repo.openEntries(h.path)
	if err != nil {
		return err
	}
	like, err := fsys.Lstat(h.path)
	if err != nil && !vfs.Missing(err) {
		return fmt.Errorf("%s: %w", h.Label, err)
	}
	h.Repo.step("lock")
	h.lock, err = lockfile.Acquire(ctx, fsys, h.path, h.Repo.locking("core.packedRefsTimeout", h.Repo.PackedTimeout, like))
	if err != nil {
		return fmt.Errorf("%s: %w", h.Label, err)
	}
	defer func() {
		if err := h.lock.Rollback(); err != nil {
			h.notice("%s: the lock could not be given back: %v", h.Label, err)
		}
	}()
	if err := h.clearStaging(); err != nil {
		return err
	}
	if err := h.settle(open); err != nil {
		return err
	}
	return fn(h)
}

func (h *packedHold) notice(format string, args ...any) {
	h.out.Notices = append(h.out.Notices, fmt.Sprintf(format, args...))
}

// staging is the name under which new content is written.
func (h *packedHold) staging() string { return h.path + ".new" }

// clearStaging removes a staging file, which nobody can be writing while we hold the lock. git
// would refuse every rewrite because of it.
func (h *packedHold) clearStaging() error {
	err := h.Repo.FS.Remove(h.staging())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = h.Repo.FS.SyncDir(filepath.Dir(h.path))
	}
	if err != nil {
		return fmt.Errorf("%s: clear %s, left behind: %w", h.Label, filepath.Base(h.staging()), err)
	}
	h.notice("%s: %s was left behind by a writer that died; it is removed", h.Label, filepath.Base(h.staging()))
	return nil
}
