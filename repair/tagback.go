package repair

import (
	"bytes"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"refaudit/internal/journal"
	"refaudit/oid"
)

// restoreTag writes a tag from the journal as a loose object, unless it is in the repository. One that may be where
// nobody can look now is written too, if the journal has it.
func (r *Repo) restoreTag(rec *journal.Record) error {
	db, err := r.Objects()
	if err != nil {
		return err
	}
	var fact [1]oid.Fact
	err = errors.Join(db.Look(context.Background(), []oid.ID{rec.OID}, fact[:]), db.Close())
	if err != nil || fact[0].State == oid.Present {
		return err
	}
	if rec.Object == nil || r.Format.Object("tag", rec.Object) != rec.OID {
		if fact[0].State != oid.Absent {
			return nil
		}
		return fmt.Errorf("its object %v is gone, and the journal does not have it", rec.OID)
	}
	return r.writeLoose(rec.OID, "tag", rec.Object)
}

// writeLoose writes an object as git does: under another name first, then in its place unless it is there by now.
func (r *Repo) writeLoose(id oid.ID, kind string, content []byte) error {
	hex := id.String()
	dir := filepath.Join(r.Loose, hex[:2])
	if _, err := r.mkdirAll(dir); err != nil {
		return err
	}
	var z bytes.Buffer
	w := zlib.NewWriter(&z)
	fmt.Fprintf(w, "%s %d\x00", kind, len(content))
	w.Write(content)
	if err := w.Close(); err != nil {
		return err
	}
	temp := filepath.Join(dir, "tmp_obj_"+random(3))
	f, err := r.FS.Create(temp, 0o444)
	if err != nil {
		return err
	}
	if err = r.share(f); err == nil {
		_, err = f.Write(z.Bytes())
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = r.FS.Link(temp, filepath.Join(dir, hex[2:]))
	}
	if errors.Is(err, fs.ErrExist) {
		err = nil
	}
	return errors.Join(err, r.FS.Remove(temp), r.FS.SyncDir(dir))
}
