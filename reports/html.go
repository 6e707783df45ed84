package reports

import (
	_ "embed"
	"fmt"
	"html"
	"io"
	"strings"
	"time"

	"refaudit/finding"
	"refaudit/oid"
)

// page writes one self-contained HTML page: the fleet as a picture, a square for each repository,
// then each repository with something to say. It asks no server for anything.
type page struct {
	w       io.Writer
	start   Start
	found   []finding.Finding // of the repository under way
	body    strings.Builder
	squares strings.Builder
	repos   int
	sizes   []sized
	notices []Notice
}

// sized is what one repository takes, for the bars.
type sized struct {
	repo                string
	own, borrowed       int64
	ownKnown, bothKnown bool
}

//go:embed page.css
var pageCSS string

func esc(s string) string { return html.EscapeString(Escape(s)) }

func (p *page) Start(s *Start) error             { p.start = *s; return nil }
func (p *page) Finding(f *finding.Finding) error { p.found = append(p.found, *f); return nil }
func (p *page) Notice(n *Notice) error           { p.notices = append(p.notices, *n); return nil }
func (p *page) Repair(*Repair) error             { return nil }
func (p *page) Progress(*Progress) error         { return nil }

func (p *page) Usage(u *Usage) error {
	s := sized{repo: u.Repo}
	both := 0
	for _, f := range u.Figures {
		switch {
		case f.Name == "own" && f.Known:
			s.own, s.ownKnown = f.Bytes, true
			both++
		case f.Name == "borrowed" && f.Known:
			s.borrowed = f.Bytes
			both++
		}
	}
	s.bothKnown = both == 2
	p.sizes = append(p.sizes, s)
	return nil
}

// worst is the class of a repository's square.
func worst(r *Repository) string {
	switch {
	case r.State == Incomplete:
		return "incomplete"
	case r.Severities[finding.Error] > 0:
		return "error"
	case r.Severities[finding.Warn] > 0:
		return "warn"
	}
	return "clean"
}

func (p *page) Repository(r *Repository) error {
	p.repos++
	class, anchor := worst(r), fmt.Sprintf("r%d", p.repos)
	title := fmt.Sprintf("%s: %s", r.Repo, class)
	fmt.Fprintf(&p.squares, `<a class="sq %s" href="#%s" title="%s"><span>%s</span></a>`, class, anchor, esc(title), esc(title))
	if len(p.found) == 0 && r.Reason == "" {
		fmt.Fprintf(&p.body, `<section class="quiet" id="%s"><h2>%s</h2><p>%s, %s checked. Nothing to say.</p></section>`+"\n",
			anchor, esc(r.Repo), count(r.Refs, "ref", "refs"), count(r.Peels, "cached peel", "cached peels"))
		return nil
	}
	fmt.Fprintf(&p.body, `<section id="%s"><h2><i class="dot %s"></i>%s</h2><p>%s, %s checked</p>`+"\n",
		anchor, class, esc(r.Repo), count(r.Refs, "ref", "refs"), count(r.Peels, "cached peel", "cached peels"))
	if r.Reason != "" {
		fmt.Fprintf(&p.body, `<p class="incomplete"><b>incomplete</b> %s</p>`+"\n", esc(r.Reason))
	}
	if len(p.found) > 0 {
		p.body.WriteString("<table><thead><tr><th>ref or file</th><th>finding</th><th>what is wrong</th></tr></thead><tbody>\n")
		fixable := 0
		for i := range p.found {
			p.row(&p.found[i])
			if p.found[i].Fixable {
				fixable++
			}
		}
		p.body.WriteString("</tbody></table>\n")
		if fixable > 0 {
			fmt.Fprintf(&p.body, "<p class=\"mend\">mend %d of these: <code>refaudit fix %s</code></p>\n", fixable, esc(shellQuote(r.Repo)))
		}
	}
	if r.Hidden > 0 {
		fmt.Fprintf(&p.body, "<p>and %s not shown</p>\n", finding.Count(r.Hidden, "more that is", "more that are"))
	}
	p.body.WriteString("</section>\n")
	p.found = nil
	return nil
}

