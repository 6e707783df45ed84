package odb

import (
	"encoding/binary"
	"errors"
	"fmt"

	"refaudit/finding"
	"refaudit/internal/vfs"
	"refaudit/oid"
)

// maxPackSize bounds packs, so that a place fits into the key of a hit.
const maxPackSize = 1 << offsetBits

// A Pack is one pack with its index. Both files are mapped when they are first needed, and stay
// mapped until the DB is closed. It is safe for concurrent use.
type Pack struct {
	store *Store
	name  string // without folder and extension
	files map[string]fileStamp

	index    lazy[*Index]
	indexMap *vfs.Mapping
	body     lazy[[]byte] // the pack without its trailer
	bodyMap  *vfs.Mapping
	order    lazy[[]placed]
	sound    lazy[struct{}] // the index matches its checksum
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

// Index opens the pack's index.
func (p *Pack) Index() (*Index, error) {
	if p.index.done.Load() {
		return p.index.value, p.index.err
	}
	return p.index.get(p.openIndex)
}

func (p *Pack) openIndex() (x *Index, err error) {
	m, err := p.store.dir.Map(p.File("idx"))
	if err != nil {
		return nil, err
	}
	err = vfs.Guard(func() (err error) {
		x, err = ParseIndex(m.Bytes(), p.store.format, p.store.label(p.File("idx")))
		return err
	})
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	p.indexMap = m
	return x, nil
}

// Body opens the pack and is its bytes without the trailer, mapped: read them inside vfs.Guard.
// A pack must be the one that its index was made for.
//
//	0      4         8         12                           -h
//	+------+---------+---------+---------------------------+-------+
//	| PACK | u32 2|3 | u32 n   | n entries                 | hash  |
//	+------+---------+---------+---------------------------+-------+
func (p *Pack) Body() ([]byte, error) {
	if p.body.done.Load() {
		return p.body.value, p.body.err
	}
	return p.body.get(p.openBody)
}

func (p *Pack) openBody() ([]byte, error) {
	x, err := p.Index()
	if err != nil {
		return nil, err
	}
	m, err := p.store.dir.Map(p.File("pack"))
	if err != nil {
		return nil, err
	}
	err = vfs.Guard(func() error { return checkPack(m.Bytes(), x, p.store.label(p.File("pack"))) })
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	p.bodyMap = m
	return m.Bytes()[:len(m.Bytes())-p.store.format.Size()], nil
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
		return e, p.fault(off, err)
	}
	return e, nil
}

// base is the offset of a delta's base, which must lie in the same pack.
func (p *Pack) base(e *Entry) (uint64, error) {
	if e.Kind == OfsDelta {
		return e.Base, nil
	}
	x := p.index.value
	id := oid.FromBytes(p.store.format, p.body.value[e.Ref:])
	i, ok := x.Find(&id)
	if !ok {
		return 0, fmt.Errorf("delta base %v is not in the pack", id)
	}
	off, ok := x.Offset(i)
	if !ok {
		return 0, fmt.Errorf("delta base %v has no offset in the index", id)
	}
	return off, nil
}

// verify compares the index with its checksum, once.
func (p *Pack) verify() error {
	_, err := p.sound.get(func() (none struct{}, err error) {
		x, err := p.Index()
		if err != nil {
			return none, err
		}
		if err = vfs.Guard(x.Verify); err != nil && isDamage(err) {
			err = corrupt(p.store.label(p.File("idx")), finding.AuditSkipped, "%w", err)
		}
		return none, err
	})
	return err
}

// trouble is why the pack could not be used when it was needed, and which of its files is to blame.
func (p *Pack) trouble() (ext string, err error) {
	if err := p.index.failed(); err != nil {
		return "idx", err
	}
	if err := p.sound.failed(); err != nil {
		return "idx", err
	}
	return "pack", p.body.failed()
}

// mayRecover tells whether the pack could not be used for a reason that need not last.
func (p *Pack) mayRecover() bool {
	_, err := p.trouble()
	_, damage := errors.AsType[*finding.Corrupt](err)
	return err != nil && !damage
}

// fault places an error at an offset in the pack.
func (p *Pack) fault(off uint64, err error) error {
	return damaged(finding.Pos{File: p.store.label(p.File("pack")), Offset: int64(off), Placed: true}, err)
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
