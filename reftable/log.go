package reftable

import (
	"bytes"
	"encoding/binary"

	"refaudit/finding"
)

// LogType is what a log record is.
type LogType uint8

// The types of log record; 2 to 7 are reserved.
const (
	LogDeletion LogType = 0 // takes back the record of the same key in older tables
	LogUpdate   LogType = 1
)

// Log is one log record. What a read gives aliases the read's buffers, and holds until its next step.
type Log struct {
	Name        []byte
	UpdateIndex uint64
	Type        LogType
	Old, New    []byte // raw ids
	Committer   []byte
	Email       []byte
	Time        uint64 // seconds since 1970
	Zone        int16  // as it stands: git writes the digits of +hhmm, JGit minutes
	Message     []byte
	Value       []byte // all of it behind the key, as it stands in the table
	Block       int64  // where its block begins in the file
	Offset      int64  // where the record begins in the inflated block, the block's header counted
	Length      int64  // how long it is there
}

// LogIter reads the log records of a table in order: by name, and the newest first.
type LogIter struct {
	walk
	log   Log
	idLen int
}

// LogIter begins at the first log record.
func (t *Table) LogIter() *LogIter {
	return &LogIter{walk: t.walk(kindLog, scanWindow), idLen: t.Format.Size()}
}

// Logs gives every log record in order to fn. The record holds until fn returns. The error is
// ErrDamaged if records were stepped over, else fn's or Damage's.
func (t *Table) Logs(fn func(*Log) error) error {
	it := t.LogIter()
	for it.Next() {
		if err := fn(&it.log); err != nil {
			return err
		}
	}
	return it.Err()
}

// Log is the record that the last step reached. It holds until the next one.
func (it *LogIter) Log() *Log { return &it.log }

// Next goes to the next record; false at the end, or where Err says so.
func (it *LogIter) Next() bool {
	if it.held {
		it.held = false
		return true
	}
	if !it.begin() {
		return false
	}
	for !it.nextInBlock() {
		if !it.nextBlock() {
			return false
		}
	}
	return true
}

// Seek goes to the record before the newest one of name, so that Next gives that one, or
// where there is none the first record of a later name.
func (it *LogIter) Seek(name []byte) {
	key := append(bytes.Clone(name), 0)
	if !it.seek(key) {
		it.next = it.t.end
		return
	}
	for it.nextBlock() && it.searchBlock(key) {
		for it.nextInBlock() {
			if bytes.Compare(it.log.Name, name) >= 0 {
				it.held = true
				return
			}
		}
	}
}

func (it *LogIter) nextInBlock() bool {
	for it.p < len(it.recs) && it.err == nil {
		if it.decode() {
			return it.err == nil
		}
		it.skipRecord()
	}
	return false
}

// A log record. Specification: Documentation/technical/reftable.adoc in git.
//
//	varint( prefix_length )  varint( suffix_length << 3 | type )  suffix
//	type 0: nothing
//	type 1: old id, new id, varint( length ) committer, varint( length ) email,
//	        varint( seconds ), i16 zone, varint( length ) message
//
// The key is the ref's name, which holds no NUL, then a NUL, and the update index as a u64 with all bits inverted.
const logKeyTail = 1 + 8

// decode decodes the record at p over the one before it; false for a record that can't be.
func (it *LogIter) decode() bool {
	start, log := it.p, &it.log
	last, order := it.key, 1
	if it.fresh {
		last = last[:0]
	}
	if it.ordered {
		order = it.orderOfNext(last)
	}
	key, extra, p := decodeKey(it.recs, start, last)
	if p < 0 {
		return it.bad(start, "key is damaged")
	}
	it.key = key
	name := len(key) - logKeyTail
	if name <= 0 || key[name] != 0 {
		it.ordered = false
		return it.bad(start, "key %q has no name, NUL and update index", key)
	}
	if bytes.IndexByte(key[:name], 0) >= 0 { // its key would stand among those of another name
		it.ordered = false
		return it.bad(start, "the name in key %q holds a NUL", key)
	}
	*log = Log{Name: key[:name:name], UpdateIndex: ^binary.BigEndian.Uint64(key[name+1:]), Type: LogType(extra), Block: it.blk.off, Offset: int64(start)}
	end, what := p, ""
	switch log.Type {
	case LogDeletion:
	case LogUpdate:
		if end, what = log.parse(it.recs, p, it.idLen); end < 0 {
			return it.bad(start, "%s is damaged", what)
		}
	default:
		return it.bad(start, "type %d does not exist", extra)
	}
	log.Value, log.Length = it.recs[p:end:end], int64(end-start)
	it.ordered, it.fresh, it.p = true, false, end
	if order <= 0 {
		it.fault(it.t.corrupt(finding.ReftableLog, it.blk.off, it.blk.off, 0, "log of %q at update index %d, %d bytes into its block, does not sort behind the record before it", log.Name, log.UpdateIndex, start))
	}
	return true
}

// orderOfNext compares the key of the record at p with the key before it.
func (it *LogIter) orderOfNext(base []byte) int {
	prefix, p := varint(it.recs, it.p)
	if p < 0 || prefix > uint64(len(base)) {
		return 1
	}
	suffix, p := varint(it.recs, p)
	if p < 0 || suffix>>3 > uint64(len(it.recs)-p) {
		return 1
	}
	return bytes.Compare(it.recs[p:p+int(suffix>>3)], it.key[prefix:])
}

// parse reads the value of an update at b[p:] and tells where it ends; -1 and the name of a
// field that can't be.
func (l *Log) parse(b []byte, p, idLen int) (end int, what string) {
	if 2*idLen > len(b)-p {
		return -1, "old or new id"
	}
	l.Old, l.New = b[p:p+idLen:p+idLen], b[p+idLen:p+2*idLen:p+2*idLen]
	p += 2 * idLen
	if l.Committer, p = text(b, p); p < 0 {
		return -1, "committer"
	}
	if l.Email, p = text(b, p); p < 0 {
		return -1, "email"
	}
	if l.Time, p = varint(b, p); p < 0 {
		return -1, "time"
	}
	if len(b)-p < 2 {
		return -1, "zone"
	}
	l.Zone = int16(binary.BigEndian.Uint16(b[p:]))
	if l.Message, p = text(b, p+2); p < 0 {
		return -1, "message"
	}
	return p, ""
}

// text reads a length and as many bytes.
func text(b []byte, p int) ([]byte, int) {
	n, p := varint(b, p)
	if p < 0 || n > uint64(len(b)-p) {
		return nil, -1
	}
	return b[p : p+int(n) : p+int(n)], p + int(n)
}

func (it *LogIter) bad(start int, format string, args ...any) bool {
	return it.badRecord(finding.ReftableLog, start, "log record %d bytes into its block: "+format, append([]any{start}, args...)...)
}
