package repair

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"refaudit/finding"
	"refaudit/internal/journal"
	"refaudit/internal/vfs"
	"refaudit/reftable"
)

// rebuilt is a tables.list put together from the tables that lie beside it.
type rebuilt struct {
	list    []string
	notices []string
	reads   []Change // what the stack will read as
}

// candidate is a table that may belong to the list.
type candidate struct {
	name  string
	info  vfs.Info
	table *reftable.Table
}

// lost tells whether the list is absent or names nothing, which git takes for a repository without refs.
func (s *Stack) lost() (bool, error) {
	b, _, err := vfs.ReadFile(s.Repo.FS, filepath.Join(s.Dir, listName), maxList)
	if vfs.Missing(err) {
		return true, nil
	}
	return err == nil && len(bytes.TrimSpace(b)) == 0, err
}

// planRebuild works out which tables the list named.
func (s *Stack) planRebuild() (out *rebuilt, err error) {
	err = vfs.Guard(func() error {
		all := &tables{}
		defer all.close()
		found, err := s.candidates(all)
		if err != nil {
			return err
		}
		out = &rebuilt{}
		chosen, err := s.chain(found, out)
		if err != nil {
			return err
		}
		return s.readsAs(chosen, out)
	})
	return out, err
}

// candidates opens every table of the folder. One that can't be read may have been listed, so that
// nobody can say what the stack was.
func (s *Stack) candidates(all *tables) ([]candidate, error) {
	names, err := s.Repo.FS.ReadDir(s.Dir)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Label, err)
	}
	var found []candidate
	for _, name := range names {
		if !strings.HasSuffix(name, ".ref") {
			continue
		}
		if err := all.add(s, name); err != nil {
			return nil, &Refused{Store: s.Label, Reason: fmt.Sprintf("%s can't be read; if it was never listed, move it away, then run this again", name), Err: err}
		}
		at := len(all.open) - 1
		found = append(found, candidate{name, all.infos[at], all.open[at]})
	}
	if len(found) == 0 {
		return nil, &Refused{Store: s.Label, Reason: "there is no table to list: restore the folder from a backup or another copy of the repository"}
	}
	slices.SortFunc(found, func(a, b candidate) int {
		switch {
		case a.table.Min != b.table.Min:
			return cmp.Compare(a.table.Min, b.table.Min)
		case a.table.Max != b.table.Max:
			return cmp.Compare(b.table.Max, a.table.Max) // the longer one first
		}
		return b.info.ModTime.Compare(a.info.ModTime) // the later one first
	})
	return found, nil
}

// chain chooses the tables. Their ranges of update indexes follow one another. A table whose range
// lies within another's was compacted into that, and of two with one range the later replaced the other:
// their writer died before it removed them. That is so if the other has their records; else nobody can say.
func (s *Stack) chain(found []candidate, out *rebuilt) (chosen []candidate, err error) {
	var left []candidate // for the last that was chosen
	settle := func() error {
		in := standIn{table: chosen[len(chosen)-1], out: left, bottom: len(chosen) == 1}
		left = nil
		return s.check(&in)
	}
	for _, c := range found {
		if len(chosen) == 0 {
			chosen = append(chosen, c)
			continue
		}
		last := &chosen[len(chosen)-1]
		switch {
		case c.table.Min > last.table.Max:
			if err := settle(); err != nil {
				return nil, err
			}
			if c.table.Min > last.table.Max+1 {
				out.notices = append(out.notices, fmt.Sprintf("%s: no table covers the update indexes %d to %d: updates of then may be lost", s.Label, last.table.Max+1, c.table.Min-1))
			}
			chosen = append(chosen, c)
		case c.table.Max <= last.table.Max:
			out.notices = append(out.notices, fmt.Sprintf("%s: %s is left out: %s has all its records, or newer ones", s.Label, c.name, last.name))
			left = append(left, c)
		default:
			return nil, &Refused{Store: s.Label, Reason: fmt.Sprintf("the update indexes of %s and %s overlap, so that nobody can say which was listed", last.name, c.name)}
		}
	}
	if err := settle(); err != nil {
		return nil, err
	}
	if first := chosen[0].table.Min; first > 1 {
		out.notices = append(out.notices, fmt.Sprintf("%s: no table covers the update indexes below %d: refs of then may be lost", s.Label, first))
	}
	for _, c := range chosen {
		out.list = append(out.list, c.name)
	}
	return chosen, nil
}

// maxShown is how many refs are shown of what a stack will read as.
const maxShown = 1000

