package usage

import (
	"context"
	"errors"
	"path/filepath"
	"slices"

	"refaudit/finding"
	"refaudit/internal/bitmap"
	"refaudit/oid"
	"refaudit/repo"
)

// Measure computes the usage of a repository. The error says why there is none at all; what can't be
// known of it is in Usage.Unknown.
func (s *Session) Measure(ctx context.Context, r *repo.Repo, o Options) (*Usage, error) {
	for again := true; ; again = false {
		m := &measuring{s: s, repo: r, o: o, last: !again}
		u, err := m.run(ctx)
		if again && errors.Is(err, errAgain) {
			continue // a repack may have been at work: everything is opened afresh, once
		}
		return u, err
	}
}

// measuring is one look at one repository.
type measuring struct {
	s    *Session
	repo *repo.Repo
	o    Options
	last bool // what is missing now is missing
	u    *Usage

	tips    *ownTips
	parents map[oid.ID][]oid.ID // that are decreed
	maps    mappings            // of the quick way
	sets    *loan

	quarantined string            // the real object folder, where own is a quarantine; else ""
	own         *folder           // the object folder, in a quarantine that of the quarantine
	pools       []*folder         // what we borrow from; the first ones may be our own, see mine
	mine        int               // of pools: the real folder, seen from a quarantine
	missing     error             // why objects may be where we can't see them
	roots       map[string]*roots // of each namespace, or of "" for all
	names       []string          // the keys of roots, in order
	beyond      *roots            // of refs that are excluded; nil: none are
	view        *view
	reaches     []*poolReach
	stop        bitmap.Set // what the refs of the alternates reach
	cut         bool       // not all of that can be seen from the alternates: see poolReach
	noStop      string     // why that is not known; "" if it is
}

func (m *measuring) run(ctx context.Context) (u *Usage, err error) {
	defer func() { err = errors.Join(err, m.close()) }()
	m.u = &Usage{Bytes: map[Figure]int64{}, Unknown: map[Figure]string{}}
	if m.last { // the first look may have missed what came between packs and refs: refs first, now
		if err := m.readRefs(ctx); err != nil {
			return nil, err
		}
	}
	if err := m.open(); err != nil {
		return nil, err
	}
	refs := func() error {
		if m.last {
			return nil
		}
		return m.readRefs(ctx)
	}
	if q := m.newQuick(); q != nil {
		done, err := q.run(refs)
		if err != nil {
			return nil, err
		}
		if done {
			m.tellRefs()
			return m.u, nil
		}
	} else if err := refs(); err != nil {
		return nil, err
	}
	return m.u, m.long(ctx)
}

// readRefs reads what the repository says of its refs and of the parents of commits.
func (m *measuring) readRefs(ctx context.Context) (err error) {
	if m.tips, err = readTips(ctx, m.repo, &m.o); err != nil {
		return err
	}
	var notices []string
	m.parents, notices, err = decreedParents(m.repo)
	m.u.Notices = append(m.u.Notices, notices...)
	return err
}

// long is the way for everything but the simplest repositories.
func (m *measuring) long(ctx context.Context) error {
	if err := m.number(); err != nil {
		return err
	}
	if err := m.resolve(); err != nil {
		return err
	}
	if err := m.exclude(ctx); err != nil {
		return err
	}
	res, plan, err := m.reach(ctx)
	if err != nil {
		return err
	}
	if res.lost != "" && !m.last {
		m.expire()
		return errAgain
	}
	m.figures(m.u, res)
	m.u.Method, m.u.Reason = plan.told(res)
	if m.o.Verify {
		if err := m.verify(ctx, res); err != nil {
			return err
		}
	}
	m.tell(res)
	m.tellRefs()
	return nil
}

// open opens the object folder.
func (m *measuring) open() error {
	r := m.repo
	m.own = &folder{path: r.ObjectDir, label: "objects/"}
	m.quarantined = m.quarantine()
	m.own.open(r.Format, r.AlternatesEnv(), m.quarantined == "", m.s.workers)
	if m.own.err != nil {
		return m.own.err
	}
	m.missing = m.own.db.Alternates().Unknown
	m.u.Findings = append(m.u.Findings, m.own.found...)
	return nil
}

