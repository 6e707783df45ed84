package reports

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"refaudit/finding"
)

// text is the report for a person: grouped by repository, the ref first, then what is wrong,
// what the world sees because of it, and the command that mends it.
type text struct {
	w        io.Writer
	o        Options
	repo     string // whose heading was printed last
	fixable  int    // findings under that heading that `fix` mends
	measures bool   // the run computes disk usage, and checks no refs
	err      error
}

func (t *text) printf(format string, args ...any) {
	if t.err == nil {
		_, t.err = fmt.Fprintf(t.w, format, args...)
	}
}

// Escape makes text safe for a terminal: what can't be printed, and what is no UTF-8, becomes \xNN.
func Escape(s string) string {
	safe := true
	for _, r := range s {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			safe = false
			break
		}
	}
	if safe {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && n == 1 || !unicode.IsPrint(r) {
			for i := range n {
				fmt.Fprintf(&b, `\x%02x`, s[i])
			}
		} else {
			b.WriteString(s[:n])
		}
		s = s[n:]
	}
	return b.String()
}

func (t *text) color(code, s string) string {
	if !t.o.Color {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

var severityColors = map[finding.Severity]string{finding.Error: "31;1", finding.Fatal: "31;1", finding.Warn: "33", finding.Info: "36"}

func (t *text) heading(repo string) {
	if repo != t.repo {
		t.repo, t.fixable = repo, 0
		t.printf("%s\n", t.color("1", Escape(repo)))
	}
}

func (t *text) Finding(f *finding.Finding) error {
	if t.o.Summary {
		return nil
	}
	t.heading(f.Repo)
	subject := string(f.Ref)
	if subject == "" {
		subject = f.File
	}
	if subject == "" {
		subject = "(the repository)"
	}
	t.printf("  %s  %s %s", t.color("1", Escape(subject)), t.color(severityColors[f.Severity], f.Severity.String()), f.ID)
	switch place := f.Pos.String(); {
	case place == subject || place == "":
	case f.Ref != "":
		t.printf("  %s", Escape(place))
	case f.Line > 0:
		t.printf("  line %d", f.Line)
	default:
		t.printf("  offset %d", f.Offset)
	}
	t.printf("\n      %s\n", Escape(f.Message))
	if f.Cause != "" {
		t.printf("      cause: %s\n", f.Cause)
	}
	if e, ok := finding.Explain(f.ID); ok && f.Severity >= finding.Warn {
		t.printf("      seen:  %s\n", e.Short)
	}
	if f.Fixable {
		t.fixable++
	}
	return t.err
}

func (t *text) Repair(r *Repair) error {
	if (t.o.Summary || t.o.Quiet) && r.Applied { // a plan is shown all the same: it is what was asked for
		return nil
	}
	t.heading(r.Repo)
	if r.Diff != "" {
		t.printf("%s", r.Diff)
	}
	verb := "would"
	if r.Applied {
		verb = "did"
	}
	subject := string(r.Ref)
	if subject == "" {
		subject = r.File
	}
	t.printf("  %s  %s: %s", Escape(subject), verb, r.Action)
	if r.Journal != "" {
		t.printf("  (undo: refaudit undo %s)", r.Journal)
	}
	t.printf("\n")
	return t.err
}

func (t *text) Repository(r *Repository) error {
	if t.o.Summary {
		return nil
	}
	if f := r.Fingerprint; f != nil {
		if f.Hash != "" { // why there is none is said elsewhere
			t.printf("%s  %s\n", f.Hash, Escape(r.Repo))
		}
		return t.err
	}
	if r.Gate != nil {
		t.gate(r.Repo, r.Gate)
	}
	if r.Hidden > 0 {
		t.heading(r.Repo)
		t.printf("  and %s not shown (--max-findings)\n", finding.Count(r.Hidden, "more finding that is", "more findings that are"))
	}
	if r.State == Incomplete || r.Reason != "" {
		t.heading(r.Repo)
		t.printf("  %s: %s\n", t.color("33", "incomplete"), Escape(r.Reason))
	}
	if t.repo == r.Repo && t.fixable > 0 {
		t.printf("  mend: refaudit fix %s   (%d of these; --dry-run shows the change)\n", shellQuote(r.Repo), t.fixable)
		t.fixable = 0
	}
	return t.err
}

// shellQuote makes a path fit to be pasted into a shell.
func shellQuote(path string) string {
	if path != "" && strings.Trim(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+@%,:=") == "" && path[0] != '-' {
		return path
	}
	if Escape(path) == path {
		return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
	}
	var b strings.Builder // what can't be printed, in the form $'…' of bash, zsh and POSIX 2024
	b.WriteString("$'")
	for i := range len(path) {
		switch c := path[i]; {
		case c == '\'' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < 0x20 || c >= 0x7f:
			fmt.Fprintf(&b, `\x%02x`, c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String() + "'"
}

func (t *text) Usage(u *Usage) error {
	if t.o.Summary {
		return nil
	}
	t.heading(u.Repo)
	for _, f := range u.Figures {
		if f.Known {
			t.printf("  %-20s %15s  %s\n", f.Name, Thousands(f.Bytes), human(f.Bytes))
		} else {
			t.printf("  %-20s %15s  (%s)\n", f.Name, "unknown", Escape(f.Reason))
		}
	}
	for _, g := range u.By {
		for _, f := range g.Figures {
			if f.Known {
				t.printf("    %s %s, %s: %s\n", g.Key, Escape(g.Name), f.Name, Thousands(f.Bytes))
			}
		}
	}
	t.printf("  method: %s, %s\n", u.Method, Escape(u.Reason))
	return t.err
}

// Thousands groups the digits of a number by three.
func Thousands(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func human(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	v, unit := float64(n), 0
	for v >= 1024 && unit < 5 {
		v /= 1024
		unit++
	}
	return fmt.Sprintf("%.1f %ciB", v, " KMGTP"[unit])
}

func (t *text) Notice(n *Notice) error {
	if t.o.Summary || t.o.Quiet {
		return nil
	}
	if n.Repo != "" {
		t.heading(n.Repo)
		t.printf("  ")
	}
	t.printf("note: %s\n", Escape(n.Message))
	return t.err
}

func (t *text) Start(s *Start) error {
	t.measures = s.Command == "size"
	return nil
}

func (t *text) Progress(*Progress) error { return nil }

func (t *text) Summary(s *Summary) error {
	if t.o.Quiet {
		return t.err
	}
	var repos int64
	for _, n := range s.Repositories {
		repos += n
	}
	if repos == 0 { // nothing was audited: an undo, or nothing matched
		return t.err
	}
	sev := severities(s.Severities)
	t.printf("%s", count(repos, "repository", "repositories"))
	if !t.measures {
		t.printf(", %s, %s checked", count(s.Refs, "ref", "refs"), count(s.PeelsChecked, "cached peel", "cached peels"))
	}
	t.printf(": %s, %s, %d info", count(sev["error"], "error", "errors"), count(sev["warn"], "warning", "warnings"), sev["info"])
	if s.Known > 0 {
		t.printf("; %d known (baseline)", s.Known)
	}
	if s.Unchanged > 0 {
		t.printf("; %s not read again", count(s.Unchanged, "unchanged repository", "unchanged repositories"))
	}
	if n := s.Repositories[Incomplete]; n > 0 {
		t.printf("; %d incomplete", n)
	}
	if s.Signal != "" {
		t.printf("; ended by %s", s.Signal)
	}
	if s.Stopped != "" {
		t.printf("; ended by --%s", s.Stopped)
	}
	t.printf("\n")
	return t.err
}

func count(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return Thousands(n) + " " + many
}
