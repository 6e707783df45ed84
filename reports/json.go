package reports

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"strconv"
	"time"
	"unicode/utf8"

	"refaudit/finding"
	"refaudit/oid"
)

// jsonLines writes one JSON object a line. Each has schema, type and, where it belongs to one, repo.
type jsonLines struct {
	w io.Writer
	o Options
}

// object builds one line, its fields in the order in which they are added.
type object struct{ b []byte }

func line(kind string) *object {
	o := &object{b: []byte(`{"schema":"` + Schema + `"`)}
	o.str("type", kind)
	return o
}

func (o *object) key(k string) { o.b = append(append(append(o.b, `,"`...), k...), `":`...) }

func (o *object) str(k, v string) {
	o.key(k)
	o.b = appendString(o.b, v)
}

func (o *object) num(k string, v int64) {
	o.key(k)
	o.b = strconv.AppendInt(o.b, v, 10)
}

func (o *object) truth(k string, v bool) {
	o.key(k)
	o.b = strconv.AppendBool(o.b, v)
}

func (o *object) null(k string) {
	o.key(k)
	o.b = append(o.b, "null"...)
}

// bytes adds what need not be UTF-8: as k where it is, else in base64 as k_b64.
func (o *object) bytes(k, v string) {
	if utf8.ValidString(v) {
		o.str(k, v)
	} else {
		o.str(k+"_b64", base64.StdEncoding.EncodeToString([]byte(v)))
	}
}

// id adds an object id, or null for none.
func (o *object) id(k string, v oid.ID) {
	if v == (oid.ID{}) {
		o.null(k)
	} else {
		o.str(k, v.String())
	}
}

func (o *object) repo(v string) {
	if v != "" {
		o.bytes("repo", v)
	}
}

func (o *object) value(k string, v any) error {
	b, err := json.Marshal(v)
	if err == nil {
		o.key(k)
		o.b = append(o.b, b...)
	}
	return err
}

func (j *jsonLines) end(o *object) error {
	_, err := j.w.Write(append(o.b, "}\n"...))
	return err
}

// appendString adds a JSON string; bytes that are no UTF-8 are shown as \xNN, which no reader mistakes for the name itself.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	for i := 0; i < len(s); {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
			i++
		case c < 0x20 || c == 0x7f:
			b = append(b, `\u00`...)
			b = append(b, "0123456789abcdef"[c>>4], "0123456789abcdef"[c&15])
			i++
		case c < utf8.RuneSelf:
			b = append(b, c)
			i++
		default:
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				b = append(b, `\\x`...)
				b = append(b, "0123456789abcdef"[c>>4], "0123456789abcdef"[c&15])
			} else {
				b = append(b, s[i:i+n]...)
			}
			i += n
		}
	}
	return append(b, '"')
}

func (j *jsonLines) Start(s *Start) error {
	o := line("start")
	o.str("command", s.Command)
	o.str("version", s.Version)
	if s.Level != "" {
		o.str("level", s.Level)
	}
	o.str("time", s.Time.UTC().Format(time.RFC3339))
	return j.end(o)
}

func (j *jsonLines) Finding(f *finding.Finding) error {
	if j.o.Summary {
		return nil
	}
	o := line("finding")
	o.repo(f.Repo)
	o.str("id", string(f.ID))
	o.str("severity", f.Severity.String())
	if f.Ref != "" {
		o.bytes("ref", string(f.Ref))
	}
	if f.OID != (oid.ID{}) {
		o.id("oid", f.OID)
	}
	if aboutPeel(f) {
		o.id("cached", f.Cached)
		o.id("expected", f.Expected)
	}
	if f.Cause != "" {
		o.str("cause", string(f.Cause))
	}
	if f.File != "" {
		o.bytes("file", f.File)
	}
	if f.Line > 0 {
		o.num("line", int64(f.Line))
	}
	if f.Placed {
		o.num("offset", f.Offset)
	}
	if f.Length > 0 {
		o.num("length", f.Length)
	}
	if f.Blocked {
		o.num("block", f.Block)
	}
	o.truth("fixable", f.Fixable)
	o.str("message", f.Message)
	o.str("fingerprint", f.Fingerprint())
	return j.end(o)
}

func aboutPeel(f *finding.Finding) bool {
	switch f.ID {
	case finding.PeelMismatch, finding.PeelUnexpected, finding.PeelPartial, finding.PeelOrphan,
		finding.PeelOfCorruptTag, finding.PeelMissing, finding.PeelUnverifiable, finding.ServerInfoPeel:
		return true
	}
	return f.Cached != oid.ID{}
}

