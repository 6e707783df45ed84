package reports

import (
	"io"

	"refaudit/finding"
)

// git prints findings as `git refs verify` prints its own: "error: <path>: <id>: <text>".
// What git has no check for is printed in the same form, if it is worth a warning.
type git struct {
	w    io.Writer
	last string // what was printed last: git says a thing once
	// trait is a HeaderTraitFalse that waits: where git itself reports the order, that says it all.
	trait    *finding.Finding
	unsorted bool
}

func (g *git) Finding(f *finding.Finding) error {
	switch f.ID {
	case finding.PackedRefUnsorted:
		g.unsorted = true
	case finding.HeaderTraitFalse:
		held := *f
		g.trait = &held
		return nil
	}
	return g.print(f)
}

// Repository ends what is said of one repository.
func (g *git) Repository(*Repository) (err error) {
	if g.trait != nil && !g.unsorted {
		err = g.print(g.trait)
	}
	g.trait, g.unsorted, g.last = nil, false, ""
	return err
}

func (g *git) print(f *finding.Finding) error {
	text := f.GitText
	word := "error: "
	switch f.Severity {
	case finding.Info, finding.Warn:
		word = "warning: "
	}
	if text == "" {
		if f.Severity == finding.Info {
			return nil
		}
		path := string(f.Ref)
		if path == "" {
			path = f.Pos.String()
		}
		text = path + ": " + string(f.ID) + ": " + f.Message
	}
	if text == g.last {
		return nil
	}
	g.last = text
	_, err := g.w.Write(append(questionMarks([]byte(word+text)), '\n'))
	return err
}

// questionMarks does to control bytes what git does when it prints an error.
func questionMarks(b []byte) []byte {
	for i, c := range b {
		if (c < 0x20 || c == 0x7f) && c != '\t' && c != '\n' {
			b[i] = '?'
		}
	}
	return b
}

func (g *git) Start(*Start) error       { return nil }
func (g *git) Repair(*Repair) error     { return nil }
func (g *git) Usage(*Usage) error       { return nil }
func (g *git) Notice(*Notice) error     { return nil }
func (g *git) Progress(*Progress) error { return nil }
func (g *git) Summary(*Summary) error   { return nil }
