package repair

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"refaudit/finding"
	"refaudit/internal/journal"
	"refaudit/internal/lockfile"
	"refaudit/internal/vfs"
	"refaudit/reftable"
)

// Stack is the reftable folder of a repository or of one of its worktrees.
type Stack struct {
	Repo  *Repo
	Dir   string // absolute
	Label string // as findings call it: "reftable", "worktrees/<id>/reftable"
}

// maxUpdateIndex is the highest update index that we write: git and JGit must still be able to go on from it.
const maxUpdateIndex = math.MaxUint64 - 1<<32

// holding is a stack while its list is locked.
type holding struct {
	*Stack
	lock  *lockfile.Lock
	names []string // the list as it is
	stack *tables
	out   *Outcome
	taken []*lockfile.Lock // of tables that leave the list
}

// hold locks the list, reads the stack once, and runs fn. Nothing that fn reads can change. A
// stack that is damaged is refused.
func (s *Stack) hold(ctx context.Context, fn func(*holding) error) (*Outcome, error) {
	h := &holding{Stack: s, out: &Outcome{}}
	err := vfs.Guard(func() error { return h.run(ctx, fn) })
	return h.out, err
}

func (h *holding) run(ctx context.Context, fn func(*holding) error) error {
	like, err := h.like(listName)
	if errors.Is(err, fs.ErrNotExist) {
		return &Refused{Store: h.Label, Reason: "tables.list is gone: run no git here, copy the folder away, then see refaudit fix --rebuild-tables-list"}
	}
	if err != nil {
		return err
	}
	open, err := h.Repo.openEntries(h.Dir)
	if err != nil {
		return err
	}
	if err := h.acquire(ctx, like); err != nil {
		return err
	}
	defer func() {
		if err := h.lock.Rollback(); err != nil {
			h.notice("%s: the lock could not be given back: %v", h.Label, err)
		}
	}()
	if h.names, err = h.readList(); err == nil {
		h.stack, err = h.openTables(h.names)
	}
	if err != nil {
		return h.broken(err)
	}
	defer h.stack.close()
	if err := errors.Join(h.settle(open), h.clearTemps()); err != nil {
		return err
	}
	return fn(h)
}

// acquire locks the list, which will have the mode and owner of the file that it replaces.
func (h *holding) acquire(ctx context.Context, like vfs.Info) (err error) {
	h.Repo.step("lock")
	h.lock, err = lockfile.Acquire(ctx, h.Repo.FS, filepath.Join(h.Dir, listName), h.Repo.locking("reftable.lockTimeout", h.Repo.TableTimeout, like))
	if err != nil {
		return fmt.Errorf("%s: %w", h.Label, err)
	}
	return nil
}

// broken is an error of reading the stack.
func (h *holding) broken(err error) error {
	if structural(err) {
		return &Refused{Store: h.Label, Reason: "the stack is damaged, and git may take it for empty: do not run gc here", Err: err}
	}
	return fmt.Errorf("%s: %w", h.Label, err)
}

func (h *holding) notice(format string, args ...any) {
	h.out.Notices = append(h.out.Notices, fmt.Sprintf(format, args...))
}

func (r *Repo) perm(like vfs.Info) lockfile.Perm {
	return lockfile.Perm{Shared: r.Shared, Like: like, Root: r.Root}
}

// Fix gives records their right peels in one new table on top of the stack. What is not as it
// was when it was wanted is left.
func (s *Stack) Fix(ctx context.Context, wanted []Wanted, brake Brake) (*Outcome, error) {
	return s.verified(ctx, func(h *holding) error { return h.set(ctx, wanted, s.Repo.judged, brake, "") })
}

// verified is hold with a look at what was written, when the lock is free again.
func (s *Stack) verified(ctx context.Context, fn func(*holding) error) (*Outcome, error) {
	out, err := s.hold(ctx, fn)
	if err != nil {
		return out, err
	}
	return out, s.verify(ctx, out)
}

// set publishes what decide decides of the records that are still as they were wanted. undoes
// names the entry that is taken back.
func (h *holding) set(ctx context.Context, wanted []Wanted, decide decider, brake Brake, undoes string) error {
	changes, err := h.plan(ctx, wanted, decide, brake)
	if err != nil || len(changes) == 0 {
		return err
	}
	return h.publish(ctx, changes, undoes)
}