// readsAs lists the refs that the chosen tables serve.
func (s *Stack) readsAs(chosen []candidate, out *rebuilt) error {
	var open []*reftable.Table
	for _, c := range chosen {
		open = append(open, c.table)
	}
	m := reftable.Merge(open)
	hidden := 0
	for m.Next() {
		r := m.Entries()[0]
		if r.Type == reftable.Deletion {
			continue
		}
		if len(out.reads) == maxShown {
			hidden++
			continue
		}
		c := Change{Ref: finding.RefName(bytes.Clone(r.Name)), ID: finding.ReftableListBad}
		if c.Action = fmt.Sprintf("read as a symref to %q", r.Target); r.Type != reftable.Symref {
			rec := recordOf(s.Repo.Format, r.Ref)
			c.OID, c.Action = rec.value, "read as "+rec.value.String()
		}
		out.reads = append(out.reads, c)
	}
	if hidden > 0 {
		out.notices = append(out.notices, fmt.Sprintf("%s: and %s", s.Label, finding.Count(hidden, "more ref", "more refs")))
	}
	if err := m.Err(); err != nil {
		return &Refused{Store: s.Label, Reason: "the tables are damaged inside", Err: err}
	}
	return nil
}

// finalList is why no undo takes a list away again.
const finalList = "without its list git takes the repository for an empty one, and deletes the tables"

// Rebuild writes a list that is still lost, and nothing else.
func (s *Stack) Rebuild(ctx context.Context) (*Outcome, error) {
	out := &Outcome{Structure: true}
	like, err := s.anyTable()
	if err != nil {
		return out, err
	}
	h := &holding{Stack: s, out: out}
	if err := h.acquire(ctx, like); err != nil {
		return out, err
	}
	defer h.lock.Rollback()
	lost, err := s.lost()
	if err != nil {
		return out, fmt.Errorf("%s: %w", s.Label, err)
	}
	if !lost {
		return out, &Refused{Store: s.Label, Reason: "tables.list is there again"}
	}
	plan, err := s.planRebuild()
	if err != nil {
		return out, err
	}
	e := h.entry(journal.TablesList, "")
	e.Listed = plan.list
	if err := s.Repo.Journal.Begin(e); err != nil {
		return out, err
	}
	_, err = h.lock.Write(reftable.AppendList(nil, plan.list))
	if err == nil {
		err = h.lock.Commit()
	}
	if err != nil {
		return out, fmt.Errorf("%s: %w", s.Label, err)
	}
	out.Journal, out.Notices, out.Final = e.ID, plan.notices, finalList
	out.Changes = []Change{{ID: finding.ReftableListBad, Action: "list " + strings.Join(plan.list, ", ")}}
	return out, s.Repo.close(e, journal.Done)
}

// anyTable is a file of the stack whose mode and owner a new list can have.
func (s *Stack) anyTable() (vfs.Info, error) {
	names, err := s.Repo.FS.ReadDir(s.Dir)
	if err != nil {
		return vfs.Info{}, fmt.Errorf("%s: %w", s.Label, err)
	}
	for _, name := range slices.Backward(names) {
		if strings.HasSuffix(name, ".ref") {
			return s.like(name)
		}
	}
	return vfs.Info{}, nil
}

// rebuild is a run with --rebuild-tables-list: it mends lost lists and nothing else.
func (s *session) rebuild(ctx context.Context) error {
	var lost []*store
	var plan []Done
	for _, st := range s.stores {
		if st.stack == nil {
			continue
		}
		is, err := st.stack.lost()
		if err != nil || !is {
			s.failed(st, err)
			continue
		}
		p, err := st.stack.planRebuild()
		if err != nil {
			s.block(st, err)
			continue
		}
		lost = append(lost, st)
		s.res.Notices = append(s.res.Notices, p.notices...)
		plan = append(plan, Done{Change: Change{ID: finding.ReftableListBad, Action: "write a tables.list of " + strings.Join(p.list, ", ")}, File: st.label,
			Diff: unified(st.label+"/"+listName, nil, reftable.AppendList(nil, p.list))})
		for _, c := range p.reads {
			plan = append(plan, Done{Change: st.outward(c), File: st.label})
		}
	}
	switch {
	case len(lost) == 0:
		s.res.Notices = append(s.res.Notices, "no tables.list is lost here that could be put together")
	case s.o.DryRun:
		s.res.Done = plan
	default:
		if s.o.Confirm != nil {
			yes, err := s.o.Confirm(plan)
			if err != nil {
				return err
			}
			if !yes {
				s.res.Declined, s.res.Done = true, plan
				break
			}
		}
		for _, st := range lost {
			out, err := st.stack.Rebuild(ctx)
			st.out = out
			s.note(st, out)
			s.failed(st, err)
		}
	}
	return s.scan(ctx)
}
