package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"refaudit/finding"
	"refaudit/reports"
)

func completionCommand(e env) *cli.Command {
	return &cli.Command{
		Name:      "completion",
		Usage:     "print a script that completes our commands and flags in a shell",
		ArgsUsage: "bash|zsh|fish",
		Description: "Put it where the shell looks for it:\n\n" +
			"    refaudit completion bash > /etc/bash_completion.d/refaudit\n" +
			"    refaudit completion zsh > /usr/local/share/zsh/site-functions/_refaudit\n" +
			"    refaudit completion fish > ~/.config/fish/completions/refaudit.fish",
		Action: func(c *cli.Context) error {
			if c.Args().Len() != 1 {
				return usagef("completion takes one shell: bash, zsh or fish")
			}
			var b strings.Builder
			commands := completions(c.App)
			switch shell := c.Args().First(); shell {
			case "bash":
				bashCompletion(&b, commands)
			case "zsh":
				zshCompletion(&b, commands)
			case "fish":
				fishCompletion(&b, commands)
			default:
				return usagef("no completion for %q: there are bash, zsh and fish", shell)
			}
			_, err := io.WriteString(e.stdout, b.String())
			return err
		},
	}
}

// completed is one command as a shell completes it.
type completed struct {
	path  []string // ["hook", "install"]; none for refaudit itself
	usage string
	below []string // commands
	words []string // what may stand where no flag does; none: files
	flags []completedFlag
}

type completedFlag struct {
	names  []string // without dashes, the long one first
	usage  string
	takes  bool
	values []string // that it may have; none: files, or anything
}

// flagValues are the values of flags that have few.
func flagValues() map[string][]string {
	return map[string][]string{
		"format":     reports.Formats,
		"level":      {"quick", "standard", "deep"},
		"fail-on":    {"error", "warn", "info", "never"},
		"color":      {"auto", "always", "never"},
		"progress":   {"auto", "plain", "none"},
		"page-cache": {"auto", "leave", "use"},
		"style":      {"git", "gitaly", "gitea"},
		"method":     {"auto", "bitmap", "walk"},
		"by":         {"type", "ref-namespace"},
		"only":       messageIDs(),
	}
}

func messageIDs() (ids []string) {
	for i := range finding.Catalog {
		ids = append(ids, string(finding.Catalog[i].ID))
	}
	return ids
}

// completions are all commands, refaudit itself first.
func completions(app *cli.App) []completed {
	root := completed{usage: app.Usage, flags: completedFlags(app.Flags)}
	all := []completed{root}
	all[0].below = addCommands(&all, nil, app.Commands)
	return all
}

func addCommands(all *[]completed, path []string, commands []*cli.Command) (names []string) {
	for _, c := range commands {
		if c.Hidden || c.Name == "help" {
			continue
		}
		names = append(names, c.Name)
		one := completed{path: append(slices.Clone(path), c.Name), usage: c.Usage, flags: completedFlags(c.Flags)}
		switch c.Name {
		case "explain":
			one.words = messageIDs()
		case "completion":
			one.words = []string{"bash", "zsh", "fish"}
		}
		at := len(*all)
		*all = append(*all, one)
		(*all)[at].below = addCommands(all, one.path, c.Subcommands)
	}
	return names
}

func completedFlags(flags []cli.Flag) (all []completedFlag) {
	values := flagValues()
	for _, f := range flags {
		if v, ok := f.(cli.VisibleFlag); ok && !v.IsVisible() {
			continue
		}
		doc, ok := f.(cli.DocGenerationFlag)
		if !ok {
			continue
		}
		_, usage := flagUsage(doc)
		one := completedFlag{names: f.Names(), usage: usage, takes: doc.TakesValue(), values: values[f.Names()[0]]}
		if f.Names()[0] != "help" {
			all = append(all, one)
		}
	}
	return append(all, completedFlag{names: []string{"help", "h"}, usage: "show help"})
}

// flagUsage cuts what a flag's usage says into the name of its value, which stands in backquotes, and the text.
func flagUsage(f cli.DocGenerationFlag) (placeholder, usage string) {
	usage = f.GetUsage()
	before, rest, found := strings.Cut(usage, "`")
	name, after, closed := strings.Cut(rest, "`")
	if !found || !closed {
		return "", usage
	}
	return name, before + name + after
}

func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

func (c *completed) dashed() (names []string) {
	for _, f := range c.flags {
		for _, n := range f.names {
			names = append(names, dashed(n))
		}
	}
	return names
}

