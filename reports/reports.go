// Package reports writes what an audit found, in the formats that people and machines read.
// Every format is made from the same findings.
package reports

import (
	"fmt"
	"io"
	"strings"
	"time"

	"refaudit/finding"
	"refaudit/oid"
)

// Schema names the JSON that we write. Fields are added to it, never changed.
const Schema = "refaudit/1"

// Report takes the events of one run in the order in which they happen. Summary comes last,
// also when the run was cut short; after it nothing may be called.
type Report interface {
	Start(*Start) error
	Finding(*finding.Finding) error
	Repair(*Repair) error
	Repository(*Repository) error
	Usage(*Usage) error
	Notice(*Notice) error
	Progress(*Progress) error
	Summary(*Summary) error
}

// Start opens a run.
type Start struct {
	Command string
	Version string
	Level   string // of a scan
	Time    time.Time
}

// State says how the audit of one repository ended.
type State string

// The states of a repository.
const (
	Clean      State = "clean"
	Found      State = "findings"
	Incomplete State = "incomplete"
)

// Repository ends what is said of one repository.
type Repository struct {
	Repo       string
	State      State
	Refs       int64
	Peels      int64
	Severities map[finding.Severity]int64
	Hidden     int64     // findings that --max-findings kept back
	Known      int64     // findings that a baseline knows, and that don't count
	Unchanged  time.Time // of the audit that gave this; zero: it was made just now
	Reason     string    // why it is incomplete
	Duration   time.Duration
	Gate       *Gate // of a guard
	// Fingerprint is all there is to say of a repository whose fingerprint was asked for.
	Fingerprint *Fingerprint
}

// Fingerprint is one hash over the refs of a repository.
type Fingerprint struct {
	Hash string          // in hex; "" where it can't be known
	Head finding.RefName // what HEAD stands for, which the hash leaves out; "": it names an object
}

// Repair is one record that was mended, or would be.
type Repair struct {
	Repo    string
	Ref     finding.RefName
	ID      finding.ID // of the finding that it answers
	File    string
	Before  oid.ID // the cached peel; zero: none
	After   oid.ID
	Action  string // what is done, in words
	Applied bool
	Journal string
	// Diff is the exact change of a text file, as unified diff; "" in a table.
	Diff string
}

// Notice is something to know that is no finding.
type Notice struct {
	Repo    string
	Message string
}

// Progress tells how far a run is.
type Progress struct {
	Repo        string // the one under way
	Done, Total int    // repositories; Total 0: not known
	Refs        int64
	Elapsed     time.Duration
}

// Summary ends a run.
type Summary struct {
	Severities   map[finding.Severity]int64
	IDs          map[finding.ID]int64
	Refs         int64
	PeelsChecked int64
	Repositories map[State]int64
	Known        int64 // findings that a baseline knows, and that don't count
	Unchanged    int64 // repositories that were not read, for they are as they were
	Duration     time.Duration
	Exit         int
	Signal       string // the signal that cut the run short; "" for none
	Stopped      string // what else has cut it short, such as "max-duration"; "" for nothing
}

// Usage is the disk usage of one repository: its figures by name, each a number of bytes or
// null with a reason, in the order in which they are shown.
type Usage struct {
	Repo    string
	Figures []Figure
	Method  string
	Reason  string
	By      []Group
}

// Figure is one number of bytes. A figure that can't be known has no value but a reason.
type Figure struct {
	Name   string
	Bytes  int64
	Known  bool
	Reason string
}

// Group is a part of the usage: of one type of object, or of one ref namespace.
type Group struct {
	Key, Name string // such as "type", "tree"
	Figures   []Figure
}

// Options are what the formats share.
type Options struct {
	Quiet   bool // findings only
	Summary bool // the summary only
	Color   bool
	Strict  bool
}

// Formats are the names that New takes.
var Formats = []string{"text", "git", "jsonl", "sarif", "junit", "html"}

// New makes a report in a format.
func New(format string, w io.Writer, o Options) (Report, error) {
	switch format {
	case "text":
		return &text{w: w, o: o}, nil
	case "git":
		return &git{w: w}, nil
	case "jsonl":
		return &jsonLines{w: w, o: o}, nil
	case "sarif":
		return &sarif{w: w}, nil
	case "junit":
		return &junit{w: w}, nil
	case "html":
		return &page{w: w}, nil
	}
	return nil, fmt.Errorf("no format %q: there are %s", format, strings.Join(Formats, ", "))
}
