// Package journal keeps, outside every repository, what a repair is about to change: the state
// before and after, so that it can be undone, and explained when the machine went down in between.
//
// An entry is a file. Its name tells how the repair stands:
//
//	<id>.tmp     being written: the repair it announces has not begun
//	<id>.open    whole and synced: the repair may have happened, or not, or be under way
//	<id>.done    the repair is done
//	<id>.undone  it was taken back
//	<id>.void    it never happened
//
// A state changes by a rename. Only Begin syncs: an entry that a crash leaves open is settled by
// whoever next holds the lock of its store.
package journal

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"refaudit/internal/vfs"
)

// State is how a repair stands.
type State string

// The states of an entry.
const (
	Open   State = "open"
	Done   State = "done"
	Undone State = "undone"
	Void   State = "void"
)

var states = []State{Open, Done, Undone, Void}

const unfinished = ".tmp"

// ErrUnknown is an id that no entry has.
var ErrUnknown = errors.New("no such entry in the journal")

// ErrDamaged is an entry that can be read and makes no sense.
var ErrDamaged = errors.New("is damaged")

// maxEntry bounds what is read of an entry.
const maxEntry = 1 << 31

// unfinishedAge is when an entry that was never finished counts as abandoned.
const unfinishedAge = time.Hour

// Journal is a folder of entries. It is safe for concurrent use.
type Journal struct {
	fsys vfs.FS
	dir  string

	mu    sync.Mutex
	seen  vfs.Info // of the folder, when names was read
	names []string
}

// New is the journal in dir, which is made when the first entry is.
func New(fsys vfs.FS, dir string) *Journal { return &Journal{fsys: fsys, dir: dir} }

// Dir is the folder.
func (j *Journal) Dir() string { return j.dir }

// Place tells where the journal of a user is: below XDG_STATE_HOME where that is set, root's in /var/lib.
func Place(getenv func(string) string, root bool) (string, error) {
	if dir := getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "refaudit", "journal"), nil
	}
	if root {
		return "/var/lib/refaudit/journal", nil
	}
	home := getenv("HOME")
	if !filepath.IsAbs(home) {
		return "", errors.New("no place for the journal: neither XDG_STATE_HOME nor HOME is an absolute path")
	}
	return filepath.Join(home, ".local", "state", "refaudit", "journal"), nil
}

// NewID makes an id: the time, so that a listing is in order, and something random.
func NewID(now time.Time) string {
	var b [5]byte
	rand.Read(b[:]) // never fails
	return now.UTC().Format("20060102T150405Z") + "-" + hex.EncodeToString(b[:])
}

// validID tells whether id may be a file name of ours.
func validID(id string) bool {
	if len(id) < 3 || len(id) > 64 {
		return false
	}
	return strings.Trim(id, "0123456789abcdefghijklmnopqrstuvwxyzTZ-") == ""
}

func (j *Journal) path(id string, s State) string { return filepath.Join(j.dir, id+"."+string(s)) }

// Begin writes an entry and makes it survive a crash. Only then may the change that it describes
// be published. It fills in the entry's ID and time.
func (j *Journal) Begin(e *Entry) error {
	e.Time = time.Now().UTC().Truncate(time.Millisecond)
	e.ID = NewID(e.Time)
	if err := j.begin(e); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	return nil
}

func (j *Journal) begin(e *Entry) error {
	if err := vfs.MkdirAll(j.fsys, j.dir, 0o700); err != nil {
		return err
	}
	tmp := filepath.Join(j.dir, e.ID+unfinished)
	f, err := j.fsys.Create(tmp, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(e.encode())
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, j.fsys.Remove(tmp))
	}
	if err := j.fsys.Rename(tmp, j.path(e.ID, Open)); err != nil {
		return errors.Join(err, j.fsys.Remove(tmp))
	}
	if err := j.fsys.SyncDir(j.dir); err != nil {
		return errors.Join(err, j.fsys.Remove(j.path(e.ID, Open)))
	}
	return nil
}

// Settle says how the repair of an entry ended.
func (j *Journal) Settle(id string, from, to State) error {
	if !validID(id) {
		return fmt.Errorf("journal: %w: %q", ErrUnknown, id)
	}
	if err := j.fsys.Rename(j.path(id, from), j.path(id, to)); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	return nil
}

// Sync makes the states of all entries survive a crash.
func (j *Journal) Sync() error {
	if err := j.fsys.SyncDir(j.dir); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	return nil
}

// Load reads an entry and tells how its repair stands.
func (j *Journal) Load(id string) (*Entry, State, error) {
	if !validID(id) {
		return nil, "", fmt.Errorf("%w: %q", ErrUnknown, id)
	}
	for range 2 { // its state may change between two looks
		for _, s := range states {
			b, _, err := vfs.ReadFile(j.fsys, j.path(id, s), maxEntry)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, s, fmt.Errorf("journal: %w", err)
			}
			e, err := Decode(b)
			if err == nil && e.ID != id {
				err = fmt.Errorf("the entry says that it is %q", e.ID)
			}
			if err != nil {
				return nil, s, fmt.Errorf("journal entry %s %w: %w", j.path(id, s), ErrDamaged, err)
			}
			return e, s, nil
		}
	}
	return nil, "", fmt.Errorf("%w: %s in %s", ErrUnknown, id, j.dir)
}

// List gives the ids of the entries in a state, the oldest first. A journal that was never begun has none.
func (j *Journal) List(s State) ([]string, error) {
	names, err := j.list()
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	var ids []string
	for _, name := range names {
		if id, ok := strings.CutSuffix(name, "."+string(s)); ok && validID(id) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids, nil
}

// settledAge is when a folder that looks unchanged has not been changed: its time may be coarse.
const settledAge = 3 * time.Second

// list reads the folder, unless nothing has changed in it: a run over many repositories asks for each.
func (j *Journal) list() ([]string, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	now, err := j.fsys.Stat(j.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if j.names != nil && now.Same(j.seen) && time.Since(now.ModTime) > settledAge {
		return j.names, nil
	}
	if j.names, err = j.fsys.ReadDir(j.dir); err != nil {
		return nil, err
	}
	j.seen = now
	return j.names, nil
}

// Sweep removes entries whose writing was cut short more than an hour ago; what they would have
// announced never began.
func (j *Journal) Sweep(now time.Time) (removed []string, err error) {
	names, err := j.fsys.ReadDir(j.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	var errs []error
	for _, name := range names {
		id, ok := strings.CutSuffix(name, unfinished)
		if !ok || !validID(id) {
			continue
		}
		path := filepath.Join(j.dir, name)
		st, err := j.fsys.Lstat(path)
		if err != nil || now.Sub(st.ModTime) < unfinishedAge {
			continue
		}
		if err := j.fsys.Remove(path); err != nil {
			errs = append(errs, fmt.Errorf("journal: %w", err))
			continue
		}
		removed = append(removed, id)
	}
	return removed, errors.Join(errs...)
}