func shellWord(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func bashCompletion(b *strings.Builder, commands []completed) {
	b.WriteString(`# bash completion for refaudit
_refaudit() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} path= word i words= flags= values=
	local IFS=$' \t\n'
	COMPREPLY=()
	if [[ $cur == = ]]; then
		cur=
	elif [[ $prev == = ]]; then
		prev=${COMP_WORDS[COMP_CWORD-2]}
	fi
	for ((i = 1; i < COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		case "$path $word" in
`)
	for _, c := range commands[1:] {
		fmt.Fprintf(b, "\t\t%s) path=%s ;;\n", shellWord(strings.TrimPrefix(" "+strings.Join(c.path[:len(c.path)-1], " "), " ")+" "+c.path[len(c.path)-1]), shellWord(strings.Join(c.path, " ")))
	}
	b.WriteString("\t\tesac\n\tdone\n\tcase $path in\n")
	for _, c := range commands {
		fmt.Fprintf(b, "\t%s)\n\t\tflags=%s words=%s\n", shellWord(strings.Join(c.path, " ")), shellWord(strings.Join(c.dashed(), " ")), shellWord(strings.Join(append(slices.Clone(c.below), c.words...), " ")))
		b.WriteString("\t\tcase $prev in\n")
		for _, f := range c.flags {
			if !f.takes {
				continue
			}
			var names []string
			for _, n := range f.names {
				names = append(names, dashed(n))
			}
			values := "-"
			if len(f.values) > 0 {
				values = strings.Join(f.values, " ")
			}
			fmt.Fprintf(b, "\t\t%s) values=%s ;;\n", strings.Join(names, " | "), shellWord(values))
		}
		b.WriteString("\t\tesac\n\t\t;;\n")
	}
	b.WriteString(`	esac
	if [[ $values == - ]]; then
		IFS=$'\n'
		COMPREPLY=($(compgen -f -- "$cur"))
	elif [[ -n $values ]]; then
		COMPREPLY=($(compgen -W "$values" -- "$cur"))
	elif [[ $cur == -* ]]; then
		COMPREPLY=($(compgen -W "$flags" -- "$cur"))
	elif [[ -n $words ]]; then
		COMPREPLY=($(compgen -W "$words" -- "$cur"))
	else
		IFS=$'\n'
		COMPREPLY=($(compgen -f -- "$cur"))
	fi
}
complete -o filenames -F _refaudit refaudit
`)
}

// zshText is text within a specification of _arguments.
func zshText(s string) string {
	return strings.NewReplacer(`\`, `\\`, "[", `\[`, "]", `\]`, ":", `\:`, "'", `'\''`).Replace(s)
}

func zshCompletion(b *strings.Builder, commands []completed) {
	b.WriteString("#compdef refaudit\n")
	for i := range commands {
		c := &commands[i]
		fmt.Fprintf(b, "\n%s() {\n\tlocal context state state_descr line\n\ttypeset -A opt_args\n\t_arguments -C -S \\\n", zshName(c.path))
		for _, f := range c.flags {
			for _, n := range f.names {
				spec := dashed(n)
				if f.takes && len(n) > 1 {
					spec += "="
				}
				spec += "[" + zshText(f.usage) + "]"
				switch {
				case f.takes && len(f.values) > 0:
					spec += ":value:(" + strings.Join(f.values, " ") + ")"
				case f.takes:
					spec += ":value:_files"
				}
				fmt.Fprintf(b, "\t\t'%s' \\\n", spec)
			}
		}
		switch {
		case len(c.below) > 0:
			b.WriteString("\t\t'1:command:->command' \\\n\t\t'*::argument:->argument'\n")
			fmt.Fprintf(b, "\tcase $state in\n\tcommand)\n\t\tlocal -a below\n\t\tbelow=(\n")
			for _, name := range c.below {
				fmt.Fprintf(b, "\t\t\t'%s:%s'\n", name, zshText(commandUsage(commands, c.path, name)))
			}
			b.WriteString("\t\t)\n\t\t_describe command below\n\t\t;;\n\targument)\n\t\tcase $line[1] in\n")
			for _, name := range c.below {
				fmt.Fprintf(b, "\t\t%s) %s ;;\n", name, zshName(append(slices.Clone(c.path), name)))
			}
			b.WriteString("\t\tesac\n\t\t;;\n\tesac\n")
		case len(c.words) > 0:
			fmt.Fprintf(b, "\t\t'*:word:(%s)'\n", strings.Join(c.words, " "))
		default:
			b.WriteString("\t\t'*:file:_files'\n")
		}
		b.WriteString("}\n")
	}
	b.WriteString("\n_refaudit \"$@\"\n")
}

func zshName(path []string) string { return strings.Join(append([]string{"_refaudit"}, path...), "_") }

func commandUsage(commands []completed, path []string, name string) string {
	for i := range commands {
		if slices.Equal(commands[i].path, append(slices.Clone(path), name)) {
			return commands[i].usage
		}
	}
	return ""
}

func fishText(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(s) + "'"
}

func fishCompletion(b *strings.Builder, commands []completed) {
	b.WriteString("# fish completion for refaudit\n")
	for i := range commands {
		c := &commands[i]
		condition := "__fish_use_subcommand"
		if n := len(c.path); n > 0 {
			condition = "__fish_seen_subcommand_from " + c.path[n-1]
			if n > 1 {
				condition = "__fish_seen_subcommand_from " + c.path[n-2] + "; and " + condition
			}
		}
		add := func(rest string) { fmt.Fprintf(b, "complete -c refaudit -n %s %s\n", fishText(condition), rest) }
		for _, name := range c.below {
			add("-f -a " + fishText(name) + " -d " + fishText(commandUsage(commands, c.path, name)))
		}
		if len(c.words) > 0 {
			add("-f -a " + fishText(strings.Join(c.words, " ")))
		}
		for _, f := range c.flags {
			var rest []string
			for _, n := range f.names {
				if len(n) == 1 {
					rest = append(rest, "-s "+n)
				} else {
					rest = append(rest, "-l "+n)
				}
			}
			switch {
			case len(f.values) > 0:
				rest = append(rest, "-x -a "+fishText(strings.Join(f.values, " ")))
			case f.takes:
				rest = append(rest, "-r")
			}
			add(strings.Join(append(rest, "-d "+fishText(f.usage)), " "))
		}
	}
}
