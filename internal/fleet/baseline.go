package fleet

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"unicode/utf8"

	"refaudit/finding"
)

// Baseline is findings that are known and don't count. Its file is JSON lines, of which those with
// "type":"finding" and a fingerprint count: a report of --format=jsonl is one.
//
// It is safe for concurrent use.
type Baseline struct {
	mu    sync.Mutex
	known map[fingerprint]bool // whether it was met
}

type fingerprint [16]byte

// maxBaselineLine is more than any finding takes.
const maxBaselineLine = 16 << 20

// baselineSchema is what the reports that we read say of themselves.
const baselineSchema = "refaudit/1"

// ReadBaseline reads a file. A line that is no JSON is an error: it might be half of one. So is a record of
// another kind of report.
func ReadBaseline(r io.Reader) (*Baseline, error) {
	b := &Baseline{known: map[fingerprint]bool{}}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxBaselineLine)
	for n := 1; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var l struct{ Schema, Type, Fingerprint string }
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if l.Type == "" || l.Schema != "" && l.Schema != baselineSchema {
			return nil, fmt.Errorf("line %d: no record of a report of --format=jsonl, schema %q", n, baselineSchema)
		}
		if l.Type != "finding" {
			continue
		}
		p, err := parseFingerprint(l.Fingerprint)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		b.known[p] = false
	}
	return b, lines.Err()
}

func parseFingerprint(text string) (p fingerprint, err error) {
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw) != len(p) {
		return p, fmt.Errorf("%q is no fingerprint", text)
	}
	return fingerprint(raw), nil
}

// Has tells whether a finding is known. One that can't be configured away always counts.
func (b *Baseline) Has(f *finding.Finding) bool {
	if finding.Lookup(f.ID).Floor > finding.Ignore {
		return false
	}
	p, err := parseFingerprint(f.Fingerprint())
	if err != nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.known[p]; !ok {
		return false
	}
	b.known[p] = true
	return true
}

// Gone counts the findings that were not met again.
func (b *Baseline) Gone() (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, met := range b.known {
		if !met {
			n++
		}
	}
	return n
}

// Gathered are findings for a new baseline. It is safe for concurrent use.
type Gathered struct {
	mu    sync.Mutex
	lines []string
}

// Add takes a finding.
func (g *Gathered) Add(f *finding.Finding) {
	line := struct {
		Schema      string `json:"schema"`
		Type        string `json:"type"`
		Repo        string `json:"repo,omitempty"`
		RepoRaw     []byte `json:"repo_b64,omitempty"`
		ID          string `json:"id"`
		Ref         string `json:"ref,omitempty"`
		RefRaw      []byte `json:"ref_b64,omitempty"`
		Fingerprint string `json:"fingerprint"`
	}{Schema: baselineSchema, Type: "finding", ID: string(f.ID), Fingerprint: f.Fingerprint()}
	line.Repo, line.RepoRaw = textOrBytes(f.Repo)
	line.Ref, line.RefRaw = textOrBytes(string(f.Ref))
	b, err := json.Marshal(line)
	if err != nil {
		panic(err) // nothing here that JSON can't hold
	}
	g.mu.Lock()
	g.lines = append(g.lines, string(b)+"\n")
	g.mu.Unlock()
}

// textOrBytes gives what is UTF-8 as text, and what is not as bytes, which JSON has in base64.
func textOrBytes(s string) (string, []byte) {
	if utf8.ValidString(s) {
		return s, nil
	}
	return "", []byte(s)
}

// Write writes the baseline, in an order that depends on the findings alone.
func (g *Gathered) Write(w io.Writer) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	slices.Sort(g.lines)
	var errs []error
	for _, l := range g.lines {
		_, err := io.WriteString(w, l)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
