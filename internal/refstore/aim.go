package refstore

import (
	"bytes"

	"refaudit/finding"
	"refaudit/internal/refname"
	"refaudit/internal/vfs"
	"refaudit/loose"
	"refaudit/oid"
	"refaudit/reftable"
)

// An Aim is what a symref finally stands for that leads to a name outside refs/, like FOO or worktrees/x/HEAD. No visit
// gives refs of such names, HEADs excepted; git follows them all the same.
type Aim struct {
	OID  []byte // raw; nil: it names no object itself
	Name []byte // the name below refs/ that it goes on to, as the visit gives that
}

// Leads is the object that a ref names, itself or through names outside refs/; or else the name that a symref leads to.
func (r *Ref) Leads() (id, name []byte) {
	switch {
	case r.OID != nil:
		return r.OID, nil
	case r.Aim.OID != nil:
		return r.Aim.OID, nil
	case r.Aim.Name != nil:
		return nil, r.Aim.Name
	}
	return nil, r.Target
}

// aim follows a target as git does, from one name outside refs/ to the next.
func (v *visit) aim(target []byte) (Aim, error) {
	at := v.place
	for range refname.MaxSymrefs {
		kind, id, name := refname.SplitWorktree(target)
		if at = v.home(at, kind, id); at == nil || !refname.Valid(name, refname.AllowOneLevel) {
			return Aim{}, nil
		}
		if bytes.HasPrefix(name, refsPrefix) {
			return Aim{Name: append([]byte(at.prefix), name...)}, nil
		}
		value, err := v.outside(at, string(name))
		switch {
		case err != nil:
			return Aim{}, v.of(at).cantRead(string(name), err)
		case value.Kind == loose.Object && !value.OID.IsZero():
			return Aim{OID: value.OID.Bytes()}, nil
		case value.Kind != loose.Symref:
			return Aim{}, nil
		}
		target = []byte(value.Target)
	}
	return Aim{}, nil
}

// home is the store that has a name of this kind; nil if it isn't there.
func (v *visit) home(at *place, kind refname.Worktree, id []byte) *place {
	if kind == refname.Current {
		return at
	}
	prefix := ""
	if kind == refname.Other {
		prefix = "worktrees/" + string(id) + "/"
	}
	for _, p := range v.all {
		if p.prefix == prefix {
			return p
		}
	}
	return nil
}

// of is the same visit, of another store.
func (v *visit) of(at *place) *visit {
	other := *v
	other.place = at
	return &other
}

// outside is the value of a ref that no listing comes by; the zero Value if there is none.
func (v *visit) outside(at *place, name string) (loose.Value, error) {
	if there, err := at.open(); err != nil || !there {
		return loose.Value{}, err
	}
	if v.repo.Refs.Backend == "reftable" {
		return v.tableValue(at, name)
	}
	if text, err := at.root.Readlink(name); err == nil {
		if value, ok := loose.ParseLink(text); ok {
			return value, nil
		}
	}
	if st, err := at.root.Stat(name); err == nil && st.IsDir() {
		return loose.Value{}, nil
	}
	content, err := at.root.ReadFile(name, maxLoose)
	if vfs.Missing(err) {
		return loose.Value{}, nil
	}
	return loose.Parse(v.repo.Format, content), err
}

// tableValue is that of a record. What is wrong with the stack is told when that is read itself.
func (v *visit) tableValue(at *place, name string) (value loose.Value, err error) {
	e, err := record(v.repo, at, name)
	switch {
	case err != nil || e == nil:
		return value, err
	case e.Type == reftable.Symref:
		value.Kind, value.Target = loose.Symref, finding.RefName(e.Target)
	case e.Value != nil:
		value.Kind, value.OID = loose.Object, oid.FromBytes(v.repo.Format, e.Value)
	}
	return value, nil
}
