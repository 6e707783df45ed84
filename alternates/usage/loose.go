package usage

import (
	"errors"
	"slices"
	"sync"

	"refaudit/finding"
	"refaudit/internal/vfs"
	"refaudit/odb"
)

// A loose file that was cut short is smaller than any sound copy of the object, and would count in place of
// that. So it is looked into where it is the smallest of several copies, which few are: what a pack holds is smaller as a rule.

// withoutCut leaves out the loose files that hold no whole object, of those that suspect picks. The error tells
// of files that can't be read, which are not left out.
func withoutCut(src *odb.Store, loose []looseFile, workers int, suspect func(f *looseFile) bool) ([]looseFile, error) {
	var which []int
	for i := range loose {
		if suspect(&loose[i]) {
			which = append(which, i)
		}
	}
	var mu sync.Mutex
	var cut []int
	var unread error
	inParallel(workers, len(which), func(i int) {
		err := src.CheckLoose(&loose[which[i]].id)
		if err == nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if _, damaged := errors.AsType[*finding.Corrupt](err); damaged || vfs.Missing(err) || errors.Is(err, vfs.ErrNotRegular) {
			cut = append(cut, which[i])
		} else {
			unread = errors.Join(unread, err)
		}
	})
	if len(cut) == 0 {
		return loose, unread
	}
	slices.Sort(cut)
	var left []looseFile
	for i, f := range loose {
		if _, found := slices.BinarySearch(cut, i); !found {
			left = append(left, f)
		}
	}
	return left, unread
}

// leaveOutCut forgets loose files that hold no whole object, where they would count before a copy in a pack.
func (s *store) leaveOutCut(workers int) error {
	return vfs.Guard(func() error {
		loose, err := withoutCut(s.src, s.loose, workers, func(f *looseFile) bool {
			smallest := false
			for _, p := range s.packs {
				if pos, ok := p.find(&f.id); ok {
					if smallest = p.sizeAt(pos) > uint64(f.size); !smallest {
						return false
					}
				}
			}
			return smallest
		})
		s.loose, s.unseen = loose, errors.Join(s.unseen, err)
		return nil
	})
}

// leaveOutCut forgets loose files of our own that hold no whole object, where they would count before a larger copy that we borrow.
func (m *measuring) leaveOutCut() error {
	if len(m.pools) == 0 {
		return nil
	}
	return vfs.Guard(func() error {
		own := m.own.store
		loose, err := withoutCut(own.src, own.loose, m.s.workers, func(f *looseFile) bool {
			for _, p := range m.pools {
				if v, ok := p.store.find(&f.id); ok && p.store.bytes(v) > uint64(f.size) {
					return true
				}
			}
			return false
		})
		if len(loose) < len(own.loose) {
			m.own.files.loose = loose
			if err := own.maps.close(); err != nil {
				return err
			}
			m.own.number(m.repo.Format, m.s.workers, false)
			if m.own.err != nil {
				return m.own.err
			}
		}
		m.own.store.unseen = errors.Join(m.own.store.unseen, err)
		return nil
	})
}
