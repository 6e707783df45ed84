package scan

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"

	"refaudit/finding"
	"refaudit/oid"
)

// Digest is the same for policies that say the same of every finding. A line of refaudit.skipList that
// expires makes it another one.
func (p *Policy) Digest() (sum [sha256.Size]byte) {
	var b bytes.Buffer
	fmt.Fprintln(&b, "strict", p.strict)
	for i := range finding.Catalog {
		id := finding.Catalog[i].ID
		if v, ok := p.severity[id]; ok {
			fmt.Fprintln(&b, id, v, p.fixed[id])
		}
	}
	ids := make([]oid.ID, 0, len(p.objects))
	for id := range p.objects {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, oid.ID.Compare)
	for _, id := range ids {
		fmt.Fprintln(&b, id)
	}
	if p.skip != nil {
		for i := range p.skip.lines {
			l := &p.skip.lines[i]
			fmt.Fprintf(&b, "%q %v\n", l.text, !l.until.IsZero() && !p.now.Before(l.until))
		}
	}
	return sha256.Sum256(b.Bytes())
}
