package usage

import (
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"

	"refaudit/finding"
	"refaudit/internal/bitmap"
	"refaudit/internal/vfs"
	"refaudit/odb"
	"refaudit/oid"
)

// pack is one pack of a store, its objects in order.
type pack struct {
	*order
	src    *odb.Pack
	x      *odb.Index
	body   []byte
	first  uint32 // number of its first object in the store
	format oid.Format
	bitmap *packBitmap // nil: not read yet
	badRev error       // a *finding.Corrupt: its .rev can't be believed

	fan     atomic.Pointer[fan] // nil until many objects are looked for
	fanOnce sync.Once
	finds   atomic.Int64
}

// verifyIndex compares the index of a pack with its checksum: it says where objects end, and nothing
// else would show a wrong place of an object that is never read.
func verifyIndex(src *odb.Pack, label string) error {
	x, err := src.Index()
	if err != nil {
		return err
	}
	if err := vfs.Guard(x.VerifyChecksum); err != nil {
		return fmt.Errorf("%s: %w", label+src.File("idx"), err)
	}
	return nil
}

// openPack maps a pack and puts its objects in order, by its .rev if that is right.
func openPack(src *odb.Pack, format oid.Format, label string) (*pack, error) {
	x, err := src.Index()
	if err != nil {
		return nil, err
	}
	body, err := src.Body()
	if err != nil {
		return nil, err
	}
	p := &pack{src: src, x: x, body: body, format: format}
	end := uint64(len(body))
	err = vfs.Guard(func() (err error) {
		if src.Has("rev") {
			p.order, p.badRev, err = p.readRev(format, label, end)
		}
		if p.order == nil && err == nil {
			p.order, err = orderBySort(x, end)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", label+src.File("idx"), err)
	}
	return p, nil
}

// readRev gives no order if the .rev is bad, or gone.
func (p *pack) readRev(format oid.Format, label string, end uint64) (o *order, bad, err error) {
	file := p.src.File("rev")
	m, err := p.src.Store().Dir().Map(file)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil, nil
		}
		return nil, &finding.Corrupt{ID: finding.BitmapUnusable, Pos: finding.Pos{File: label + file}, Err: err}, nil
	}
	defer m.Close()
	owner := bitmap.Owner{Format: format, Objects: uint32(p.x.Count()), Checksum: p.x.PackHash()}
	rev, err := bitmap.ParseRev(label+file, m.Bytes(), owner)
	if err != nil {
		return nil, err, nil
	}
	o, err = orderByRev(p.x, rev, end)
	if err != nil { // either the .rev or the index is wrong; sorting tells
		return nil, &finding.Corrupt{ID: finding.BitmapUnusable, Pos: finding.Pos{File: label + file}, Err: fmt.Errorf("is not the order of the pack: %w", err)}, nil
	}
	return o, nil, nil
}

// end is the number after the pack's last object.
func (p *pack) end() uint32 { return p.first + uint32(len(p.index)) }

// sizeAt is how many bytes the object at a position takes.
func (p *pack) sizeAt(pos uint32) uint64 { return p.offset(pos+1) - p.offset(pos) }
