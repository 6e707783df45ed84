package reports

import (
	"fmt"
	"io"
	"strings"
	"time"

	"refaudit/finding"
)

// Metrics writes a run's summary in the Prometheus text format, for a textfile collector. Every id
// there is has a line, with 0 where nothing was found, so that an alert can tell silence from health.
func Metrics(w io.Writer, s *Summary, end time.Time) error {
	var b strings.Builder
	head := func(name, help, kind string) {
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
	}
	head("refaudit_findings", "Findings of the last run, by message id.", "gauge")
	for i := range finding.Catalog {
		id := finding.Catalog[i].ID
		fmt.Fprintf(&b, "refaudit_findings{msgid=%q} %d\n", id, s.IDs[id])
	}
	head("refaudit_findings_by_severity", "Findings of the last run, by the severity that holds for them.", "gauge")
	sev := severities(s.Severities)
	for _, word := range []string{"error", "warn", "info"} {
		fmt.Fprintf(&b, "refaudit_findings_by_severity{severity=%q} %d\n", word, sev[word])
	}
	head("refaudit_repositories", "Repositories of the last run, by how their audit ended.", "gauge")
	for _, state := range []State{Clean, Found, Incomplete} {
		fmt.Fprintf(&b, "refaudit_repositories{state=%q} %d\n", state, s.Repositories[state])
	}
	for _, m := range []struct {
		name, help string
		value      float64
	}{
		{"refaudit_refs", "References that the last run has seen.", float64(s.Refs)},
		{"refaudit_peels_checked", "Cached peels that the last run has compared.", float64(s.PeelsChecked)},
		{"refaudit_duration_seconds", "How long the last run took.", s.Duration.Seconds()},
		{"refaudit_exit_code", "Exit code of the last run.", float64(s.Exit)},
		{"refaudit_last_run_timestamp_seconds", "When the last run ended.", float64(end.Unix())},
	} {
		head(m.name, m.help, "gauge")
		fmt.Fprintf(&b, "%s %v\n", m.name, m.value)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
