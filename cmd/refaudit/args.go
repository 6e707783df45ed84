package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

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

// globs are what a flag was given, each as it stands. The library's own lists take one with a comma, which ref names may have,
// for two, and trim blanks.
type globs []string

// Set implements flag.Value.
func (g *globs) Set(glob string) error {
	*g = append(*g, glob)
	return nil
}

func (g *globs) String() string { return strings.Join(*g, " ") }

// globsFlag is a flag that may be given more than once.
func globsFlag(name string, to *globs, usage string) cli.Flag {
	return &cli.GenericFlag{Name: name, Value: to, Usage: usage}
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

// flagInError finds the flag that an error of the library is about. It is compiled where there is an error: each start
// would do it for nothing else.
var flagInError = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`for (?:flag )?-([^ ]*): (?:parse error|value out of range)$`)
})

// wrongUsage makes a usage error of what the library says of a command's flags, with a hint.
func wrongUsage(words string) cli.OnUsageErrorFunc {
	return func(c *cli.Context, err error, _ bool) error {
		flags := c.App.Flags
		if c.Command != nil {
			flags = append(slices.Clone(flags), c.Command.Flags...)
		}
		if m := flagInError().FindStringSubmatch(err.Error()); m != nil {
			if hint := valueHint(flags, m[1]); hint != "" {
				err = fmt.Errorf("%w: %s", err, hint)
			}
		}
		return &usageError{fmt.Errorf("%w (see %s --help)", err, words)}
	}
}

// valueHint says what a flag's value is like.
func valueHint(flags []cli.Flag, name string) string {
	for _, f := range flags {
		if !slices.Contains(f.Names(), name) {
			continue
		}
		if k, ok := f.(*knownFlag); ok {
			f = k.libraryFlag
		}
		switch f.(type) {
		case *cli.DurationFlag:
			return "a time takes a unit, such as 90s, 10m or 24h"
		case *cli.IntFlag, *cli.Int64Flag:
			return "it takes a whole number, without a unit"
		case *cli.BoolFlag:
			return "it takes no value"
		}
	}
	return ""
}
