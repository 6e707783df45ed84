package repo

import (
	"bytes"
	"fmt"
	"io/fs"
	"iter"

	"refaudit/internal/vfs"
	"refaudit/oid"
)

// maxBoundaryBytes bounds the files shallow and info/grafts: a million commits and more.
const maxBoundaryBytes = 128 << 20

// maxShallowLine is git's buffer for a line of the file shallow.
const maxShallowLine = 1023

// Shallow reads the ids of the commits whose parents are left out. shallow tells that there is such a
// file, which may be empty. (GIT_SHALLOW_FILE names another, "" none.)
func (r *Repo) Shallow() (ids []oid.ID, shallow bool, err error) {
	path, data, err := r.boundary("GIT_SHALLOW_FILE", "shallow")
	if vfs.Missing(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	ids = make([]oid.ID, 0, len(data)/(r.Format.HexLen()+1)+1)
	for line, text := range lines(data) {
		id, rest, ok := leadingID(r.Format, text)
		if !ok || len(rest)+r.Format.HexLen() >= maxShallowLine {
			return nil, true, fmt.Errorf("%s:%d: bad shallow line", path, line)
		}
		ids = append(ids, id)
	}
	return ids, true, nil
}

// Graft replaces the parents of a commit, in some of git's answers.
type Graft struct {
	Commit  oid.ID
	Parents []oid.ID
}

// Grafts reads info/grafts (or GIT_GRAFT_FILE), long deprecated and still honoured. Of two for
// a commit the first counts. bad are the numbers of lines that git can't read and passes over.
func (r *Repo) Grafts() (grafts []Graft, bad []int, err error) {
	_, data, err := r.boundary("GIT_GRAFT_FILE", "info/grafts")
	if vfs.Missing(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	for line, text := range lines(data) {
		text = bytes.TrimRight(text, " \t\r")
		if len(text) == 0 || text[0] == '#' {
			continue
		}
		g, ok := parseGraft(r.Format, text)
		if !ok {
			bad = append(bad, line)
			continue
		}
		grafts = append(grafts, g)
	}
	return grafts, bad, nil
}

func parseGraft(f oid.Format, text []byte) (g Graft, ok bool) {
	if g.Commit, text, ok = leadingID(f, text); !ok {
		return g, false
	}
	for len(text) > 0 {
		if text[0] != ' ' && text[0] != '\t' && text[0] != '\r' {
			return g, false
		}
		var parent oid.ID
		if parent, text, ok = leadingID(f, text[1:]); !ok {
			return g, false
		}
		g.Parents = append(g.Parents, parent)
	}
	return g, true
}

// boundary reads a file of the common dir, unless the environment names another; "" is one that is missing.
func (r *Repo) boundary(env, name string) (path string, data []byte, err error) {
	if path, set := r.o.Env(env); set {
		if path == "" {
			return "", nil, fs.ErrNotExist
		}
		path = r.o.abs(path)
		data, err := readAnyFile(path)
		return path, data, err
	}
	data, err = r.Common.ReadFile(name, maxBoundaryBytes)
	return r.Common.Path(name), data, err
}

// leadingID reads the id that text begins with.
func leadingID(f oid.Format, text []byte) (id oid.ID, rest []byte, ok bool) {
	n := f.HexLen()
	var raw [oid.MaxSize]byte
	if len(text) < n || !oid.DecodeHex(raw[:f.Size()], text) {
		return id, nil, false
	}
	return oid.FromBytes(f, raw[:]), text[n:], true
}

// lines goes through the lines of data, numbered from 1, without their line feeds.
func lines(data []byte) iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		for n := 1; len(data) > 0; n++ {
			line, rest, _ := bytes.Cut(data, []byte("\n"))
			if !yield(n, line) {
				return
			}
			data = rest
		}
	}
}
