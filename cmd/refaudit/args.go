package main

import (
	"strings"

	"github.com/urfave/cli/v2"
)

// permute moves flags that stand after a PATH before it, since the library stops reading flags
// at the first argument that is none. `--` ends the flags; what follows stays as it is. Where a value is missing,
// or help is asked for, no PATH follows: the library would take what follows for the value, or for a topic.
func permute(args []string, commands []*cli.Command, global []cli.Flag) []string {
	if len(args) < 2 {
		return args
	}
	at := 1
	inCommand, flagsOnly := false, false
	takes := valueFlags(global)
	var flags, rest []string
	out := []string{args[0]}
	for at < len(args) {
		a := args[at]
		switch {
		case a == "--":
			rest = append(rest, args[at:]...)
			at = len(args)
		case len(a) > 1 && a[0] == '-':
			flags = append(flags, a)
			name := strings.TrimLeft(a, "-")
			switch {
			case strings.Contains(name, "=") || !takes[name]:
				flagsOnly = flagsOnly || inCommand && (name == "help" || name == "h")
			case at+1 < len(args):
				at++
				flags = append(flags, args[at])
			default:
				flagsOnly = true
			}
			at++
		default:
			if c := commandNamed(commands, a); c != nil && len(rest) == 0 {
				out = append(append(out, flags...), a)
				flags, commands, inCommand = nil, c.Subcommands, true
				takes = valueFlags(c.Flags)
			} else {
				rest = append(rest, a)
				commands = nil
			}
			at++
		}
	}
	out = append(out, flags...)
	if flagsOnly {
		return out
	}
	if len(rest) > 0 && rest[0] != "--" {
		out = append(out, "--")
	}
	for i, r := range rest { // one `--` is enough
		if r == "--" && i > 0 {
			return append(out, append(append([]string{}, rest[:i]...), rest[i+1:]...)...)
		}
	}
	return append(out, rest...)
}

func commandNamed(commands []*cli.Command, name string) *cli.Command {
	for _, c := range commands {
		if c.HasName(name) {
			return c
		}
	}
	return nil
}

// valueFlags are the names of the flags that take a value.
func valueFlags(flags []cli.Flag) map[string]bool {
	out := map[string]bool{}
	for _, f := range flags {
		if v, ok := f.(cli.DocGenerationFlag); ok && v.TakesValue() {
			for _, n := range f.Names() {
				out[n] = true
			}
		}
	}
	return out
}
