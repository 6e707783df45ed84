package reports

import (
	"io"

	"refaudit/finding"
)

// git prints findings as `git refs verify` prints its own: "error: <path>: <id>: <text>".
// What git has no check for is printed in the same form, if it is worth a warning.
type git struct{ w io.Writer }

func (g *git) Finding(f *finding.Finding) error {
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

func (g *git) Start(*Start) error           { return nil }
func (g *git) Repair(*Repair) error         { return nil }
func (g *git) Repository(*Repository) error { return nil }
func (g *git) Usage(*Usage) error           { return nil }
func (g *git) Notice(*Notice) error         { return nil }
func (g *git) Progress(*Progress) error     { return nil }
func (g *git) Summary(*Summary) error       { return nil }