// number opens the folders that are borrowed from, and puts all together.
func (m *measuring) number() error {
	r := m.repo
	alternates := m.own.db.Alternates().Stores[1:]
	pools, errs := make([]*folder, len(alternates)), make([]error, len(alternates))
	ahead := m.o.Method != Walk && m.parents == nil
	inParallel(m.s.workers, 1+len(alternates), func(i int) {
		if i == len(alternates) { // last: it takes less time, as a rule
			m.own.number(r.Format, m.s.workers, ahead)
			return
		}
		pools[i], errs[i] = m.s.pool(alternates[i].Path, r.Format, ahead)
	})
	for i, a := range alternates {
		p := pools[i]
		if errs[i] != nil {
			m.missing = errors.Join(m.missing, errs[i])
			continue
		}
		if a.Path == m.quarantined {
			m.pools = slices.Insert(m.pools, 0, p)
			m.mine = 1
			continue
		}
		m.pools = append(m.pools, p)
	}
	if m.own.err != nil {
		return m.own.err
	}
	if err := m.leaveOutCut(); err != nil {
		return err
	}
	stores, shared := []*store{m.own.store}, map[*store]bool{}
	for _, p := range m.pools {
		stores = append(stores, p.store)
		shared[p.store] = true
	}
	for _, s := range stores {
		if s.vanished && !m.last {
			m.expire()
			return errAgain
		}
	}
	sp, err := newSpace(r.Format, stores, 1+m.mine, m.s.meet(shared))
	if err != nil {
		return err
	}
	m.sets = &loan{from: &m.s.sets}
	m.view = &view{space: sp, parents: m.parents, workers: m.s.workers, promisors: sp.own, loan: m.sets}
	promised, err := m.promised()
	if promised {
		m.view.promisors = len(stores)
	}
	return err
}

// promised tells whether a remote has promised objects to our repository: then what it has promised to the alternates is here by need too.
func (m *measuring) promised() (bool, error) {
	for _, s := range m.view.stores[:m.view.own] {
		if slices.ContainsFunc(s.packs, func(p *pack) bool { return p.src.Has("promisor") }) {
			return true, nil
		}
	}
	remotes, err := m.repo.Promisors()
	return len(remotes) > 0, err
}

// quarantine is the real object folder where we run in a hook and GIT_OBJECT_DIRECTORY names the
// quarantine of a push; else "".
func (m *measuring) quarantine() string {
	if _, set := m.repo.Quarantine(); !set {
		return ""
	}
	real, err := filepath.EvalSymlinks(filepath.Join(m.repo.CommonDir, "objects"))
	own, err2 := filepath.EvalSymlinks(m.repo.ObjectDir)
	if err != nil || err2 != nil || real == own {
		return ""
	}
	return real
}

// decreedParents are the commits that have no parents (shallow: nil) or others than they say (grafts: not nil).
func decreedParents(r *repo.Repo) (parents map[oid.ID][]oid.ID, notices []string, err error) {
	ids, _, err := r.Shallow()
	if err != nil {
		return nil, nil, err
	}
	grafts, bad, err := r.Grafts()
	if err != nil {
		return nil, nil, err
	}
	if len(ids)+len(grafts) > 0 {
		parents = make(map[oid.ID][]oid.ID, len(ids)+len(grafts))
	}
	for _, g := range grafts {
		parents[g.Commit] = append([]oid.ID{}, g.Parents...)
	}
	for _, id := range ids {
		parents[id] = nil
	}
	if len(grafts) > 0 {
		notices = append(notices, finding.Count(len(grafts), "graft is honoured, as git does: what only it hides is not counted", "grafts are honoured, as git does: what only they hide is not counted"))
	}
	if len(bad) > 0 {
		notices = append(notices, finding.Count(len(bad), "line of info/grafts is no graft, and is passed over", "lines of info/grafts are no grafts, and are passed over"))
	}
	return parents, notices, nil
}

// resolve looks at what our own refs name.
func (m *measuring) resolve() (err error) {
	by := map[string][]oid.ID{"": nil}
	m.names = []string{""}
	if m.o.By == ByNamespace {
		m.names, by = groups(m.tips.all)
	} else {
		by[""] = idsOf(m.tips.all)
	}
	m.roots = map[string]*roots{}
	for _, n := range m.names {
		if m.roots[n], err = m.view.resolve(by[n]); err != nil {
			return err
		}
	}
	if len(m.tips.excluded) > 0 {
		m.beyond, err = m.view.resolve(idsOf(m.tips.excluded))
	}
	return err
}

