package odb

import (
	"errors"
	"fmt"
	"io/fs"

	"refaudit/internal/vfs"
	"refaudit/oid"
)

// site is one place where an object lies: an offset in a pack, or a loose file of a store.
type site struct {
	pack  *Pack
	off   uint64
	store *Store
}

func (c site) label(id *oid.ID) string {
	if c.pack == nil {
		return c.store.label(loosePath(id))
	}
	return c.store.label(c.pack.File("pack"))
}

// sites finds every place where the object lies, in packs that multi-pack-indexes cover too. The
// error says where it could not be looked, or that it lies in a pack that can't be opened.
func (v *view) sites(id *oid.ID) (all []site, err error) {
	var errs []error
	if v.blind != nil {
		errs = append(errs, v.blind)
	}
	for _, s := range v.stores {
		if s.blind != nil {
			errs = append(errs, s.blind)
		}
		for _, p := range s.packs {
			off, ok, err := p.locate(id)
			if ok {
				all = append(all, site{pack: p, off: off, store: s})
			} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, err)
			}
		}
		ok, err := s.loose.has(id)
		if ok {
			all = append(all, site{store: s})
		} else if err != nil {
			errs = append(errs, fmt.Errorf("loose objects: %w", err))
		}
	}
	if len(errs) > 0 {
		err = errs[0]
	}
	return all, err
}

// locate finds the object in the pack by the pack's own index, which must be sound to be believed
// that it is not there.
func (p *Pack) locate(id *oid.ID) (off uint64, found bool, err error) {
	x, err := p.Index()
	if err != nil {
		return 0, false, err
	}
	err = vfs.Guard(func() error {
		var i int
		if i, found = x.Find(id); found {
			off, found = x.Offset(i)
			if !found {
				return fmt.Errorf("%s: object %v has no offset", p.store.label(p.File("idx")), id)
			}
		}
		return nil
	})
	if found && err == nil {
		_, err = p.Body()
		return off, err == nil, err
	}
	if err == nil {
		err = p.verify()
	}
	return 0, false, err
}