func (p *page) row(f *finding.Finding) {
	subject := string(f.Ref)
	if subject == "" {
		subject = f.File
	}
	fmt.Fprintf(&p.body, `<tr class="%v"><td><code>%s</code><small>%s</small></td><td><b>%v</b> %s</td><td>%s`, f.Severity, esc(subject), esc(f.Pos.String()), f.Severity, f.ID, esc(f.Message))
	if x, ok := finding.Explain(f.ID); ok {
		fmt.Fprintf(&p.body, "<small>seen: %s</small>", esc(x.Short))
	}
	if f.Cause != "" {
		fmt.Fprintf(&p.body, "<small>cause: %s</small>", esc(string(f.Cause)))
	}
	if f.Expected != (oid.ID{}) {
		fmt.Fprintf(&p.body, "<small>right: <code>%v</code></small>", f.Expected)
	}
	p.body.WriteString("</td></tr>\n")
}

func (p *page) Summary(s *Summary) error {
	sev := severities(s.Severities)
	var b strings.Builder
	b.WriteString("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">" +
		"<meta name=\"color-scheme\" content=\"light dark\"><title>refaudit</title><style>" + pageCSS + "</style></head><body>\n")
	fmt.Fprintf(&b, "<header><h1>refaudit</h1><p>%s, level %s, took %v</p></header>\n", p.start.Time.UTC().Format("2 January 2006, 15:04 UTC"), esc(p.start.Level), s.Duration.Round(time.Millisecond))
	b.WriteString(`<div class="tiles">`)
	var repos int64
	for _, n := range s.Repositories {
		repos += n
	}
	for _, t := range []struct {
		class, name string
		n           int64
	}{{"", "repositories", repos}, {"clean", "clean", s.Repositories[Clean]}, {"error", "errors", sev["error"]}, {"warn", "warnings", sev["warn"]},
		{"incomplete", "incomplete", s.Repositories[Incomplete]}, {"", "refs", s.Refs}, {"", "cached peels checked", s.PeelsChecked}} {
		fmt.Fprintf(&b, `<div class="tile %s"><b>%s</b>%s</div>`, t.class, Thousands(t.n), t.name)
	}
	b.WriteString("</div>\n")
	if s.Signal != "" {
		fmt.Fprintf(&b, "<p class=\"incomplete\"><b>cut short</b> by %s: what was not reached was not looked at</p>\n", esc(s.Signal))
	}
	fmt.Fprintf(&b, "<div class=\"fleet\" role=\"img\" aria-label=\"each repository as a square\">%s</div>\n", p.squares.String())
	b.WriteString(`<p class="key"><i class="dot clean"></i>clean <i class="dot warn"></i>warnings <i class="dot error"></i>errors <i class="dot incomplete"></i>could not be looked at</p>` + "\n")
	p.bars(&b)
	b.WriteString(p.body.String())
	for _, n := range p.notices {
		fmt.Fprintf(&b, "<p class=\"note\">note: %s %s</p>\n", esc(n.Repo), esc(n.Message))
	}
	b.WriteString("</body></html>\n")
	_, err := io.WriteString(p.w, b.String())
	return err
}

// bars draws what each repository takes, its own and what it borrows.
func (p *page) bars(b *strings.Builder) {
	var most int64 = 1
	for _, s := range p.sizes {
		most = max(most, s.own+s.borrowed)
	}
	if len(p.sizes) == 0 {
		return
	}
	b.WriteString(`<table class="sizes"><thead><tr><th>repository</th><th>own</th><th>borrowed</th><th></th></tr></thead><tbody>` + "\n")
	for _, s := range p.sizes {
		own, borrowed := "unknown", "unknown"
		if s.ownKnown {
			own = human(s.own)
		}
		if s.bothKnown {
			borrowed = human(s.borrowed)
		}
		fmt.Fprintf(b, `<tr><td>%s</td><td>%s</td><td>%s</td><td class="bar"><i class="own" style="width:%.2f%%"></i><i class="borrowed" style="width:%.2f%%"></i></td></tr>`+"\n",
			esc(s.repo), own, borrowed, 100*float64(s.own)/float64(most), 100*float64(s.borrowed)/float64(most))
	}
	b.WriteString("</tbody></table>\n")
}
