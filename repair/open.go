package repair

import (
	"os"
	"time"

	"refaudit/oid"
	"refaudit/scan"
)

// newRepo gathers the settings that matter to a repair.
func newRepo(target *scan.Target, o Options) (*Repo, error) {
	r := target.Repo
	out := &Repo{FS: o.FS, Journal: o.Journal, GitDir: r.CommonDir, Loose: r.ObjectDir, Format: r.Format, Root: os.Geteuid() == 0}
	if o.LockTimeout == nil {
		out.LongestWait = o.LongestWait
	}
	out.Objects = func() (Objects, error) {
		db, err := target.Objects(o.Scan.Workers)
		if err != nil {
			return nil, err
		}
		return database{db}, nil
	}
	shared, err := r.Shared()
	if err != nil {
		return nil, err
	}
	if _, set := r.Config.Get("core.sharedRepository"); set { // `umask` is a setting too: the umask decides alone
		out.Shared, out.SharedDir = shared.File, shared.Dir
	}
	if out.PIDFile, err = r.Config.Bool("core.lockfilePid", false); err != nil {
		return nil, err
	}
	for _, t := range []struct {
		to  *time.Duration
		get func() (time.Duration, error)
	}{{&out.PackedTimeout, r.PackedRefsTimeout}, {&out.TableTimeout, r.ReftableLockTimeout}, {&out.RefTimeout, r.FilesRefLockTimeout}} {
		if *t.to, err = t.get(); err != nil {
			return nil, err
		}
		if o.LockTimeout != nil {
			*t.to = *o.LockTimeout
		}
	}
	return out, out.readTableOptions(target)
}

func (r *Repo) readTableOptions(target *scan.Target) (err error) {
	c := target.Repo.Config
	if r.Tables.BlockSize, err = c.Int("reftable.blockSize", 0); err != nil {
		return err
	}
	if r.Tables.RestartInterval, err = c.Int("reftable.restartInterval", 0); err != nil {
		return err
	}
	index, err := c.Bool("reftable.indexObjects", true)
	r.Tables.NoObjects = !index
	return err
}

// database is the objects of a target, as a repair wants them.
type database struct{ *scan.Objects }

// maxJournalled is the largest tag of which the journal keeps the content.
const maxJournalled = 64 << 20

// Content implements Objects.
func (d database) Content(id oid.ID) (oid.Kind, []byte, error) { return d.Read(id, maxJournalled) }
