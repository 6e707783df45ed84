package scan

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"time"

	"refaudit/finding"
	"refaudit/internal/tagtext"
	"refaudit/internal/vfs"
	"refaudit/odb"
	"refaudit/oid"
	"refaudit/peel"
	"refaudit/repo"
)

// Advertised is a ref as a server names it to whoever lists, clones or fetches.
type Advertised struct {
	Name string
	OID  oid.ID
	Peel oid.ID // of the line NAME^{}; zero: there is none
}

// An Advertisement compares what a server advertises as peeled with the tags that it hands out.
// The refs of one server may come in several parts.
type Advertisement struct {
	Policy *Policy
	// Objects has the tags, and whatever else has come. A target that is not there is one that was
	// not taken: then a tag's own lines say what it peels to, though not whether its type line is true.
	Objects *odb.DB
	// Replaced has what refs/replace/ on the server puts in an object's place, and what that peels
	// to by the server's own account.
	Replaced map[oid.ID]Advertised

	judge *peel.Judge
}

// Undecided is a ref of which nothing could be said.
type Undecided struct {
	Ref Advertised
	// Need is the object that is missing to go on; zero: another reason, in Why.
	Need oid.ID
	Why  string
}

// Judge says what is wrong with the refs. peels is how many advertised peels of tags were compared.
// report gets what the policy lets pass; an error from it ends the work.
func (a *Advertisement) Judge(ctx context.Context, refs []Advertised, report func(*finding.Finding) error) (peels int64, open []Undecided, err error) {
	if a.judge == nil {
		a.judge = peel.NewJudge(a.Objects)
		a.judge.AbsenceUnknown = "it was not taken from the remote"
	}
	ids := make([]oid.ID, len(refs))
	for i := range refs {
		ids[i] = refs[i].OID
	}
	handles, err := a.judge.Learn(ctx, ids, nil)
	if err != nil {
		return 0, nil, err
	}
	for i, h := range handles {
		j := advertisedJudge{a: a, ref: &refs[i], handle: h, verdict: a.judge.Verdict(h), report: report}
		if err := j.all(); err != nil {
			return peels, open, err
		}
		if j.compared {
			peels++
		}
		if j.open != nil {
			open = append(open, *j.open)
		}
	}
	return peels, open, nil
}

// advertisedJudge judges one ref.
type advertisedJudge struct {
	a        *Advertisement
	ref      *Advertised
	handle   peel.Handle
	verdict  peel.Verdict
	report   func(*finding.Finding) error
	compared bool
	open     *Undecided
}

func (j *advertisedJudge) all() error {
	v := &j.verdict
	switch v.State {
	case peel.NotTag:
		if j.ref.Peel.IsZero() {
			return nil
		}
		return j.wrong(finding.PeelUnexpected, oid.ID{}, "", "is served with a peel %v, but %v is a %v and peels to nothing", j.ref.Peel, j.ref.OID, v.Kind)
	case peel.Sound:
		if err := j.compare(v.Peel); err != nil {
			return err
		}
		return j.name()
	case peel.Corrupt:
		return j.corrupt()
	case peel.Damaged:
		j.undecided(oid.ID{}, v.Fault.String())
		return nil
	case peel.Unknown:
		return j.unknown()
	}
	j.undecided(j.ref.OID, "the remote did not hand it out")
	return nil
}

// unknown goes by the lines of tags whose last target is not here.
func (j *advertisedJudge) unknown() error {
	f := &j.verdict.Fault
	switch {
	case f.Why == 0:
		j.undecided(j.ref.OID, "the remote did not hand it out")
	case f.Why != peel.TargetElsewhere:
		j.undecided(oid.ID{}, f.String())
	case f.Claims == oid.Tag:
		j.undecided(f.Target, f.String())
	default:
		if err := j.compare(f.Target); err != nil {
			return err
		}
		return j.name()
	}
	return nil
}

