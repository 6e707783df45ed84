package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"refaudit/finding"
	"refaudit/oid"
)

// Kind says what an entry's store is.
type Kind string

// The kinds of entry.
const (
	PackedRefs Kind = "packed-refs" // a file rewritten; Pieces lead back
	Reftable   Kind = "reftable"    // records set in a stack of tables
	Refs       Kind = "refs"        // references deleted, or brought back
	TablesList Kind = "tables-list" // a lost tables.list put together again
)

// Entry is one repair of one store.
type Entry struct {
	ID     string
	Time   time.Time
	Kind   Kind
	GitDir string // of the repository
	Store  string // the file or folder that is changed
	Format oid.Format
	Undoes string   // the entry that this one takes back; "": none
	Before Whole    // of a file: as it was
	After  Whole    // of a file: as it will be
	Made   []string // names of files, beside or in Store, that a crash may leave behind
	Gone   []string // tables that leave the list
	Listed []string // tables that enter it

	Records []Record
	Pieces  []Piece
}

// Whole tells one content of a file from all others.
type Whole struct {
	SHA256 [sha256.Size]byte
	Size   int64
}

// Record is what happens to one reference.
type Record struct {
	Ref     finding.RefName
	ID      finding.ID // why
	OID     oid.ID     // its value, which no repair of a cache changes
	Before  oid.ID     // the peel that was cached; zero: none
	After   oid.ID     // the peel that will be; zero: none
	Deleted bool       // the reference goes away
	Object  []byte     // of a deleted tag: its content, if it could be read
	Index   uint64     // of a reftable: the update index of the record mended
	Log     []byte     // of a deleted ref file: its reflog
	Logs    []Log      // of a ref deleted from a reftable: its reflog, the newest first
}

// Log is one log record of a reftable.
type Log struct {
	Index uint64
	Value []byte // all behind the key
}

// Piece is one part of the file as it was: Len bytes that stand at At in the file as it will be, or Text.
type Piece struct {
	At, Len int64
	Text    []byte
}

// Rebuild makes the file as it was from the file as it is.
func (e *Entry) Rebuild(after []byte) ([]byte, error) {
	if e.After.Size != int64(len(after)) || e.After.SHA256 != sha256.Sum256(after) {
		return nil, errors.New("the file is not the one that the repair left")
	}
	if e.Before.Size > maxEntry {
		return nil, errors.New("the file was too large")
	}
	before := make([]byte, 0, e.Before.Size)
	for _, p := range e.Pieces {
		part := p.Text
		if p.Text == nil {
			if p.At < 0 || p.Len < 0 || p.At > int64(len(after)) || p.Len > int64(len(after))-p.At {
				return nil, errors.New("the entry refers to bytes beyond the end of the file")
			}
			part = after[p.At : p.At+p.Len]
		}
		if int64(len(part)) > e.Before.Size-int64(len(before)) {
			return nil, errors.New("the entry leads to a longer file than it says")
		}
		before = append(before, part...)
	}
	if e.Before.Size != int64(len(before)) || e.Before.SHA256 != sha256.Sum256(before) {
		return nil, errors.New("the entry does not lead back to the file that it says")
	}
	return before, nil
}

// An entry is JSON lines, so that it can be read and even mended by hand:
//
//	{"refaudit-journal":1,"id":…,"time":…,"kind":…,"git_dir":…,"store":…,…,"records":N,"pieces":M}
//	{"ref":"refs/tags/v1","why":"peelMismatch","oid":…,"before":…,"after":…}      N times
//	{"at":0,"len":120} or {"text":"^4f2…\n"}                                      M times
//	{"sha256":"…"}                                                               of all bytes above
const version = 1

type headLine struct {
	Version int    `json:"refaudit-journal"`
	ID      string `json:"id"`
	Time    string `json:"time"`
	Kind    Kind   `json:"kind"`
	GitDir  text   `json:"git_dir"`
	Store   text   `json:"store"`
	Format  string `json:"format"`
	Undoes  string `json:"undoes,omitempty"`
	Before  *whole `json:"before,omitempty"`
	After   *whole `json:"after,omitempty"`
	Made    []text `json:"made,omitempty"`
	Gone    []text `json:"gone,omitempty"`
	Listed  []text `json:"listed,omitempty"`
	Records int    `json:"records"`
	Pieces  int    `json:"pieces"`
}

