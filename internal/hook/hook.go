// Package hook is the pre-receive hook: it judges the tags that a push brings, looking through
// the quarantine that git keeps them in, and refuses those that would break the repository for
// its readers. It never writes.
package hook

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"refaudit/finding"
	"refaudit/internal/tagtext"
	"refaudit/odb"
	"refaudit/oid"
	"refaudit/peel"
	"refaudit/repo"
	"refaudit/scan"
)

// Update is one line of what git tells a pre-receive hook.
type Update struct {
	Old, New oid.ID
	Ref      finding.RefName
}

// maxRefName is more than git allows in a packet.
const maxRefName = 64 << 10

// ReadUpdates reads all of in: "<old> <new> <ref>" lines. A line that is none of these doesn't hide the others:
// they come with an error, of the first such line.
func ReadUpdates(in io.Reader, f oid.Format) ([]Update, error) {
	var all []Update
	var first error
	s := bufio.NewScanner(in)
	s.Buffer(nil, maxRefName)
	n := 0
	for s.Scan() {
		n++
		u, err := readUpdate(s.Bytes(), f)
		if err == nil {
			all = append(all, u)
		} else if first == nil {
			first = fmt.Errorf("line %d of standard input: %w", n, err)
		}
	}
	if err := s.Err(); first == nil && errors.Is(err, bufio.ErrTooLong) {
		first = fmt.Errorf("line %d of standard input is longer than any that git writes", n+1)
	} else if first == nil && err != nil {
		first = err
	}
	return all, first
}

func readUpdate(line []byte, f oid.Format) (u Update, err error) {
	parts := bytes.SplitN(line, []byte(" "), 3)
	if len(parts) != 3 {
		return u, fmt.Errorf("not \"<old> <new> <ref>\": %q", line)
	}
	u.Ref = finding.RefName(parts[2])
	for i, id := range []*oid.ID{&u.Old, &u.New} {
		if *id, err = oid.Parse(string(parts[i])); err != nil {
			return u, err
		}
		if id.Format() != f {
			return u, fmt.Errorf("%v is no id of a %v repository", *id, f)
		}
	}
	return u, nil
}

// Answer is what becomes of a push where no judgement was reached.
type Answer uint8

// The answers.
const (
	Allow Answer = iota
	Reject
)

// Settings of the hook, from refaudit.hook.*.
type Settings struct {
	OnError   Answer        // onError (allow): our own trouble
	OnTimeout Answer        // onTimeout (reject): or one could push until it opens
	Timeout   time.Duration // timeout (10s)
	MaxDepth  int           // maxChainDepth (1000): tags of tags
	MaxTag    int64         // maxTagSize (16m): bytes of one tag
}

// Defaults are the settings where nothing is configured.
var Defaults = Settings{OnError: Allow, OnTimeout: Reject, Timeout: 10 * time.Second, MaxDepth: 1000, MaxTag: 16 << 20}

// ReadSettings reads them; what can't be understood is an error, and its default holds.
func ReadSettings(c *repo.Config) (Settings, error) {
	s := Defaults
	var errs []error
	for key, at := range map[string]*Answer{"refaudit.hook.onError": &s.OnError, "refaudit.hook.onTimeout": &s.OnTimeout} {
		if v, set := c.Get(key); set {
			switch v.Text {
			case "allow":
				*at = Allow
			case "reject":
				*at = Reject
			default:
				errs = append(errs, &repo.BadValue{Value: v, Err: errors.New("it takes allow or reject")})
			}
		}
	}
	if v, set := c.Get("refaudit.hook.timeout"); set {
		d, err := time.ParseDuration(v.Text)
		if seconds, ierr := c.Int("refaudit.hook.timeout", 0); ierr == nil {
			d, err = time.Duration(seconds)*time.Second, nil
		}
		if err != nil || d <= 0 {
			errs = append(errs, &repo.BadValue{Value: v, Err: errors.New("it takes a time such as 10s")})
		} else {
			s.Timeout = d
		}
	}
	if depth, err := c.Int("refaudit.hook.maxChainDepth", s.MaxDepth); err != nil {
		errs = append(errs, err)
	} else if s.MaxDepth = depth; depth <= 0 {
		s.MaxDepth = math.MaxInt32
	}
	if size, err := c.Int64("refaudit.hook.maxTagSize", s.MaxTag); err != nil {
		errs = append(errs, err)
	} else if s.MaxTag = size; size <= 0 {
		s.MaxTag = math.MaxInt64
	}
	return s, errors.Join(errs...)
}

