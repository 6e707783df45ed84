package remote

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"refaudit/finding"
	"refaudit/odb"
	"refaudit/oid"
	"refaudit/scan"
)

// tagsOnly is the filter that leaves out everything but tags and what is asked for by its id.
const tagsOnly = "object:type=tag"

// Audit looks at a server from outside: it takes the advertisement and the tags that stand behind it,
// and compares. It asks for every ref below refs/tags/ and every other that is served with a peel.
// The policy decides what is reported; an error from report ends the audit. The error that it gives
// tells why the server could not be audited at all.
func Audit(ctx context.Context, r *Remote, policy *scan.Policy, o scan.Options, report func(*finding.Finding) error) (scan.Result, error) {
	a := &audit{r: r, policy: policy, options: o, report: report,
		res: scan.Result{Severities: map[finding.Severity]int64{}, IDs: map[finding.ID]int64{}}}
	err := a.run(ctx)
	a.res.Notices = append(append(a.res.Notices, policy.Notices...), policy.Leftovers()...)
	switch {
	case len(a.res.Unread) > 0:
		a.res.State = scan.Incomplete
	case a.res.Count(finding.Warn) > 0:
		a.res.State = scan.Found
	default:
		a.res.State = scan.Clean
	}
	return a.res, err
}

type audit struct {
	r       *Remote
	policy  *scan.Policy
	options scan.Options
	report  func(*finding.Finding) error
	res     scan.Result

	scratch *Scratch
	asked   asking
}

func (a *audit) run(ctx context.Context) (err error) {
	list, err := a.r.List(ctx, false)
	if err != nil {
		return err
	}
	a.res.Refs = int64(len(list.Refs))
	if err := a.names(list); err != nil {
		return err
	}
	if list.Format == 0 {
		a.res.Notices = append(a.res.Notices, "the remote advertises no refs: it is empty, or hides them all, or its refs can't be read there, which git shows in the same way")
		return nil
	}
	a.scratch, err = a.r.NewScratch(TempDir(), "refaudit-remote-", ScratchOptions{Format: list.Format, Promises: true, Filter: tagsOnly})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.scratch.Remove()) }()
	a.asked = asking{r: a.r, scratch: a.scratch, failed: map[oid.ID]error{}, left: maxRequests}
	return a.tags(ctx, list)
}

// names reports names that no git would use.
func (a *audit) names(list *Listing) error {
	for _, u := range list.Unusable {
		if u.Name == "" {
			a.res.Unread = append(a.res.Unread, fmt.Sprintf("the remote advertises what is no ref: %q", u.Line))
			continue
		}
		f := finding.New(finding.BadRefName, finding.Pos{}, "is advertised under a name that git refuses")
		f.Ref = finding.RefName(u.Name)
		if !a.policy.Apply(&f) {
			continue
		}
		if err := a.found(&f); err != nil {
			return err
		}
	}
	return nil
}

// maxRounds bounds how often tags that tags lead to are asked for, where the server leaves them out.
const maxRounds = 20

func (a *audit) tags(ctx context.Context, list *Listing) error {
	refs, replaced := choose(list)
	var wants []oid.ID
	for _, r := range refs {
		wants = append(wants, r.OID)
	}
	known := map[oid.ID]bool{}
	for round := 0; ; round++ {
		if err := a.asked.fetch(ctx, fresh(wants, known)); err != nil {
			return err
		}
		open, err := a.judge(ctx, list.Format, refs, replaced)
		if err != nil {
			return err
		}
		refs, wants = refs[:0], wants[:0]
		for _, u := range open {
			if u.Need.IsZero() || known[u.Need] || round == maxRounds {
				if err := a.skip(&u); err != nil {
					return err
				}
				continue
			}
			refs, wants = append(refs, u.Ref), append(wants, u.Need)
		}
		if len(refs) == 0 {
			return nil
		}
	}
}

