package odb

import "errors"

var errIndexSum = errors.New("does not match its checksum")

// RawID is the i-th id in the order of ids, as its bytes lie in the mapped file: for those who look
// at many, and compare most of them only in part.
func (x *Index) RawID(i int) []byte { return x.ids.raw(i) }

// VerifyChecksum compares the file with its checksum, which reads all of it; that the ids rise is left
// to Verify.
func (x *Index) VerifyChecksum() error {
	if !trailerMatches(x.data, x.ids.format) {
		return errIndexSum
	}
	return nil
}
