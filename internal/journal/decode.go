package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"refaudit/finding"
	"refaudit/oid"
)

// Decode reads an entry. One that was cut or changed is an error that says where.
func Decode(b []byte) (*Entry, error) {
	body, err := checked(b)
	if err != nil {
		return nil, err
	}
	r := lines{rest: body}
	var h headLine
	if err := r.next(&h); err != nil {
		return nil, err
	}
	e, err := h.entry()
	if err != nil {
		return nil, fmt.Errorf("line 1: %w", err)
	}
	// The counts are claims: a line needs two bytes at the least.
	if h.Records < 0 || h.Pieces < 0 || h.Records > len(body)/2 || h.Pieces > len(body)/2 {
		return nil, fmt.Errorf("line 1: %d records and %d pieces in %d bytes", h.Records, h.Pieces, len(body))
	}
	for range h.Records {
		var l recordLine
		if err := r.next(&l); err != nil {
			return nil, err
		}
		rec, err := l.record(e.Format)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", r.line, err)
		}
		e.Records = append(e.Records, rec)
	}
	for range h.Pieces {
		var l pieceLine
		if err := r.next(&l); err != nil {
			return nil, err
		}
		p := Piece{At: l.At, Len: l.Len}
		if l.Text != nil {
			p.Text = append([]byte{}, *l.Text...)
		}
		e.Pieces = append(e.Pieces, p)
	}
	if len(r.rest) > 0 {
		return nil, fmt.Errorf("line %d: more than line 1 announces", r.line+1)
	}
	return e, nil
}

// checked splits off the last line and compares its checksum.
func checked(b []byte) ([]byte, error) {
	if len(b) == 0 || b[len(b)-1] != '\n' {
		return nil, errors.New("it is cut short")
	}
	at := bytes.LastIndexByte(b[:len(b)-1], '\n') + 1
	var end endLine
	if err := json.Unmarshal(b[at:], &end); err != nil || end.SHA256 == "" {
		return nil, errors.New("it has no checksum in its last line")
	}
	if end.SHA256 != sumOf(b[:at]) {
		return nil, errors.New("its checksum is wrong")
	}
	return b[:at], nil
}

type lines struct {
	rest []byte
	line int
}

func (r *lines) next(v any) error {
	r.line++
	line, rest, ok := bytes.Cut(r.rest, []byte("\n"))
	if !ok {
		return fmt.Errorf("line %d is missing", r.line)
	}
	r.rest = rest
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return fmt.Errorf("line %d: %w", r.line, err)
	}
	return nil
}

func (h *headLine) entry() (*Entry, error) {
	if h.Version != version {
		return nil, fmt.Errorf("version %d of the journal is not known to this program", h.Version)
	}
	e := &Entry{
		ID: h.ID, Kind: h.Kind, GitDir: string(h.GitDir), Store: string(h.Store), Undoes: h.Undoes,
		Made: stringsOf(h.Made), Gone: stringsOf(h.Gone), Listed: stringsOf(h.Listed),
	}
	if !validID(h.ID) || h.Undoes != "" && !validID(h.Undoes) {
		return nil, fmt.Errorf("%q or %q is no id", h.ID, h.Undoes)
	}
	switch h.Kind {
	case PackedRefs, Reftable, Refs, TablesList:
	default:
		return nil, fmt.Errorf("kind %q is not known", h.Kind)
	}
	var ok bool
	if e.Format, ok = oid.ParseFormat(h.Format); !ok {
		return nil, fmt.Errorf("object format %q is not known", h.Format)
	}
	var err error
	if e.Time, err = time.Parse(time.RFC3339Nano, h.Time); err != nil {
		return nil, err
	}
	if e.Before, err = h.Before.parse(); err != nil {
		return nil, err
	}
	if e.After, err = h.After.parse(); err != nil {
		return nil, err
	}
	return e, nil
}

func (l *recordLine) record(f oid.Format) (Record, error) {
	for _, id := range []oid.ID{l.OID, l.Before, l.After} {
		if id != (oid.ID{}) && id.Format() != f {
			return Record{}, fmt.Errorf("%v is no %v id", id, f)
		}
	}
	r := Record{Ref: finding.RefName(l.Ref), ID: l.Why, OID: l.OID, Before: l.Before, After: l.After, Deleted: l.Deleted, Index: l.Index}
	if l.Object != nil {
		r.Object = append([]byte{}, *l.Object...)
	}
	if l.Log != nil {
		r.Log = append([]byte{}, *l.Log...)
	}
	for _, one := range l.Logs {
		r.Logs = append(r.Logs, Log{one.Index, append([]byte{}, one.Value...)})
	}
	return r, nil
}
