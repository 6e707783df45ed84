package odb

import (
	"context"
	"errors"
	"fmt"
	"io"

	"refaudit/internal/inflate"
	"refaudit/internal/vfs"
	"refaudit/oid"
)

// Read is an object's kind and content, which hash to its name, if it has at most limit bytes. An
// object that is in no place is ErrAbsent, one that is too large ErrTooLarge.
func (db *DB) Read(id oid.ID, limit int64) (oid.Kind, []byte, error) {
	if id.Format() != db.format {
		return 0, nil, fmt.Errorf("read object %v: is no id of a %v repository", id, db.format)
	}
	v := db.view.Load()
	kind, content, err := v.read(&id, db.format, limit)
	if err != nil && !errors.Is(err, ErrTooLarge) {
		if v, err = db.reload(); err == nil {
			for _, s := range v.stores {
				s.loose.forgetOne(id.Bytes()[0])
			}
			kind, content, err = v.readAny(&id, db.format, limit)
		}
	}
	if err != nil {
		return 0, nil, fmt.Errorf("read object %v: %w", id, err)
	}
	return kind, content, nil
}

// read reads the copy that git would.
func (v *view) read(id *oid.ID, f oid.Format, limit int64) (kind oid.Kind, content []byte, err error) {
	for _, s := range v.stores {
		var at int
		var off uint64
		var how search
		err = vfs.Guard(func() error {
			at, off, how = s.findPacked(id)
			return nil
		})
		if err != nil {
			return 0, nil, err
		}
		if how == found {
			kind, content, err = NewReader(limit, 0).Object(s.packs[at], off)
		} else if loose, _ := s.loose.has(id); loose {
			kind, content, err = readLoose(s, id, limit)
		} else {
			continue
		}
		if err == nil && f.Object(kind.String(), content) != *id {
			err = errHash
		}
		return kind, content, err
	}
	return 0, nil, ErrAbsent
}

// readAny reads any copy.
func (v *view) readAny(id *oid.ID, f oid.Format, limit int64) (oid.Kind, []byte, error) {
	if sites, err := v.sites(id); len(sites) == 0 {
		if err != nil {
			return 0, nil, notLooked(err)
		}
		return 0, nil, ErrAbsent
	}
	return newMender(v, f, limit).content(id, nil)
}

// looseKind is the kind of a loose object.
func looseKind(s *Store, id *oid.ID) (oid.Kind, error) {
	var z inflate.Inflater
	var buf []byte
	f, err := openLoose(s, id, &z, &buf)
	if err != nil {
		return 0, s.looseFault(id, err)
	}
	return f.kind, f.Close()
}

// Confirm answers for one object as Look does, but has read and hashed the object, of whatever
// kind: Look believes the headers that say of which kind other objects than tags are. Ask it
// before something is reported that rests on the kind of an object.
func (db *DB) Confirm(ctx context.Context, id oid.ID) (oid.Fact, error) {
	var fact [1]oid.Fact
	if err := db.Look(ctx, []oid.ID{id}, fact[:]); err != nil || fact[0].State == oid.Absent || fact[0].Kind == oid.Tag {
		return fact[0], err
	}
	w := db.workers.Get().(*worker)
	defer db.workers.Put(w)
	defer w.reset()
	w.look = &look{db: db, view: db.view.Load()}
	return w.mend(&id, newMender(w.view, db.format, deltaLimit), fact[0].Err, true), nil
}

// readLoose is the kind and content of a loose object. Whether it hashes to its name is not checked.
func readLoose(s *Store, id *oid.ID, limit int64) (oid.Kind, []byte, error) {
	fail := func(err error) (oid.Kind, []byte, error) {
		return 0, nil, s.looseFault(id, err)
	}
	var z inflate.Inflater
	var buf []byte
	f, err := openLoose(s, id, &z, &buf)
	if err != nil {
		return fail(err)
	}
	defer f.Close()
	if f.size > limit {
		return fail(fmt.Errorf("object of %d bytes %w of %d", f.size, ErrTooLarge, limit))
	}
	if err := plausible(uint64(f.size), int(f.fileSize)); err != nil {
		return fail(err)
	}
	content := make([]byte, f.size)
	if err := f.readTo(func(in io.Reader) error {
		_, err := io.ReadFull(in, content)
		return err
	}); err != nil {
		return fail(err)
	}
	return f.kind, content, nil
}

// CheckLoose inflates a loose object to its end and keeps nothing of it. The error is a *finding.Corrupt if the
// file holds no whole object, else says why it could not be read. Whether it hashes to its name is not checked.
func (s *Store) CheckLoose(id *oid.ID) error {
	var z inflate.Inflater
	var buf []byte
	f, err := openLoose(s, id, &z, &buf)
	if err != nil {
		return s.looseFault(id, err)
	}
	defer f.Close()
	if err := f.readTo(func(in io.Reader) error {
		_, err := io.CopyN(io.Discard, in, f.size)
		return err
	}); err != nil {
		return s.looseFault(id, err)
	}
	return nil
}
