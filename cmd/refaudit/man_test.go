package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

var rewriteMan = flag.Bool("rewrite", false, "write the manual pages into man/")

// manDate is when what the pages say last changed in a way that a reader should know.
const manDate = "November 30, 2026"

// page builds a manual page in mdoc.
type page struct{ b strings.Builder }

func (p *page) line(format string, args ...any) { fmt.Fprintf(&p.b, format+"\n", args...) }

// text writes paragraphs, each sentence on lines of its own, as mdoc wants it, and lines that are
// indented as they are.
func (p *page) text(s string) {
	var words []string
	flow := func() {
		p.flow(words)
		words = nil
	}
	for i, line := range strings.Split(strings.TrimSpace(s), "\n") {
		switch {
		case strings.HasPrefix(line, "    "):
			flow()
			p.line(".Dl %s", manText(strings.TrimSpace(line)))
		case line == "" && i > 0:
			flow()
			p.line(".Pp")
		default:
			words = append(words, strings.Fields(line)...)
		}
	}
	flow()
}

// flow fills lines with words.
func (p *page) flow(words []string) {
	const width = 78
	line := ""
	end := func() {
		if line != "" {
			p.line("%s", manText(line))
		}
		line = ""
	}
	for _, w := range words {
		if line != "" && len(line)+1+len(manText(w)) > width {
			end()
		}
		if line != "" {
			line += " "
		}
		line += w
		if strings.ContainsAny(strings.TrimRight(w, `)"`)[max(0, len(strings.TrimRight(w, `)"`))-1):], ".?!") {
			end()
		}
	}
	end()
}

// manText is text such that no byte of it is a command.
func manText(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "…", "...", "–", `\(en`, "`", `\(ga`).Replace(s)
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		s = `\&` + s
	}
	return s
}

// manArg is one argument of a command.
func manArg(s string) string {
	s = strings.ReplaceAll(manText(s), `"`, `\(dq`)
	if s == "" || strings.ContainsAny(s, " \t") {
		return `"` + s + `"`
	}
	return s
}

func (p *page) head(title, summary string) {
	p.line(".\\\" Made from the flags of the program: go test ./cmd/refaudit -run Man -rewrite")
	p.line(".Dd %s\n.Dt %s 1\n.Os\n.Sh NAME\n.Nm %s\n.Nd %s", manDate, strings.ToUpper(title), title, manText(summary))
}

func (p *page) flags(flags []cli.Flag) {
	p.line(".Bl -tag -width Ds")
	for _, f := range flags {
		doc, ok := f.(cli.DocGenerationFlag)
		if v, visible := f.(cli.VisibleFlag); !ok || visible && !v.IsVisible() || f.Names()[0] == "help" {
			continue
		}
		value, usage := flagUsage(doc)
		if value == "" {
			value = "value"
		}
		var names []string
		for _, n := range f.Names() {
			name := "Fl " + strings.TrimPrefix(dashed(n), "-")
			if doc.TakesValue() && len(n) > 1 {
				name += " Ns = Ns Ar " + value
			} else if doc.TakesValue() {
				name += " Ar " + value
			}
			names = append(names, name)
		}
		p.line(".It %s", strings.Join(names, " , "))
		p.text(sentence(usage))
		if preset := doc.GetDefaultText(); doc.TakesValue() && preset != "" && preset != `""` && preset != "0" && preset != "0s" && preset != "[]" {
			p.line("By default %s.", manText(strings.Trim(preset, `"`)))
		}
	}
	p.line(".It Fl h , Fl -help\nShow help.\n.El")
}

func sentence(s string) string {
	s = strings.ToUpper(s[:1]) + s[1:]
	if !strings.HasSuffix(s, ".") {
		s += "."
	}
	return s
}

func (p *page) see(pages []string, self string) {
	p.line(".Sh SEE ALSO")
	var rest []string
	for _, name := range pages {
		if name != self {
			rest = append(rest, name)
		}
	}
	for i, name := range rest {
		end := " ,"
		if i == len(rest)-1 {
			end = ""
		}
		p.line(".Xr %s 1%s", name, end)
	}
}

