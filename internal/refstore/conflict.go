package refstore

import (
	"hash/maphash"

	"refaudit/finding"
	"refaudit/internal/refname"
)

// conflicts finds names that can't stand beside each other, in a stream of names in order: a
// name that is a folder of another, and, as a warning, names that differ only in case.
//
// Memory grows with the number of names that have capitals.
type conflicts struct {
	prev    []byte // the name before
	folders []int  // lengths of the names before that prev begins with: they may turn out to be folders
	capital int    // where the first capital of prev stands; its length if it has none
	seed    maphash.Seed
	lower   map[uint64]string // hash of a name in lower case -> the name, of names with capitals
	fold    []byte
	edge    *edge // where others come before; nil: these are the first
}

func newConflicts() *conflicts {
	return &conflicts{seed: maphash.MakeSeed(), lower: map[uint64]string{}}
}

// add takes the next name and gives the names that it can't stand beside, if any. same is how many bytes it has in
// common with the one before.
func (c *conflicts) add(name []byte, same int) (folder string, twin string) {
	if c.edge != nil {
		c.edge.add(name, same)
	}
	if same == len(c.prev) && same > 0 {
		c.folders = append(c.folders, same)
	}
	last := len(c.folders) - 1
	for last >= 0 && c.folders[last] > same {
		last--
	}
	c.folders = c.folders[:last+1]
	if last >= 0 {
		if n := c.folders[last]; len(name) > n && name[n] == '/' {
			folder = string(name[:n])
		}
	}
	if c.capital >= same {
		c.capital = same + firstCapital(name[same:])
	}
	c.prev = append(c.prev[:same], name[same:]...)
	if c.capital == len(name) && len(c.lower) == 0 {
		return folder, ""
	}
	return folder, c.twin(name)
}

// clash tells whether add may have something to give for a name that has so much in common with the one before.
func (c *conflicts) clash(same int) bool {
	return same == len(c.prev) || len(c.folders) > 0 || len(c.lower) > 0
}

// common counts the bytes that a name has in common with the one before.
func (c *conflicts) common(name []byte) int { return refname.CommonPrefix(c.prev, name) }

func firstCapital(name []byte) int {
	for i, b := range name {
		if b-'A' < 26 {
			return i
		}
	}
	return len(name)
}

// twin relies on the order of bytes: of two names that differ only in case, the one with the
// first capital comes first.
func (c *conflicts) twin(name []byte) string {
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
	if c.capital < len(name) && !ok {
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

// report takes the next name, as add does, and makes findings of what that gives.
func (c *conflicts) report(name []byte, same int, pos *finding.Pos, report func(finding.Finding) error) error {
	folder, twin := c.add(name, same)
	if folder == "" && twin == "" {
		return nil
	}
	return conflict(name, folder, twin, pos, report)
}

func conflict(name []byte, folder, twin string, pos *finding.Pos, report func(finding.Finding) error) error {
	if folder != "" {
		f := finding.New(finding.RefNameConflict, *pos, "can't stand beside %q, which would have to be a folder and a file at once", folder)
		f.Ref = finding.RefName(name)
		if err := report(f); err != nil {
			return err
		}
	}
	if twin != "" {
		f := finding.New(finding.RefNameConflict, *pos, "differs from %q only in case: a disk that ignores case can't hold both", twin)
		f.Ref, f.Severity = finding.RefName(name), finding.Warn
		return report(f)
	}
	return nil
}
