package repair

import (
	"fmt"
	"time"

	"refaudit/internal/journal"
)

// Tidy tells what is wrong with a journal, and removes from it what was never begun.
func Tidy(j Journal, now time.Time) (notices []string) {
	if own, ok := j.(*journal.Journal); ok {
		swept, err := own.Sweep(now)
		if err != nil {
			notices = append(notices, err.Error())
		}
		for _, id := range swept {
			notices = append(notices, fmt.Sprintf("journal: entry %s was never finished, so its repair had not begun; it is removed", id))
		}
	}
	for _, err := range damaged(j) {
		notices = append(notices, err.Error())
	}
	return notices
}
