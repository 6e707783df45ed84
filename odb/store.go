package odb

import (
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"refaudit/finding"
	"refaudit/internal/vfs"
	"refaudit/oid"
)

// A Store is one object folder as it was found: the repository's own, or one that it borrows from.
// It is safe for concurrent use.
type Store struct {
	dir    *vfs.Dir
	prefix string // of the names in messages: "objects/" for the own store, else the folder
	format oid.Format

	folder   []fs.DirEntry // pack; nil: not listed
	packs    []*Pack
	covered  []bool // of packs: a multi-pack-index has its objects
	midx     *Midx
	problems []finding.Finding // what could not be read
	blind    error             // why an object may be here unseen, nil if it can't
	half     string            // a pack without an index, or an index without a pack
	loose    looseFiles
}

// fileStamp tells one state of a pack or an index from another; of other files it is empty.
type fileStamp struct {
	size  int64
	mtime time.Time
}

// Dir is the folder.
func (s *Store) Dir() *vfs.Dir { return s.dir }

// Packs are the packs that have both a pack and an index, the youngest first. The caller must not change it.
func (s *Store) Packs() []*Pack { return s.packs }

// PackFolder is what the folder pack holds, by name, as it was when the packs were found, and the sizes of packs
// and indexes too. It is nil where there is no such folder, or it can't be listed. The caller must not change it.
func (s *Store) PackFolder() []fs.DirEntry { return s.folder }

// Unlisted says why there may be packs here that were not found: nil where all were.
func (s *Store) Unlisted() error { return s.blind }

// Half is a pack without an index, or an index without a pack, relative to Dir; "" if there is none. git sees
// no objects there.
func (s *Store) Half() string { return s.half }

// listedFile is a regular file of which was asked what it is.
type listedFile struct {
	fs.DirEntry
	info fs.FileInfo
}

func (f listedFile) Info() (fs.FileInfo, error) { return f.info, nil }

// stat is what an entry of the folder pack leads to.
func (s *Store) stat(e *fs.DirEntry) (fs.FileInfo, error) {
	if !(*e).Type().IsRegular() {
		return s.dir.Stat("pack/" + (*e).Name())
	}
	st, err := (*e).Info()
	if err == nil {
		*e = listedFile{*e, st}
	}
	return st, err
}

// mayHave tells whether there may be a file below the folder pack: not where that was listed without it, or without
// the folder that it would be in.
func (s *Store) mayHave(file string) bool {
	name, _, _ := strings.Cut(strings.TrimPrefix(file, "pack/"), "/")
	_, found := slices.BinarySearchFunc(s.folder, name, func(e fs.DirEntry, name string) int { return strings.Compare(e.Name(), name) })
	return found || s.folder == nil
}

// Midx is the multi-pack-index, the last layer of a chain; nil if there is none that can be used.
func (s *Store) Midx() *Midx { return s.midx }

// label is how messages name a file of the store.
func (s *Store) label(name string) string { return s.prefix + name }

// openStore lists the packs of a folder. Packs of old that have not changed are taken over.
func openStore(path, prefix string, f oid.Format, old *Store) (*Store, error) {
	dir, err := vfs.Open(path)
	if err != nil {
		return nil, err
	}
	s := &Store{dir: dir, prefix: prefix, format: f}
	s.loose.store = s
	s.listPacks(old)
	s.openMidx(old)
	return s, nil
}

// listPacks finds the packs. One without an index is nobody's, nor is an index without a pack.
func (s *Store) listPacks(old *Store) {
	list, err := s.dir.ReadDir("pack")
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		s.fail(err, finding.New(finding.AuditSkipped, finding.Pos{File: s.label("pack")}, "packs can't be listed: %v", err))
		return
	}
	s.folder = list
	byName := map[string]*Pack{}
	known := map[string]*Pack{}
	if old != nil {
		for _, p := range old.packs {
			known[p.name] = p
		}
	}
	for i, e := range list {
		name, ext, ok := cutExt(e.Name())
		if !ok {
			continue
		}
		var stamp fileStamp
		if ext == "pack" || ext == "idx" {
			st, err := s.stat(&list[i])
			if vfs.Missing(err) {
				continue // gone since the folder was listed
			}
			if err != nil {
				if s.blind == nil { // the others are no better, as a rule
					s.fail(err, finding.New(finding.AuditSkipped, finding.Pos{File: s.label("pack/" + e.Name())}, "can't be looked at: %v", err))
				}
				continue
			}
			stamp = fileStamp{st.Size(), st.ModTime()}
		}
		p := byName[name]
		if p == nil {
			p = &Pack{store: s, name: name, files: map[string]fileStamp{}}
			byName[name] = p
		}
		p.files[ext] = stamp
	}
	for name, p := range byName {
		if pack, idx := p.Has("pack"), p.Has("idx"); !pack || !idx {
			switch {
			case pack:
				s.half = max(s.half, p.File("pack"))
			case idx:
				s.half = max(s.half, p.File("idx"))
			}
			continue
		}
		if q := known[name]; q != nil && maps.Equal(q.files, p.files) && !q.mayRecover() {
			p = q
		}
		s.packs = append(s.packs, p)
	}
	sortPacks(s.packs)
}

// cutExt splits the name of a pack's file at its last dot.
func cutExt(file string) (name, ext string, ok bool) {
	i := strings.LastIndexByte(file, '.')
	if i <= 0 {
		return "", "", false
	}
	return file[:i], file[i+1:], true
}

// fail notes that objects may be here that can't be seen.
func (s *Store) fail(err error, f finding.Finding) {
	if s.blind == nil {
		s.blind = err
	}
	s.problems = append(s.problems, f)
}
