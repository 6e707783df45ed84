package main

import (
	"context"
	"errors"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"refaudit/repo"
)

// version is set by the build: -ldflags "-X main.version=1.2.3".
var version = ""

func versionString() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// run is the program: it runs one command, or is git's remote helper, and gives its exit code.
func run(ctx context.Context, e env, args []string) int {
	if isRemoteHelper(args[0]) {
		return runRemoteHelper(ctx, e, args)
	}
	e.userFiles = &repo.UserFiles{}
	app := newApp(e, onlyCommand(args))
	err := app.RunContext(ctx, permute(args, app.Commands, app.Flags))
	if cause := context.Cause(ctx); cause != nil && err != nil {
		var code *codeError
		if !errors.As(err, &code) {
			err = errors.Join(err, cause)
		}
	}
	return exitCode(err, e.stderr)
}

// commands make the commands, in the order of the help.
var commands = []struct {
	name string
	make func(env) *cli.Command
}{
	{"scan", scanCommand},
	{"fix", fixCommand},
	{"undo", undoCommand},
	{"child", childCommand},
	{"size", sizeCommand},
	{"dump", dumpCommand},
	{"hook", hookCommand},
	{"explain", explainCommand},
	{"guard", guardCommand},
	{"fingerprint", fingerprintCommand},
	{"nagios", nagiosCommand},
	{"config", configCommand},
	{"completion", completionCommand},
	{"version", versionCommand},
}

// onlyCommand is the command that the arguments begin with, if it does without the others: a run need not make
// the flags of all. "" where the help or a completion tells of them.
func onlyCommand(args []string) string {
	if len(args) > 1 && args[1] != "completion" {
		for _, c := range commands {
			if c.name == args[1] {
				return c.name
			}
		}
	}
	return ""
}

// newApp makes the program with one command; "" for all.
func newApp(e env, only string) *cli.App {
	app := &cli.App{
		Name:                   "refaudit",
		Usage:                  "audit the reference databases of git repositories",
		Version:                versionString(),
		Writer:                 e.stdout,
		ErrWriter:              e.stderr,
		HideVersion:            true,
		Compiled:               time.Unix(1, 0), // not shown anywhere; the library would ask the disk
		UseShortOptionHandling: false,
		ExitErrHandler:         func(*cli.Context, error) {}, // exit.go alone ends the program
		OnUsageError:           wrongUsage("refaudit"),
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "version", Usage: "print the version, with --json what it was built from too"},
			&cli.BoolFlag{Name: "json", Hidden: true, Usage: "with --version: as JSON"},
		},
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return usagef("no command %q (see refaudit --help)", c.Args().First())
			}
			if c.Bool("version") {
				return runVersion(e, c.Bool("json"))
			}
			return cli.ShowAppHelp(c)
		},
	}
	for _, c := range commands {
		if only == "" || only == c.name {
			app.Commands = append(app.Commands, c.make(e))
		}
	}
	app.Flags = known(app.Flags)
	for _, c := range app.Commands {
		prepare(e, c, "refaudit "+c.Name)
	}
	return app
}

// noSubcommand answers a command that only has commands below it.
func noSubcommand(c *cli.Context) error {
	if c.Args().Present() {
		return usagef("no command %q below %s (see refaudit %s --help)", c.Args().First(), c.Command.Name, c.Command.Name)
	}
	return usagef("%s takes a command (see refaudit %s --help)", c.Command.Name, c.Command.Name)
}

// onlyReads are the commands that write nothing but what is asked for with flags, and often end soon.
var onlyReads = map[string]bool{"scan": true, "size": true}

// prepare makes a command, which people call by these words, and those below it report their usage errors our way.
func prepare(e env, c *cli.Command, words string) {
	c.OnUsageError = wrongUsage(words)
	c.HideHelpCommand = true
	c.Before = func(ctx *cli.Context) error {
		if !onlyReads[c.Name] {
			e.arm()
		}
		return errors.Join(noEmptyValue(ctx), noEmptyArgument(ctx))
	}
	c.Flags = known(c.Flags)
	for _, s := range c.Subcommands {
		prepare(e, s, words+" "+s.Name)
	}
}

// noEmptyValue refuses --flag="", which is a variable of a script that is not set: to take it for a flag that
// was not given would do something else than was meant.
func noEmptyValue(c *cli.Context) error {
	for _, f := range c.Command.Flags {
		flag, ours := f.(*knownFlag)
		if !ours { // --help
			continue
		}
		name := flag.names[0]
		if !c.IsSet(name) {
			continue
		}
		values := []string{"-"}
		switch flag.libraryFlag.(type) {
		case *cli.StringFlag:
			values = []string{c.String(name)}
		case *cli.GenericFlag:
			values = *c.Generic(name).(*globs)
		}
		if slices.Contains(values, "") {
			return usagef("--%s takes a value, and was given an empty one", name)
		}
	}
	return nil
}

// noEmptyArgument refuses an empty argument, which is such a variable too, before anything is done about those beside it: the
// path would be that of the folder we are in.
func noEmptyArgument(c *cli.Context) error {
	switch {
	case len(c.Command.Subcommands) > 0 || !slices.Contains(c.Args().Slice(), ""):
		return nil // what is below it judges its own
	case strings.Contains(c.Command.ArgsUsage, "PATH"):
		return usagef("an empty PATH names no repository")
	}
	return usagef("an argument is empty (see refaudit %s --help)", c.Command.Name)
}

// libraryFlag is what the library's flags can do.
type libraryFlag interface {
	cli.DocGenerationFlag
	cli.CategorizableFlag
	cli.RequiredFlag
	cli.ActionableFlag
}

// A knownFlag knows its names. The library's flags find theirs with a regular expression, and each is asked
// for them as often as there are flags.
type knownFlag struct {
	libraryFlag
	names []string
}

// Names implements cli.Flag.
func (f *knownFlag) Names() []string { return f.names }

func known(flags []cli.Flag) []cli.Flag {
	out := make([]cli.Flag, len(flags))
	for i, f := range flags {
		out[i] = &knownFlag{f.(libraryFlag), slices.Clip(f.Names())}
	}
	return out
}
