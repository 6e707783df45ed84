package loose

import (
	"refaudit/finding"
	"refaudit/oid"
)

// VerifyRecord judges the value of a ref that stands in no file of its own, but in a table: the
// same rules of git hold for it. The ref's name is as in File; pos is where the record stands.
func VerifyRecord(name string, value Value, f oid.Format, pos finding.Pos, opts Options, report func(finding.Finding) error) error {
	v := verifier{file: File{Name: name}, f: f, opts: opts, report: func(x finding.Finding) error {
		x.Pos = pos
		return report(x)
	}}
	switch value.Kind {
	case Symref:
		v.target(string(value.Target))
	case Object:
		v.zero(value.OID)
	}
	return v.err
}

func (v *verifier) zero(id oid.ID) {
	if id.IsZero() {
		v.found(finding.BadRefOid, "points to invalid object ID '"+id.String()+"'", "the object id is all zeros: the ref's value is lost")
	}
}
