package usage

import (
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

	loading   sync.WaitGroup
	file      *bitmap.File
	bitmapErr error
	revErr    error
	rev       bitmap.Rev
	reader    *bitmap.Reader
	union     bitmap.Set
	alone     []int // places in the index of tips that no commit reaches: tags
}

// quickTips is up to how many tips the quick way is taken.
const quickTips = 4096

// startQuick begins to verify the bitmap and the reverse index, if the object folder is of the kind
// and nothing is asked for that a bitmap doesn't tell; else it gives nil. finish or wait must follow.
func (m *measuring) startQuick() *quick {
	own := m.own.db.Stores()[0]
	if m.o.Method == Walk || m.o.Verify || m.o.By != ByNothing || m.missing != nil || len(m.own.db.Stores()) > 1 ||
		len(own.Packs()) != 1 || own.Midx() != nil || len(m.own.files.loose) > 0 || m.own.files.err != nil {
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
	q.load()
	return q
}

// load verifies the two files side by side.
func (q *quick) load() {
	dir := q.pack.Store().Dir()
	owner := bitmap.Owner{Format: q.m.repo.Format, Objects: uint32(q.x.Count()), Checksum: q.x.PackHash()}
	read := func(ext string, failed *error, parse func(name string, data []byte) error) {
		q.loading.Go(func() {
			*failed = vfs.Guard(func() error {
				data, err := q.m.mapped(dir, q.pack.File(ext))
				if err != nil {
					return err
				}
				return parse(q.pack.File(ext), data)
			})
		})
	}
	read("bitmap", &q.bitmapErr, func(name string, data []byte) (err error) {
		q.file, err = bitmap.Parse(name, data, owner)
		return err
	})
	if q.pack.Has("rev") {
		read("rev", &q.revErr, func(name string, data []byte) (err error) {
			q.rev, err = bitmap.ParseRev(name, data, owner)
			return err
		})
	}
}

// wait ends the loading. It may be called on nil.
func (q *quick) wait() {
	if q != nil {
		q.loading.Wait()
	}
}

// finish computes the figures if the bitmap covers every tip; false if anything is otherwise, and then
// nothing has been said: whatever is wrong is told of by the long way. It may be called on nil.
func (q *quick) finish() bool {
	if q == nil || q.m.parents != nil || len(q.m.tips.unread) > 0 || len(q.m.tips.all) > quickTips {
		return false
	}
	q.wait()
	if q.bitmapErr != nil || q.revErr != nil {
		return false
	}
	q.reader = bitmap.NewReader(q.file)
	q.union = bitmap.NewSet(q.file.Bits())
	covered := false
	err := vfs.Guard(func() (err error) {
		if covered, err = q.cover(); covered && err == nil {
			err = q.tell()
		}
		return err
	})
	return covered && err == nil
}

// cover puts together what the bitmaps of all tips say; false if a commit has none.
func (q *quick) cover() (bool, error) {
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
			return false, nil
		}
		if e := q.file.Find(uint32(place)); e >= 0 {
			set, err := q.reader.Entry(e)
			if err != nil {
				return false, err
			}
			q.union.Or(set)
			continue
		}
		off, ok := q.x.Offset(place)
		if !ok {
			return false, nil
		}
		head, err := q.pack.Entry(off)
		if err != nil || head.Kind.Kind() != oid.Tag {
			return false, err
		}
		_, text, err := q.m.own.db.Read(id, sizeLimit)
		if err != nil {
			return false, err
		}
		target, err := targetOf(text, q.m.repo.Format)
		if err != nil {
			return false, err
		}
		q.alone = append(q.alone, place)
		todo = append(todo, target)
	}
	return true, nil
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
	u.Reason = coversAll("objects/" + q.pack.File("bitmap"))
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
