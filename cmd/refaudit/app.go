package main

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
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
	app := newApp(e)
	err := app.RunContext(ctx, permute(args, app.Commands, app.Flags))
	if cause := context.Cause(ctx); cause != nil && err != nil {
		var code *codeError
		if !errors.As(err, &code) {
			err = errors.Join(err, cause)
		}
	}
	return exitCode(err, e.stderr)
}

func newApp(e env) *cli.App {
	usage := func(c *cli.Context, err error, _ bool) error {
		if strings.Contains(err.Error(), "parse error") {
			err = fmt.Errorf("%w: a time takes a unit, such as 90s, 10m or 24h, and a number none", err)
		}
		return &usageError{fmt.Errorf("%w (see %s --help)", err, c.App.Name)}
	}
	app := &cli.App{
		Name:                   "refaudit",
		Usage:                  "audit the reference databases of git repositories",
		Version:                versionString(),
		Writer:                 e.stdout,
		ErrWriter:              e.stderr,
		HideVersion:            true,
		UseShortOptionHandling: false,
		ExitErrHandler:         func(*cli.Context, error) {}, // exit.go alone ends the program
		OnUsageError:           usage,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "version", Usage: "print the version, with --json what it was built from too"},
			&cli.BoolFlag{Name: "json", Hidden: true, Usage: "with --version: as JSON"},
		},
		Commands: []*cli.Command{
			scanCommand(e),
			fixCommand(e),
			undoCommand(e),
			childCommand(e),
			sizeCommand(e),
			dumpCommand(e),
			hookCommand(e),
			explainCommand(e),
			guardCommand(e),
			fingerprintCommand(e),
			nagiosCommand(e),
			configCommand(e),
			completionCommand(e),
			versionCommand(e),
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
	for _, c := range app.Commands {
		prepare(c, usage)
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

// prepare makes a command and those below it report their usage errors our way.
func prepare(c *cli.Command, usage cli.OnUsageErrorFunc) {
	c.OnUsageError = usage
	c.HideHelpCommand = true
	c.Before = noEmptyValue
	for _, s := range c.Subcommands {
		prepare(s, usage)
	}
}

// noEmptyValue refuses --flag="", which is a variable of a script that is not set: to take it for a flag that
// was not given would do something else than was meant.
func noEmptyValue(c *cli.Context) error {
	for _, f := range c.Command.Flags {
		name := f.Names()[0]
		if !c.IsSet(name) {
			continue
		}
		values := []string{"-"}
		switch f.(type) {
		case *cli.StringFlag:
			values = []string{c.String(name)}
		case *cli.StringSliceFlag:
			values = c.StringSlice(name)
		}
		if slices.Contains(values, "") {
			return usagef("--%s takes a value, and was given an empty one", name)
		}
	}
	return nil
}
