package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"refaudit/internal/remotehelper"
	"refaudit/reports"
)

// remoteHelperName is what git calls us for a URL refaudit::<url>.
const remoteHelperName = "git-remote-refaudit"

// exitHelper is how a remote helper fails: git has one code for all, and so have the helpers that come with it.
const exitHelper = 128

// isRemoteHelper tells by the name that we were called by.
func isRemoteHelper(argv0 string) bool {
	return strings.TrimSuffix(filepath.Base(argv0), ".exe") == remoteHelperName
}

// runRemoteHelper serves git on stdin and stdout, and gives the exit code.
func runRemoteHelper(ctx context.Context, e env, args []string) int {
	if len(args) != 3 {
		fmt.Fprintf(e.stderr, "usage: %s <remote> <url>\n\ngit runs it for a URL %q: git clone refaudit::https://example.com/a.git\n", remoteHelperName, "refaudit::<url>")
		return exitUsage
	}
	e.arm()
	// git may go away while we write to it: that is an error to clean up after, not the end.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	err := remotehelper.Run(ctx, remotehelper.Options{Name: args[1], URL: args[2], Env: os.Environ(), Dir: e.dir,
		In: e.stdin, Out: e.stdout, Err: e.stderr, Log: e.log, Now: e.now})
	var sig *signalError
	switch {
	case err == nil:
		return exitOK
	case errors.As(context.Cause(ctx), &sig):
		return sig.code()
	}
	fmt.Fprintf(e.stderr, "fatal: refaudit: %s\n", reports.Escape(err.Error()))
	return exitHelper
}