// Judge judges the new values of a push, and gives a finding for each ref and id that the policy
// makes an error, in the order of the updates. An object that is no tag is git's affair. One that isn't there is an
// error: git has seen it before it runs the hook, so we look in the wrong place. What is wrong with one ref is
// told beside the error that another one gave.
func Judge(ctx context.Context, r *repo.Repo, policy *scan.Policy, s Settings, updates []Update) ([]finding.Finding, error) {
	db, _, err := odb.Open(r.ObjectDir, r.Format, odb.Options{Alternates: r.AlternatesEnv()})
	if err != nil {
		return nil, err
	}
	defer db.Close()
	j := &judging{db: db, judge: peel.NewJudge(db), sure: peel.NewJudge(peel.Confirmed{From: db}), policy: policy, settings: s, format: r.Format, texts: map[peel.Handle][]tagtext.Problem{}, names: map[peel.Handle][]byte{}}
	ids := make([]oid.ID, 0, len(updates))
	pushed := updates[:0:0]
	for _, u := range updates {
		if !u.New.IsZero() {
			ids, pushed = append(ids, u.New), append(pushed, u)
		}
	}
	handles, err := j.judge.Learn(ctx, ids, nil)
	if err != nil {
		return nil, err
	}
	var first error
	for i := range pushed {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := j.update(ctx, &pushed[i], handles[i]); err != nil && first == nil {
			first = err
		}
	}
	return j.refused, first
}

// judging is one call of Judge.
type judging struct {
	db       *odb.DB
	judge    *peel.Judge
	sure     *peel.Judge // trusts no header: that of a target which was here before the push may be damaged
	policy   *scan.Policy
	settings Settings
	format   oid.Format
	texts    map[peel.Handle][]tagtext.Problem // each tag's text is judged once
	names    map[peel.Handle][]byte
	refused  []finding.Finding
}

// say keeps a finding that the policy makes an error.
func (j *judging) say(u *Update, id finding.ID, format string, args ...any) {
	f := finding.Finding{ID: id, Severity: finding.Default(id), Ref: u.Ref, OID: u.New, Message: fmt.Sprintf(format, args...)}
	if j.policy.Apply(&f) && f.Severity >= finding.Error {
		j.refused = append(j.refused, f)
	}
}

func (j *judging) update(ctx context.Context, u *Update, h peel.Handle) error {
	v := j.judge.Verdict(h)
	if v.State == peel.Corrupt && v.InDoubt() {
		var err error
		if _, v, err = j.sure.Ask(ctx, u.New); err != nil {
			return fmt.Errorf("%s: %w", u.Ref, err)
		}
	}
	switch {
	case v.State == peel.Unknown && v.Fault.Why == peel.NotLooked:
		return fmt.Errorf("%s: %v", u.Ref, v.Fault.String())
	case v.State == peel.Absent:
		return fmt.Errorf("%s: object %v is not found: the hook needs the environment that git gives it (GIT_OBJECT_DIRECTORY)", u.Ref, u.New)
	case v.State == peel.Corrupt:
		j.say(u, v.CorruptTag(), "%s", v.Fault.String())
	case v.State == peel.Damaged:
		return fmt.Errorf("%s: %v", u.Ref, v.Fault.String())
	}
	if v.Kind != oid.Tag {
		return nil
	}
	if depth := j.judge.Depth(h, j.settings.MaxDepth+1); depth > j.settings.MaxDepth {
		j.say(u, finding.TagUnreadable, "a chain of more than %s (refaudit.hook.maxChainDepth)", finding.Count(j.settings.MaxDepth, "tag", "tags"))
		return nil
	}
	problems, name, err := j.text(u, h)
	if err != nil {
		return err
	}
	for _, p := range problems {
		j.say(u, p.ID, "tag %v: %s", u.New, p.Text)
	}
	short, below := bytes.CutPrefix([]byte(u.Ref), []byte("refs/tags/"))
	if below && name != nil && !bytes.Equal(name, short) {
		j.say(u, finding.TagNameMismatch, "is tag %v, whose own name is %q", u.New, name)
	}
	return nil
}

// text judges what a tag says, once however many refs have it.
func (j *judging) text(u *Update, h peel.Handle) ([]tagtext.Problem, []byte, error) {
	if p, ok := j.texts[h]; ok {
		return p, j.names[h], nil
	}
	kind, text, err := j.db.Read(u.New, j.settings.MaxTag)
	switch {
	case errors.Is(err, odb.ErrTooLarge):
		j.say(u, finding.TagUnreadable, "tag %v is larger than %s (refaudit.hook.maxTagSize)", u.New, finding.Count(j.settings.MaxTag, "byte", "bytes"))
		return nil, nil, nil
	case err != nil:
		if damage := (*finding.Corrupt)(nil); errors.As(err, &damage) {
			return nil, nil, nil // the verdict has said so
		}
		return nil, nil, err
	case kind != oid.Tag:
		return nil, nil, nil
	}
	j.texts[h] = tagtext.Check(j.format, text, j.policy.Severity)
	if name, ok := tagtext.Name(text); ok {
		j.names[h] = bytes.Clone(name)
	}
	return j.texts[h], j.names[h], nil
}
