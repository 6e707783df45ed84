// Command refaudit audits the reference databases of git repositories. Under the name
// git-remote-refaudit it is a git remote helper.
package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/term"

	"refaudit/internal/logging"
	"refaudit/repo"
)

// env is what a command gets from the world, so that tests can run commands in memory.
type env struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	log            *logging.Logger
	now            func() time.Time
	getenv         func(string) (string, bool)
	dir            string          // the working folder
	terminal       bool            // stdout is one
	errTerminal    bool            // stderr is one
	signals        *signals        // nil: they are caught
	userFiles      *repo.UserFiles // the user's configuration as it was when the run began; nil: as it is
}

// seeing says how a command that only reads sees repositories: all of them under the same configuration of the user.
func (e *env) seeing() repo.Options {
	return repo.Options{Env: e.getenv, Cwd: e.dir, UserFiles: e.userFiles}
}

// arm makes sure that signals are caught. Who is about to write anything calls it first, so that no signal can
// end the program in the middle of it.
func (e *env) arm() {
	if e.signals != nil {
		e.signals.arm()
	}
}

// fresh says how a command that writes sees repositories: each under the user's configuration as it is by then.
func (e *env) fresh() repo.Options { return repo.Options{Env: e.getenv, Cwd: e.dir} }

// abs makes a path absolute, so that a repository has the same name in every run.
func (e *env) abs(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(e.dir, path)
}

func main() {
	ctx, signals := withSignals(context.Background())
	dir, _ := os.Getwd()
	e := env{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, now: time.Now, getenv: os.LookupEnv, dir: dir, signals: signals,
		terminal: term.IsTerminal(int(os.Stdout.Fd())), errTerminal: term.IsTerminal(int(os.Stderr.Fd()))}
	e.log = logging.New(os.Stderr, logLevel(e.getenv), e.now)
	os.Exit(run(ctx, e, os.Args))
}

// logLevel is what REFAUDIT_LOG=debug|info|warn|error asks for.
func logLevel(getenv func(string) (string, bool)) logging.Level {
	if word, ok := getenv("REFAUDIT_LOG"); ok {
		if level, err := logging.ParseLevel(word); err == nil {
			return level
		}
	}
	return logging.Warn
}
