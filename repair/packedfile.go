package repair

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"refaudit/finding"
	"refaudit/internal/journal"
	"refaudit/internal/vfs"
	"refaudit/oid"
	"refaudit/packed"
)

// Structure says which faults of a packed-refs file as a whole a repair may mend.
type Structure struct {
	Orphans   bool // ^ lines that belong to no ref
	BadPeels  bool // ^ lines of a ref that can't be read
	Order     bool // names out of the order that the header promises
	Duplicate bool // names that stand twice with the same value
	Terminate bool // a last line without a newline
	Header    bool // a header that git does not know, or none
}

// Whole is the structure that is mended where nothing narrows it.
var Whole = Structure{Orphans: true, BadPeels: true, Order: true, Duplicate: true, Terminate: true, Header: true}

// maxHeld is how much of a packed-refs file is held in memory; a larger one is read piecewise.
var maxHeld int64 = 64 << 20 // less in tests

// source is a packed-refs file as it was at one moment. Whoever replaces it makes another file.
type source struct {
	vfs.Reader
	info vfs.Info
	mem  []byte // the whole file, unless it is too large
}

func openSource(fsys vfs.FS, path string) (*source, error) {
	r, err := fsys.Open(path)
	if err != nil {
		return nil, err
	}
	s := &source{Reader: r}
	if s.info, err = r.Stat(); err == nil && s.info.Size <= maxHeld {
		s.mem, err = vfs.ReadAll(r, path, s.info.Size, maxHeld)
		s.info.Size = int64(len(s.mem))
	}
	if err != nil {
		r.Close()
		return nil, err
	}
	return s, nil
}

// at is what the codec reads.
func (s *source) at() io.ReaderAt {
	if s.mem != nil {
		return bytes.NewReader(s.mem)
	}
	return s.Reader
}

// stream reads the file from its start.
func (s *source) stream() io.Reader { return io.NewSectionReader(s.at(), 0, s.info.Size) }

// packedPlan is what is to be done to one state of the file.
type packedPlan struct {
	plan      packed.Plan
	changes   []Change
	left      []Left
	structure bool // more than peels
	// There are refs, and tags below refs/tags/, of which the peel can't be known.
	unknown, unknownTag bool
}

func (out *packedPlan) empty() bool { return len(out.changes) == 0 }

// place is an entry of the file.
type place struct {
	name    string
	offset  int64
	length  int64 // with its ^ line
	oid     oid.ID
	peel    oid.ID
	hasLine bool
	bad     bool // its ^ line can't be read
}

func (e *place) take(f oid.Format, from *packed.Entry) {
	*e = place{name: string(from.Name), offset: from.Offset, length: from.Length + from.PeelLength, oid: oid.FromBytes(f, from.OID), hasLine: from.HasPeelLine(), bad: from.Style&packed.BadPeel != 0}
	if from.Peel != nil {
		e.peel = oid.FromBytes(f, from.Peel)
	}
}

// packedLook is what one reading of the file has found.
type packedLook struct {
	sum    packed.Summary
	hit    []place // entries that are wanted, or whose ^ line can't be read, or that are to be merged
	all    []place // every entry, where a new header asks for them
	twice  map[string]bool
	format oid.Format
}

// planPacked reads the file and decides what to do. wanted is by name.
func (p *Packed) planPacked(ctx context.Context, src *source, wanted map[string]Wanted, st Structure, decide decider, brake Brake) (*packedPlan, error) {
	look, err := p.look(ctx, src, func(e *packed.Entry) bool {
		_, ok := wanted[string(e.Name)]
		return ok || st.BadPeels && e.Style&packed.BadPeel != 0
	})
	if err != nil {
		return nil, err
	}
	if err := look.refuse(p.Label); err != nil {
		return nil, err
	}
	out := &packedPlan{}
	look.mendStructure(out, st)
	header := st.Header && (look.sum.Header.Bad || !look.sum.Header.Present)
	if header || out.plan.MergeEqual || out.plan.Terminate {
		if err := p.lookAgain(ctx, src, look, header, out); err != nil {
			return nil, err
		}
	}
	if err := p.decidePeels(ctx, look, wanted, decide, brake, out); err != nil {
		return nil, err
	}
	if header {
		look.newHeader(out)
	}
	return out, nil
}

