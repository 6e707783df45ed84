package fleet

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sync"
	"time"

	"refaudit/finding"
	"refaudit/internal/state"
	"refaudit/scan"
)

// Audit is what an audit of a repository gave.
type Audit struct {
	Repo  string // as it was named, absolute
	At    time.Time
	Level scan.Level
	State scan.State
	// Sum is the stamp of what was read; "" where it can't be relied on.
	Sum string
	// Rules is a hash of all settings that had a say in it.
	Rules       string
	Refs, Peels int64
	Known       int64 // findings of the baseline
	Severities  map[finding.Severity]int64
	IDs         map[finding.ID]int64
	Reason      string // why it is incomplete
}

// Bad tells whether there was anything to worry about.
func (a *Audit) Bad() bool { return a.State != scan.Clean || a.Known > 0 }

// Count is how many findings were at least this severe.
func (a *Audit) Count(least finding.Severity) (n int64) {
	for s, k := range a.Severities {
		if s >= least {
			n += k
		}
	}
	return n
}

// Memory is what earlier runs gave, by repository. It is safe for concurrent use, and what several
// runs note at the same time all lasts.
//
// It lies in files by a part of the hash of the path, each JSON lines below a first one.
type Memory struct {
	folder *state.Folder
	now    func() time.Time

	mu     sync.Mutex
	shards map[byte]*shard
}

type shard struct {
	read    map[string]Audit // as the file has them
	damaged error            // why the file could not be understood
	noted   map[string]Audit // that it lacks
}

// NewMemory is the memory in a folder of state.
func NewMemory(folder *state.Folder, now func() time.Time) *Memory {
	return &Memory{folder: folder, now: now, shards: map[byte]*shard{}}
}

// shardCount keeps files small where there are many repositories, and few where there are few.
const shardCount = 64

func shardOf(repo string) byte {
	sum := sha256.Sum256([]byte(repo))
	return sum[0] % shardCount
}

func shardName(n byte) string { return fmt.Sprintf("audits/%02x.jsonl", n) }

// maxShard bounds what is read of one file.
const maxShard = 1 << 30

// Last is the last audit of a repository, false if none is known. The error tells that what was
// known can't be read.
func (m *Memory) Last(repo string) (Audit, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, err := m.shard(shardOf(repo))
	if err != nil {
		return Audit{}, false, err
	}
	if a, ok := s.noted[repo]; ok {
		return a, true, nil
	}
	a, ok := s.read[repo]
	if !ok {
		return Audit{}, false, s.damaged
	}
	return a, true, nil
}

func (m *Memory) shard(n byte) (*shard, error) {
	if s := m.shards[n]; s != nil {
		return s, nil
	}
	s := &shard{noted: map[string]Audit{}}
	var err error
	if s.read, err = m.readShard(n); err != nil {
		if d := (*damaged)(nil); !errors.As(err, &d) {
			return nil, err
		}
		s.damaged = err
	}
	m.shards[n] = s
	return s, nil
}

// damaged is a file that is there and makes no sense. The next Flush replaces it.
type damaged struct{ err error }

func (d *damaged) Error() string { return d.err.Error() }
func (d *damaged) Unwrap() error { return d.err }

func (m *Memory) readShard(n byte) (map[string]Audit, error) {
	b, err := m.folder.Read(shardName(n), maxShard)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	all, err := decodeAudits(b)
	if err != nil {
		return nil, &damaged{fmt.Errorf("%s in %s is damaged: %w", shardName(n), m.folder.Dir(), err)}
	}
	return all, nil
}

// All gives the last audits of all repositories that are known, in no order. The error is of what can't be read, or
// of each.
func (m *Memory) All(each func(*Audit) error) error {
	var errs []error
	for n := range byte(shardCount) {
		m.mu.Lock()
		s, err := m.shard(n)
		m.mu.Unlock()
		if err == nil {
			err = s.damaged
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, a := range s.read {
			if err := each(&a); err != nil {
				return err
			}
		}
	}
	return errors.Join(errs...)
}

// Note takes what an audit gave.
func (m *Memory) Note(a Audit) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, err := m.shard(shardOf(a.Repo))
	if err == nil {
		s.noted[a.Repo] = a
	}
	return err
}

// forgetAfter is when nothing is known any more of a repository that no run has met.
const forgetAfter = 400 * 24 * time.Hour

// flushPatience is how long another run may take to write what it noted.
const flushPatience = 30 * time.Second

// Flush makes what was noted last.
func (m *Memory) Flush(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var dirty []byte
	for n, s := range m.shards {
		if len(s.noted) > 0 {
			dirty = append(dirty, n)
		}
	}
	if len(dirty) == 0 {
		return nil
	}
	held, err := m.folder.Lock(ctx, "audits", flushPatience)
	if err != nil {
		return err
	}
	slices.Sort(dirty)
	var errs []error
	for _, n := range dirty {
		errs = append(errs, m.flush(n, m.shards[n]))
	}
	return errors.Join(errors.Join(errs...), held.Release())
}

// flush adds what was noted to what the file has by now.
func (m *Memory) flush(n byte, s *shard) error {
	all, err := m.readShard(n)
	if d := (*damaged)(nil); err != nil && !errors.As(err, &d) {
		return err
	}
	if all == nil {
		all = map[string]Audit{}
	}
	for repo, a := range all {
		if m.now().Sub(a.At) > forgetAfter {
			delete(all, repo)
		}
	}
	for repo, a := range s.noted {
		all[repo] = a
	}
	if err := m.folder.Write(shardName(n), state.Private, func(w io.Writer) error { return encodeAudits(w, all) }); err != nil {
		return err
	}
	s.read, s.damaged, s.noted = all, nil, map[string]Audit{}
	return nil
}

// Unchanged tells whether a repository is as it was at the audit, which looked at least as deep, by
// the same rules.
func (a *Audit) Unchanged(s *Stamp, level scan.Level, rules string) bool {
	return a.Sum != "" && a.Sum == hex.EncodeToString(s.Sum[:]) && a.Level >= level && a.Rules == rules && !a.At.After(s.At)
}

// Stamped notes the state that the audit has seen, if that can be told again from later ones.
func (a *Audit) Stamped(s *Stamp) {
	a.At, a.Sum = s.At, ""
	if s.Settled(a.Level) {
		a.Sum = hex.EncodeToString(s.Sum[:])
	}
}
