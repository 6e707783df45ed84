package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"refaudit/finding"
)

func explainCommand(e env) *cli.Command {
	return &cli.Command{
		Name:        "explain",
		Usage:       "say what a message id means, how it comes about, who sees what, and what mends it",
		ArgsUsage:   "[MSGID…]",
		Description: "Without an id it lists them all.",
		Action: func(c *cli.Context) error {
			return runExplain(e, c.Args().Slice())
		},
	}
}

func runExplain(e env, words []string) error {
	var b strings.Builder
	if len(words) == 0 {
		listIDs(&b)
	}
	for i, word := range words {
		id, ok := finding.ParseID(word)
		if !ok {
			return usagef("no message id %q%s (refaudit explain lists them)", word, meant(word))
		}
		if i > 0 {
			b.WriteString("\n")
		}
		explain(&b, id)
	}
	_, err := io.WriteString(e.stdout, b.String())
	return err
}

func listIDs(b *strings.Builder) {
	for i, g := range finding.Groups() {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(b, "%s:\n", g.Title)
		for _, entry := range g.Entries {
			fmt.Fprintf(b, "  %-28s %-7s %s\n", entry.ID, severityOf(&entry), entry.Summary)
		}
	}
}

func severityOf(entry *finding.Entry) string {
	if entry.Default == finding.Fatal {
		return "fatal"
	}
	return entry.Default.String()
}

func explain(b *strings.Builder, id finding.ID) {
	entry := finding.Lookup(id)
	fmt.Fprintf(b, "%s: %s\n", id, entry.Summary)
	fmt.Fprintf(b, "  severity  %s", severityOf(entry))
	switch {
	case entry.Floor == finding.Fatal:
		b.WriteString(", can't be lowered")
	case entry.Floor > finding.Ignore:
		fmt.Fprintf(b, ", can't be lowered below %v", entry.Floor)
	}
	fmt.Fprintf(b, "; set by refaudit.%s", id)
	if entry.Git {
		fmt.Fprintf(b, " or fsck.%s, for it is one of git's", id)
	}
	b.WriteString("\n")
	x, _ := finding.Explain(id)
	for _, part := range [][2]string{{"means", x.Means}, {"comes", x.Comes}, {"seen", x.Seen}, {"fix", x.Fix}, {"mend", x.Mend}} {
		wrap(b, part[0], part[1])
	}
}

// wrap writes a paragraph, 100 columns wide, behind its heading.
func wrap(b *strings.Builder, heading, text string) {
	const indent, width = 12, 100
	fmt.Fprintf(b, "  %-*s", indent-2, heading)
	column := indent
	for i, word := range strings.Fields(text) {
		if i > 0 && column+1+len(word) > width {
			fmt.Fprintf(b, "\n%*s", indent, "")
			column = indent
		} else if i > 0 {
			b.WriteString(" ")
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	b.WriteString("\n")
}

// meant suggests ids that contain the word.
func meant(word string) string {
	var like []string
	for i := range finding.Catalog {
		if id := string(finding.Catalog[i].ID); len(word) > 2 && strings.Contains(strings.ToLower(id), strings.ToLower(word)) {
			like = append(like, id)
		}
	}
	if len(like) == 0 {
		return ""
	}
	return "; there are " + strings.Join(like, ", ")
}
