package bitmap

import (
	"bytes"
	"encoding/binary"

	"refaudit/finding"
	"refaudit/internal/binread"
)

// Rev is a reverse index: for each object in pack order, its place in the index; in a layer of a
// chain, the places count from the lowest layer on. Specification: gitformat-pack in git.
//
//	0      4             8              12                 12+4n
//	+------+-------------+--------------+------------------+-----------------------+-----------+
//	| RIDX | u32 version | u32 hash id  | n places, u32    | checksum of the owner | checksum  |
//	+------+-------------+--------------+------------------+-----------------------+-----------+
//
// The chunk RIDX of a multi-pack-index holds the places alone.
//
// A Rev has as many places as there are objects. That they are a permutation is a claim: see Check.
type Rev struct {
	name   string
	at     int64 // of the places in the file
	places []byte
	owner  Owner
}

// ParseRev reads a .rev file; name is what messages call it.
func ParseRev(name string, data []byte, owner Owner) (Rev, error) {
	size := owner.Format.Size()
	body, err := trim(name, data, owner.Format, 12+size)
	if err != nil {
		return Rev{}, err
	}
	if err := Verify(name, data, owner.Format); err != nil {
		return Rev{}, err
	}
	c := binread.New(body, name, 0, finding.BitmapUnusable)
	if string(c.Bytes(4, "signature")) != "RIDX" {
		return Rev{}, corrupt(name, 0, "is no reverse index")
	}
	if v := c.U32("version"); v != 1 {
		return Rev{}, corrupt(name, 4, "version %d, not 1", v)
	}
	if id := c.U32("hash id"); id != uint32(owner.Format) {
		return Rev{}, corrupt(name, 8, "hash id %d, not %d", id, owner.Format)
	}
	places := body[12 : len(body)-size]
	if sum := body[len(body)-size:]; !bytes.Equal(sum, owner.Checksum) {
		return Rev{}, corrupt(name, int64(len(body)-size), "belongs to %x, not to %x", sum, owner.Checksum)
	}
	return RevOf(name, 12, places, owner)
}

// RevOf takes the places alone, which stand in the file at offset at.
func RevOf(name string, at int64, places []byte, owner Owner) (Rev, error) {
	if uint64(len(places)) != 4*uint64(owner.Objects) {
		return Rev{}, corrupt(name, at, "%d bytes, %d objects need %d", len(places), owner.Objects, 4*uint64(owner.Objects))
	}
	return Rev{name: name, at: at, places: places, owner: owner}, nil
}

// Check makes sure that each object has its place, once.
func (r Rev) Check() error {
	n := r.owner.Objects
	seen := NewSet(int(n))
	for i := range r.Len() {
		p := r.At(i)
		if p >= n {
			return corrupt(r.name, r.at+4*int64(i), "names object %d, and there are %d", p+r.owner.Base, r.owner.total())
		}
		if seen.Has(p) {
			return corrupt(r.name, r.at+4*int64(i), "names object %d twice", p+r.owner.Base)
		}
		seen.Add(p)
	}
	return nil
}

// Len is the number of objects.
func (r Rev) Len() int { return len(r.places) / 4 }

// At is the place in the index of the i-th object in pack order; in a layer, counted in the layer.
// Unless Check has said so, it may be the place of no object.
func (r Rev) At(i int) uint32 { return binary.BigEndian.Uint32(r.places[4*i:]) - r.owner.Base }
