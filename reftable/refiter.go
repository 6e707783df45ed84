package reftable

import "bytes"

// RefIter reads the ref records of a table in order. It reads blocks of refs and, of others,
// nothing but their first byte (and the index, where it seeks or meets damage).
type RefIter struct {
	walk
	ref   Ref
	idLen int
}

// Iter begins at the first ref.
func (t *Table) Iter() *RefIter {
	return &RefIter{walk: t.walk(kindRef, scanWindow), idLen: t.Format.Size()}
}

// Seek begins at the first ref whose name is not below name.
func (t *Table) Seek(name []byte) *RefIter {
	it := &RefIter{walk: t.walk(kindRef, t.seekStep()), idLen: t.Format.Size()}
	it.Seek(name)
	return it
}

// Refs gives every ref record in order to fn. The record holds until fn returns. The error is
// ErrDamaged if records were stepped over, else fn's or Damage's.
func (t *Table) Refs(fn func(*Ref) error) error {
	it := t.Iter()
	for it.Next() {
		if err := fn(&it.ref); err != nil {
			return err
		}
	}
	return it.Err()
}

// Ref is the record that the last step reached. It holds until the next one.
func (it *RefIter) Ref() *Ref { return &it.ref }

// Next goes to the next record; false at the end, or where Err says so.
func (it *RefIter) Next() bool {
	if it.held {
		it.held = false
		return true
	}
	if !it.told && !it.begin() {
		return false
	}
	for !it.nextInBlock() {
		if !it.nextBlock() {
			return false
		}
	}
	return true
}

// Seek goes to the record before the first one whose name is not below name, so that Next gives that one.
func (it *RefIter) Seek(name []byte) {
	if !it.seek(name) {
		it.next = it.t.end
		return
	}
	for it.nextBlock() && it.searchBlock(name) {
		for it.nextInBlock() {
			if bytes.Compare(it.ref.Name, name) >= 0 {
				it.held = true
				return
			}
		}
	}
}

// nextInBlock goes to the next record of the block that can be read.
func (it *RefIter) nextInBlock() bool {
	for it.p < len(it.recs) && it.err == nil {
		if it.decode() {
			return it.err == nil
		}
		it.skipRecord()
	}
	return false
}