// look reads the whole file strictly, and keeps the entries that pick chooses.
func (p *Packed) look(ctx context.Context, src *source, pick func(*packed.Entry) bool) (*packedLook, error) {
	l := &packedLook{format: p.Repo.Format, twice: map[string]bool{}}
	n := 0
	var err error
	l.sum, err = packed.Read(src.at(), src.info.Size, p.Repo.Format, packed.Options{File: p.Label}, func(f finding.Finding) error {
		if f.ID == finding.PackedRefDuplicate {
			l.twice[string(f.Ref)] = true
		}
		return nil
	}, func(e *packed.Entry) error {
		if n++; n&0xfff == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if pick(e) {
			l.hit = append(l.hit, place{})
			l.hit[len(l.hit)-1].take(p.Repo.Format, e)
		}
		return nil
	})
	return l, err
}

// refuse tells of files that are left alone.
func (l *packedLook) refuse(label string) error {
	switch {
	case l.sum.Empty:
		return &Refused{Store: label, Reason: "the file is empty: if there were packed refs they are gone, and nothing here brings them back"}
	case l.sum.Lost():
		return &Refused{Store: label, Reason: "the file has lost bytes, and refs with them: restore it from a backup or another copy of the repository, then run fix again"}
	case l.sum.Differing > 0:
		return &Refused{Store: label, Reason: fmt.Sprintf("%s twice with different values: delete the wrong line of each by hand, while no git runs, then run fix again", finding.Count(l.sum.Differing, "name stands", "names stand"))}
	}
	return nil
}

// mendStructure plans what concerns the file as a whole.
func (l *packedLook) mendStructure(out *packedPlan, st Structure) {
	whole := func(id finding.ID, format string, args ...any) {
		out.changes = append(out.changes, Change{ID: id, Action: fmt.Sprintf(format, args...)})
		out.structure = true
	}
	s := &l.sum
	if s.Orphans > 0 && st.Orphans {
		out.plan.DropOrphans = true
		whole(finding.PeelOrphan, "drop %s", finding.Count(s.Orphans, "^ line that belongs to no ref", "^ lines that belong to no ref"))
	}
	if s.Unterminated && st.Terminate {
		out.plan.Terminate = true
		whole(finding.PackedRefEntryNotTerminated, "end the last line")
	}
	if s.Duplicates > 0 && st.Duplicate {
		out.plan.MergeEqual, out.plan.Sort = true, !s.Sorted
		whole(finding.PackedRefDuplicate, "keep one each of %s", finding.Count(s.Duplicates, "entry that stands twice", "entries that stand twice"))
	}
	if !s.Sorted && s.Header.Sorted && st.Order {
		out.plan.Sort = true
		if s.Duplicates == 0 {
			whole(finding.PackedRefUnsorted, "put the refs in order")
		}
	}
}

// lookAgain reads the file a second time for entries that are known to matter only now: all of them for a
// new header, those that stand twice, and the last one, whose peel may have been cut off.
func (p *Packed) lookAgain(ctx context.Context, src *source, l *packedLook, all bool, out *packedPlan) error {
	picked := map[int64]bool{}
	for _, e := range l.hit {
		picked[e.offset] = true
	}
	var last place
	again, err := p.look(ctx, src, func(e *packed.Entry) bool {
		last.take(l.format, e)
		return all || l.twice[string(e.Name)] && out.plan.MergeEqual
	})
	if err != nil {
		return err
	}
	if all {
		l.all = again.hit
		return nil
	}
	if out.plan.Terminate && last.name != "" && !l.twice[last.name] {
		again.hit = append(again.hit, last)
	}
	for _, e := range again.hit {
		if !picked[e.offset] {
			l.hit = append(l.hit, e)
		}
	}
	slices.SortFunc(l.hit, func(a, b place) int { return int(min(1, max(-1, a.offset-b.offset))) })
	return nil
}