type whole struct {
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"`
}

type recordLine struct {
	Ref     text       `json:"ref"`
	Why     finding.ID `json:"why,omitempty"`
	OID     oid.ID     `json:"oid"`
	Before  oid.ID     `json:"before"`
	After   oid.ID     `json:"after"`
	Deleted bool       `json:"deleted,omitempty"`
	Object  *text      `json:"object,omitempty"`
	Index   uint64     `json:"update_index,omitempty"`
	Log     *text      `json:"log,omitempty"`
	Logs    []logLine  `json:"logs,omitempty"`
}

type logLine struct {
	Index uint64 `json:"update_index"`
	Value text   `json:"value"`
}

type pieceLine struct {
	At   int64 `json:"at"`
	Len  int64 `json:"len,omitempty"`
	Text *text `json:"text,omitempty"`
}

type endLine struct {
	SHA256 string `json:"sha256"`
}

// text is bytes in JSON: a string where they are UTF-8, {"b64":"…"} where not.
type text []byte

// MarshalJSON implements json.Marshaler.
func (t text) MarshalJSON() ([]byte, error) {
	if utf8.Valid(t) {
		return json.Marshal(string(t))
	}
	return json.Marshal(map[string]string{"b64": base64.StdEncoding.EncodeToString(t)})
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *text) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		var s string
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
		*t = text(s)
		return nil
	}
	var o struct {
		B64 *string `json:"b64"`
	}
	if err := json.Unmarshal(b, &o); err != nil {
		return err
	}
	if o.B64 == nil {
		return errors.New("neither text nor base64")
	}
	raw, err := base64.StdEncoding.DecodeString(*o.B64)
	*t = raw
	return err
}

func texts(list []string) (out []text) {
	for _, s := range list {
		out = append(out, text(s))
	}
	return out
}

func stringsOf(list []text) (out []string) {
	for _, t := range list {
		out = append(out, string(t))
	}
	return out
}

func (w Whole) line() *whole {
	if w == (Whole{}) {
		return nil
	}
	return &whole{hex.EncodeToString(w.SHA256[:]), w.Size}
}

func (w *whole) parse() (out Whole, err error) {
	if w == nil {
		return out, nil
	}
	if n, err := hex.Decode(out.SHA256[:], []byte(w.SHA256[:min(len(w.SHA256), 2*sha256.Size)])); err != nil || n != sha256.Size || len(w.SHA256) != 2*sha256.Size {
		return out, fmt.Errorf("%q is no SHA-256", w.SHA256)
	}
	if w.Size < 0 {
		return out, fmt.Errorf("a size of %d", w.Size)
	}
	out.Size = w.Size
	return out, nil
}

func (e *Entry) encode() []byte {
	var b bytes.Buffer
	line := func(v any) {
		enc, err := json.Marshal(v)
		if err != nil {
			panic(err) // nothing here that JSON can't hold
		}
		b.Write(enc)
		b.WriteByte('\n')
	}
	line(headLine{
		Version: version, ID: e.ID, Time: e.Time.Format(time.RFC3339Nano), Kind: e.Kind, GitDir: text(e.GitDir), Store: text(e.Store),
		Format: e.Format.String(), Undoes: e.Undoes, Before: e.Before.line(), After: e.After.line(), Made: texts(e.Made),
		Gone: texts(e.Gone), Listed: texts(e.Listed), Records: len(e.Records), Pieces: len(e.Pieces),
	})
	for _, r := range e.Records {
		l := recordLine{Ref: text(r.Ref), Why: r.ID, OID: r.OID, Before: r.Before, After: r.After, Deleted: r.Deleted, Index: r.Index}
		if r.Object != nil {
			l.Object = (*text)(&r.Object)
		}
		if r.Log != nil {
			l.Log = (*text)(&r.Log)
		}
		for _, one := range r.Logs {
			l.Logs = append(l.Logs, logLine{one.Index, one.Value})
		}
		line(l)
	}
	for _, p := range e.Pieces {
		l := pieceLine{At: p.At, Len: p.Len}
		if p.Text != nil {
			l = pieceLine{Text: (*text)(&p.Text)}
		}
		line(l)
	}
	line(endLine{sumOf(b.Bytes())})
	return b.Bytes()
}

func sumOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
