package refstore

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sort"
	"strings"

	"refaudit/finding"
	"refaudit/internal/refname"
	"refaudit/internal/vfs"
	"refaudit/loose"
	"refaudit/oid"
	"refaudit/packed"
	"refaudit/peel"
)

// packed reads packed-refs, beside the loose refs that hide its entries.
func (v *visit) packed(refs []looseRef) error {
	p := &packedVisit{visit: v, names: newConflicts(), over: overlay{loose: refs}, label: v.place.label(packed.FileName)}
	f, err := v.openPacked()
	if err != nil {
		return err
	}
	if f != nil {
		defer f.Close()
		if err := p.read(f); err != nil {
			return err
		}
	}
	return p.over.rest(p.pass)
}

// openPacked opens packed-refs; nil where there is none, or it can't be read, which has been told then.
func (v *visit) openPacked() (*os.File, error) {
	st, err := v.place.root.Lstat(packed.FileName)
	if vfs.Missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, v.cantRead(packed.FileName, err)
	}
	if f, bad := packed.Filetype(st.Mode()); bad {
		if err := v.report(f); err != nil {
			return nil, err
		}
	}
	f, err := v.place.root.Open(packed.FileName)
	switch {
	case err == nil:
		return f, nil
	case vfs.Missing(err) && st.Mode()&fs.ModeSymlink == 0:
		return nil, nil // gone since: all refs in it are loose now, or deleted
	case errors.Is(err, vfs.ErrOutside):
		v.sum.unread(v.place.label(packed.FileName) + " is a symbolic link to a file of another owner, which is not followed: what refs it holds can't be told. " +
			"Give that file the repository's owner, or put a copy of it in the place of the link")
		return nil, nil
	case st.Mode()&fs.ModeSymlink != 0:
		v.sum.unread(v.place.label(packed.FileName) + " leads to no file: what refs it held can't be told")
		return nil, nil
	case !st.Mode().IsRegular():
		v.sum.unread(v.place.label(packed.FileName) + " is no file: what refs it held can't be told")
		return nil, nil
	}
	return nil, v.cantRead(packed.FileName, err)
}

// packedVisit is the reading of one packed-refs file.
type packedVisit struct {
	*visit
	names   *conflicts
	over    overlay
	label   string
	header  packed.Header
	ref     Ref
	n       int
	stopped error // what a callback has given
}

// pass takes a loose ref that sorts before the next packed one.
func (p *packedVisit) pass(l *looseRef) error {
	name := []byte(l.name)
	return p.names.report(name, p.names.common(name), &l.pos, p.report)
}

func (p *packedVisit) read(f *os.File) error {
	st, err := f.Stat()
	if err != nil {
		return p.cantRead(packed.FileName, err)
	}
	p.header = peekHeader(f, st.Size(), p.repo.Format)
	if p.sound(f, st.Size()) {
		return nil
	}
	sum, err := packed.Read(f, st.Size(), p.repo.Format, packed.Options{File: p.label, Severity: p.o.Severity},
		func(f finding.Finding) error { return p.stop(p.report(f)) },
		func(e *packed.Entry) error { return p.stop(p.entry(e)) })
	switch {
	case p.stopped != nil:
		return p.stopped
	case err != nil:
		return p.cantRead(packed.FileName, err)
	}
	p.sum.Packed = &sum
	if sum.Empty {
		p.remembered()
	}
	switch {
	case sum.Lost() || sum.Header.Bad:
		p.sum.unread(p.label + " is damaged: refs may be lost")
	case sum.Refused():
		p.sum.refused(p.label + " is damaged: git dies of it, whatever refs it holds")
	}
	return nil
}

func (p *packedVisit) stop(err error) error {
	if err != nil {
		p.stopped = err
	}
	return err
}

