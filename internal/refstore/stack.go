package refstore

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"refaudit/finding"
	"refaudit/internal/vfs"
	"refaudit/reftable"
)

// stackPatience bounds how long a stack is read again because a table that its list names is
// gone: a writer that compacts puts up a new list before it removes the tables of the old one.
const stackPatience = 3 * time.Second

// stack is the tables of a store, opened, oldest first.
type stack struct {
	names  []string // as tables.list has them
	files  []*os.File
	tables []*reftable.Table
}

func (s *stack) close() {
	for _, f := range s.files {
		f.Close()
	}
	s.files, s.tables = nil, nil
}

// openStack reads tables.list and opens what it names. false tells that a finding says why not
// the whole stack could be opened; the tables that could be are in it all the same.
func (v *visit) openStack() (*stack, bool, error) {
	began := time.Now()
	var last []string
	for {
		names, whole, err := v.readList()
		if err != nil || !whole || names == nil {
			return &stack{}, whole, err
		}
		s, gone, whole, err := v.openTables(names, slices.Equal(names, last) || time.Since(began) > stackPatience)
		if err != nil || gone == "" {
			return s, whole, err
		}
		s.close()
		if err := v.ctx.Err(); err != nil {
			return nil, false, err
		}
		last = names
		time.Sleep(10 * time.Millisecond)
	}
}

const maxList = 64 << 20

// readList reads tables.list. names is nil where it can't be believed, or is not there.
func (v *visit) readList() (names []string, whole bool, err error) {
	const list = "reftable/tables.list"
	label := v.place.label(list)
	text, err := v.place.root.ReadFile(list, maxList)
	switch {
	case vfs.Missing(err) && !v.place.main && !v.has("reftable"):
		return nil, true, nil // a worktree without refs of its own
	case vfs.Missing(err):
		return nil, false, v.lostList(label, "is gone")
	case err != nil:
		return nil, false, v.cantReadTable(list, err)
	}
	names, corrupt := reftable.ParseList(text, label)
	whole, err = v.lines(corrupt)
	if err != nil {
		return nil, false, err
	}
	if len(names) == 0 && len(corrupt) == 0 && !v.place.fresh { // even what is new has its HEAD in a table
		return nil, false, v.lostList(label, "names no table")
	}
	return names, whole, nil
}

// lines tells of lines of tables.list that can't be believed. whole tells that all tables are known nevertheless.
func (v *visit) lines(corrupt []*finding.Corrupt) (whole bool, err error) {
	read, twice := true, false // git reads all the lines; and one of the tables more than once
	for _, c := range corrupt {
		l, ok := errors.AsType[*reftable.ReadLine](c.Err)
		read = read && ok
		twice = twice || ok && l.Twice
	}
	for _, c := range corrupt {
		l, _ := errors.AsType[*reftable.ReadLine](c.Err)
		what := c.Err.Error()
		switch {
		case !read:
			err = v.damaged(c.ID, c.Pos, what)
		case l.Twice:
			v.sum.unread(fmt.Sprintf("%s %s", c.Pos, what))
			err = v.broken(finding.New(c.ID, c.Pos, "%s: %s", what, listedTwice))
		default:
			err = v.report(finding.New(c.ID, c.Pos, "%s: %s", what, listedByPath))
		}
		if err != nil {
			return false, err
		}
	}
	return read && !twice, nil
}

const (
	// listedTwice is what a table on two lines comes to. Which record git reads then depends on the later line.
	listedTwice = "git reads the table on both, and the next update may crash, or compact the tables: that removes the table and leaves a line that " +
		"names it, and git sees no refs at all then. Do not run gc or anything that writes, stop every git process, copy reftable/ away, and take one of the lines out; " +
		"until then nothing of the stack is judged"
	listedByPath = "git follows it, and writes plain names when it compacts the tables: `git pack-refs --all`"
)

