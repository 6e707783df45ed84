package reports

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"refaudit/finding"
)

// junit writes the XML that continuous integration reads: a test suite for each repository, in
// it a test case for each finding, failed if it is an error, and one for the audit itself.
type junit struct {
	w       io.Writer
	started bool
	cases   []junitCase // of the repository under way
	err     error
}

type (
	junitSuite struct {
		XMLName  xml.Name    `xml:"testsuite"`
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Time     string      `xml:"time,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		Failure *junitProblem `xml:"failure"`
		Error   *junitProblem `xml:"error"`
		Out     string        `xml:"system-out,omitempty"`
	}
	junitProblem struct {
		Type    string `xml:"type,attr"`
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

func (j *junit) write(text string) {
	if j.err == nil {
		_, j.err = io.WriteString(j.w, text)
	}
}

func (j *junit) begin() {
	if !j.started {
		j.started = true
		j.write(xml.Header + "<testsuites name=\"refaudit\">\n")
	}
}

func (j *junit) Start(*Start) error { j.begin(); return j.err }

func (j *junit) Finding(f *finding.Finding) error {
	name := Escape(strings.TrimSpace(string(f.Ref) + " " + f.Pos.String()))
	c := junitCase{Class: string(f.ID), Name: name}
	text := Escape(f.Message)
	if f.Severity >= finding.Error {
		c.Failure = &junitProblem{Type: string(f.ID), Message: text, Text: fmt.Sprintf("%s\n%s\nfingerprint %s", name, text, f.Fingerprint())}
	} else {
		c.Out = fmt.Sprintf("%v: %s", f.Severity, text)
	}
	j.cases = append(j.cases, c)
	return nil
}

func (j *junit) Repository(r *Repository) error {
	audit := junitCase{Class: "audit", Name: "the repository could be looked at"}
	if r.State == Incomplete {
		audit.Error = &junitProblem{Type: "incomplete", Message: Escape(r.Reason)}
	}
	s := junitSuite{Name: Escape(r.Repo), Time: fmt.Sprintf("%.3f", r.Duration.Seconds()), Cases: append(j.cases, audit)}
	for i := range s.Cases {
		s.Tests++
		if s.Cases[i].Failure != nil {
			s.Failures++
		}
		if s.Cases[i].Error != nil {
			s.Errors++
		}
	}
	j.cases = nil
	b, err := xml.MarshalIndent(s, "  ", "  ")
	if err != nil {
		return err
	}
	j.begin()
	j.write(string(b) + "\n")
	return j.err
}

func (j *junit) Repair(*Repair) error     { return nil }
func (j *junit) Usage(*Usage) error       { return nil }
func (j *junit) Notice(*Notice) error     { return nil }
func (j *junit) Progress(*Progress) error { return nil }

func (j *junit) Summary(*Summary) error {
	j.begin()
	j.write("</testsuites>\n")
	return j.err
}