func (p *packedVisit) entry(e *packed.Entry) error {
	if p.n++; p.n&0xfff == 0 {
		if err := p.ctx.Err(); err != nil {
			return err
		}
	}
	if e.Style&packed.BadName != 0 {
		r := Ref{Name: e.Name, Source: Packed}
		setPlace(&r.Pos, p.label, e.Line, e.Offset, e.Length)
		if !refname.Valid(e.Name, refname.AllowOneLevel) && !refname.Safe(e.Name) {
			p.sum.refused(fmt.Sprintf("%q in %s: git dies of the name, which could lead out of refs/", e.Name, r.Pos))
		}
		return p.brokenRef(&r, noName) // a finding says so
	}
	hider, err := p.over.next(e.Name, p.pass)
	if err != nil {
		return err
	}
	same := 0
	if hider == nil && !p.over.unsorted {
		same = p.names.common(e.Name)
		if p.each == nil && e.Style&packed.ZeroOID == 0 && !p.names.clash(same) {
			p.sum.Refs++
			p.names.add(e.Name, same)
			return nil
		}
	}
	r, hidden := &p.ref, hider != nil
	r.Name, r.OID, r.Peel, r.Source, r.Hidden = e.Name, e.OID, e.Peel, Packed, hidden
	setPlace(&r.Pos, p.label, e.Line, e.Offset, e.Length)
	if e.HasPeelLine() {
		setPlace(&r.PeelPos, p.label, e.PeelLine, e.PeelOffset, e.PeelLength)
	} else {
		r.PeelPos = r.Pos
	}
	r.Promise = promise(&p.header, e.Name)
	if !hidden {
		p.sum.Refs++
		if !p.over.unsorted {
			if err := p.names.report(e.Name, same, &r.Pos, p.report); err != nil {
				return err
			}
		}
	}
	if hidden && hider.value.Kind == loose.Broken {
		if err := p.report(p.lastKnown(r)); err != nil {
			return err
		}
	}
	switch {
	case hidden && !p.o.Hidden:
		return nil
	case e.Style&packed.ZeroOID != 0:
		if hidden || !p.o.Objects && !p.o.Broken {
			return nil
		}
		if err := p.report(e.ZeroOIDFinding(p.label)); err != nil {
			return err
		}
		broken := *r
		return p.brokenRef(&broken, zeroID)
	}
	return p.give(r)
}

// setPlace makes pos a line of packed-refs.
func setPlace(pos *finding.Pos, file string, line int, offset, length int64) {
	pos.File, pos.Line, pos.Offset, pos.Length, pos.Placed = file, line, offset, length, true
}

// remembered tells that an empty packed-refs has lost refs, where something still names one that is nowhere.
func (p *packedVisit) remembered() {
	nowhere := func(name string) bool {
		at := sort.Search(len(p.over.loose), func(i int) bool { return p.over.loose[i].name >= name })
		return at == len(p.over.loose) || p.over.loose[at].name != name
	}
	if head := string(p.head); strings.HasPrefix(head, "refs/") && nowhere(head) {
		p.sum.unread(p.label + " is empty, and " + head + ", which HEAD leads to, is nowhere: refs were lost")
		return
	}
	left := maxLogs
	if name := p.loggedNowhere("logs/refs", nowhere, &left); name != "" {
		p.sum.unread(p.label + " is empty, and " + name + ", which has a reflog, is nowhere: refs were lost")
	}
}

// maxLogs is how many names below logs/ are looked at.
const maxLogs = 100_000

// loggedNowhere gives the name of a ref with a reflog below dir that is nowhere; "" if there is none.
func (p *packedVisit) loggedNowhere(dir string, nowhere func(string) bool, left *int) string {
	list, err := p.place.root.ReadDir(dir)
	if err != nil {
		return "" // no reflogs tell nothing
	}
	for _, e := range list {
		if *left--; *left < 0 || p.ctx.Err() != nil {
			return ""
		}
		path := dir + "/" + e.Name()
		if e.IsDir() {
			if name := p.loggedNowhere(path, nowhere, left); name != "" {
				return name
			}
			continue
		}
		if name := strings.TrimPrefix(path, "logs/"); refname.Valid([]byte(name), 0) && nowhere(name) {
			return name
		}
	}
	return ""
}

// lastKnown tells what is packed below a loose ref that has lost its value. git doesn't fall back to it.
func (p *packedVisit) lastKnown(r *Ref) finding.Finding {
	id := oid.FromBytes(p.repo.Format, r.OID)
	f := finding.New(finding.PackedRefShadowed, r.Pos, "holds %v, which the loose ref of this name hides though git reads no value from that one", id)
	f.Ref, f.OID = finding.RefName(r.Name), id
	return f
}

var tagsPrefix = []byte("refs/tags/")

// promise is what a header's traits make readers conclude where an entry has no peel.
func promise(h *packed.Header, name []byte) peel.Promise {
	switch {
	case h.FullyPeeled, h.Peeled && bytes.HasPrefix(name, tagsPrefix):
		return peel.AllReaders
	case h.Peeled:
		return peel.JGitReads
	}
	return peel.NoPromise
}

// peekHeader reads the header alone, since its promises count for each entry.
func peekHeader(f io.ReaderAt, size int64, format oid.Format) packed.Header {
	buf := make([]byte, min(size, 4096))
	n, _ := f.ReadAt(buf, 0) // what can't be read will be told of when the file is
	end := bytes.IndexByte(buf[:n], '\n')
	if end < 0 || buf[0] != '#' {
		return packed.Header{}
	}
	sum, _ := packed.Read(bytes.NewReader(buf[:end+1]), int64(end+1), format, packed.Options{}, nil, nil)
	return sum.Header
}