func (j *jsonLines) Repair(r *Repair) error {
	o := line("repair")
	o.repo(r.Repo)
	if r.Ref != "" {
		o.bytes("ref", string(r.Ref))
	}
	if r.ID != "" {
		o.str("id", string(r.ID))
	}
	o.bytes("file", r.File)
	o.id("before", r.Before)
	o.id("after", r.After)
	o.str("action", r.Action)
	o.truth("applied", r.Applied)
	if r.Journal != "" {
		o.str("journal", r.Journal)
	}
	if r.Diff != "" {
		o.str("diff", r.Diff)
	}
	return j.end(o)
}

func (j *jsonLines) Repository(r *Repository) error {
	if j.o.Summary {
		return nil
	}
	o := line("repository")
	o.repo(r.Repo)
	o.str("state", string(r.State))
	o.num("refs", r.Refs)
	o.num("peels_checked", r.Peels)
	if err := o.value("severities", severities(r.Severities)); err != nil {
		return err
	}
	if r.Hidden > 0 {
		o.num("hidden", r.Hidden)
	}
	if r.Known > 0 {
		o.num("known", r.Known)
	}
	if !r.Unchanged.IsZero() {
		o.str("unchanged_since", r.Unchanged.UTC().Format(time.RFC3339))
	}
	if r.Reason != "" {
		o.str("reason", r.Reason)
	}
	if r.Gate != nil {
		j.gate(o, r.Gate)
	}
	if f := r.Fingerprint; f != nil && f.Hash == "" {
		o.null("fingerprint")
	} else if f != nil {
		o.str("fingerprint", f.Hash)
		if f.Head != "" {
			o.bytes("head", string(f.Head))
		}
	}
	o.num("duration_ms", r.Duration.Milliseconds())
	return j.end(o)
}

// severities gives a count for each word, those with 0 too.
func severities(m map[finding.Severity]int64) map[string]int64 {
	out := map[string]int64{"error": 0, "warn": 0, "info": 0}
	for s, n := range m {
		out[s.String()] += n
	}
	return out
}

func (j *jsonLines) Usage(u *Usage) error {
	if j.o.Summary {
		return nil
	}
	o := line("usage")
	o.repo(u.Repo)
	unknown := map[string]string{}
	figures(o, u.Figures, unknown)
	o.str("method", u.Method)
	o.str("reason", u.Reason)
	if len(unknown) > 0 {
		if err := o.value("unknown", unknown); err != nil {
			return err
		}
	}
	if len(u.By) > 0 {
		o.key("by")
		o.b = append(o.b, '[')
		for i, g := range u.By {
			if i > 0 {
				o.b = append(o.b, ',')
			}
			part := &object{b: appendString(append(appendString([]byte("{"), g.Key), ':'), g.Name)}
			figures(part, g.Figures, map[string]string{})
			o.b = append(append(o.b, part.b...), '}')
		}
		o.b = append(o.b, ']')
	}
	return j.end(o)
}

func figures(o *object, list []Figure, unknown map[string]string) {
	for _, f := range list {
		if f.Known {
			o.num(f.Name, f.Bytes)
		} else {
			o.null(f.Name)
			unknown[f.Name] = f.Reason
		}
	}
}

func (j *jsonLines) Notice(n *Notice) error {
	if j.o.Summary {
		return nil
	}
	o := line("notice")
	o.repo(n.Repo)
	o.str("message", n.Message)
	return j.end(o)
}

func (j *jsonLines) Progress(p *Progress) error {
	o := line("progress")
	o.repo(p.Repo)
	o.num("done", int64(p.Done))
	if p.Total > 0 {
		o.num("total", int64(p.Total))
	}
	o.num("refs", p.Refs)
	o.num("elapsed_ms", p.Elapsed.Milliseconds())
	return j.end(o)
}

func (j *jsonLines) Summary(s *Summary) error {
	o := line("summary")
	if err := o.value("severities", severities(s.Severities)); err != nil {
		return err
	}
	ids := map[string]int64{}
	for id, n := range s.IDs {
		ids[string(id)] = n
	}
	if err := o.value("ids", ids); err != nil {
		return err
	}
	o.num("refs", s.Refs)
	o.num("peels_checked", s.PeelsChecked)
	states := map[State]int64{Clean: 0, Found: 0, Incomplete: 0}
	for k, n := range s.Repositories {
		states[k] += n
	}
	if err := o.value("repositories", states); err != nil {
		return err
	}
	if s.Known > 0 {
		o.num("known", s.Known)
	}
	if s.Unchanged > 0 {
		o.num("unchanged", s.Unchanged)
	}
	if s.Signal != "" {
		o.str("signal", s.Signal)
	}
	if s.Stopped != "" {
		o.str("stopped", s.Stopped)
	}
	o.num("duration_ms", s.Duration.Milliseconds())
	o.num("exit", int64(s.Exit))
	return j.end(o)
}
