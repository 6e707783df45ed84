package bitmap

// Reader decodes the bitmaps of one File. It remembers what it has decoded, within bounds, since
// the bitmaps are XORed with each other. It is for one goroutine.
type Reader struct {
	f      *File
	kept   map[int32]Set
	room   int // sets that may still be kept
	chain  []int32
	merges []merge
}

type merge struct{ commits, objects Set }

// keepBytes bounds what a Reader remembers.
const keepBytes = 64 << 20

// checkpoint is how many steps of a chain are decoded between two sets that are kept.
const checkpoint = 16

// NewReader makes a Reader of f.
func NewReader(f *File) *Reader {
	room := keepBytes / (8*words(f.Bits()) + 8)
	return &Reader{f: f, kept: map[int32]Set{}, room: max(room, 2)}
}

// Entry decodes one entry: the objects that its commit reaches, itself included. The set is valid
// until the next call and not to be changed.
func (r *Reader) Entry(entry int) (Set, error) {
	r.chain = r.chain[:0]
	var from Set
	for e := int32(entry); e >= 0; e = r.f.entries[e].base { // bases come before: the chain ends
		if s, ok := r.kept[e]; ok {
			from = s
			break
		}
		r.chain = append(r.chain, e)
	}
	if len(r.chain) == 0 {
		return from, nil
	}
	s := NewSet(r.f.Bits())
	copy(s, from)
	for i := len(r.chain) - 1; i >= 0; i-- {
		e := r.f.entries[r.chain[i]]
		if err := r.f.within(e.bits.xor(s), s, e.offset); err != nil {
			return nil, err
		}
		if i > 0 && i%checkpoint == 0 {
			r.keep(r.chain[i], s.Clone())
		}
	}
	r.keep(int32(entry), s)
	return s, nil
}

// keep remembers a set, and forgets all others when there is no room.
func (r *Reader) keep(entry int32, s Set) {
	if len(r.kept) >= r.room {
		clear(r.kept)
	}
	r.kept[entry] = s
}

// Merge adds what pseudo-merges say: the objects of each whose commits are all in have are added to
// have and to into, until there is no more to add. It tells whether it added any.
func (r *Reader) Merge(have, into Set) (bool, error) {
	if err := r.loadMerges(); err != nil {
		return false, err
	}
	added := false
	for again := true; again; {
		again = false
		for i := range r.merges {
			m := &r.merges[i]
			if m.commits.Within(have) && !m.objects.Within(into) {
				have.Or(m.objects)
				into.Or(m.objects)
				added, again = true, true
			}
		}
	}
	return added, nil
}

// loadMerges decodes the pseudo-merges, as many as may be kept: the others are not used.
func (r *Reader) loadMerges() error {
	for len(r.merges) < min(len(r.f.merges), r.room/2) {
		m := r.f.merges[len(r.merges)]
		d := merge{commits: NewSet(r.f.Bits()), objects: NewSet(r.f.Bits())}
		if err := r.f.within(m.commits.or(d.commits), d.commits, m.commits.at); err != nil {
			return err
		}
		if err := r.f.within(m.objects.or(d.objects), d.objects, m.objects.at); err != nil {
			return err
		}
		if d.commits.Empty() { // says nothing of any commit
			d.objects.Clear()
		}
		r.merges = append(r.merges, d)
	}
	return nil
}
