// Command muster-local runs a Kubernetes cluster for development on this machine.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const (
	exitFailed = 1
	exitUsage  = 2
)

// usageError is an invalid command line.
type usageError struct{ error }

func (u usageError) Unwrap() error { return u.error }

func main() {
	// Pods' processes and a network must not outlive a closed terminal or a
	// closed pipe. Notify, not Ignore: a child would inherit the latter.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	stops := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // it is ignored under nohup
		stops = append(stops, syscall.SIGHUP)
	}
	// Further signals have no effect: shutdown is bounded in time, and make or timeout often send a second signal.
	ctx, release := signal.NotifyContext(context.Background(), stops...)
	code := run(ctx, filepath.Base(os.Args[0]), os.Args[1:])
	release()
	os.Exit(code)
}

// run returns the exit code. It prints an error as one line on standard error. name is argv[0]: `muster up` execs this
// program too.
func run(ctx context.Context, name string, args []string) int {
	root := command(name)
	root.SetArgs(args)
	root.SetOut(printable{os.Stdout})
	root.SetErr(printable{os.Stderr})
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintf(root.ErrOrStderr(), "%s: %v\n", name, err)
	if errors.As(err, new(usageError)) {
		return exitUsage
	}
	return exitFailed
}

func command(name string) *cobra.Command {
	// Kubernetes' packages register a --version here, which cobra would add to every command, without effect.
	pflag.CommandLine = pflag.NewFlagSet(name, pflag.ContinueOnError)
	root := &cobra.Command{
		Use:           name,
		Short:         "A Kubernetes cluster for development, in one process on this machine",
		Args:          noArguments,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return usageError{fmt.Errorf("missing command: `%[1]s up` or `%[1]s down`; see `%[1]s --help`", name)}
		},
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w; `%s --help` lists the flags", err, cmd.CommandPath())}
	})
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(upCommand(), downCommand())
	return root
}

func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usageError{fmt.Errorf("unknown argument %q; `%s --help` lists what there is", args[0], cmd.CommandPath())}
}