// choose takes the refs that have to do with tags, and what refs/replace/ tells of itself.
func choose(list *Listing) (refs []scan.Advertised, replaced map[oid.ID]scan.Advertised) {
	replaced = map[oid.ID]scan.Advertised{}
	for i := range list.Refs {
		r := &list.Refs[i]
		one := scan.Advertised{Name: r.Name, OID: r.OID, Peel: r.Peel}
		if hex, ok := strings.CutPrefix(r.Name, "refs/replace/"); ok {
			if id, err := oid.Parse(hex); err == nil {
				replaced[id] = one
			}
		}
		if !r.Peel.IsZero() || strings.HasPrefix(r.Name, "refs/tags/") {
			refs = append(refs, one)
		}
	}
	return refs, replaced
}

// fresh are the ids that nobody has asked for yet, each once.
func fresh(ids []oid.ID, known map[oid.ID]bool) []oid.ID {
	var out []oid.ID
	for _, id := range ids {
		if !known[id] {
			known[id] = true
			out = append(out, id)
		}
	}
	return out
}

// judge looks at what has come. The object folder is opened afresh: a new pack may lie in it.
func (a *audit) judge(ctx context.Context, f oid.Format, refs []scan.Advertised, replaced map[oid.ID]scan.Advertised) ([]scan.Undecided, error) {
	db, _, err := odb.Open(a.scratch.Objects(), f, odb.Options{Workers: a.options.Workers})
	if err != nil {
		return nil, err
	}
	defer db.Close()
	ad := scan.Advertisement{Policy: a.policy, Objects: db, Replaced: replaced}
	peels, open, err := ad.Judge(ctx, refs, a.found)
	a.res.Peels += peels
	return open, err
}

// skip tells of a ref that could not be judged.
func (a *audit) skip(u *scan.Undecided) error {
	why := u.Why
	if err := a.asked.failed[u.Need]; err != nil {
		why = "the remote can't hand out its object: " + err.Error()
	}
	a.res.Unread = append(a.res.Unread, fmt.Sprintf("%s: %s", u.Ref.Name, why))
	f := finding.New(finding.AuditSkipped, finding.Pos{}, "could not be judged: %s", why)
	f.Ref, f.OID = finding.RefName(u.Ref.Name), u.Ref.OID
	if !a.policy.Apply(&f) {
		return nil
	}
	return a.found(&f)
}

func (a *audit) found(f *finding.Finding) error {
	a.res.Severities[f.Severity]++
	a.res.IDs[f.ID]++
	total := int64(0)
	for _, n := range a.res.Severities {
		total += n
	}
	if a.options.MaxFindings > 0 && total > int64(a.options.MaxFindings) {
		a.res.Hidden++
		return nil
	}
	return a.report(f)
}

// maxRequests is how many fetches one audit makes at most. A server that refuses some tags among
// thousands is asked for halves, and halves of those, until the tags that it refuses stand alone.
const maxRequests = 400

// errEnough is why an object was not asked for alone.
var errEnough = fmt.Errorf("it was in a request that failed, and after %d requests no more were made", maxRequests)

// asking fetches objects for an audit, as far as the server hands them out.
type asking struct {
	r       *Remote
	scratch *Scratch
	failed  map[oid.ID]error
	left    int
	whole   bool // the server can't cut histories
}

// fetch brings the objects. What the server can't hand out is in failed afterwards.
func (a *asking) fetch(ctx context.Context, ids []oid.ID) error {
	if len(ids) == 0 {
		return nil
	}
	err := error(errEnough)
	if a.left > 0 {
		a.left--
		err = a.once(ctx, ids)
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case len(ids) == 1 || errors.Is(err, errEnough):
		for _, id := range ids {
			a.failed[id] = err
		}
		return nil
	}
	half := len(ids) / 2
	if err := a.fetch(ctx, ids[:half]); err != nil {
		return err
	}
	return a.fetch(ctx, ids[half:])
}

func (a *asking) once(ctx context.Context, ids []oid.ID) error {
	o := FetchOptions{Depth: 1, Filter: tagsOnly, Verbosity: 1}
	if a.whole {
		o.Depth = 0
	}
	err := a.r.Fetch(ctx, a.scratch, ids, o)
	if child := (*ChildError)(nil); errors.As(err, &child) && !a.whole && strings.Contains(child.Stderr, "does not support shallow") {
		a.whole = true
		o.Depth = 0
		return a.r.Fetch(ctx, a.scratch, ids, o)
	}
	return err
}