// commandPage is the page of one command, with those below it.
func commandPage(c *cli.Command, pages []string) string {
	p := &page{}
	name := "refaudit-" + c.Name
	p.head(name, c.Usage)
	p.line(".Sh SYNOPSIS")
	if len(c.Subcommands) == 0 {
		p.synopsis(c.Name, c)
	}
	for _, s := range c.Subcommands {
		p.synopsis(c.Name+" "+s.Name, s)
	}
	p.line(".Sh DESCRIPTION")
	p.text(sentence(c.Usage))
	if c.Description != "" {
		p.line(".Pp")
		p.text(c.Description)
	}
	if len(c.Subcommands) == 0 {
		p.line(".Pp\nThe options:")
		p.flags(c.Flags)
	}
	for _, s := range c.Subcommands {
		p.line(".Ss refaudit %s %s", c.Name, s.Name)
		p.text(sentence(s.Usage))
		if s.Description != "" {
			p.line(".Pp")
			p.text(s.Description)
		}
		p.line(".Pp\nThe options:")
		p.flags(s.Flags)
	}
	p.line(".Sh EXIT STATUS\nSee\n.Xr refaudit 1 .")
	p.see(pages, name)
	return p.b.String()
}

func (p *page) synopsis(words string, c *cli.Command) {
	p.line(".Nm refaudit %s\n.Op Ar option ...", words)
	for _, alternative := range strings.Split(c.ArgsUsage, " | ") {
		switch word := strings.Trim(manText(alternative), "[]"); {
		case alternative == "" || strings.HasPrefix(word, "-"):
		case strings.HasPrefix(alternative, "["):
			p.line(".Op Ar %s", manArg(strings.ReplaceAll(word, "...", " ...")))
		default:
			p.line(".Ar %s", strings.ReplaceAll(word, "...", " ..."))
		}
	}
}

func mainPage(app *cli.App, pages []string) string {
	p := &page{}
	p.head("refaudit", app.Usage)
	p.line(".Sh SYNOPSIS\n.Nm refaudit\n.Ar command\n.Op Ar option ...\n.Op Ar path ...\n.Nm refaudit\n.Fl -version\n.Op Fl -json\n.Sh DESCRIPTION")
	p.text(`
Beside a reference to an annotated tag git caches the object that the tag finally leads to: its peeled value.
Every ls-remote, clone and fetch serves that cache without a look at the object.
refaudit compares each cached peel in packed-refs files and reftables with the raw objects, names the ref, the cause and the way out, and
names the corrupt tag that breaks every clone.
It repairs what is a cache or a header, under git's own locks, and can take a repair back.

A path is a repository: a bare one, a git dir, a working tree or a .git file.
Without a path it is the repository that we stand in, or that GIT_DIR names.
Options after a path are understood too; two dashes end them.
The commands, each with a page of its own:`)
	p.line(".Bl -tag -width fingerprint")
	for _, c := range app.Commands {
		if !c.Hidden && c.Name != "help" {
			p.line(".It Xr refaudit-%s 1", c.Name)
			p.text(sentence(c.Usage))
		}
	}
	p.line(".El\n.Sh ENVIRONMENT\n.Bl -tag -width Ds")
	for _, v := range [][2]string{
		{"GIT_DIR", "Which repository, as with git. So are GIT_COMMON_DIR, GIT_OBJECT_DIRECTORY, GIT_ALTERNATE_OBJECT_DIRECTORIES, GIT_REFERENCE_BACKEND, GIT_CEILING_DIRECTORIES and GIT_CONFIG_COUNT."},
		{"GIT_PROGRESS_DELAY", "Seconds until progress is drawn on a terminal; 1 if unset."},
		{"NO_COLOR", "Without colours, if set and not empty."},
		{"REFAUDIT_LOG", "What is logged on standard error: debug, info, warn or error."},
		{"XDG_STATE_HOME", "Where what is remembered lies, in refaudit/."},
	} {
		p.line(".It Ev %s", v[0])
		p.text(v[1])
	}
	p.line(".El\n.Sh FILES\n.Bl -tag -width Ds\n.It Pa /var/lib/refaudit\n.It Pa $XDG_STATE_HOME/refaudit\n.It Pa ~/.local/state/refaudit")
	p.text("The journal of repairs, and what scans and guards remember; the first is root's.")
	p.line(".El\n.Sh EXIT STATUS\nThe same for every command:\n.Pp\n.Bl -tag -width 129 -compact")
	for _, code := range [][2]string{
		{"0", "Done fully, and nothing at or above --fail-on (error) is left."},
		{"1", "Findings are left."},
		{"2", "Never given on purpose: a crash. With `refaudit nagios --nagios-codes` it is CRITICAL."},
		{"3", "Incomplete: something could not be read, is unsupported, timed out, or nothing matched."},
		{"4", "With --detailed-exitcode: clean now, and something was changed."},
		{"5", "A lock was not obtained in time; safe to try again."},
		{"6", "Refused for safety; nothing was written."},
		{"7", "Findings are left, and something could not be looked at."},
		{"128+n", "Ended by signal n, after the summary was written."},
		{"129", "Usage or configuration error; nothing was read."},
	} {
		p.line(".It %s", code[0])
		p.text(code[1])
	}
	p.line(".El\n.Sh EXAMPLES")
	p.text(`
One repository, and all below a folder:

    refaudit scan /srv/git/x.git
    refaudit scan --recursive --quiet /srv/git

What a repair would do, and the repair:

    refaudit fix --dry-run /srv/git/x.git
    refaudit fix --yes /srv/git/x.git

A gate before gc:

    refaudit guard --quiet /srv/git/x.git && git -C /srv/git/x.git gc`)
	p.see(pages, "refaudit")
	return p.b.String()
}

