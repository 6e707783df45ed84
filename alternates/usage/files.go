package usage

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"refaudit/internal/vfs"
	"refaudit/oid"
)

// folderScan is what the files of an object folder are.
type folderScan struct {
	loose []looseFile // by id
	bytes int64       // of all files, as stat says
	err   error       // why some could not be seen; nil if all were
}

// scanLoose lists the loose objects of a folder, and with all also adds up every other file in it. packs
// is what its folder pack holds, nil if that is not known.
func scanLoose(dir *vfs.Dir, format oid.Format, all bool, packs []fs.DirEntry) folderScan {
	var s folderScan
	entries, err := dir.ReadDir(".")
	if err != nil {
		return folderScan{err: fmt.Errorf("object folder %s: %w", dir.Root(), err)}
	}
	for _, e := range entries {
		var first [1]byte
		switch {
		case e.IsDir() && len(e.Name()) == 2 && oid.DecodeHex(first[:], []byte(e.Name())):
			s.fanout(dir, e.Name(), first[0], format, all)
		case all && e.IsDir() && e.Name() == "pack" && packs != nil:
			s.addAll(dir, e.Name(), packs)
		case all:
			s.add(dir, e.Name(), e)
		}
	}
	slices.SortFunc(s.loose, func(a, b looseFile) int { return bytes.Compare(a.id.Bytes(), b.id.Bytes()) })
	return s
}

// fanout lists one of the 256 folders of loose objects.
func (s *folderScan) fanout(dir *vfs.Dir, name string, first byte, format oid.Format, all bool) {
	entries, err := dir.ReadDir(name)
	if err != nil {
		s.failed(name, err)
		return
	}
	raw := make([]byte, format.Size())
	raw[0] = first
	for _, e := range entries {
		isObject := !e.IsDir() && len(e.Name()) == 2*(len(raw)-1) && oid.DecodeHex(raw[1:], []byte(e.Name()))
		if !isObject {
			if all {
				s.add(dir, name+"/"+e.Name(), e)
			}
			continue
		}
		st, err := e.Info()
		if err != nil {
			s.failed(name+"/"+e.Name(), err)
			continue
		}
		s.bytes += st.Size()
		if st.Size() == 0 {
			continue // which can be no object, and no copy of one
		}
		s.loose = append(s.loose, looseFile{oid.FromBytes(format, raw), st.Size()})
	}
}

// add adds up a file, or all files of a folder.
func (s *folderScan) add(dir *vfs.Dir, name string, e fs.DirEntry) {
	switch {
	case e.IsDir():
		entries, err := dir.ReadDir(name)
		if err != nil {
			s.failed(name, err)
			return
		}
		s.addAll(dir, name, entries)
	case e.Type().IsRegular():
		st, err := e.Info()
		if err != nil {
			s.failed(name, err)
			return
		}
		s.bytes += st.Size()
	}
}

// addAll adds up what a folder holds.
func (s *folderScan) addAll(dir *vfs.Dir, name string, entries []fs.DirEntry) {
	for _, e := range entries {
		s.add(dir, name+"/"+e.Name(), e)
	}
}

// failed notes what could not be seen; what is gone since its folder was listed is nothing.
func (s *folderScan) failed(name string, err error) {
	if !vfs.Missing(err) {
		s.err = errors.Join(s.err, fmt.Errorf("%s: %w", name, err))
	}
}
