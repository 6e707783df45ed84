package remotehelper

import (
	"context"
	"fmt"

	"refaudit/finding"
	"refaudit/odb"
	"refaudit/oid"
	"refaudit/scan"
)

// Findings is why a fetch was refused. They have been printed.
type Findings struct {
	URL   string
	Count int
}

func (f *Findings) Error() string {
	return fmt.Sprintf("what %s serves is wrong in %s, see above; nothing of it was stored (refaudit.remote.onFinding=warn lets it in)", f.URL, finding.Count(f.Count, "place", "places"))
}

// judge compares what the server advertised with what came, and tells of what differs.
func (b *batch) judge(ctx context.Context) error {
	wrong, open, err := b.compare(ctx)
	if err != nil {
		return err
	}
	for _, u := range open {
		if u.Need.IsZero() || u.Need == u.Ref.OID {
			return fmt.Errorf("%s: could not be judged: %s", u.Ref.Name, u.Why)
		}
		b.h.warn("%s: what it peels to can't be verified: %s", u.Ref.Name, u.Why)
	}
	if wrong > 0 {
		return &Findings{URL: b.h.url.String(), Count: wrong}
	}
	return nil
}

// judgeWhatCame says what can be said after a fetch that failed: perhaps it is the reason.
func (b *batch) judgeWhatCame(ctx context.Context) {
	_, _, _ = b.compare(ctx)
}

// compare tells of all findings, and counts those that refuse the fetch.
func (b *batch) compare(ctx context.Context) (wrong int, open []scan.Undecided, err error) {
	db, _, err := odb.Open(b.scratch.Objects(), b.client.Format, odb.Options{Alternates: b.remote.Alternates()})
	if err != nil {
		return 0, nil, err
	}
	defer db.Close()
	a := scan.Advertisement{Policy: b.policy, Objects: db}
	_, open, err = a.Judge(ctx, b.advertised(), func(f *finding.Finding) error {
		switch {
		case f.Severity < finding.Warn:
			return nil
		case f.Severity == finding.Warn || b.lenient:
			b.h.warn("%s %s [%s]", f.Ref, f.Message, f.ID)
		default:
			wrong++
			fmt.Fprintf(b.h.o.Err, "error: refaudit: %s %s [%s]\n", f.Ref, f.Message, f.ID)
		}
		return nil
	})
	return wrong, open, err
}

// advertised is what git was told of the refs that it wants. A bare id stands for all refs that have it.
func (b *batch) advertised() []scan.Advertised {
	var byID map[oid.ID][]int
	list, byName := b.h.list.Refs, b.h.refs()
	of := func(i int) scan.Advertised {
		return scan.Advertised{Name: list[i].Name, OID: list[i].OID, Peel: list[i].Peel}
	}
	var out []scan.Advertised
	for _, w := range b.wants {
		if i, ok := byName[w.name]; ok && list[i].OID == w.id {
			out = append(out, of(i))
			continue
		}
		if byID == nil {
			byID = map[oid.ID][]int{}
			for i := range list {
				byID[list[i].OID] = append(byID[list[i].OID], i)
			}
		}
		same := byID[w.id]
		for _, i := range same {
			out = append(out, of(i))
		}
		if len(same) == 0 {
			out = append(out, scan.Advertised{Name: w.name, OID: w.id})
		}
	}
	return out
}