// plan looks at each record again and decides. The changes are in the order of names.
func (h *holding) plan(ctx context.Context, wanted []Wanted, decide decider, brake Brake) ([]Change, error) {
	var still []Wanted
	var refs []subject
	for _, w := range wanted {
		r, found, err := h.stack.newest(h.Repo.Format, []byte(w.Ref))
		switch {
		case err != nil:
			return nil, h.broken(err)
		case !found || r.typ != reftable.Direct && r.typ != reftable.Peeled || r.value != w.OID || r.peel != w.Cached:
			h.out.Left = append(h.out.Left, Left{w.Ref, "it has changed since it was looked at"})
			continue
		}
		still, refs = append(still, w), append(refs, subject{string(w.Ref), w.OID, w.Cached})
	}
	if len(still) == 0 {
		return nil, nil
	}
	decisions, err := decide(ctx, refs)
	if err != nil {
		return nil, err
	}
	changes, left, err := choose(still, decisions, brake)
	h.out.Left = append(h.out.Left, left...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", h.Label, err)
	}
	slices.SortFunc(changes, func(a, b Change) int { return strings.Compare(string(a.Ref), string(b.Ref)) })
	return changes, nil
}

// choose makes changes of decisions.
func choose(wanted []Wanted, decisions []decision, brake Brake) (changes []Change, left []Left, err error) {
	absent := 0
	for i, w := range wanted {
		switch d := decisions[i]; {
		case !d.known:
			left = append(left, Left{w.Ref, "its right peel can't be known here"})
		case d.peel == w.Cached:
			left = append(left, Left{w.Ref, "nothing is wrong with it any more"})
		default:
			if d.absent {
				absent++
			}
			changes = append(changes, Change{Ref: w.Ref, ID: w.ID, OID: w.OID, Before: w.Cached, After: d.peel, Action: action(w.Cached, d.peel)})
		}
	}
	return changes, left, brake.check(absent, len(changes))
}

// publish writes one table with the changed records and lists it.
func (h *holding) publish(ctx context.Context, changes []Change, undoes string) error {
	index, err := h.nextIndex()
	if err != nil {
		return err
	}
	e := h.entry(journal.Reftable, undoes)
	for _, c := range changes {
		e.Records = append(e.Records, journal.Record{Ref: c.Ref, ID: c.ID, OID: c.OID, Before: c.Before, After: c.After, Index: index})
	}
	return h.add(ctx, e, index, changes)
}

func (h *holding) entry(kind journal.Kind, undoes string) *journal.Entry {
	return &journal.Entry{Kind: kind, GitDir: h.Repo.GitDir, Store: h.Dir, Format: h.Repo.Format, Undoes: undoes}
}

func (h *holding) nextIndex() (uint64, error) {
	top := h.stack.maxIndex()
	if top >= maxUpdateIndex {
		return 0, &Refused{Store: h.Label, Reason: fmt.Sprintf("its update index has reached %d, and there is no room above it", top)}
	}
	return top + 1, nil
}

// publication is a table that has been written, and the name that it gets.
type publication struct {
	temp *lockfile.Temp
	name string
}

// commit publishes tables and then the list that names them. The journal is synced before.
func (h *holding) commit(ctx context.Context, e *journal.Entry, tables []publication, list []string, changes []Change) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	h.Repo.step("journal")
	if err := h.Repo.Journal.Begin(e); err != nil {
		return err
	}
	h.out.Journal = e.ID
	err := h.rename(tables, list)
	switch {
	case err == nil || errors.Is(err, lockfile.ErrNotDurable):
	default:
		h.out.Journal = ""
		return errors.Join(err, h.takeBack(e, tables))
	}
	h.out.Changes, h.out.entry = append(h.out.Changes, changes...), e
	if err != nil {
		return err
	}
	h.finish(e)
	return nil
}

// finish removes the tables that have left the list, and their locks, and closes the entry once
// they are gone for good: as long as it is open the next fix looks for them.
func (h *holding) finish(e *journal.Entry) {
	err := h.unlink(e.Gone)
	for _, l := range h.taken {
		err = errors.Join(err, l.Rollback())
	}
	if err == nil && len(e.Gone) > 0 {
		err = h.Repo.FS.SyncDir(h.Dir)
	}
	if err == nil {
		err = h.Repo.close(e, journal.Done)
	}
	if err != nil {
		h.notice("%s: the journal's entry %s stays open: %v", h.Label, e.ID, err)
	}
}

