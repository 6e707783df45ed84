package odb

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"

	"refaudit/alternates"
	"refaudit/finding"
)

// view is the object folders at one time. It never changes, but learns more of its packs.
type view struct {
	chain  *alternates.Chain
	stores []*Store
	packs  []*Pack // of all stores
	first  []int   // of each store: where its packs begin

	unopened error // the first folder of the chain that could not be opened
	// blind is why any object may lie where nobody looked: a list of alternates can't be read, or a folder that one
	// names can't be opened. It is nil if all folders were looked at but, perhaps, some that are missing.
	blind    error
	problems []finding.Finding
}

func (db *DB) load(old *view) (*view, error) {
	chain, err := alternates.Resolve(db.dir, db.options.Alternates)
	if err != nil {
		return nil, fmt.Errorf("open object folder: %w", err)
	}
	v := &view{chain: chain, blind: chain.Unread}
	for i, c := range chain.Stores {
		if i > 0 && db.options.Alone {
			break
		}
		prefix := c.Path + string(filepath.Separator)
		if i == 0 {
			prefix = cmp.Or(db.options.Label, "objects/")
		}
		s, err := openStore(c.Path, prefix, db.format, old.store(c.Path))
		switch {
		case err == nil:
			v.first = append(v.first, len(v.packs))
			v.stores = append(v.stores, s)
			v.packs = append(v.packs, s.packs...)
		case i == 0:
			return nil, fmt.Errorf("open object folder: %w", err)
		default:
			v.skip(c, err)
		}
	}
	return v, nil
}

// skip notes a folder of the chain that could not be opened.
func (v *view) skip(c alternates.Store, err error) {
	f := finding.New(finding.AuditSkipped, finding.Pos{File: c.Path}, "objects borrowed from here can't be looked at: %v", err)
	v.problems = append(v.problems, f)
	if v.unopened == nil {
		v.unopened = fmt.Errorf("alternate %s: %w", c.Path, err)
	}
	v.blind = cmp.Or(v.blind, v.unopened)
}

// store is the store at path; nil if there is none.
func (v *view) store(path string) *Store {
	if v == nil {
		return nil
	}
	for _, s := range v.stores {
		if s.dir.Root() == path {
			return s
		}
	}
	return nil
}

// same tells whether both views have the same packs, multi-pack-indexes and chain.
func (v *view) same(old *view) bool {
	return slices.Equal(v.packs, old.packs) && slices.EqualFunc(v.stores, old.stores, (*Store).same) &&
		slices.EqualFunc(v.chain.Findings, old.chain.Findings, func(a, b finding.Finding) bool { return a == b }) &&
		len(v.problems) == len(old.problems)
}

// same tells whether the store was found again as it was.
func (s *Store) same(old *Store) bool {
	m, n := s.midx, old.midx
	for m != nil && n != nil && m.mapping == n.mapping {
		m, n = m.base, n.base
	}
	return m == nil && n == nil && s.dir.Root() == old.dir.Root() && len(s.problems) == len(old.problems)
}

func (v *view) incomplete() error {
	if v.chain.Unknown != nil {
		return v.chain.Unknown
	}
	return v.unopened
}

// doubtful tells, after having verified each index that was searched, whether an object may be
// there though it was not found: the view is blind, an index is damaged or can't be read, a pack can't be
// opened, a folder can't be listed, or a multi-pack-index is damaged or names a pack that is gone.
func (v *view) doubtful() bool {
	doubt := v.blind != nil
	for _, s := range v.stores {
		doubt = !s.verify() || doubt
	}
	return doubt
}

// verify tells whether everything in the store that was searched is as it should be.
func (s *Store) verify() bool {
	good := s.blind == nil && !s.loose.blind()
	for m := s.midx; m != nil; m = m.base {
		if m.verify() != nil || slices.Contains(m.local, -1) {
			good = false
		}
	}
	for i, p := range s.packs {
		if s.covered[i] {
			if _, err := p.trouble(); err != nil {
				good = false
			}
			continue
		}
		if _, err := p.Body(); err != nil || p.verify() != nil {
			good = false
		}
	}
	return good
}
