package odb

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"refaudit/finding"
	"refaudit/internal/vfs"
	"refaudit/oid"
)

// A Pack is one pack with its index. Both files are mapped when they are first needed, and stay
// mapped until the DB is closed. It is safe for concurrent use.
type Pack struct {
	store *Store
	name  string // without folder and extension
	files map[string]fileStamp
	num   int // in its snapshot's list of packs

	indexOnce sync.Once
	index     *Index
	indexMap  *vfs.Mapping
	indexErr  error

	bodyOnce sync.Once
	body     []byte // the pack without its trailer
	bodyMap  *vfs.Mapping
	bodyErr  error

	orderOnce sync.Once
	order     *Order
	orderErr  error

	verifyOnce sync.Once
	verifyErr  error
}

// Name is the pack's file name without extension, "pack-" and the rest.
func (p *Pack) Name() string { return p.name }

// Store is where the pack lies.
func (p *Pack) Store() *Store { return p.store }

// Has tells whether the pack has a file with this extension beside it: "bitmap", "rev", "keep",
// "promisor", "mtimes" and so on.
func (p *Pack) Has(ext string) bool { _, ok := p.files[ext]; return ok }

// File is the name of the pack's file with this extension, relative to Store.Dir.
func (p *Pack) File(ext string) string { return "pack/" + p.name + "." + ext }

// FileSize is the size of the pack's file with this extension when the folder was listed; 0 if there is none.
func (p *Pack) FileSize(ext string) int64 { return p.files[ext].size }

// Index opens the pack's index.
func (p *Pack) Index() (*Index, error) {
	p.indexOnce.Do(func() {
		m, err := p.store.dir.Map(p.File("idx"))
		if err != nil {
			p.indexErr = err
			return
		}
		err = vfs.Guard(func() (err error) {
			p.index, err = ParseIndex(m.Bytes(), p.store.format, p.store.label(p.File("idx")))
			return err
		})
		if err != nil {
			p.index, p.indexErr = nil, errors.Join(err, m.Close())
			return
		}
		p.indexMap = m
	})
	return p.index, p.indexErr
}

// Body opens the pack and is its bytes without the trailer, mapped: read them inside vfs.Guard.
// A pack must be the one that its index was made for.
//
//	0      4         8         12                           -h
//	+------+---------+---------+---------------------------+-------+
//	| PACK | u32 2|3 | u32 n   | n entries                 | hash  |
//	+------+---------+---------+---------------------------+-------+
func (p *Pack) Body() ([]byte, error) {
	p.bodyOnce.Do(func() {
		x, err := p.Index()
		if err != nil {
			p.bodyErr = err
			return
		}
		m, err := p.store.dir.Map(p.File("pack"))
		if err != nil {
			p.bodyErr = err
			return
		}
		err = vfs.Guard(func() error { return checkPack(m.Bytes(), x, p.store.label(p.File("pack"))) })
		if err != nil {
			p.bodyErr = errors.Join(err, m.Close())
			return
		}
		p.bodyMap = m
		p.body = m.Bytes()[:len(m.Bytes())-p.store.format.Size()]
	})
	return p.body, p.bodyErr
}

func checkPack(data []byte, x *Index, file string) error {
	bad := func(format string, args ...any) error { return corrupt(file, finding.AuditSkipped, format, args...) }
	if len(data) < packHeaderLen+x.ids.size {
		return bad("%d bytes are too few for a pack", len(data))
	}
	if string(data[:4]) != "PACK" {
		return bad("is no pack: it begins with %q", data[:4])
	}
	if v := binary.BigEndian.Uint32(data[4:]); v != 2 && v != 3 {
		return bad("pack of version %d", v)
	}
	if n := binary.BigEndian.Uint32(data[8:]); uint64(n) != uint64(x.Count()) {
		return bad("pack of %d objects, but its index has %d", n, x.Count())
	}
	if trailer := data[len(data)-x.ids.size:]; string(trailer) != string(x.PackHash()) {
		return bad("pack %x does not belong to its index, which was made for %x", trailer, x.PackHash())
	}
	if uint64(len(data)) > maxPackSize {
		return bad("pack of more than %d bytes", uint64(maxPackSize))
	}
	return nil
}

// Entry reads the header of the entry at an offset in the pack.
func (p *Pack) Entry(off uint64) (Entry, error) {
	body, err := p.Body()
	if err != nil {
		return Entry{}, err
	}
	e, err := parseEntry(body, off, p.store.format.Size())
	if err != nil {
		return e, p.errorf("%w", err)
	}
	return e, nil
}

// base is the offset of a delta's base, which must lie in the same pack.
func (p *Pack) base(e *Entry) (uint64, error) {
	if e.Kind == OfsDelta {
		return e.Base, nil
	}
	id := oid.FromBytes(p.store.format, p.body[e.Ref:])
	i, ok := p.index.Find(&id)
	if !ok {
		return 0, fmt.Errorf("delta base %v is not in the pack", id)
	}
	off, ok := p.index.Offset(i)
	if !ok {
		return 0, fmt.Errorf("delta base %v has no offset in the index", id)
	}
	return off, nil
}

// vanished tells whether the pack could not be opened because its files are gone, as after a repack.
func (p *Pack) vanished() bool {
	_, err := p.Body()
	return errors.Is(err, fs.ErrNotExist)
}

// verifyIndex compares the index with its checksum, once.
func (p *Pack) verifyIndex() error {
	p.verifyOnce.Do(func() {
		x, err := p.Index()
		if err == nil {
			err = vfs.Guard(x.Verify)
			if err != nil {
				err = &finding.Corrupt{ID: finding.AuditSkipped, Pos: finding.Pos{File: p.store.label(p.File("idx"))}, Err: err}
			}
		}
		p.verifyErr = err
	})
	return p.verifyErr
}

func (p *Pack) errorf(format string, args ...any) error {
	return fmt.Errorf("%s: %w", p.store.label(p.File("pack")), fmt.Errorf(format, args...))
}

func (p *Pack) close() error {
	var errs []error
	for _, m := range []*vfs.Mapping{p.indexMap, p.bodyMap} {
		if m != nil {
			errs = append(errs, m.Close())
		}
	}
	return errors.Join(errs...)
}
