package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"refaudit/internal/state"
	"refaudit/internal/vfs"
)

// stateOptions say where we keep what is to be known in the next run.
type stateOptions struct {
	dir         string
	lockTimeout time.Duration
}

func (o *stateOptions) flags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "state", Destination: &o.dir, Usage: "remember what was seen below `DIR` (default: $XDG_STATE_HOME/refaudit, root's in /var/lib/refaudit)"},
	}
}

// folder finds the folder. It need not be there.
func (o *stateOptions) folder(e env) (*state.Folder, error) {
	e.arm()
	dir := o.dir
	if dir == "" {
		var err error
		if dir, err = state.Place(e.getenv, os.Geteuid() == 0); err != nil {
			return nil, &usageError{err}
		}
	}
	return state.New(vfs.OS{}, e.abs(dir)), nil
}

// lock keeps others of our kind away. Where one is at work the code is 5.
func (o *stateOptions) lock(ctx context.Context, e env, folder *state.Folder, name string) (*vfs.Held, error) {
	held, err := folder.Lock(ctx, name, o.lockTimeout)
	if errors.Is(err, state.ErrHeld) {
		fmt.Fprintf(e.stderr, "refaudit: %v\n", err)
		return nil, exitWith(exitLocked)
	}
	return held, err
}
