package repair

import (
	"bytes"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"refaudit/finding"
	"refaudit/internal/vfs"
	"refaudit/oid"
	"refaudit/reftable"
)

const listName = "tables.list"

// maxList bounds tables.list: git keeps a stack to a few dozen tables.
const maxList = 16 << 20

// tables is a stack as its list named it at one moment. The files are mapped, so that what looks
// into them makes no system calls, however large they are; all use of them is inside vfs.Guard.
type tables struct {
	names []string
	open  []*reftable.Table
	maps  []vfs.Mapped
	infos []vfs.Info
}

// record is the newest record of a name.
type record struct {
	typ   reftable.Type
	value oid.ID
	peel  oid.ID
	index uint64
}

// readList reads the list as it is now.
func (s *Stack) readList() ([]string, error) {
	b, _, err := vfs.ReadFile(s.Repo.FS, filepath.Join(s.Dir, listName), maxList)
	if err != nil {
		return nil, err
	}
	names, problems := reftable.ParseList(b, s.Label+"/"+listName)
	switch {
	case len(problems) > 0:
		return nil, problems[0]
	case len(names) == 0:
		return nil, &finding.Corrupt{ID: finding.ReftableListBad, Pos: finding.Pos{File: s.Label + "/" + listName}, Err: errors.New("names no table")}
	}
	return names, nil
}

// openTables opens the tables that a list names. Where one is gone the list has changed, unless
// it is locked: then the stack is broken.
func (s *Stack) openTables(names []string) (*tables, error) {
	t := &tables{names: names}
	for _, name := range names {
		if err := t.add(s, name); err != nil {
			t.close()
			return nil, err
		}
	}
	return t, nil
}

func (t *tables) add(s *Stack, name string) error {
	m, st, err := s.Repo.FS.Map(filepath.Join(s.Dir, name))
	if err != nil {
		return err
	}
	t.maps, t.infos = append(t.maps, m), append(t.infos, st)
	table, err := reftable.OpenBytes(m.Bytes(), s.Label+"/"+name, s.Repo.Format)
	if err != nil {
		return err
	}
	if faults := table.Faults(); len(faults) > 0 {
		return faults[0]
	}
	t.open = append(t.open, table)
	return nil
}

func (t *tables) close() {
	for _, m := range t.maps {
		m.Close()
	}
	t.maps = nil
}

// maxIndex is the highest update index of the stack.
func (t *tables) maxIndex() (top uint64) {
	for _, table := range t.open {
		top = max(top, table.Max)
	}
	return top
}

// newest finds the record that git serves for a name: that of the topmost table that has one.
func (t *tables) newest(f oid.Format, name []byte) (r record, found bool, err error) {
	for i := len(t.open) - 1; i >= 0; i-- {
		r, found, err = lookUp(t.open[i], f, name)
		if found || err != nil {
			return r, found, err
		}
	}
	return record{}, false, nil
}

func lookUp(t *reftable.Table, f oid.Format, name []byte) (record, bool, error) {
	it := t.Seek(name)
	if !it.Next() {
		return record{}, false, it.Err()
	}
	ref := it.Ref()
	if !bytes.Equal(ref.Name, name) {
		return record{}, false, it.Err()
	}
	return recordOf(f, ref), true, it.Err()
}

func recordOf(f oid.Format, ref *reftable.Ref) record {
	r := record{typ: ref.Type, index: ref.UpdateIndex}
	if ref.Value != nil {
		r.value = oid.FromBytes(f, ref.Value)
	}
	if ref.Peel != nil {
		r.peel = oid.FromBytes(f, ref.Peel)
	}
	return r
}

// load reads a stack that is not locked: a table may vanish between list and look.
func (s *Stack) load() (*tables, error) {
	var before []string
	for {
		names, err := s.readList()
		if err != nil {
			return nil, err
		}
		t, err := s.openTables(names)
		if err == nil || !errors.Is(err, fs.ErrNotExist) || slices.Equal(names, before) {
			return t, err
		}
		before = names
	}
}

// structural tells an error of a damaged stack from one of reading it.
func structural(err error) bool {
	var bad *finding.Corrupt
	return errors.As(err, &bad) || errors.Is(err, fs.ErrNotExist)
}
