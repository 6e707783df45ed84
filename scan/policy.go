package scan

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"refaudit/finding"
	"refaudit/oid"
	"refaudit/repo"
)

// Policy decides how much each finding matters in one repository: refaudit.<msg-id>, for git's
// own ids else fsck.<msg-id>; floors; --strict; fsck.skipList and refaudit.skipList.
type Policy struct {
	strict   bool
	severity map[finding.ID]finding.Severity
	fixed    map[finding.ID]bool // set by fsck.<msg-id>: --strict leaves it
	objects  map[oid.ID]bool     // fsck.skipList
	skip     *skipList
	now      time.Time
	// Notices are settings that could not be followed.
	Notices []string
}

// Prefixes of the settings, ours first: that of an audit and that of the hook.
var (
	auditKeys   = [2]string{"refaudit.", "fsck."}
	receiveKeys = [2]string{"refaudit.receive.", "receive.fsck."}
)

// NewPolicy reads the settings of an audit. read gives the text of a skip list.
func NewPolicy(r *repo.Repo, strict bool, now time.Time) (*Policy, error) {
	return newPolicy(r, auditKeys, strict, now)
}

// NewReceivePolicy reads the settings that hold for what is pushed.
func NewReceivePolicy(r *repo.Repo, now time.Time) (*Policy, error) {
	return newPolicy(r, receiveKeys, false, now)
}

func newPolicy(r *repo.Repo, keys [2]string, strict bool, now time.Time) (*Policy, error) {
	p := &Policy{strict: strict, severity: map[finding.ID]finding.Severity{}, fixed: map[finding.ID]bool{}, now: now}
	if err := p.configureAll(r.Config, keys); err != nil {
		return nil, err
	}
	if err := p.unknownKeys(r.Config); err != nil {
		return nil, err
	}
	path, text, err := listFile(r, keys[1]+"skipList")
	if err == nil && path != "" {
		p.objects, err = parseObjectList(path, text)
	}
	if err != nil {
		return nil, fmt.Errorf("%sskipList: %w", keys[1], err)
	}
	path, text, err = listFile(r, "refaudit.skipList")
	if err == nil && path != "" {
		p.skip, err = parseSkipList(path, text)
	}
	if err != nil {
		return nil, fmt.Errorf("refaudit.skipList: %w", err)
	}
	return p, nil
}

// unknownKeys tells of settings that nothing reads: a misspelt id would be followed by nobody.
func (p *Policy) unknownKeys(c *repo.Config) error {
	return c.Section("refaudit", func(subsection, name string, v repo.Value) error {
		if _, known := finding.ParseID(name); !known && subsection == "" && name != "skiplist" {
			p.Notices = append(p.Notices, fmt.Sprintf("%s (%s) is no setting: there is no such message id", v.Key, v.Origin))
		}
		return nil
	})
}

// CheckSettings judges the severities of an audit in a configuration that holds for all repositories.
func CheckSettings(c *repo.Config) error {
	p := &Policy{severity: map[finding.ID]finding.Severity{}, fixed: map[finding.ID]bool{}}
	return p.configureAll(c, auditKeys)
}

// maxListSize bounds a skip list.
const maxListSize = 64 << 20

// listFile reads the file that a setting names, a relative path starting at the git dir; path is
// "" where nothing is set.
func listFile(r *repo.Repo, key string) (path string, text []byte, err error) {
	if path, err = r.Config.Path(key); err != nil || path == "" {
		return "", nil, err
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(r.CommonDir, path)
	}
	text, err = r.Common.ReadPath(path, maxListSize)
	return path, text, err
}

// configureAll looks for a setting of each id, where any of them can be set.
func (p *Policy) configureAll(c *repo.Config, keys [2]string) error {
	ours, _, _ := strings.Cut(keys[0], ".")
	gits, _, _ := strings.Cut(keys[1], ".")
	if !c.Has(ours) && !c.Has(gits) {
		return nil
	}
	for i := range finding.Catalog {
		if err := p.configure(c, keys, &finding.Catalog[i]); err != nil {
			return err
		}
	}
	return nil
}

func (p *Policy) configure(c *repo.Config, keys [2]string, e *finding.Entry) error {
	v, set := c.Get(keys[0] + string(e.ID))
	if !set && e.Git {
		if v, set = c.Get(keys[1] + string(e.ID)); set {
			p.fixed[e.ID] = true
		}
	}
	if !set {
		return nil
	}
	severity, ok := finding.ParseSeverity(v.Text)
	if !ok {
		return &repo.BadValue{Value: v, Err: errors.New("it takes error, warn, info or ignore")}
	}
	if severity < e.Floor {
		p.Notices = append(p.Notices, fmt.Sprintf("%s = %s (%s) is not followed: %s can't be lowered below %v", v.Key, v.Text, v.Origin, e.ID, e.Floor))
		severity = e.Floor
	}
	p.severity[e.ID] = severity
	return nil
}

// Severity is what holds for an id here.
func (p *Policy) Severity(id finding.ID) finding.Severity {
	v, ok := p.severity[id]
	if !ok {
		v = finding.Default(id)
	}
	return p.raise(id, v)
}

// raise makes a warning an error where --strict asks for it. As in git, what fsck.<msg-id> has made a
// warning stays one, and so does an id of git's that is none by default.
func (p *Policy) raise(id finding.ID, v finding.Severity) finding.Severity {
	if e := finding.Lookup(id); p.strict && v == finding.Warn && !(e.Git && (p.fixed[id] || e.Default != finding.Warn)) {
		return finding.Error
	}
	return v
}

// Apply gives the finding the severity that holds here, and tells whether it is to be reported at all.
func (p *Policy) Apply(f *finding.Finding) bool {
	e := finding.Lookup(f.ID)
	if v, ok := p.severity[f.ID]; ok && f.Severity == e.Default {
		f.Severity = v // a finding below its id's default has its reason, which no setting knows
	} else if ok && v < f.Severity {
		f.Severity = v
	}
	f.Severity = p.raise(f.ID, f.Severity)
	if f.Severity == finding.Fatal {
		f.Severity = finding.Error
	}
	if f.Severity == finding.Ignore {
		return false
	}
	if e.Floor > finding.Ignore {
		return true // what can't be lowered can't be skipped either
	}
	if p.objects[f.OID] && (strings.HasPrefix(string(f.ID), "peel") || strings.HasPrefix(string(f.ID), "tag")) {
		return false
	}
	return !p.skip.hides(f, p.now)
}

// Wanted tells whether findings of this id are reported at all, so that a check need not be made in vain.
func (p *Policy) Wanted(id finding.ID) bool { return p.Severity(id) > finding.Ignore }

// Leftovers tells, after the audit, of lines of the skip list that have expired or hide nothing.
func (p *Policy) Leftovers() []string { return p.skip.notices(p.now) }
