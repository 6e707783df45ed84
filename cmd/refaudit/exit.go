package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"refaudit/finding"
	"refaudit/reports"
)

// The exit codes, the same for every command and frozen; docs/exit-codes.md explains them.
const (
	exitOK         = 0
	exitFindings   = 1   // findings are left
	exitIncomplete = 3   // something could not be read, is unsupported, timed out, or nothing matched
	exitChanged    = 4   // only with --detailed-exitcode: clean now, and something was changed
	exitLocked     = 5   // a lock was not obtained in time; safe to try again
	exitRefused    = 6   // refused for safety; nothing was written
	exitBoth       = 7   // findings are left, and something could not be looked at
	exitSignal     = 128 // plus the number of the signal
	exitUsage      = 129 // usage or configuration error; nothing was read
)

// usageError is a mistake in how we were called.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// codeError ends a command with a code that its report has explained already.
type codeError struct{ code int }

func (e *codeError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// exitWith turns a code that the report has explained into an error; 0 into nil.
func exitWith(code int) error {
	if code == exitOK {
		return nil
	}
	return &codeError{code}
}

// signalError is the cause of a context that a signal ended.
type signalError struct{ sig os.Signal }

func (e *signalError) Error() string { return e.sig.String() }

func (e *signalError) code() int {
	if n, ok := e.sig.(syscall.Signal); ok {
		return exitSignal + int(n)
	}
	return exitSignal
}

// exitCode is the one place where an error becomes a number. What was not explained yet is said on stderr.
func exitCode(err error, stderr io.Writer) int {
	var (
		code  *codeError
		usage *usageError
		sig   *signalError
	)
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &code):
		return code.code
	case errors.As(err, &sig):
		fmt.Fprintf(stderr, "refaudit: ended by %v\n", sig)
		return sig.code()
	case errors.As(err, &usage), isLibrary(err):
		say(stderr, err)
		return exitUsage
	}
	say(stderr, err)
	return exitIncomplete
}

// isLibrary tells an error of the command line library, such as help on a command that there isn't.
func isLibrary(err error) bool {
	_, ok := errors.AsType[cli.ExitCoder](err)
	return ok
}

// say prints an error, each of its lines once.
func say(w io.Writer, err error) {
	told := map[string]bool{}
	for _, line := range strings.Split(err.Error(), "\n") {
		if !told[line] {
			told[line] = true
			fmt.Fprintf(w, "refaudit: %s\n", reports.Escape(line))
		}
	}
}

// verdict is the code of a run that looked at repositories.
func verdict(atOrAboveFailOn int64, incomplete bool) int {
	switch {
	case atOrAboveFailOn > 0 && incomplete:
		return exitBoth
	case atOrAboveFailOn > 0:
		return exitFindings
	case incomplete:
		return exitIncomplete
	}
	return exitOK
}

// conclude is the code of a run over repositories that has ended with err. code tells it from what
// was found, and whether anything was not looked at. What was not explained yet is said on stderr.
func (e *env) conclude(ctx context.Context, err error, sum *reports.Summary, code func(incomplete bool) int) int {
	nothing := sum.Repositories[reports.Clean]+sum.Repositories[reports.Found]+sum.Repositories[reports.Incomplete] == 0
	var sig *signalError
	var usage *usageError
	switch {
	case errors.As(context.Cause(ctx), &sig):
		sum.Signal = sig.sig.String()
		return sig.code()
	case err != nil:
		say(e.stderr, err)
		if errors.As(err, &usage) {
			return exitUsage
		}
		return code(true)
	case nothing:
		fmt.Fprintln(e.stderr, "refaudit: no repository was found")
		return code(true)
	}
	return code(sum.Repositories[reports.Incomplete] > 0)
}

// failOn reads --fail-on. A severity above all others stands for `never`.
func failOn(word string) (finding.Severity, error) {
	if word == "never" {
		return finding.Fatal + 1, nil
	}
	s, ok := finding.ParseSeverity(word)
	if !ok || s == finding.Ignore {
		return 0, usagef("--fail-on takes error, warn, info or never, not %q", word)
	}
	return s, nil
}
