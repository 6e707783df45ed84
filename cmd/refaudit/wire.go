package main

import (
	"errors"

	"refaudit/finding"
	"refaudit/oid"
	"refaudit/repair"
	"refaudit/scan"
)

// What a repair under another user's id tells the process that started it. Names are bytes, which
// JSON can't hold as strings.

type wireDone struct {
	Ref, Diff          []byte
	ID                 finding.ID
	OID, Before, After oid.ID
	Action             string
	File               []byte
	Applied            bool
	Journal            string
}

type wireFinding struct {
	ID                    finding.ID
	Severity              int
	Ref, File             []byte
	OID, Cached, Expected oid.ID
	Line                  int
	Offset, Length, Block int64
	Placed, Blocked       bool
	Cause                 finding.Cause
	Fixable               bool
	Message, GitText      []byte
}

type wireError struct {
	Text    []byte
	Held    bool
	Refused bool
}

type wireResult struct {
	State                 scan.State
	Refs, Peels           int64
	Severities, Blocked   map[int]int64
	IDs                   map[finding.ID]int64
	Unread, Notices, Kept [][]byte
	Left                  []wireFinding
	Done                  []wireDone
	Held, Refused, Failed []wireError
	Declined              bool
	Error                 *wireError // of the whole
}

// remoteError is an error of another process.
type remoteError struct{ w wireError }

func (e *remoteError) Error() string { return string(e.w.Text) }

func (e *remoteError) Is(target error) bool {
	return e.w.Held && target == repair.ErrHeld || e.w.Refused && target == repair.ErrRefused
}

func packError(err error) *wireError {
	if err == nil {
		return nil
	}
	return &wireError{Text: []byte(err.Error()), Held: errors.Is(err, repair.ErrHeld), Refused: errors.Is(err, repair.ErrRefused)}
}

func packErrors(errs []error) (out []wireError) {
	for _, err := range errs {
		out = append(out, *packError(err))
	}
	return out
}

func (w *wireError) unpack() error {
	if w == nil {
		return nil
	}
	return &remoteError{*w}
}

func unpackErrors(list []wireError) (out []error) {
	for _, w := range list {
		out = append(out, &remoteError{w})
	}
	return out
}

func packDone(done []repair.Done) (out []wireDone) {
	for _, d := range done {
		out = append(out, wireDone{[]byte(d.Ref), []byte(d.Diff), d.ID, d.OID, d.Before, d.After, d.Action, []byte(d.File), d.Applied, d.Journal})
	}
	return out
}

func unpackDone(list []wireDone) (out []repair.Done) {
	for _, w := range list {
		out = append(out, repair.Done{
			Change: repair.Change{Ref: finding.RefName(w.Ref), ID: w.ID, OID: w.OID, Before: w.Before, After: w.After, Action: w.Action},
			File:   string(w.File), Applied: w.Applied, Journal: w.Journal, Diff: string(w.Diff),
		})
	}
	return out
}

func packResult(r *repair.Result, err error) *wireResult {
	w := &wireResult{State: r.Scan.State, Refs: r.Scan.Refs, Peels: r.Scan.Peels, IDs: r.Scan.IDs, Severities: packCounts(r.Scan.Severities), Blocked: packCounts(r.Blocked),
		Unread: packTexts(r.Scan.Unread), Notices: packTexts(r.Notices), Kept: packTexts(r.Kept), Done: packDone(r.Done),
		Held: packErrors(r.Held), Refused: packErrors(r.Refused), Failed: packErrors(r.Failed), Declined: r.Declined, Error: packError(err)}
	for _, f := range r.Left {
		w.Left = append(w.Left, wireFinding{f.ID, int(f.Severity), []byte(f.Ref), []byte(f.File), f.OID, f.Cached, f.Expected, f.Line,
			f.Offset, f.Length, f.Block, f.Placed, f.Blocked, f.Cause, f.Fixable, []byte(f.Message), []byte(f.GitText)})
	}
	return w
}

func (w *wireResult) unpack() (*repair.Result, error) {
	r := &repair.Result{Blocked: unpackCounts(w.Blocked), Notices: unpackTexts(w.Notices), Kept: unpackTexts(w.Kept), Done: unpackDone(w.Done),
		Held: unpackErrors(w.Held), Refused: unpackErrors(w.Refused), Failed: unpackErrors(w.Failed), Declined: w.Declined}
	r.Scan = scan.Result{State: w.State, Refs: w.Refs, Peels: w.Peels, IDs: w.IDs, Severities: unpackCounts(w.Severities), Unread: unpackTexts(w.Unread)}
	for _, f := range w.Left {
		r.Left = append(r.Left, finding.Finding{ID: f.ID, Severity: finding.Severity(f.Severity), Ref: finding.RefName(f.Ref), OID: f.OID,
			Pos:    finding.Pos{File: string(f.File), Line: f.Line, Offset: f.Offset, Length: f.Length, Block: f.Block, Placed: f.Placed, Blocked: f.Blocked},
			Cached: f.Cached, Expected: f.Expected, Cause: f.Cause, Fixable: f.Fixable, Message: string(f.Message), GitText: string(f.GitText)})
	}
	if w.Error == nil {
		return r, nil
	}
	return r, w.Error.unpack()
}

func packCounts(m map[finding.Severity]int64) map[int]int64 {
	out := map[int]int64{}
	for s, n := range m {
		out[int(s)] = n
	}
	return out
}

func unpackCounts(m map[int]int64) map[finding.Severity]int64 {
	out := map[finding.Severity]int64{}
	for s, n := range m {
		out[finding.Severity(s)] = n
	}
	return out
}

func packTexts(list []string) (out [][]byte) {
	for _, s := range list {
		out = append(out, []byte(s))
	}
	return out
}

func unpackTexts(list [][]byte) (out []string) {
	for _, b := range list {
		out = append(out, string(b))
	}
	return out
}
