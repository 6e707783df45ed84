package usage

import (
	"context"
	"errors"
	"fmt"
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

	own     *folder   // the object folder, in a quarantine that of the quarantine
	pools   []*folder // what we borrow from; the first ones may be our own, see mine
	mine    int       // of pools: the real folder, seen from a quarantine
	missing error     // why objects may be where we can't see them
	tips    *ownTips
	roots   map[string]*roots // of each namespace, or of "" for all
	names   []string          // the keys of roots, in order
	view    *view
	reaches []*poolReach
	stop    bitmap.Set // what the refs of the alternates reach
	noStop  string     // why that is not known; "" if it is
}

func (m *measuring) run(ctx context.Context) (u *Usage, err error) {
	defer func() { err = errors.Join(err, m.close()) }()
	m.u = &Usage{Bytes: map[Figure]int64{}, Unknown: map[Figure]string{}}
	if err := m.open(ctx); err != nil {
		return nil, err
	}
	if err := m.readRefs(ctx); err != nil {
		return nil, err
	}
	if err := m.exclude(ctx); err != nil {
		return nil, err
	}
	res, plan, err := m.reach(ctx)
	if err != nil {
		return nil, err
	}
	if res.lost != "" && !m.last {
		m.expire()
		return nil, errAgain
	}
	m.figures(m.u, res)
	m.u.Method, m.u.Reason = plan.told(res)
	if m.o.Verify {
		if err := m.verify(ctx, res); err != nil {
			return nil, err
		}
	}
	m.tell(res)
	return m.u, nil
}

// open opens the object folders and puts them together.
func (m *measuring) open(ctx context.Context) error {
	r := m.repo
	m.own = &folder{path: r.ObjectDir}
	quarantine := m.quarantine()
	m.s.openFolder(m.own, r.ObjectDir, r.Format, r.AlternatesEnv(), "objects/", quarantine == "")
	if m.own.err != nil {
		return m.own.err
	}
	chain := m.own.db.Alternates()
	m.missing = chain.Unknown
	m.u.Findings = append(m.u.Findings, m.own.found...)
	for _, a := range chain.Stores[1:] {
		p, err := m.s.pool(a.Path, r.Format)
		if err != nil {
			m.missing = errors.Join(m.missing, err)
			continue
		}
		if a.Path == quarantine {
			m.pools = slices.Insert(m.pools, 0, p)
			m.mine = 1
			continue
		}
		m.pools = append(m.pools, p)
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
	m.view = &view{space: sp, workers: m.s.workers}
	return m.decreed()
}

// quarantine is the real object folder where we run in a hook and GIT_OBJECT_DIRECTORY names the
// quarantine of a push; else "".
func (m *measuring) quarantine() string {
	if m.repo.Quarantine() == "" {
		return ""
	}
	real, err := filepath.EvalSymlinks(filepath.Join(m.repo.CommonDir, "objects"))
	own, err2 := filepath.EvalSymlinks(m.repo.ObjectDir)
	if err != nil || err2 != nil || real == own {
		return ""
	}
	return real
}

// decreed reads what the repository says of the parents of commits.
func (m *measuring) decreed() error {
	parents, notices, err := decreedParents(m.repo)
	m.view.parents = parents
	m.u.Notices = append(m.u.Notices, notices...)
	return err
}

// decreedParents are the commits that have no parents (shallow) or others than they say (grafts).
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
		parents[g.Commit] = g.Parents
	}
	for _, id := range ids {
		parents[id] = nil
	}
	if len(grafts) > 0 {
		notices = append(notices, fmt.Sprintf("%d grafts are honoured, as git does: what only they hide is not counted", len(grafts)))
	}
	if len(bad) > 0 {
		notices = append(notices, fmt.Sprintf("%d lines of info/grafts are no grafts, and are passed over", len(bad)))
	}
	return parents, notices, nil
}

// readRefs reads our own refs, and looks at what they name.
func (m *measuring) readRefs(ctx context.Context) (err error) {
	if m.tips, err = readTips(ctx, m.repo, &m.o); err != nil {
		return err
	}
	m.u.Findings = append(m.u.Findings, m.tips.findings...)
	by := map[string][]oid.ID{"": nil}
	m.names = []string{""}
	if m.o.By == ByNamespace {
		m.names, by = groups(m.tips.all)
	} else {
		for _, t := range m.tips.all {
			by[""] = append(by[""], t.id)
		}
	}
	m.roots = map[string]*roots{}
	for _, n := range m.names {
		if m.roots[n], err = m.view.resolve(by[n]); err != nil {
			return err
		}
	}
	return nil
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
	m.stop = bitmap.NewSet(int(m.view.size))
	for _, p := range m.pools[m.mine:] {
		reach, err := m.s.poolReach(ctx, p, &refs, m.o.Method != Walk, m.o.Repo)
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
	var errs []error
	for _, p := range m.pools {
		errs = append(errs, m.s.release(p))
	}
	if m.own != nil {
		errs = append(errs, m.own.close())
	}
	return errors.Join(errs...)
}

// tell adds what is left to say.
func (m *measuring) tell(res *reached) {
	u := m.u
	if res.promised > 0 {
		u.notice("%d promised objects are not here and not counted", res.promised)
	}
	if res.cut > 0 {
		u.notice("the parents of %d shallow commits are left out", res.cut)
	}
	u.Notices = append(u.Notices, m.tips.left...)
	if m.tips.replaced > 0 {
		u.notice("%d replacements are not followed: these are the sizes of the objects themselves, which gc keeps", m.tips.replaced)
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
	if m.own.db != nil {
		for _, f := range m.own.db.Problems() {
			if f.ID == finding.BitmapUnusable {
				u.Findings = append(u.Findings, f)
			}
		}
	}
	u.Findings = once(u.Findings)
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
