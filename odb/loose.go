package odb

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"refaudit/finding"
	"refaudit/internal/inflate"
	"refaudit/oid"
)

// looseFiles knows which loose objects a store has. Each of the 256 folders is listed once, when
// an object that begins with its byte is asked for.
type looseFiles struct {
	store *Store
	all   atomic.Pointer[[256]looseFolder] // nil until one is asked for
}

type looseFolder struct {
	mu     sync.Mutex
	listed bool
	rests  [][]byte // sorted: the ids without their first byte
	err    error
}

const lowerHex = "0123456789abcdef"

func (l *looseFiles) at(first byte) *looseFolder {
	if l.all.Load() == nil {
		l.all.CompareAndSwap(nil, new([256]looseFolder))
	}
	return &l.all.Load()[first]
}

// folder lists a folder, if that has not been done yet.
func (l *looseFiles) folder(first byte) ([][]byte, error) {
	f := l.at(first)
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.listed {
		f.listed = true
		f.rests, f.err = l.list(first)
	}
	return f.rests, f.err
}

func (l *looseFiles) list(first byte) ([][]byte, error) {
	name := string([]byte{lowerHex[first>>4], lowerHex[first&15]})
	entries, err := l.store.dir.ReadDir(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	size := l.store.format.Size() - 1
	all := make([]byte, 0, len(entries)*size)
	var rests [][]byte
	for _, e := range entries {
		if len(e.Name()) != 2*size {
			continue
		}
		rest := all[len(all) : len(all)+size : len(all)+size]
		if oid.DecodeHex(rest, []byte(e.Name())) {
			all = all[:len(all)+size]
			rests = append(rests, rest)
		}
	}
	slices.SortFunc(rests, bytes.Compare)
	return rests, nil
}

// has tells whether the object has a loose file.
func (l *looseFiles) has(id *oid.ID) (bool, error) {
	raw := id.Bytes()
	rests, err := l.folder(raw[0])
	if err != nil {
		return false, err
	}
	_, ok := slices.BinarySearchFunc(rests, raw[1:], bytes.Compare)
	return ok, nil
}

// forget makes the folders that are set be listed again when they are next needed.
func (l *looseFiles) forget(which *[256]bool) {
	for first, yes := range which {
		if yes {
			l.forgetOne(byte(first))
		}
	}
}

func (l *looseFiles) forgetOne(first byte) {
	f := l.at(first)
	f.mu.Lock()
	f.listed, f.rests, f.err = false, nil, nil
	f.mu.Unlock()
}

// blind tells whether a folder could not be listed.
func (l *looseFiles) blind() bool {
	all := l.all.Load()
	if all == nil {
		return false
	}
	for i := range all {
		f := &all[i]
		f.mu.Lock()
		err := f.err
		f.mu.Unlock()
		if err != nil {
			return true
		}
	}
	return false
}

func loosePath(id *oid.ID) string {
	var b [2*oid.MaxSize + 1]byte
	hex := id.AppendHex(b[1:1])
	b[0], b[1], b[2] = hex[0], hex[1], '/'
	return string(b[:len(hex)+1])
}

// looseFault places an error in a loose object.
func (s *Store) looseFault(id *oid.ID, err error) error {
	return damaged(finding.Pos{File: s.label(loosePath(id))}, err)
}

// A loose object is a zlib stream of its header and its content. git lets the header have at most
// 32 bytes, its NUL included.
//
//	+--------+---+-----------------+-----+---------+
//	| kind   |   | size in decimal | NUL | content |
//	+--------+---+-----------------+-----+---------+
const looseHeaderMax = 32

// parseLooseHeader reads the header at the start of b.
func parseLooseHeader(b []byte) (kind oid.Kind, size int64, n int, err error) {
	end := bytes.IndexByte(b[:min(len(b), looseHeaderMax)], 0)
	if end < 0 {
		return 0, 0, 0, errors.New("loose object has a header without end")
	}
	word, digits, ok := bytes.Cut(b[:end], []byte(" "))
	if !ok {
		return 0, 0, 0, fmt.Errorf("loose object has header %q", b[:end])
	}
	kind, ok = oid.ParseKind(word)
	if !ok {
		return 0, 0, 0, fmt.Errorf("loose object is of unknown kind %q", word)
	}
	if len(digits) == 0 || digits[0] == '0' && len(digits) > 1 || digits[0] == '+' || digits[0] == '-' {
		return 0, 0, 0, fmt.Errorf("loose object has size %q", digits)
	}
	size, err = strconv.ParseInt(string(digits), 10, 64)
	if err != nil {
		return 0, 0, 0, fmt.Errorf("loose object has size %q", digits)
	}
	return kind, size, end + 1, nil
}

// looseFile is an open loose object whose header has been read.
type looseFile struct {
	*os.File
	kind      oid.Kind
	size      int64
	headerLen int
	fileSize  int64
	in        *bufio.Reader // of content
}

// looseHead is how much of a file is read to learn its header.
const looseHead = 4096

var (
	errEmpty   = errors.New("loose object file is empty")
	errGarbage = errors.New("loose object has garbage behind its end")
)

// openLoose opens a loose object and reads its header. buf is scratch that it may grow.
func openLoose(s *Store, id *oid.ID, z *inflate.Inflater, buf *[]byte) (_ *looseFile, err error) {
	file, err := s.dir.Open(loosePath(id))
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			file.Close()
		}
	}()
	if cap(*buf) < looseHead {
		*buf = make([]byte, looseHead)
	}
	n, err := io.ReadFull(file, (*buf)[:looseHead])
	if err == io.EOF {
		return nil, errEmpty
	}
	if err != nil && err != io.ErrUnexpectedEOF {
		return nil, err
	}
	f := &looseFile{File: file, fileSize: int64(n)}
	if n == looseHead {
		st, err := file.Stat()
		if err != nil {
			return nil, err
		}
		f.fileSize = st.Size()
	}
	var header [looseHeaderMax]byte
	n, err = z.Prefix(header[:], (*buf)[:n])
	if err != nil && f.fileSize > looseHead { // the header needed more of the file
		var r io.Reader
		if r, err = f.inflated(); err != nil {
			return nil, err
		}
		if n, err = io.ReadFull(r, header[:]); err == io.EOF || err == io.ErrUnexpectedEOF {
			err = nil
		}
	}
	if err != nil {
		return nil, err
	}
	f.kind, f.size, f.headerLen, err = parseLooseHeader(header[:n])
	return f, err
}