// lostList tells of a stack whose list is absent or empty: the tables beside it are all that is left.
func (v *visit) lostList(label, what string) error {
	entries, err := v.place.root.ReadDir("reftable")
	if err != nil {
		return v.damaged(finding.ReftableListBad, finding.Pos{File: label}, what)
	}
	var tables []string
	for _, e := range entries {
		if _, err := reftable.ParseTableName(e.Name()); err == nil {
			tables = append(tables, e.Name())
		}
	}
	if len(tables) == 0 {
		return v.damaged(finding.ReftableListBad, finding.Pos{File: label}, what+", and there is no table beside it")
	}
	slices.Sort(tables)
	v.sum.unread(label + " " + what)
	f := finding.New(finding.ReftableOrphanTable, finding.Pos{File: label},
		"%s, and %s beside it: %s. Copy reftable/ away and stop every git process first: any running git deletes these tables. "+
			"Then `refaudit fix --rebuild-tables-list` puts the list together again; %s", what, finding.Count(len(tables), "table lies", "tables lie"), strings.Join(tables, ", "), noGC)
	f.Severity = finding.Error
	return v.broken(f)
}

func (v *visit) has(name string) bool {
	_, err := v.place.root.Lstat(name)
	return err == nil
}

// openTables opens the named tables. gone is the name of one that is not there, unless final
// says that this is how things are: then it is a finding.
func (v *visit) openTables(names []string, final bool) (s *stack, gone string, whole bool, err error) {
	s, whole = &stack{names: names}, true
	for _, name := range names {
		file := "reftable/" + name
		label := v.place.label(file)
		f, err := v.place.root.Open(file)
		switch {
		case vfs.Missing(err) && !final:
			return s, name, false, nil
		case vfs.Missing(err):
			whole = false
			if err := v.damaged(finding.ReftableMissingTable, finding.Pos{File: label}, "tables.list names it, and it is gone"); err != nil {
				return s, "", false, err
			}
			continue
		case err != nil:
			whole = false
			if err := v.cantReadTable(file, err); err != nil {
				return s, "", false, err
			}
			continue
		}
		s.files = append(s.files, f)
		t, err := v.openTable(f, label)
		if c, ok := errors.AsType[*finding.Corrupt](err); ok {
			whole = false
			if err := v.damaged(c.ID, c.Pos, c.Err.Error()); err != nil {
				return s, "", false, err
			}
			continue
		}
		if err != nil {
			return s, "", false, err
		}
		s.tables = append(s.tables, t)
	}
	return s, "", whole, nil
}

func (v *visit) openTable(f *os.File, label string) (*reftable.Table, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, &finding.Corrupt{ID: finding.ReftableUnreadable, Pos: finding.Pos{File: label}, Err: err}
	}
	return reftable.Open(f, st.Size(), label, v.repo.Format)
}

// noGC is what has to be said wherever git sees an empty repository.
const noGC = "git sees no refs at all here: do not run gc, `git gc --prune=now` would delete every object"

// damaged tells of a stack that git can't read.
func (v *visit) damaged(id finding.ID, pos finding.Pos, what string) error {
	v.sum.unread(fmt.Sprintf("%s %s", pos, what))
	return v.broken(finding.New(id, pos, "%s; %s", what, noGC))
}

// cantReadTable tells of a table that is there and can't be looked at. Whoever can't read it sees no refs.
func (v *visit) cantReadTable(file string, err error) error {
	label := v.place.label(file)
	v.sum.unread(fmt.Sprintf("%s: %v", label, err))
	return v.broken(finding.New(finding.ReftableUnreadable, finding.Pos{File: label}, "can't be read: %v; %s", err, noGC))
}

// broken reports a finding because of which git can't read a stack. Of a worktree's stack git says so
// in words of its own, which name no id; at that of the main worktree it crashes.
func (v *visit) broken(f finding.Finding) error {
	if id, ok := strings.CutPrefix(v.place.prefix, "worktrees/"); ok {
		f.GitText = "reftable stack for worktree '" + strings.TrimSuffix(id, "/") + "' is broken"
	}
	return v.report(f)
}
