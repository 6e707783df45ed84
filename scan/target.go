package scan

import (
	"context"
	"errors"
	"fmt"

	"refaudit/finding"
	"refaudit/internal/refstore"
	"refaudit/internal/vfs"
	"refaudit/odb"
	"refaudit/oid"
	"refaudit/repo"
)

// Target is a repository that is open for an audit.
type Target struct {
	Repo *repo.Repo
	Refs *refstore.Stores
}

// How says in which way a repository was named.
type How uint8

// The ways of naming a repository.
const (
	ByPath   How = iota // its path, or that of its working tree
	ByGitDir            // --git-dir or GIT_DIR: nothing but the git dir itself
	ByFolder            // not at all: it is looked for from a folder upwards, and must be safe to enter
)

// OpenRepository opens the repository at path for whoever needs no more of it.
func OpenRepository(path string, how How, o repo.Options) (*repo.Repo, error) {
	if o.Head == nil {
		o.Head = refstore.Head
	}
	switch how {
	case ByGitDir:
		return repo.OpenGitDir(path, o)
	case ByFolder:
		return repo.Discover(path, o)
	}
	return repo.Open(path, o)
}

// Open opens the repository at path, and finds its refs.
func Open(path string, how How, o repo.Options) (*Target, error) {
	r, err := OpenRepository(path, how, o)
	if err != nil {
		return nil, err
	}
	refs, err := refstore.Open(r)
	if err != nil {
		return nil, err
	}
	return &Target{Repo: r, Refs: refs}, nil
}

// objects is the object database of one look, and what is known of objects that it lacks.
type objects struct {
	*odb.DB
	format oid.Format
	// shallow is why no absent object need be lost in a shallow repository; nil in others.
	shallow error
	partial bool // a remote may have promised objects
}

var errAlternate = errors.New("an alternate is missing, and it may be there")

// absence is why no absent object need be lost, as far as the object folders have been read; nil if absent means gone,
// but for what is promised. What may lie where nobody could look is not absent to the object database.
func (o *objects) absence() error {
	found := o.DB.Alternates().Findings
	for i := range found {
		if found[i].ID == finding.AlternateMissing {
			return fmt.Errorf("%w: %v", errAlternate, found[i].Pos)
		}
	}
	return o.shallow
}

// any tells whether there is any object in the repository's own folder.
func (o *objects) any() (bool, error) {
	own := o.DB.Stores()[0]
	if len(own.Packs()) > 0 {
		return true, nil
	}
	for i := range 256 {
		list, err := own.Dir().ReadDir(fmt.Sprintf("%02x", i))
		if err != nil && !vfs.Missing(err) {
			return false, err
		}
		if len(list) > 0 {
			return true, nil
		}
	}
	return false, nil
}

var errPromised = errors.New("a remote has promised it to this partial clone")

// Look answers as the object database does, and tells objects that are gone from those that may be elsewhere.
func (o *objects) Look(ctx context.Context, ids []oid.ID, out []oid.Fact) error {
	if err := o.DB.Look(ctx, ids, out); err != nil {
		return err
	}
	absence := o.absence() // as it was found last: folders may have been read afresh
	if absence == nil && !o.partial {
		return nil
	}
	absent := map[oid.ID]struct{}{}
	for i := range ids {
		if out[i].State == oid.Absent {
			absent[ids[i]] = struct{}{}
		}
	}
	if len(absent) == 0 {
		return nil
	}
	if absence == nil {
		if err := o.DB.Unpromised(ctx, absent); err != nil {
			return err
		}
	}
	for i := range ids {
		if out[i].State != oid.Absent {
			continue
		}
		_, open := absent[ids[i]]
		switch {
		case absence != nil:
			out[i] = oid.Fact{State: oid.Elsewhere, Err: absence}
		case !open:
			out[i] = oid.Fact{State: oid.Elsewhere, Err: errPromised}
		}
	}
	return nil
}

// openObjects opens the object database afresh. The findings are about alternates and what else keeps objects from being seen.
func (t *Target) openObjects(workers int) (*objects, []finding.Finding, error) {
	r := t.Repo
	db, found, err := odb.Open(r.ObjectDir, r.Format, odb.Options{Workers: workers, Alternates: r.AlternatesEnv()})
	if err != nil {
		return nil, nil, err
	}
	o := &objects{DB: db, format: r.Format}
	_, shallow, err := r.Shallow()
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	promisors, err := r.Promisors()
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	if shallow {
		o.shallow = errors.New("this is a shallow repository, and the object may lie beyond its boundary")
	}
	o.partial = r.PartialClone != "" || len(promisors) > 0 || hasPromisorPack(db)
	return o, found, nil
}

func hasPromisorPack(db *odb.DB) bool {
	for _, s := range db.Stores() {
		for _, p := range s.Packs() {
			if p.Has("promisor") {
				return true
			}
		}
	}
	return false
}

// maxTagText is the longest tag of which the name is read.
const maxTagText = 64 << 20