func (j *advertisedJudge) undecided(need oid.ID, why string) {
	j.open = &Undecided{Ref: *j.ref, Need: need, Why: why}
}

// compare holds what is served against what the tag leads to. A server need not tell what a tag peels to.
func (j *advertisedJudge) compare(right oid.ID) error {
	served := j.ref.Peel
	j.compared = !served.IsZero()
	switch {
	case !j.compared || served == right:
		return nil
	case j.a.judge.OnChain(j.handle, served):
		return j.wrong(finding.PeelPartial, right, "", "is served with the peel %v, a tag on the way; it peels to %v", served, right)
	}
	cause := finding.Cause("")
	if d := served.HexDistance(right); d == 1 || d == 2 {
		cause = finding.CauseHexFlip
	}
	if r, ok := j.a.Replaced[j.ref.OID]; ok && (r.Peel == served || r.OID == served) {
		cause = finding.CauseReplaceRefs
	}
	return j.wrong(finding.PeelMismatch, right, cause, "is served with the peel %v; it peels to %v", served, right)
}

func (j *advertisedJudge) corrupt() error {
	v := &j.verdict
	f := finding.New(v.CorruptTag(), finding.Pos{}, "is a corrupt tag: %s", v.Fault.String())
	f.Ref, f.OID = finding.RefName(j.ref.Name), j.ref.OID
	if err := j.pass(&f); err != nil || j.ref.Peel.IsZero() {
		return err
	}
	j.compared = true
	cause := finding.Cause("")
	if v.Fault.Why == peel.TypeMismatch {
		cause = finding.CauseFalseTypeLine
	}
	return j.wrong(finding.PeelOfCorruptTag, oid.ID{}, cause, "is served with the peel %v, but the tag is corrupt: %s", j.ref.Peel, v.Fault.String())
}

// name compares a tag's own name with the ref's, below refs/tags/, where that is wanted.
func (j *advertisedJudge) name() error {
	short, ok := bytes.CutPrefix([]byte(j.ref.Name), tagsPrefix)
	if !ok || !j.a.Policy.Wanted(finding.TagNameMismatch) {
		return nil
	}
	kind, text, err := j.a.Objects.Read(j.ref.OID, maxTagText)
	if err != nil || kind != oid.Tag {
		return nil // its first lines could be read, and count
	}
	name, ok := tagtext.Name(text)
	if !ok || bytes.Equal(name, short) {
		return nil
	}
	f := finding.New(finding.TagNameMismatch, finding.Pos{}, "is tag %v, whose own name is %q", j.ref.OID, name)
	f.Ref, f.OID = finding.RefName(j.ref.Name), j.ref.OID
	return j.pass(&f)
}

func (j *advertisedJudge) wrong(id finding.ID, right oid.ID, cause finding.Cause, format string, args ...any) error {
	f := finding.New(id, finding.Pos{}, format, args...)
	f.Ref, f.OID, f.Cached, f.Expected, f.Cause = finding.RefName(j.ref.Name), j.ref.OID, j.ref.Peel, right, cause
	return j.pass(&f)
}

func (j *advertisedJudge) pass(f *finding.Finding) error {
	if !j.a.Policy.Apply(f) {
		return nil
	}
	return j.report(f)
}

// NewRemotePolicy reads the settings of an audit that belongs to no repository: those of the user
// and the system. dir is where relative paths of skip lists start.
func NewRemotePolicy(c *repo.Config, dir string, strict bool, now time.Time) (*Policy, error) {
	near := dir // whoever made the setting chose the file: whose it is doesn't matter
	for _, key := range []string{auditKeys[1] + "skipList", "refaudit.skipList"} {
		path, err := c.Path(key)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		if filepath.IsAbs(path) {
			near = filepath.Dir(path)
		}
	}
	common, err := vfs.Open(near)
	if err != nil {
		return nil, err
	}
	return newPolicy(&repo.Repo{Config: c, CommonDir: dir, Common: common}, auditKeys, strict, now)
}