func helperPage(pages []string) string {
	p := &page{}
	p.head("git-remote-refaudit", "git remote helper that judges the tags of a fetch")
	p.line(".Sh SYNOPSIS\n.Nm git clone\n.Ar refaudit::url\n.Sh DESCRIPTION")
	p.text(`
The same program as refaudit, under the name by which git looks for a remote helper.
What the remote advertises as peeled is compared with the tags that arrive.
Objects arrive in a quarantine, tags are judged there, and only then do they enter the repository.
A finding refuses the fetch and names the ref; with the setting refaudit.remote.onFinding=warn it is a warning.
Pushes are passed through.
The inner url is https, ssh, file or a local path.`)
	p.see(pages, "git-remote-refaudit")
	return p.b.String()
}

func manPages() map[string]string {
	app := newApp(env{getenv: func(string) (string, bool) { return "", false }}, "")
	names := []string{"git-remote-refaudit", "refaudit"}
	for _, c := range app.Commands {
		if !c.Hidden && c.Name != "help" {
			names = append(names, "refaudit-"+c.Name)
		}
	}
	slices.Sort(names)
	pages := map[string]string{"refaudit.1": mainPage(app, names), "git-remote-refaudit.1": helperPage(names)}
	for _, c := range app.Commands {
		if !c.Hidden && c.Name != "help" {
			pages["refaudit-"+c.Name+".1"] = commandPage(c, names)
		}
	}
	return pages
}

var manDir = filepath.Join("..", "..", "man", "man1")

// The pages that are kept say what the program takes now.
func TestManPagesAreUpToDate(t *testing.T) {
	pages := manPages()
	for name, text := range pages {
		file := filepath.Join(manDir, name)
		if *rewriteMan {
			if err := os.MkdirAll(manDir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if kept, err := os.ReadFile(file); err != nil || !bytes.Equal(kept, []byte(text)) {
			t.Errorf("%s is out of date (%v): go test ./cmd/refaudit -run Man -rewrite", name, err)
		}
	}
	kept, err := os.ReadDir(manDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range kept {
		if pages[e.Name()] == "" {
			t.Errorf("man/man1/%s is about no command", e.Name())
		}
	}
}

func TestMandocTakesTheManPages(t *testing.T) {
	mandoc, err := exec.LookPath("mandoc")
	if err != nil {
		t.Skip("there is no mandoc")
	}
	files, err := filepath.Glob(filepath.Join(manDir, "*.1"))
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	c := exec.Command(mandoc, append([]string{"-T", "lint"}, files...)...)
	out, _ := c.CombinedOutput() // its code tells no more than its output
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		if line != "" && !strings.Contains(line, "referenced manual not found") { // ours aren't installed here
			t.Error(line)
		}
	}
	shown, err := exec.Command(mandoc, "-T", "utf8", filepath.Join(manDir, "refaudit-scan.1")).Output()
	if err != nil || !bytes.Contains(shown, []byte("never writes to one")) {
		t.Errorf("%v: %s", err, shown)
	}
}
