package repair

import (
	"fmt"

	"refaudit/finding"
)

// Brake stops a repair that looks like a pool which is not mounted: many tags at once losing their
// peel because objects are absent.
type Brake struct {
	Tags int64 // cached peels in the store
	Max  int   // --max-changes: so many changes are allowed; 0: not given
}

const (
	brakeCount   = 10
	brakePercent = 1
)

// check takes how many peels are dropped because objects are absent, and how many changes there are at all.
func (b Brake) check(absent, changes int) error {
	if b.Max > 0 && changes > b.Max {
		return &Refused{Reason: fmt.Sprintf("%s, and --max-changes allows %d", finding.Count(changes, "change", "changes"), b.Max)}
	}
	if b.Max == 0 && absent > brakeCount && int64(absent)*100 > b.Tags*brakePercent {
		return &Refused{Reason: fmt.Sprintf("%d of %d tags would lose their peel because objects are absent, as if an object pool were not mounted; --max-changes=%d goes on", absent, b.Tags, changes)}
	}
	return nil
}
