package odb

// RawID is the i-th id in the order of ids, as its bytes lie in the mapped file: for those who look
// at many, and compare most of them only in part.
func (x *Index) RawID(i int) []byte { return x.ids.raw(i) }
