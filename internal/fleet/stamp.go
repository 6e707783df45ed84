package fleet

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"refaudit/alternates"
	"refaudit/internal/vfs"
	"refaudit/scan"
)

// Stamp is what stat says of all that an audit of a repository reads: its ref stores, its
// configuration, its object folders and those that it borrows from. Two equal stamps are of one state,
// if the first one was settled.
type Stamp struct {
	Sum   [sha256.Size]byte
	At    time.Time     // when the looking began
	Quiet time.Duration // since the latest change, at that time; negative if stat says it is yet to come
}

// racy is how close a change and our look may be for stat to show no difference: a file
// system may count time in steps of two seconds.
const racy = 2 * time.Second

// youth is how long a lock or a table that no list names counts as a writer's at work: looking deep,
// what is younger than that becomes a finding by growing older.
const youth = 60 * time.Second

// Settled tells whether the stamp can be relied on: whatever was touched within two seconds of the
// look may have been touched once more, and stat would say the same.
func (s *Stamp) Settled(level scan.Level) bool {
	if level == scan.Deep {
		return s.Quiet > youth+racy
	}
	return s.Quiet > racy
}

// Stamper makes stamps. What many repositories borrow from is looked at once. It is safe for
// concurrent use.
type Stamper struct {
	now   func() time.Time
	mu    sync.Mutex
	pools map[string]*pool
}

// pool is one object folder that is borrowed from.
type pool struct {
	once  sync.Once
	sum   [sha256.Size]byte
	quiet time.Duration
	err   error
}

// NewStamper makes one that reads the time off now.
func NewStamper(now func() time.Time) *Stamper {
	return &Stamper{now: now, pools: map[string]*pool{}}
}

// Stamp looks at a repository. Take it before the audit: what changes meanwhile makes the next
// stamp another one.
func (s *Stamper) Stamp(ctx context.Context, t *scan.Target) (Stamp, error) {
	w := newWalk(ctx, s.now())
	if err := w.repository(t); err != nil {
		return Stamp{}, err
	}
	chain, err := alternates.Resolve(t.Repo.ObjectDir, t.Repo.AlternatesEnv())
	if err != nil {
		return Stamp{}, err
	}
	for i := range chain.Findings {
		w.text(chain.Findings[i].Message)
	}
	for i := range chain.Stores {
		path := chain.Stores[i].Path
		w.text(path)
		if i == 0 {
			err = w.objects(path)
		} else {
			err = s.pool(w, path)
		}
		if err != nil {
			return Stamp{}, err
		}
	}
	return Stamp{Sum: w.sum(), At: w.at, Quiet: w.quiet}, nil
}

// pool adds an object folder of others.
func (s *Stamper) pool(w *walk, path string) error {
	s.mu.Lock()
	p := s.pools[path]
	if p == nil {
		p = &pool{}
		s.pools[path] = p
	}
	s.mu.Unlock()
	p.once.Do(func() {
		own := newWalk(context.WithoutCancel(w.ctx), s.now())
		p.err = own.objects(path)
		p.sum, p.quiet = own.sum(), own.quiet
	})
	w.hash.Write(p.sum[:])
	w.quiet = min(w.quiet, p.quiet)
	return p.err
}

// walk gathers marks.
type walk struct {
	ctx   context.Context
	at    time.Time
	hash  hash.Hash
	mark  []byte        // scratch
	quiet time.Duration // between the latest change and at
}

func newWalk(ctx context.Context, at time.Time) *walk {
	return &walk{ctx: ctx, at: at, hash: sha256.New(), quiet: 1<<63 - 1}
}

func (w *walk) sum() (sum [sha256.Size]byte) {
	w.hash.Sum(sum[:0])
	return sum
}

// text adds a name, with its length, so that no two lists look the same.
func (w *walk) text(s string) {
	w.mark = append(binary.LittleEndian.AppendUint32(w.mark[:0], uint32(len(s))), s...)
	w.hash.Write(w.mark)
}

// repository adds everything but the objects.
func (w *walk) repository(t *scan.Target) error {
	r := t.Repo
	err := errors.Join(w.files(r.CommonDir), w.files(filepath.Join(r.CommonDir, "info")))
	if r.GitDir != r.CommonDir {
		err = errors.Join(err, w.files(r.GitDir))
	}
	if r.Refs.Dir != r.CommonDir {
		err = errors.Join(err, w.files(r.Refs.Dir))
	}
	err = errors.Join(err, w.refs(r.Refs.Dir))
	trees, lerr := r.Worktrees()
	if err = errors.Join(err, lerr); err != nil {
		return err
	}
	for i := range trees {
		tree := &trees[i]
		if tree.Main() {
			continue
		}
		w.text(tree.ID)
		err = errors.Join(err, w.files(tree.GitDir), w.refs(tree.RefDir))
		if tree.RefDir != tree.GitDir {
			err = errors.Join(err, w.files(tree.RefDir))
		}
	}
	return err
}

// refs adds a ref store, of either format.
func (w *walk) refs(dir string) error {
	return errors.Join(w.tree(filepath.Join(dir, "refs")), w.files(filepath.Join(dir, "reftable")))
}

// objects adds an object folder. Objects and packs are never rewritten in place: of a folder of loose
// objects it is enough to know that no name came or went.
func (w *walk) objects(dir string) error {
	return errors.Join(
		w.list(dir, func(name string, st fs.FileInfo) error {
			if len(name) == 2 {
				w.add(name, st)
			}
			return nil
		}),
		w.files(filepath.Join(dir, "info")),
		w.files(filepath.Join(dir, "pack")),
		w.files(filepath.Join(dir, "pack", "multi-pack-index.d")))
}

// passedOver are files beside HEAD that tell nothing of refs and change with every command.
var passedOver = map[string]bool{"index": true, "gc.pid": true, "gc.log": true, "COMMIT_EDITMSG": true}

// files adds the files in one folder, and not what is below.
func (w *walk) files(dir string) error {
	return w.list(dir, func(name string, st fs.FileInfo) error {
		if !st.IsDir() && !passedOver[name] {
			return w.file(dir, name, st)
		}
		return nil
	})
}

// tree adds all files below a folder.
func (w *walk) tree(dir string) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	return w.list(dir, func(name string, st fs.FileInfo) error {
		if st.IsDir() {
			w.text(name + "/")
			return w.tree(filepath.Join(dir, name))
		}
		return w.file(dir, name, st)
	})
}

// file adds a file, and what a symbolic link leads to.
func (w *walk) file(dir, name string, st fs.FileInfo) error {
	w.add(name, st)
	if st.Mode()&fs.ModeSymlink == 0 {
		return nil
	}
	target, err := os.Stat(filepath.Join(dir, name))
	if err != nil {
		w.text("leads nowhere")
		return nil
	}
	w.add("leads to", target)
	return nil
}

func (w *walk) add(name string, st fs.FileInfo) {
	w.text(name)
	var newest time.Time
	w.mark, newest = vfs.Mark(w.mark[:0], st)
	w.hash.Write(w.mark)
	w.quiet = min(w.quiet, w.at.Sub(newest))
}

// list goes through a folder. One that isn't there is a state too.
func (w *walk) list(dir string, each func(name string, st fs.FileInfo) error) error {
	entries, err := os.ReadDir(dir)
	if vfs.Missing(err) {
		w.text("no folder")
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		st, err := e.Info()
		if vfs.Missing(err) {
			continue // gone since the folder was listed
		}
		if err != nil {
			return err
		}
		if err := each(e.Name(), st); err != nil {
			return err
		}
	}
	w.text("end")
	return nil
}
