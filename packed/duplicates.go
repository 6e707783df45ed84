package packed

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"slices"

	"refaudit/oid"
)

// In a file whose names rise, equal names are neighbours. In any other, they are found by their
// hashes: one pass collects those, sorts them, and only if some are equal a second pass looks at the
// names behind them. A share of the hashes at a time keeps the memory bounded.

// hashShare is how many hashes are in memory at a time.
const hashShare = 1 << 20

// duplicates reports every entry whose name stood before, those aside that were reported as neighbours.
func (s *scan) duplicates() error {
	seed := maphash.MakeSeed() // nobody can make names whose hashes are equal
	shares := uint64(s.sum.Refs/hashShare + 1)
	hashes := make([]uint64, 0, min(s.sum.Refs, hashShare+hashShare/8))
	for k := range shares {
		hashes = hashes[:0]
		err := s.again(func(e *Entry) error {
			if h := maphash.Bytes(seed, e.Name); h%shares == k {
				hashes = append(hashes, h)
			}
			return nil
		})
		if err != nil {
			return err
		}
		slices.Sort(hashes)
		if twice := repeated(hashes); len(twice) > 0 {
			if err := s.reportTwice(seed, twice); err != nil {
				return err
			}
		}
	}
	return nil
}

// repeated keeps, in place, one of each value that stands more than once in a sorted list.
func repeated(sorted []uint64) []uint64 {
	twice := sorted[:0]
	for i := 1; i < len(sorted); i++ {
		if sorted[i] == sorted[i-1] && (len(twice) == 0 || twice[len(twice)-1] != sorted[i]) {
			twice = append(twice, sorted[i])
		}
	}
	return twice
}

// A place is where a name stood first.
type place struct {
	line   int
	offset int64
	length int64
}

func (s *scan) reportTwice(seed maphash.Seed, twice []uint64) error {
	first := make(map[uint64]place, len(twice))
	for _, h := range twice {
		first[h] = place{}
	}
	return s.again(func(e *Entry) error {
		h := maphash.Bytes(seed, e.Name)
		p, ok := first[h]
		switch {
		case !ok:
			return nil
		case p.line == 0:
			first[h] = place{e.Line, e.Offset, e.Length}
			return nil
		case e.Line < s.order.fell:
			return nil // reported already
		}
		line := make([]byte, p.length)
		if n, err := s.r.ReadAt(line, p.offset); n < len(line) {
			return fmt.Errorf("%s: read at offset %d: %w", s.opts.File, p.offset, err)
		}
		line = bytes.TrimSuffix(line, []byte("\n"))
		id := make([]byte, s.f.Size())
		if ok, _ := decodeHex(id, line); !ok || !bytes.Equal(line[s.digits+1:], e.Name) {
			return nil // another name with the same hash
		}
		return s.duplicate(e, p.line, bytes.Equal(id, e.OID))
	})
}

// again goes over the entries of the file once more, without a word about anything else.
func (s *scan) again(each func(*Entry) error) error {
	w := newWindow(s.r, s.sum.Size, s.opts.first, s.opts.most)
	var rec record
	var e Entry
	var id [oid.MaxSize]byte
	if s.sum.Header.Present && !w.nextLine(&rec) {
		return w.failure(s.opts.File)
	}
	for w.next(&rec) {
		n := s.digits
		if rec.long || len(rec.ref) <= n+1 || rec.ref[0] == '^' || !isSpace(rec.ref[n]) {
			continue
		}
		e = Entry{Name: rec.ref[n+1:], OID: id[:s.f.Size()], Line: rec.line, Offset: rec.off, Length: rec.refLen}
		if ok, _ := decodeHex(e.OID, rec.ref[:n]); !ok || bytes.IndexByte(e.Name, 0) >= 0 {
			continue
		}
		if err := each(&e); err != nil {
			return err
		}
	}
	return w.failure(s.opts.File)
}
