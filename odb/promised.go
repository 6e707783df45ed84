package odb

import (
	"bytes"
	"context"

	"refaudit/internal/vfs"
	"refaudit/oid"
)

// promisedCache bounds the bases that are kept while a promisor pack is read.
const promisedCache = 64 << 20

// Unpromised takes out of ids what a remote has promised: what is named by any commit, tree or tag in a pack
// with a .promisor file, since whoever sent that pack has sent it without these objects. It reads the
// whole of such packs, unless ids is empty before.
func (db *DB) Unpromised(ctx context.Context, ids map[oid.ID]struct{}) error {
	r := NewReader(deltaLimit, promisedCache)
	for _, s := range db.Stores() {
		for _, p := range s.Packs() {
			if !p.Has("promisor") {
				continue
			}
			if err := db.namedIn(ctx, r, p, ids); err != nil {
				return err
			}
		}
	}
	return nil
}

func (db *DB) namedIn(ctx context.Context, r *Reader, p *Pack, ids map[oid.ID]struct{}) error {
	x, err := p.Index()
	if err != nil {
		return err
	}
	return vfs.Guard(func() error {
		for i := range x.Count() {
			if len(ids) == 0 {
				return nil
			}
			if i&0x3ff == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			off, ok := x.Offset(i)
			if !ok {
				continue // what can't be read promises nothing
			}
			if e, err := p.Entry(off); err != nil || e.Kind.Kind() == oid.Blob {
				continue
			}
			kind, content, err := r.Object(p, off)
			if err == nil {
				names(db.format, kind, content, func(id oid.ID) { delete(ids, id) })
			}
		}
		return nil
	})
}

// names gives the objects that the content of a commit, tree or tag names. A damaged one gives what can be told.
func names(f oid.Format, kind oid.Kind, content []byte, fn func(oid.ID)) {
	switch kind {
	case oid.Tree: // "<mode> <name>" NUL <raw id>, again and again
		for {
			end := bytes.IndexByte(content, 0)
			if end < 0 || len(content)-end-1 < f.Size() {
				return
			}
			fn(oid.FromBytes(f, content[end+1:]))
			content = content[end+1+f.Size():]
		}
	case oid.Commit, oid.Tag: // lines of "<word> <id>" at the beginning
		for {
			line, rest, ok := bytes.Cut(content, []byte("\n"))
			_, hex, named := bytes.Cut(line, []byte(" "))
			id, err := oid.Parse(string(hex))
			if !ok || !named || err != nil || id.Format() != f {
				return
			}
			fn(id)
			if content = rest; kind == oid.Tag {
				return
			}
		}
	}
}
