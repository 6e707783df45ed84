package refstore

import (
	"bytes"
	"hash/maphash"

	"refaudit/finding"
)

// conflicts finds names that can't stand beside each other, in a stream of names in order: a
// name that is a folder of another, and, as a warning, names that differ only in case.
//
// Memory grows with the depth of names, and with the number of names that have capitals.
type conflicts struct {
	open  []byte // names that may turn out to be folders, one after another, each a prefix of the next
	ends  []int
	seed  maphash.Seed
	lower map[uint64]string // hash of a name in lower case -> the name, of names with capitals
	fold  []byte
}

func newConflicts() *conflicts {
	return &conflicts{seed: maphash.MakeSeed(), lower: map[uint64]string{}}
}

// add takes the next name and gives the names that it can't stand beside, if any.
func (c *conflicts) add(name []byte) (folder string, twin string) {
	for len(c.ends) > 0 {
		start := 0
		if len(c.ends) > 1 {
			start = c.ends[len(c.ends)-2]
		}
		top := c.open[start:c.ends[len(c.ends)-1]]
		if bytes.HasPrefix(name, top) {
			if len(name) > len(top) && name[len(top)] == '/' {
				folder = string(top)
			}
			break
		}
		c.open, c.ends = c.open[:start], c.ends[:len(c.ends)-1]
	}
	c.open = append(c.open, name...)
	c.ends = append(c.ends, len(c.open))
	return folder, c.twin(name)
}

// twin relies on the order of bytes: of two names that differ only in case, the one with the
// first capital comes first.
func (c *conflicts) twin(name []byte) string {
	capitals := false
	for _, b := range name {
		if b-'A' < 26 {
			capitals = true
			break
		}
	}
	if !capitals && len(c.lower) == 0 {
		return ""
	}
	c.fold = c.fold[:0]
	for _, b := range name {
		if b-'A' < 26 {
			b += 'a' - 'A'
		}
		c.fold = append(c.fold, b)
	}
	h := maphash.Bytes(c.seed, c.fold)
	twin, ok := c.lower[h]
	if ok && (twin == string(name) || !equalFold(twin, name)) {
		return ""
	}
	if capitals && !ok {
		c.lower[h] = string(name)
	}
	return twin
}

// equalFold compares ASCII letters without their case, and all other bytes as they are.
func equalFold(a string, b []byte) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range b {
		x, y := a[i], b[i]
		if x-'A' < 26 {
			x += 'a' - 'A'
		}
		if y-'A' < 26 {
			y += 'a' - 'A'
		}
		if x != y {
			return false
		}
	}
	return true
}

// report makes findings of what add has given for the name.
func (c *conflicts) report(name []byte, pos finding.Pos, report func(finding.Finding) error) error {
	folder, twin := c.add(name)
	if folder == "" && twin == "" {
		return nil
	}
	if folder != "" {
		f := finding.New(finding.RefNameConflict, pos, "can't stand beside %q, which would have to be a folder and a file at once", folder)
		f.Ref = finding.RefName(name)
		if err := report(f); err != nil {
			return err
		}
	}
	if twin != "" {
		f := finding.New(finding.RefNameConflict, pos, "differs from %q only in case: a disk that ignores case can't hold both", twin)
		f.Ref, f.Severity = finding.RefName(name), finding.Warn
		return report(f)
	}
	return nil
}
