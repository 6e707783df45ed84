package repair

import (
	"context"
	"path/filepath"
	"strings"

	"refaudit/internal/journal"
	"refaudit/internal/lockfile"
	"refaudit/internal/refname"
	"refaudit/internal/vfs"
	"refaudit/scan"
)

// Journal is where repairs are written down before they are made; *journal.Journal is one.
type Journal interface {
	Begin(*journal.Entry) error
	Settle(id string, from, to journal.State) error
	Load(id string) (*journal.Entry, journal.State, error)
	List(journal.State) ([]string, error)
	Sync() error
}

// JournalEntry is one repair as the journal has it.
type JournalEntry = journal.Entry

// JournalRequest and JournalReply travel between a repair under another user's id and the process
// that keeps its journal.
type (
	JournalRequest = journal.Request
	JournalReply   = journal.Reply
)

// AnswerJournal answers for a journal; it tells of entries of one repository only.
func AnswerJournal(j Journal, q JournalRequest, gitDir string) JournalReply {
	own, ok := j.(*journal.Journal)
	if !ok {
		return JournalReply{Error: "this journal is another's itself"}
	}
	return own.Answer(q, gitDir)
}

// RemoteJournal is a journal that another process keeps.
func RemoteJournal(ask func(JournalRequest) (JournalReply, error)) Journal {
	return &journal.Client{Ask: ask}
}

// ErrHeld is a lock that another holds.
var ErrHeld = lockfile.ErrHeld

// Abandon gives back every lock that this process holds, for a program that has to end at once. A
// commit that is under way is waited for.
func Abandon() error { return lockfile.RollbackAll() }

// Forever as a lock timeout: wait until the lock is free.
const Forever = lockfile.Forever

// Entry reads what the journal has under an id.
func Entry(j Journal, id string) (*journal.Entry, error) {
	e, _, err := j.Load(id)
	return e, err
}

// Undone is what became of an undo.
type Undone struct {
	Done    []Done
	Left    []string // what stands no more as the repair left it
	Notices []string
}

// Undo takes a repair back in the repository that the entry names.
func Undo(ctx context.Context, target *scan.Target, e *journal.Entry, o Options) (u Undone, err error) {
	if q, set := target.Repo.Quarantine(); set {
		return u, errQuarantine(q)
	}
	if err := o.replicated(target.Repo); err != nil {
		return u, err
	}
	r, err := newRepo(target, o)
	if err != nil {
		return u, err
	}
	out, err := r.Undo(ctx, e)
	st := &store{label: r.label(e.Store)}
	if tree, ok := strings.CutPrefix(st.label, "worktrees/"); ok {
		id, _, _ := strings.Cut(tree, "/")
		st.prefix = "worktrees/" + id + "/"
	}
	for _, c := range out.Changes {
		u.Done = append(u.Done, Done{Change: st.outward(c), File: st.label, Applied: true, Journal: out.undo()})
	}
	for _, l := range out.Left {
		u.Left = append(u.Left, st.prefix+string(l.Ref)+" is left: "+l.Reason)
	}
	u.Notices = out.notices(st.label)
	return u, err
}

// OpenJournal finds the journal of a user: below state if that is not "", else where Place says.
func OpenJournal(fsys vfs.FS, state string, getenv func(string) string, root bool) (Journal, error) {
	if state != "" {
		return journal.New(fsys, filepath.Join(state, "journal")), nil
	}
	dir, err := journal.Place(getenv, root)
	if err != nil {
		return nil, err
	}
	return journal.New(fsys, dir), nil
}

// Globs selects the refs that one of the patterns covers; nil, which is every ref, if there are none.
// As in git, a pattern without wildcards also covers what lies below it.
func Globs(patterns []string) func(name []byte) bool {
	if len(patterns) == 0 {
		return nil
	}
	var globs []*refname.Glob
	for _, p := range patterns {
		globs = append(globs, refname.NewGlob(p, 0), refname.NewGlob(p+"/*", 0))
	}
	return func(name []byte) bool {
		for _, g := range globs {
			if g.Match(name) {
				return true
			}
		}
		return false
	}
}