// exclude finds out what the refs of the alternates reach.
func (m *measuring) exclude(ctx context.Context) error {
	refs, err := poolRefsOf(m.repo.Config)
	if err != nil {
		return err
	}
	if refs.ignored != "" && len(m.pools) > m.mine {
		m.u.notice("core.alternateRefsCommand in %s is not run: a repository's own configuration may not name commands", refs.ignored)
	}
	if m.missing != nil {
		m.noStop = m.missing.Error()
	}
	if len(m.pools) == m.mine {
		return nil
	}
	m.stop = m.view.set()
	for _, p := range m.pools[m.mine:] {
		var reach *poolReach
		if m.view.parents != nil {
			reach, err = m.asWeSee(ctx, p, &refs)
		} else {
			reach, err = m.s.poolReach(ctx, p, &refs, m.o.Method != Walk, m.o.Repo)
			if err == nil && reach.cut {
				m.cut = true
				reach, err = m.asWeSee(ctx, p, &refs)
			}
		}
		if err != nil {
			return err
		}
		m.reaches = append(m.reaches, reach)
		m.u.Findings = append(m.u.Findings, reach.findings...)
		if reach.again && !m.last {
			m.expire()
			return errAgain
		}
		if reach.unknown != "" && m.noStop == "" {
			m.noStop = reach.unknown
		}
		for i, s := range m.view.stores {
			if part := reach.sets[s]; part != nil {
				m.stop.OrAt(int(m.view.first[i]), part, 0, int(s.size))
			}
		}
	}
	if m.noStop != "" {
		m.stop = nil
		return nil
	}
	m.view.settle(m.stop)
	return nil
}

// expire makes the next look open the pools anew.
func (m *measuring) expire() {
	for _, p := range m.pools {
		m.s.expire(p)
	}
}

func (m *measuring) close() error {
	m.sets.end()
	var errs []error
	for _, p := range m.pools {
		errs = append(errs, m.s.release(p))
	}
	errs = append(errs, m.maps.close())
	if m.own != nil {
		errs = append(errs, m.own.close())
	}
	return errors.Join(errs...)
}

// tell adds what is left to say.
func (m *measuring) tell(res *reached) {
	u := m.u
	if res.promised > 0 {
		u.notice("%s not here and not counted", finding.Count(res.promised, "promised object is", "promised objects are"))
	}
	if res.cut > 0 {
		u.notice("the parents of %s are left out", finding.Count(res.cut, "shallow commit", "shallow commits"))
	}
	for _, s := range m.view.stores {
		u.Findings = append(u.Findings, s.problems...)
		s.mu.Lock()
		u.Findings = append(u.Findings, s.bitmapProblems...)
		if s.graphProblem != nil {
			u.notice("a commit-graph can't be believed, commits are read themselves: %v", s.graphProblem)
		}
		s.mu.Unlock()
	}
	for _, folder := range append([]*folder{m.own}, m.pools...) {
		for _, f := range folder.db.Problems() {
			if f.ID == finding.BitmapUnusable {
				u.Findings = append(u.Findings, f)
			}
		}
	}
}

// tellRefs adds what is to say of our refs.
func (m *measuring) tellRefs() {
	u := m.u
	u.Findings = once(append(u.Findings, m.tips.findings...))
	u.Notices = append(u.Notices, m.tips.left...)
	if m.tips.replaced > 0 {
		u.notice("%s not followed: these are the sizes of the objects themselves, which gc keeps", finding.Count(m.tips.replaced, "replacement is", "replacements are"))
	}
}

// once leaves out findings that say the same of the same place.
func once(all []finding.Finding) []finding.Finding {
	type key struct {
		id   finding.ID
		file string
		line int
	}
	seen := map[key]bool{}
	return slices.DeleteFunc(all, func(f finding.Finding) bool {
		k := key{f.ID, f.File, f.Line}
		if seen[k] {
			return true
		}
		seen[k] = true
		return false
	})
}
