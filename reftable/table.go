package reftable

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"refaudit/finding"
	"refaudit/oid"
)

// ErrDamaged ends a read that stepped over records: what it gave is right, and not all.
var ErrDamaged = errors.New("records were lost to damage")

// Table is an open table. It is safe for concurrent use, and holds none of the file but its footer.
type Table struct {
	Footer

	// Damage, if set, is told each fault that a read meets, and the read goes on behind it
	// (or ends with the error that Damage gives). Unset, the first fault ends the read as
	// its error. Set it before the first read.
	Damage func(*finding.Corrupt) error

	r       io.ReaderAt
	mem     []byte // the whole file, if it is in memory
	file    string
	size    int64
	end     int64 // where the blocks end and the footer begins
	logs    bool  // the first block says that it is one of logs
	logOnly bool  // and it is, so there are no refs
	faults  []*finding.Corrupt
}

// Open reads the header and footer of a table of size bytes. file is its name in messages and
// findings, relative to the git dir; want is the format that the repository uses, 0 for any.
// Its errors are *finding.Corrupt.
func Open(r io.ReaderAt, size int64, file string, want oid.Format) (*Table, error) {
	t := &Table{r: r, file: file, size: size, end: size}
	w := t.window(size, firstLook)
	head, bad := w.at(0, firstLook)
	if bad != nil {
		return nil, bad
	}
	version, bad := parseVersion(head, file, 0)
	if bad != nil {
		return nil, bad
	}
	if least := int64(headerLen(version) + footerLen(version)); size < least {
		return nil, &finding.Corrupt{ID: finding.ReftableUnreadable, Pos: finding.Pos{File: file, Offset: 0, Length: size, Placed: true},
			Err: fmt.Errorf("is %d bytes long, and the shortest table %d", size, least)}
	}
	t.end = size - int64(footerLen(version))
	head = append([]byte(nil), head...)
	tail, bad := w.at(t.end, footerLen(version))
	if bad != nil {
		return nil, bad
	}
	var err error
	if t.Footer, err = parseFooter(tail, version, file, t.end); err != nil {
		return nil, err
	}
	if i := firstDifference(head[:headerLen(version)], tail); i >= 0 {
		return nil, &finding.Corrupt{ID: finding.ReftableCrc, Pos: finding.Pos{File: file, Offset: int64(i), Length: 1, Placed: true},
			Err: fmt.Errorf("header differs from its copy in the footer, whose checksum is right: %#02x and %#02x", head[i], tail[i])}
	}
	if want != 0 && t.Format != want {
		return nil, &finding.Corrupt{ID: finding.ReftableHashMismatch, Pos: finding.Pos{File: file, Offset: 0, Length: int64(headerLen(version)), Placed: true},
			Err: fmt.Errorf("table is of %v, the repository of %v", t.Format, want)}
	}
	t.checkPositions()
	t.lookAtFirst(head)
	return t, nil
}

// hasBlocks tells whether there is anything between header and footer.
func (t *Table) hasBlocks() bool { return t.end > int64(headerLen(t.Version)) }

// firstLook is how much of a file tells its header and the kind of its first block.
const firstLook = headerLenV2 + 6

// lookAtFirst tells whether the first block is one of logs, from the first bytes of the file. One
// flipped byte makes a block of refs look like it, and hides them all: so there must be a
// stream, and nothing that belongs to refs.
func (t *Table) lookAtFirst(b []byte) {
	head := headerLen(t.Version)
	if len(b) < head+6 || !t.hasBlocks() {
		return
	}
	b = b[head:]
	t.logs = b[0] == kindLog
	t.logOnly = isLogStart(b) && t.RefIndex == 0 && t.Obj == 0 && t.ObjIndex == 0 && t.Log <= int64(head)
}

// OpenBytes opens a table that is in memory. data must not change while the table is in use.
func OpenBytes(data []byte, file string, want oid.Format) (*Table, error) {
	t, err := Open(bytes.NewReader(data), int64(len(data)), file, want)
	if err == nil {
		t.mem = data
	}
	return t, err
}

// File is the table's name in messages.
func (t *Table) File() string { return t.file }

// Size is the length of the file in bytes.
func (t *Table) Size() int64 { return t.size }

// Faults are the claims of the footer that can't be true; a read tells them to Damage.
func (t *Table) Faults() []*finding.Corrupt { return t.faults }

func firstDifference(a, b []byte) int {
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return -1
}

// checkPositions drops sections that the footer places where no block can be.
func (t *Table) checkPositions() {
	fault := func(id finding.ID, format string, args ...any) {
		t.faults = append(t.faults, &finding.Corrupt{ID: id,
			Pos: finding.Pos{File: t.file, Offset: t.end, Length: t.size - t.end, Placed: true}, Err: fmt.Errorf(format, args...)})
	}
	if t.Min > t.Max {
		fault(finding.ReftableUpdateIndex, "smallest update index %d is above the largest, %d", t.Min, t.Max)
	}
	for _, s := range []struct {
		name string
		pos  *int64
	}{{"ref index", &t.RefIndex}, {"object blocks", &t.Obj}, {"object index", &t.ObjIndex}, {"log blocks", &t.Log}, {"log index", &t.LogIndex}} {
		if *s.pos != 0 && (*s.pos < int64(headerLen(t.Version)) || *s.pos >= t.end) {
			fault(finding.ReftableIndexMismatch, "footer places the %s at %d, outside the blocks", s.name, *s.pos)
			*s.pos = 0
		}
	}
	if t.Obj != 0 && t.ObjIDLen == 0 {
		fault(finding.ReftableIndexMismatch, "footer says that object blocks keep 0 bytes of an id: git can't open this table")
		t.Obj, t.ObjIndex = 0, 0
	}
}

// refEnd is a place that no ref block reaches: where the footer places what comes next.
func (t *Table) refEnd() int64 {
	for _, pos := range []int64{t.RefIndex, t.Obj, t.ObjIndex, t.Log, t.LogIndex} {
		if pos != 0 {
			return pos
		}
	}
	return t.end
}
