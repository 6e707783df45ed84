package usage

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"sync"

	"refaudit/internal/vfs"
	"refaudit/oid"
)

// A loose file that was cut short is smaller than any sound copy of the object, and would count in place of
// that. So it is looked into where it is the smallest of several copies, which few are: what a pack holds is smaller as a rule.

// withoutCut leaves out the loose files that hold no whole object, of those that suspect picks. The error tells
// of files that can't be read, which are not left out.
func withoutCut(dir *vfs.Dir, loose []looseFile, workers int, suspect func(f *looseFile) bool) ([]looseFile, error) {
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
		err := wholeObject(dir, loose[which[i]].id)
		if err == nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if _, damaged := errors.AsType[*cutError](err); damaged || vfs.Missing(err) {
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

// cutError says why a file holds no whole object.
type cutError struct{ err error }

func (e *cutError) Error() string { return e.err.Error() }
func (e *cutError) Unwrap() error { return e.err }

// wholeObject inflates a loose file to its end, and keeps nothing of it.
//
//	zlib( <kind> " " <size> NUL <content of that size> )
func wholeObject(dir *vfs.Dir, id oid.ID) error {
	hex := id.String()
	name := hex[:2] + "/" + hex[2:]
	f, err := dir.Open(name)
	switch {
	case errors.Is(err, vfs.ErrNotRegular):
		return &cutError{err}
	case err != nil:
		return err
	}
	defer f.Close()
	if err := inflateWhole(f); err != nil {
		if _, unread := errors.AsType[*fs.PathError](err); unread {
			return err
		}
		return &cutError{fmt.Errorf("%s: %w", name, err)}
	}
	return nil
}

func inflateWhole(f io.Reader) error {
	z, err := zlib.NewReader(bufio.NewReader(f))
	if err != nil {
		return err
	}
	var head []byte
	for one := make([]byte, 1); ; head = append(head, one[0]) {
		if _, err := io.ReadFull(z, one); err != nil {
			return err
		}
		if one[0] == 0 || len(head) == 32 {
			break
		}
	}
	word, digits, _ := bytes.Cut(head, []byte(" "))
	size, err := strconv.ParseInt(string(digits), 10, 64)
	if _, known := oid.ParseKind(word); !known || err != nil || size < 0 {
		return fmt.Errorf("header %q", head)
	}
	if _, err := io.CopyN(io.Discard, z, size); err != nil {
		return err
	}
	switch n, err := io.Copy(io.Discard, io.LimitReader(z, 1)); { // the checksum stands at the end
	case err != nil:
		return err
	case n > 0:
		return fmt.Errorf("more than the %d bytes that its header claims", size)
	}
	return nil
}

// leaveOutCut forgets loose files that hold no whole object, where they would count before a copy in a pack.
func (s *store) leaveOutCut(workers int) error {
	return vfs.Guard(func() error {
		loose, err := withoutCut(s.src.Dir(), s.loose, workers, func(f *looseFile) bool {
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
		loose, err := withoutCut(own.src.Dir(), own.loose, m.s.workers, func(f *looseFile) bool {
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
