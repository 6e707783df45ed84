package fleet

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"refaudit/finding"
	"refaudit/scan"
)

// A file of audits is JSON lines, one for each repository, below a first one that says what it is:
//
//	{"refaudit-audits":1}
//	{"repo":"/srv/a.git","at":"2026-01-02T03:04:05Z","level":"standard","state":"clean","sum":"…","rules":"…","refs":12,"peels":3}
const auditsHead = `{"refaudit-audits":1}` + "\n"

type auditLine struct {
	Repo       string               `json:"repo,omitempty"`
	RepoRaw    []byte               `json:"repo_b64,omitempty"`
	At         time.Time            `json:"at"`
	Level      string               `json:"level"`
	State      scan.State           `json:"state"`
	Sum        string               `json:"sum,omitempty"`
	Rules      string               `json:"rules,omitempty"`
	Refs       int64                `json:"refs,omitempty"`
	Peels      int64                `json:"peels,omitempty"`
	Known      int64                `json:"known,omitempty"`
	Severities map[string]int64     `json:"severities,omitempty"`
	IDs        map[finding.ID]int64 `json:"ids,omitempty"`
	Reason     string               `json:"reason,omitempty"`
}

func encodeAudits(w io.Writer, all map[string]Audit) error {
	repos := make([]string, 0, len(all))
	for repo := range all {
		repos = append(repos, repo)
	}
	slices.Sort(repos)
	out := bufio.NewWriter(w)
	out.WriteString(auditsHead)
	enc := json.NewEncoder(out)
	for _, repo := range repos {
		a := all[repo]
		l := auditLine{At: a.At.UTC(), Level: a.Level.String(), State: a.State, Sum: a.Sum, Rules: a.Rules, Refs: a.Refs, Peels: a.Peels, Known: a.Known, IDs: a.IDs, Reason: a.Reason}
		l.Repo, l.RepoRaw = textOrBytes(repo)
		for s, n := range a.Severities {
			if l.Severities == nil {
				l.Severities = map[string]int64{}
			}
			l.Severities[s.String()] += n
		}
		if err := enc.Encode(l); err != nil {
			return err
		}
	}
	return out.Flush()
}

func decodeAudits(b []byte) (map[string]Audit, error) {
	rows, ok := bytes.CutPrefix(b, []byte(auditsHead))
	if !ok {
		return nil, errors.New("line 1 is another")
	}
	all := map[string]Audit{}
	for n := 2; len(rows) > 0; n++ {
		row, rest, ok := bytes.Cut(rows, []byte("\n"))
		if !ok {
			return nil, fmt.Errorf("line %d is cut short", n)
		}
		rows = rest
		var l auditLine
		if err := json.Unmarshal(row, &l); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		a, err := l.audit()
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		all[a.Repo] = a
	}
	return all, nil
}

func (l *auditLine) audit() (Audit, error) {
	a := Audit{Repo: l.Repo, At: l.At, State: l.State, Sum: l.Sum, Rules: l.Rules, Refs: l.Refs, Peels: l.Peels, Known: l.Known, IDs: l.IDs, Reason: l.Reason,
		Severities: map[finding.Severity]int64{}}
	if l.RepoRaw != nil {
		a.Repo = string(l.RepoRaw)
	}
	var err error
	if a.Level, err = scan.ParseLevel(l.Level); err != nil {
		return a, err
	}
	switch a.State {
	case scan.Clean, scan.Found, scan.Incomplete:
	default:
		return a, fmt.Errorf("no state %q", a.State)
	}
	for word, n := range l.Severities {
		s, ok := finding.ParseSeverity(word)
		if !ok {
			return a, fmt.Errorf("no severity %q", word)
		}
		a.Severities[s] = n
	}
	return a, nil
}
