package reports

import (
	"encoding/json"
	"io"
	"net/url"
	"path"
	"sort"
	"strings"
	"unicode/utf8"

	"refaudit/finding"
	"refaudit/oid"
)

// sarif writes SARIF 2.1.0 (an OASIS standard), for whatever shows findings of analysers. Results
// are written as they come; the rules that they name follow at the end.
type sarif struct {
	w       io.Writer
	started bool
	version string
	results int
	rules   map[finding.ID]bool
	notices []string
	err     error
}

const sarifSchema = "https://json.schemastore.org/sarif-2.1.0.json"

func (s *sarif) write(text string) {
	if s.err == nil {
		_, s.err = io.WriteString(s.w, text)
	}
}

func (s *sarif) json(v any) {
	b, err := json.Marshal(v)
	if err != nil && s.err == nil {
		s.err = err
	}
	s.write(string(b))
}

func (s *sarif) begin() {
	if !s.started {
		s.started = true
		s.write(`{"$schema":"` + sarifSchema + `","version":"2.1.0","runs":[{"results":[`)
	}
}

func (s *sarif) Start(start *Start) error {
	s.version = start.Version
	s.begin()
	return s.err
}

type (
	sarifText struct {
		Text string `json:"text"`
	}
	sarifResult struct {
		RuleID       string            `json:"ruleId"`
		Level        string            `json:"level"`
		Message      sarifText         `json:"message"`
		Locations    []sarifLocation   `json:"locations"`
		Fingerprints map[string]string `json:"partialFingerprints"`
		Properties   map[string]string `json:"properties,omitempty"`
	}
	sarifLocation struct {
		Physical sarifPhysical  `json:"physicalLocation"`
		Logical  []sarifLogical `json:"logicalLocations,omitempty"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   *sarifRegion  `json:"region,omitempty"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		StartLine  int    `json:"startLine,omitempty"`
		ByteOffset *int64 `json:"byteOffset,omitempty"`
		ByteLength int64  `json:"byteLength,omitempty"`
	}
	sarifLogical struct {
		Name string `json:"fullyQualifiedName"`
		Kind string `json:"kind"`
	}
	sarifRule struct {
		ID      string         `json:"id"`
		Short   sarifText      `json:"shortDescription"`
		Full    sarifText      `json:"fullDescription"`
		Help    sarifText      `json:"help"`
		Default map[string]any `json:"defaultConfiguration"`
	}
)

// sarifLevel is SARIF's word for a severity.
func sarifLevel(v finding.Severity) string {
	switch v {
	case finding.Error, finding.Fatal:
		return "error"
	case finding.Warn:
		return "warning"
	case finding.Info:
		return "note"
	}
	return "none"
}

func (s *sarif) Finding(f *finding.Finding) error {
	s.begin()
	if s.results > 0 {
		s.write(",")
	}
	s.results++
	if s.rules == nil {
		s.rules = map[finding.ID]bool{}
	}
	s.rules[f.ID] = true
	loc := sarifLocation{Physical: sarifPhysical{Artifact: sarifArtifact{uriOf(f)}}}
	if f.Line > 0 || f.Placed {
		loc.Physical.Region = &sarifRegion{StartLine: f.Line, ByteLength: f.Length}
		if f.Placed {
			at := f.Offset
			loc.Physical.Region.ByteOffset = &at
		}
	}
	if f.Ref != "" {
		loc.Logical = []sarifLogical{{Escape(string(f.Ref)), "ref"}}
	}
	text := Escape(f.Message)
	if f.Ref != "" {
		text = Escape(string(f.Ref)) + " " + text
	}
	props := map[string]string{}
	for key, id := range map[string]oid.ID{"oid": f.OID, "cached": f.Cached, "expected": f.Expected} {
		if id != (oid.ID{}) {
			props[key] = id.String()
		}
	}
	if f.Cause != "" {
		props["cause"] = string(f.Cause)
	}
	s.json(sarifResult{RuleID: string(f.ID), Level: sarifLevel(f.Severity), Message: sarifText{text}, Locations: []sarifLocation{loc},
		Fingerprints: map[string]string{"refaudit/v1": f.Fingerprint()}, Properties: props})
	return s.err
}