// all is the whole file, in buf, which must be openLoose's.
func (f *looseFile) all(buf *[]byte) ([]byte, error) {
	if f.fileSize < looseHead {
		return (*buf)[:f.fileSize], nil // has been read
	}
	if int64(cap(*buf)) < f.fileSize {
		*buf = make([]byte, f.fileSize)
	}
	b := (*buf)[:f.fileSize]
	if _, err := f.ReadAt(b, 0); err != nil && err != io.EOF {
		return nil, err
	}
	return b, nil
}

// inflated is what the file holds, the header included.
func (f *looseFile) inflated() (io.Reader, error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	f.in = bufio.NewReaderSize(f.File, 64<<10)
	return zlib.NewReader(f.in)
}

// content is what the file holds behind its header.
func (f *looseFile) content() (io.Reader, error) {
	z, err := f.inflated()
	if err == nil {
		_, err = io.CopyN(io.Discard, z, int64(f.headerLen))
	}
	return z, err
}

// readTo has the content read, all of it, and fails unless the object and the file end there.
func (f *looseFile) readTo(read func(io.Reader) error) error {
	in, err := f.content()
	if err != nil {
		return err
	}
	if err := read(in); err != nil {
		return err
	}
	if _, err := io.ReadFull(in, make([]byte, 1)); err == nil {
		return inflate.ErrLonger
	} else if err != io.EOF {
		return err
	}
	return f.atEnd()
}

// atEnd fails unless content has used up the file.
func (f *looseFile) atEnd() error {
	if _, err := f.in.ReadByte(); err != io.EOF {
		return errGarbage
	}
	return nil
}
