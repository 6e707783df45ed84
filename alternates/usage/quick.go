package usage

import (
	"errors"
	"sync"

	"refaudit/internal/bitmap"
	"refaudit/internal/vfs"
	"refaudit/odb"
	"refaudit/oid"
)

// A repository after gc is one pack with a bitmap that covers every branch. Its figures follow from
// the bitmap alone: objects need no numbers, nothing is walked, and most files are not opened.
type quick struct {
	m    *measuring
	pack *odb.Pack
	x    *odb.Index
	body []byte

	owner  bitmap.Owner
	file   *bitmap.File
	reader *bitmap.Reader
	rev    bitmap.Rev
	union  bitmap.Set
	alone  []int // places in the index of tips that no commit reaches: tags
}

// quickTips is up to how many tips the quick way is taken.
const quickTips = 4096

// newQuick begins the quick way, if the object folder is of the kind and nothing is asked for that a
// bitmap doesn't tell; else it gives nil.
func (m *measuring) newQuick() *quick {
	own := m.own.db.Stores()[0]
	if m.o.Method == Walk || m.o.Verify || m.o.By != ByNothing || m.missing != nil || len(m.own.db.Alternates().Stores) > 1 ||
		len(own.Packs()) != 1 || own.Midx() != nil || len(m.own.files.loose) > 0 || m.own.files.err != nil ||
		own.Unlisted() != nil || own.Half() != "" {
		return nil
	}
	q := &quick{m: m, pack: own.Packs()[0]}
	if !q.pack.Has("bitmap") {
		return nil
	}
	var err error
	if q.x, err = q.pack.Index(); err != nil {
		return nil
	}
	if q.body, err = q.pack.Body(); err != nil {
		return nil
	}
	q.owner = bitmap.Owner{Format: m.repo.Format, Objects: uint32(q.x.Count()), Checksum: q.x.PackHash()}
	return q
}

// run computes the figures if the bitmap covers every tip; false if anything is otherwise, and then nothing
// has been said: whatever is wrong is told of by the long way. readRefs is called, once, and only its error
// is returned.
//
// To verify the bitmap takes longer than all the rest, which is done meanwhile and forgotten should the
// bitmap turn out to be damaged.
func (q *quick) run(readRefs func() error) (done bool, err error) {
	name := q.pack.File("bitmap")
	data, unread := q.m.mapped(q.pack.Store().Dir(), name)
	if unread != nil {
		return false, readRefs()
	}
	var beside sync.WaitGroup
	covered := false
	var revErr error
	refs := make(chan error, 1)
	beside.Go(func() { // it begins when a thread has woken: until then the refs are read here
		if q.pack.Has("rev") {
			beside.Go(func() { revErr = q.readRev() })
		}
		if err = <-refs; err == nil {
			covered = vfs.Guard(func() error { return q.cover(name, data) }) == nil
		}
	})
	refs <- readRefs()
	damaged := vfs.Guard(func() error { return bitmap.Verify(name, data, q.owner.Format) })
	beside.Wait()
	if err != nil || damaged != nil || revErr != nil || !covered {
		return false, err
	}
	return vfs.Guard(q.tell) == nil, nil
}

// readRev reads the reverse index.
func (q *quick) readRev() error {
	return vfs.Guard(func() error {
		name := q.pack.File("rev")
		data, err := q.m.mapped(q.pack.Store().Dir(), name)
		if err != nil {
			return err
		}
		q.rev, err = bitmap.ParseRev(name, data, q.owner)
		return err
	})
}

// errLong says that the quick way does not do.
var errLong = errors.New("the bitmap does not cover every tip")

// cover puts together what the bitmaps of all tips say, in a file that nobody has verified yet.
func (q *quick) cover(name string, data []byte) (err error) {
	if q.m.parents != nil || len(q.m.tips.unread)+len(q.m.tips.excluded) > 0 || len(q.m.tips.all) > quickTips {
		return errLong
	}
	if q.file, err = bitmap.ParseUnverified(name, data, q.owner); err != nil {
		return err
	}
	q.reader = bitmap.NewReader(q.file)
	q.union = bitmap.NewSet(q.file.Bits())
	known := map[oid.ID]bool{}
	var todo []oid.ID
	for _, t := range q.m.tips.all {
		todo = append(todo, t.id)
	}
	for len(todo) > 0 {
		id := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if known[id] {
			continue
		}
		known[id] = true
		place, ok := q.x.Find(&id)
		if !ok {
			return errLong
		}
		if e := q.file.Find(uint32(place)); e >= 0 {
			set, err := q.reader.Entry(e)
			if err != nil {
				return err
			}
			q.union.Or(set)
			continue
		}
		off, ok := q.x.Offset(place)
		if !ok {
			return errLong
		}
		head, err := q.pack.Entry(off)
		if err != nil {
			return err
		}
		if head.Kind.Kind() != oid.Tag {
			return errLong
		}
		_, text, err := q.m.own.db.Read(id, sizeLimit)
		if err != nil {
			return err
		}
		target, err := targetOf(text, q.m.repo.Format)
		if err != nil {
			return err
		}
		q.alone = append(q.alone, place)
		todo = append(todo, target)
	}
	return nil
}

// tell computes the figures.
func (q *quick) tell() error {
	all := uint64(len(q.body) - packHeader)
	reached := all
	if q.union.Count()+len(q.alone) != q.x.Count() {
		var err error
		if reached, err = q.sum(); err != nil {
			return err
		}
	}
	u := q.m.u
	u.know(Reachable, reached)
	u.know(Own, reached)
	u.know(Borrowed, 0)
	u.know(Duplicate, 0)
	u.know(Unreachable, all-reached)
	u.know(OwnStoredElsewhere, 0)
	u.know(Files, uint64(q.m.own.files.bytes))
	u.Method = Bitmap
	u.Reason = coverAll("objects/" + q.pack.File("bitmap"))
	return nil
}

// sum adds up what is reached, where that is not all there is: now the index must say where objects are.
func (q *quick) sum() (uint64, error) {
	if err := q.x.VerifyChecksum(); err != nil {
		return 0, err
	}
	end := uint64(len(q.body))
	var o *order
	var err error
	if q.rev.Len() > 0 {
		o, err = orderByRev(q.x, q.rev, end)
	} else {
		o, err = orderBySort(q.x, end)
	}
	if err != nil {
		return 0, err
	}
	for _, place := range q.alone {
		q.union.Add(o.pos[place])
	}
	total := uint64(0)
	q.union.Runs(func(from, to int) { total += o.offset(uint32(to)) - o.offset(uint32(from)) })
	return total, nil
}

// mapped maps a file until the measurement is over.
func (m *measuring) mapped(dir *vfs.Dir, file string) ([]byte, error) {
	f, err := dir.Map(file)
	if err != nil {
		return nil, err
	}
	m.maps.add(f)
	return f.Bytes(), nil
}
