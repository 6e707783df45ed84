package remotehelper

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"refaudit/internal/lockfile"
	"refaudit/internal/vfs"
)

// errShallowMoved is a client whose boundary somebody else has moved meanwhile.
var errShallowMoved = errors.New("the file shallow was changed by somebody else meanwhile; try again")

// moveShallow makes the boundary of the quarantine that of the client, if it is another than before.
func (b *batch) moveShallow(ctx context.Context) error {
	text, _, err := vfs.ReadFile(b.h.fs, filepath.Join(b.scratch.Dir, "shallow"), maxShallow)
	if err != nil && !vfs.Missing(err) {
		return err
	}
	if bytes.Equal(text, b.shallow) {
		return nil
	}
	return b.writeShallow(ctx, text)
}

// writeShallow writes the file as git does, under shallow.lock. Without a boundary there is no file.
func (b *batch) writeShallow(ctx context.Context, text []byte) error {
	perm := lockfile.Perm{Shared: b.shared.File}
	lock, err := lockfile.Acquire(ctx, b.h.fs, b.shallowPath(), lockfile.Options{Timeout: time.Second, Perm: perm})
	if err != nil {
		return err
	}
	defer lock.Rollback()
	now, err := b.readShallow()
	if err != nil {
		return err
	}
	if !bytes.Equal(now, b.shallow) {
		return errShallowMoved
	}
	if len(text) == 0 {
		if err := b.h.fs.Remove(b.shallowPath()); err != nil && !vfs.Missing(err) {
			return fmt.Errorf("end of being shallow: %w", err)
		}
		return errors.Join(lock.Rollback(), b.h.fs.SyncDir(b.client.CommonDir))
	}
	if _, err := lock.Write(text); err != nil {
		return err
	}
	if err := lock.Commit(); err != nil && !errors.Is(err, lockfile.ErrNotDurable) {
		return err
	}
	return nil
}
