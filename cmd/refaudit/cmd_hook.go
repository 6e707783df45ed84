package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/urfave/cli/v2"

	"refaudit/internal/hook"
	"refaudit/repo"
	"refaudit/reports"
	"refaudit/scan"
)

func hookCommand(e env) *cli.Command {
	return &cli.Command{
		Name:   "hook",
		Usage:  "the pre-receive hook, and its installation",
		Action: noSubcommand,
		Subcommands: []*cli.Command{
			{
				Name:  "pre-receive",
				Usage: "judge the tags of a push; git runs it",
				Description: "Reads \"<old> <new> <ref>\" lines, looks through git's quarantine, and refuses the push with a line\n" +
					"for each bad ref. Settings: receive.fsck.<msg-id>, refaudit.receive.<msg-id>, refaudit.hook.onError (allow),\n" +
					"refaudit.hook.onTimeout (reject), refaudit.hook.timeout (10s), refaudit.hook.maxChainDepth (1000),\n" +
					"refaudit.hook.maxTagSize (16m). The exit code is 0 or 1.",
				Action: func(c *cli.Context) error { return runHook(c.Context, e) },
			},
			hookInstallCommand(e, "install", "add the hook beside those that exist", hook.Install),
			hookInstallCommand(e, "uninstall", "take the hook away again", func(p hook.Place, _ string) ([]string, error) { return hook.Uninstall(p) }),
		},
	}
}

// runHook answers git. Whatever happens, the code is 0 or 1: our own trouble is answered as
// refaudit.hook.onError says.
func runHook(ctx context.Context, e env) (err error) {
	settings := hook.Defaults
	defer func() {
		if r := recover(); r != nil {
			err = hookTrouble(e, settings.OnError, fmt.Errorf("a bug in refaudit: %v", r))
		}
	}()
	r, err := openHookRepo(e)
	if err != nil {
		return hookTrouble(e, settings.OnError, err)
	}
	settings, err = hook.ReadSettings(r.Config)
	if err != nil {
		return hookTrouble(e, settings.OnError, err)
	}
	ctx, cancel := context.WithTimeout(ctx, settings.Timeout)
	defer cancel()
	type answer struct {
		lines []string
		err   error
	}
	done := make(chan answer, 1)
	go func() {
		lines, err := judgePush(ctx, e, r, settings)
		done <- answer{lines, err}
	}()
	var a answer
	select {
	case a = <-done:
	case <-ctx.Done():
		a.err = ctx.Err()
	}
	switch {
	case errors.Is(a.err, context.DeadlineExceeded):
		return hookTrouble(e, settings.OnTimeout, fmt.Errorf("no judgement within %v (refaudit.hook.timeout)", settings.Timeout))
	case a.err != nil && len(a.lines) == 0:
		return hookTrouble(e, settings.OnError, a.err)
	}
	for _, l := range a.lines {
		fmt.Fprintln(e.stderr, l)
	}
	if a.err != nil {
		fmt.Fprintf(e.stderr, "refaudit: not all of the push could be judged: %s\n", reports.Escape(a.err.Error()))
	}
	if len(a.lines) > 0 {
		return exitWith(exitFindings)
	}
	return nil
}

// hookTrouble tells of a push that could not be judged, and answers it as it is configured.
func hookTrouble(e env, a hook.Answer, why error) error {
	verb := "let in unjudged"
	if a == hook.Reject {
		verb = "refused unjudged"
	}
	fmt.Fprintf(e.stderr, "refaudit: the push is %s: %s\n", verb, reports.Escape(why.Error()))
	if a == hook.Reject {
		return exitWith(exitFindings)
	}
	return nil
}

// openHookRepo opens the repository that git runs the hook in.
func openHookRepo(e env) (*repo.Repo, error) {
	o := e.seeing()
	if dir, ok := e.getenv("GIT_DIR"); ok && dir != "" {
		return repo.OpenGitDir(dir, o)
	}
	return repo.Open(e.dir, o)
}

func judgePush(ctx context.Context, e env, r *repo.Repo, s hook.Settings) (lines []string, err error) {
	defer func() { // the goroutine's own: a bug must answer as all other trouble does
		if p := recover(); p != nil {
			err = fmt.Errorf("a bug in refaudit: %v", p)
		}
	}()
	updates, unread := hook.ReadUpdates(e.stdin, r.Format)
	policy, err := scan.NewReceivePolicy(r, e.now())
	if err != nil {
		return nil, err
	}
	found, err := hook.Judge(ctx, r, policy, s, updates)
	if err == nil {
		err = unread
	}
	for i := range found {
		f := &found[i]
		lines = append(lines, fmt.Sprintf("refaudit: %s: %s: %s", reports.Escape(string(f.Ref)), f.ID, reports.Escape(f.Message)))
	}
	return lines, err
}

type hookInstallOptions struct {
	style   string
	program string
	paths   []string
}

func hookInstallCommand(e env, name, usage string, do func(hook.Place, string) ([]string, error)) *cli.Command {
	var o hookInstallOptions
	return &cli.Command{
		Name:        name,
		Usage:       usage,
		ArgsUsage:   "[PATH…]",
		Description: "A hook that is there is run too: it is kept in hooks.refaudit/, beside the folder of hooks. core.hooksPath is\nfollowed.\ngitolite: install into its common hooks folder, with core.hooksPath set to it.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "style", Value: string(hook.Plain), Destination: &o.style, Usage: "who runs the hooks: git, gitaly (custom_hooks/pre-receive.d) or gitea (hooks/pre-receive.d)"},
			&cli.StringFlag{Name: "program", Destination: &o.program, Usage: "the `PATH` of refaudit that the hook runs (this one)"},
		},
		Action: func(c *cli.Context) error {
			o.paths = c.Args().Slice()
			return runHookInstall(e, o, do)
		},
	}
}

func runHookInstall(e env, o hookInstallOptions, do func(hook.Place, string) ([]string, error)) error {
	style, err := hook.ParseStyle(o.style)
	if err != nil {
		return &usageError{err}
	}
	if err := e.checkConfig(); err != nil {
		return err
	}
	if o.program == "" {
		if o.program, err = os.Executable(); err != nil {
			return err
		}
	}
	opts := e.fresh()
	if len(o.paths) == 0 {
		r, err := repo.Discover(e.dir, opts)
		if err != nil {
			return err
		}
		o.paths = []string{r.GitDir}
	}
	code := exitOK
	for _, path := range o.paths {
		did, err := installAt(e.abs(path), opts, style, e.abs(o.program), do)
		for _, d := range did {
			fmt.Fprintln(e.stdout, reports.Escape(d))
		}
		if err != nil {
			fmt.Fprintf(e.stderr, "refaudit: %s\n", reports.Escape(err.Error()))
			code = exitIncomplete
			if errors.Is(err, errNotOwner) {
				code = exitRefused
			}
		}
	}
	return exitWith(code)
}

// errNotOwner is the refusal to write to somebody else's repository.
var errNotOwner = errors.New("the repository belongs to somebody else")

func installAt(path string, o repo.Options, style hook.Style, program string, do func(hook.Place, string) ([]string, error)) ([]string, error) {
	r, err := repo.Open(path, o)
	if err != nil {
		return nil, err
	}
	if err := r.CheckOwner(); err != nil {
		return nil, fmt.Errorf("%w: %w", errNotOwner, err)
	}
	hooks, err := r.HooksDir()
	if err != nil {
		return nil, err
	}
	return do(hook.Place{GitDir: r.CommonDir, Hooks: hooks, Style: style}, program)
}
