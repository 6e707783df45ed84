package odb

import (
	"errors"
	"io/fs"

	"refaudit/finding"
)

// Problems are the files that could not be used, as far as anything has needed them: folders,
// multi-pack-indexes, indexes and packs. Objects in a pack that is named here are Unreadable
// unless they lie elsewhere too.
func (db *DB) Problems() []finding.Finding {
	v := db.view.Load()
	all := append([]finding.Finding(nil), v.problems...)
	for _, s := range v.stores {
		all = append(all, s.problems...)
		for m := s.midx; m != nil; m = m.base {
			if err := m.sound.failed(); err != nil {
				all = append(all, problem(finding.BitmapUnusable, s.label(m.file), err))
			}
		}
		for _, p := range s.packs {
			if ext, err := p.trouble(); err != nil && !errors.Is(err, fs.ErrNotExist) {
				all = append(all, problem(finding.AuditSkipped, s.label(p.File(ext)), err))
			}
		}
	}
	return all
}

// problem makes a finding of what is wrong with a file.
func problem(id finding.ID, file string, err error) finding.Finding {
	var c *finding.Corrupt
	if errors.As(err, &c) {
		return c.Finding()
	}
	return finding.New(id, finding.Pos{File: file}, "can't be used: %v", err)
}