// remove takes files of the folder away, and makes sure that a crash does not bring them back.
func (h *holding) remove(names []string) error {
	if len(names) == 0 {
		return nil
	}
	if err := h.unlink(names); err != nil {
		return err
	}
	return h.Repo.FS.SyncDir(h.Dir)
}

func (h *holding) unlink(names []string) error {
	for _, name := range names {
		if err := gone(h.Repo.FS.Remove(filepath.Join(h.Dir, name))); err != nil {
			return err
		}
	}
	return nil
}

// rename gives the tables their names, syncs the folder, and only then names them in the list.
func (h *holding) rename(tables []publication, list []string) error {
	for _, p := range tables {
		h.Repo.step("publish " + p.name)
		err := p.temp.Publish(filepath.Join(h.Dir, p.name))
		if errors.Is(err, lockfile.ErrNotDurable) {
			return fmt.Errorf("%s: the folder could not be synced, so the list is left as it is: %v", h.Label, err)
		}
		if err != nil {
			return err
		}
	}
	if _, err := h.lock.Write(reftable.AppendList(nil, list)); err != nil {
		return err
	}
	h.Repo.step("list")
	return h.lock.Commit()
}

// takeBack removes tables that were published and that the list does not name. Where that is not
// sure, or fails, the entry stays open, and the next fix settles it.
func (h *holding) takeBack(e *journal.Entry, tables []publication) error {
	now, err := h.readList()
	if err != nil || !slices.Equal(now, h.names) {
		return err
	}
	var names []string
	for _, p := range tables {
		names = append(names, p.name)
	}
	if err := h.remove(names); err != nil {
		return err
	}
	return h.Repo.Journal.Settle(e.ID, journal.Open, journal.Void)
}

// gone forgives a file that is not there.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// tempMark stands in the names of tables that are being written: git's own mark, and ours.
const tempMark = ".temp.refaudit-"

// tempAge is when a table that was being written counts as left behind. To take one away from a
// writer that lives makes it fail, and harms nothing.
const tempAge = 10 * time.Minute

// clearTemps removes tables of ours that were never finished.
func (h *holding) clearTemps() error {
	names, err := h.Repo.FS.ReadDir(h.Dir)
	if err != nil {
		return fmt.Errorf("%s: %w", h.Label, err)
	}
	var old []string
	for _, name := range names {
		if !strings.Contains(name, tempMark) {
			continue
		}
		st, err := h.Repo.FS.Lstat(filepath.Join(h.Dir, name))
		if err != nil {
			continue
		}
		now, err := h.Repo.FS.Now(h.Dir)
		if err != nil {
			return fmt.Errorf("%s: %w", h.Label, err)
		}
		if now.Sub(st.ModTime) > tempAge {
			old = append(old, name)
		}
	}
	if len(old) > 0 {
		h.notice("%s: %s removed", h.Label, finding.Count(len(old), "unfinished table of a repair that was cut short is", "unfinished tables of repairs that were cut short are"))
	}
	return h.remove(old)
}

// writeTable writes and syncs a table under a temporary name, which no git takes for a table.
func (h *holding) writeTable(name string, like vfs.Info, fill func(*reftable.Writer) error, o reftable.Options) (*lockfile.Temp, error) {
	o.Format = h.Repo.Format
	if o.BlockSize == 0 && !o.Unpadded {
		o.BlockSize = h.Repo.Tables.BlockSize
	}
	o.RestartInterval, o.NoObjects = h.Repo.Tables.RestartInterval, h.Repo.Tables.NoObjects
	h.Repo.step("write " + name)
	temp, err := h.lock.Temp(filepath.Join(h.Dir, strings.TrimSuffix(name, ".ref")+tempMark+random(3)), h.Repo.perm(like))
	if err != nil {
		return nil, err
	}
	w, err := reftable.NewWriter(temp, o)
	if err == nil {
		err = errors.Join(fill(w), w.Close())
	}
	if err != nil {
		return nil, fmt.Errorf("%s: write %s: %w", h.Label, name, err)
	}
	return temp, temp.Flush()
}

// tableName makes a name as git does; the random part lets no name come back.
func tableName(least, most uint64) string {
	var b [4]byte
	rand.Read(b[:]) // never fails
	return reftable.FormatTableName(least, most, binary.BigEndian.Uint32(b[:]))
}

func random(n int) string {
	b := make([]byte, n)
	rand.Read(b) // never fails
	return hex.EncodeToString(b)
}
