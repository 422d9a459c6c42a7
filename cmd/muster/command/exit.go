package command

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// The exit codes of the program.
const (
	exitDone     = 0
	exitFailed   = 1
	exitUsage    = 2
	exitNotFound = 3
)

// codedError is an error with an exit code of its own.
type codedError struct {
	code int
	err  error
}

func (c *codedError) Error() string { return c.err.Error() }
func (c *codedError) Unwrap() error { return c.err }

// usageError returns an error for a command line that cannot be understood.
func usageError(format string, args ...any) error {
	return &codedError{exitUsage, fmt.Errorf(format, args...)}
}

// notFound returns an error for a job that is not there.
func notFound(format string, args ...any) error {
	return &codedError{exitNotFound, fmt.Errorf(format, args...)}
}

// errQuiet ends a command with exit code 1 and no message, for commands whose output already says everything.
var errQuiet = &codedError{exitFailed, errors.New("")}

// exitCode returns the code with which the program exits after the error.
func exitCode(err error) int {
	var coded *codedError
	if errors.As(err, &coded) {
		return coded.code
	}
	return exitFailed
}

// noArguments rejects any argument and points to --help.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError("unexpected argument %q: see `%s --help`", args[0], cmd.CommandPath())
	}
	return nil
}

// oneLine joins the lines of an error message.
func oneLine(message string) string {
	return strings.Join(strings.FieldsFunc(strings.TrimSpace(message),
		func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}
