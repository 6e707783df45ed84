package remotehelper

import (
	"strings"

	"refaudit/internal/remote"
)

// status is what git hears of one ref that was to be pushed.
type status struct {
	ok   bool
	ref  string
	why  string
	told string // the ref that the server has changed in its place; "" if it is the same
}

// line is the answer in the protocol's words.
func (s status) line() string {
	word := "error "
	if s.ok {
		word = "ok "
	}
	line := word + s.ref
	if s.why != "" {
		why := s.why
		if strings.ContainsAny(why, "\n\"") {
			why = remote.Quote(why)
		}
		line += " " + why
	}
	if line += "\n"; s.told != "" {
		line += "option refname " + s.told + "\n"
	}
	return line
}

// reasons are git push's words for why it did not even try, and the protocol's for the same.
var reasons = map[string]string{
	"non-fast-forward":                  "non-fast forward",
	"fetch first":                       "fetch first",
	"already exists":                    "already exists",
	"needs force":                       "needs force",
	"stale info":                        "stale info",
	"remote ref updated since checkout": "remote ref updated since checkout",
	"remote failed to report status":    "expecting report",
}

// statuses turns what git push has printed into answers, one for each refspec. failed is how it
// ended: then a ref of which nothing was said was not pushed.
func statuses(refspecs []string, rows []remote.PushRow, failed error) []status {
	byRef := map[string]*remote.PushRow{}
	for i := range rows {
		byRef[rows[i].Ref] = &rows[i]
	}
	out := make([]status, len(refspecs))
	var silent []*status
	for i, spec := range refspecs {
		_, dst, _ := strings.Cut(spec, ":")
		out[i].ref = dst
		row := byRef[dst]
		if row == nil {
			silent = append(silent, &out[i])
			continue
		}
		delete(byRef, dst)
		out[i].ok, out[i].why = verdict(row)
	}
	for _, s := range silent {
		if s.ok = failed == nil; !s.ok {
			s.why = "nothing was said of it"
		}
	}
	if len(silent) == 1 && len(byRef) == 1 { // a server may put what is pushed somewhere else
		for _, row := range byRef {
			silent[0].ok, silent[0].why = verdict(row)
			if silent[0].ok {
				silent[0].told = row.Ref
			}
		}
	}
	return out
}

// verdict reads one row.
func verdict(row *remote.PushRow) (ok bool, why string) {
	switch row.Flag {
	case '=':
		return true, "up to date"
	case '+':
		return true, "forced update"
	case '!':
		if why, known := reasons[row.Reason]; known && row.Summary != "[remote rejected]" {
			return false, why
		}
		if row.Reason != "" {
			return false, row.Reason
		}
		return false, strings.Trim(row.Summary, "[]")
	}
	return true, ""
}