// decidePeels plans the peels of the entries at hand.
func (p *Packed) decidePeels(ctx context.Context, l *packedLook, wanted map[string]Wanted, decide decider, brake Brake, out *packedPlan) error {
	entries := l.hit
	if l.all != nil {
		entries = l.all
	}
	entries = out.unchanged(l, entries, wanted)
	if len(entries) == 0 {
		return nil
	}
	refs := make([]subject, len(entries))
	for i := range entries {
		refs[i] = subject{entries[i].name, entries[i].oid, entries[i].peel}
	}
	decisions, err := decide(ctx, refs)
	if err != nil {
		return err
	}
	absent, peels := 0, 0
	for i, e := range entries {
		switch d := decisions[i]; {
		case d.known:
			if out.edit(e, d, l.twice[e.name], wanted[e.name].ID) {
				peels++
				if d.absent {
					absent++
				}
			}
		case e.bad:
			return &Refused{Reason: fmt.Sprintf("the ^ line below %q can't be read, and what it should be can't be known here", e.name)}
		default:
			out.left = append(out.left, Left{finding.RefName(e.name), "its right peel can't be known here"})
			out.unknown = true
			out.unknownTag = out.unknownTag || strings.HasPrefix(e.name, "refs/tags/")
		}
	}
	return brake.check(absent, peels)
}

// unchanged leaves out entries that are not as they were when they were wanted, and all but the
// first of those that are merged.
func (out *packedPlan) unchanged(l *packedLook, entries []place, wanted map[string]Wanted) (still []place) {
	met := map[string]bool{}
	for _, e := range entries {
		w, ok := wanted[e.name]
		twice := l.twice[e.name]
		switch {
		case twice && out.plan.MergeEqual && met[e.name]:
			continue
		case ok && !twice && (w.OID != e.oid || w.Cached != e.peel):
			out.left = append(out.left, Left{w.Ref, "it has changed since it was looked at"})
		default:
			still = append(still, e)
		}
		met[e.name] = true
	}
	for name, w := range wanted {
		if !met[name] {
			out.left = append(out.left, Left{w.Ref, "it is no longer there"})
		}
	}
	slices.SortFunc(out.left, func(a, b Left) int { return strings.Compare(string(a.Ref), string(b.Ref)) })
	return still
}

// edit plans the peel of one entry, and tells whether it is another than before.
func (out *packedPlan) edit(e place, d decision, twice bool, why finding.ID) bool {
	same := d.peel == e.peel && !e.bad
	if same && !(twice && out.plan.MergeEqual) {
		return false
	}
	out.plan.Edits = append(out.plan.Edits, packed.Edit{Offset: e.offset, Peel: d.peel})
	if same {
		return false
	}
	c := Change{Ref: finding.RefName(e.name), ID: why, OID: e.oid, Before: e.peel, After: d.peel, Action: action(e.peel, d.peel)}
	switch {
	case e.bad:
		c.ID, c.Action = finding.BadPackedRefEntry, "put the right peel in the place of a ^ line that can't be read"
		if d.peel == none {
			c.Action = "drop a ^ line that can't be read"
		}
		out.structure = true
	case why == "": // met on the way to a new header
		c.ID = whyWrong(journal.Record{Before: e.peel, After: d.peel})
	}
	out.changes = append(out.changes, c)
	return true
}

// newHeader plans git's header, with the traits that will be true.
func (l *packedLook) newHeader(out *packedPlan) {
	if !l.sum.Sorted && (l.sum.Duplicates == 0 || out.plan.MergeEqual) {
		out.plan.Sort = true
	}
	h := &packed.Header{Peeled: !out.unknownTag, FullyPeeled: !out.unknown, Sorted: l.sum.Sorted || out.plan.Sort}
	out.plan.Header = h
	out.structure = true
	id := finding.HeaderMissing
	if l.sum.Header.Bad {
		id = finding.BadPackedRefHeader
	}
	out.changes = append(out.changes, Change{ID: id, Action: "write the header " + strings.TrimSpace(string(h.Format()))})
}