// uriOf is the URI of the file that a finding is about: it lies in the git dir, which is below the path of a repository with
// a working tree, or elsewhere. What the environment says is in no file.
func uriOf(f *finding.Finding) string {
	switch {
	case f.File == "" || strings.HasPrefix(f.File, "$"):
		return fileURI(f.Repo, "")
	case f.Dir != "":
		return fileURI(f.Dir, f.File)
	}
	return fileURI(f.Repo, f.File)
}

// fileURI is the URI of a file of a repository; of the repository itself where no file is named. A repository that
// was audited from outside keeps the scheme of its URL; host:path is ssh's.
func fileURI(repo, file string) string {
	if remote := remoteURL(repo); remote != nil {
		return remote.JoinPath(file).String()
	}
	full := file
	if !path.IsAbs(file) {
		full = path.Join(strings.ReplaceAll(repo, `\`, "/"), file)
	}
	if !strings.HasPrefix(full, "/") {
		full = "/" + full
	}
	return (&url.URL{Scheme: "file", Path: full}).String()
}

// remoteURL is the URL of a repository that is none of a path on this machine; nil where it is one.
func remoteURL(repo string) *url.URL {
	if scheme, rest, ok := strings.Cut(repo, "://"); ok && !strings.ContainsAny(scheme, `/\`) {
		if u, err := url.Parse(repo); err == nil {
			return u
		}
		host, at, _ := strings.Cut(rest, "/") // a stray %, and the like
		return &url.URL{Scheme: scheme, Host: host, Path: "/" + at}
	}
	host, rest, ok := strings.Cut(repo, ":")
	if !ok || len(host) < 2 || strings.ContainsAny(host, `/\`) { // one letter is a drive
		return nil
	}
	u := &url.URL{Scheme: "ssh", Host: host, Path: "/" + strings.TrimPrefix(rest, "/")}
	if user, name, ok := strings.Cut(host, "@"); ok {
		u.User, u.Host = url.User(user), name
	}
	return u
}

func (s *sarif) Repository(r *Repository) error {
	if r.Reason != "" {
		s.notices = append(s.notices, r.Repo+": "+r.Reason)
	}
	return nil
}

func (s *sarif) Notice(n *Notice) error {
	s.notices = append(s.notices, strings.TrimPrefix(n.Repo+": "+n.Message, ": "))
	return nil
}

func (s *sarif) Repair(*Repair) error     { return nil }
func (s *sarif) Usage(*Usage) error       { return nil }
func (s *sarif) Progress(*Progress) error { return nil }

func (s *sarif) Summary(sum *Summary) error {
	s.begin()
	rules := []sarifRule{}
	for i := range finding.Catalog {
		e := &finding.Catalog[i]
		if !s.rules[e.ID] {
			continue
		}
		x, _ := finding.Explain(e.ID)
		level := map[string]any{"level": sarifLevel(e.Default)}
		if e.Default == finding.Ignore {
			level["enabled"] = false
		}
		rules = append(rules, sarifRule{ID: string(e.ID), Short: sarifText{e.Summary}, Full: sarifText{x.Means}, Help: sarifText{x.Comes + " " + x.Seen + " " + x.Fix}, Default: level})
	}
	sort.Strings(s.notices)
	type notification struct {
		Level   string    `json:"level"`
		Message sarifText `json:"message"`
	}
	told := []notification{}
	for _, n := range s.notices {
		if !utf8.ValidString(n) {
			n = Escape(n)
		}
		told = append(told, notification{"warning", sarifText{n}})
	}
	s.write(`],"tool":{"driver":`)
	s.json(map[string]any{"name": "refaudit", "version": s.version, "rules": rules})
	s.write(`},"invocations":[`)
	s.json(map[string]any{"executionSuccessful": sum.Repositories[Incomplete] == 0 && sum.Signal == "", "exitCode": sum.Exit, "toolExecutionNotifications": told})
	s.write("]}]}\n")
	return s.err
}
