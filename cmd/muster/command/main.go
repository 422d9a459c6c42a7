package command

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/musterhq/muster/cmd/muster/show"
)

// pluginName is the program's name as a kubectl plugin.
const pluginName = "kubectl-muster"

// Main runs the command line (arguments includes the program name) and returns the exit code: 0 success, 1 failure, 2
// wrong usage, 3 not found. An error is printed in one line on the standard error output.
func Main(arguments []string) int {
	if len(arguments) > 2 && arguments[1] == cobra.ShellCompRequestCmd && arguments[2] == "kubectl" {
		// Completion after `muster kubectl` is kubectl's own.
		return runKubectl(append([]string{cobra.ShellCompRequestCmd}, arguments[3:]...))
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	return run(ctx, arguments, streams)
}

// run runs the command line with these streams and returns the exit code.
func run(ctx context.Context, arguments []string, streams genericiooptions.IOStreams) int {
	streams.Out, streams.ErrOut = show.NewOutput(streams.Out), show.NewOutput(streams.ErrOut)
	root := newRoot(streams)
	if name := filepath.Base(arguments[0]); strings.HasPrefix(name, pluginName) {
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl muster"}
	}
	root.SetArgs(arguments[1:])
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitDone
	}
	if message := err.Error(); message != "" {
		fmt.Fprintf(streams.ErrOut, "muster: %s\n", oneLine(message))
	}
	return exitCode(err)
}

func newRoot(streams genericiooptions.IOStreams) *cobra.Command {
	root := &cobra.Command{
		Use:   "muster",
		Short: "Batch and training jobs on Kubernetes: which run, which wait, and why",
		Long: `Muster runs batch and training jobs on Kubernetes: jobs queue, start as gangs, and finish.

  muster up       starts a cluster on this machine; muster demo runs the examples on one
  muster jobs     lists jobs: which run, which wait, and why; muster explain shows one in full
  muster kubectl  is the real kubectl`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return usageError("unknown command %q%s: see `%s --help`", args[0], suggestions(cmd, args[0]), cmd.CommandPath())
		},
	}
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError("%w: see `%s --help`", err, cmd.CommandPath())
	})
	root.AddCommand(
		newUp(), newDown(), newKubectl(), newDemo(streams),
		newJobs(streams), newQueues(streams), newExplain(streams),
		newConvert(streams), newReplay(streams), newSimulate(streams), newVersion(streams),
	)
	root.InitDefaultCompletionCmd("completion") // else cobra adds it later, printing help for unknown words
	for _, cmd := range root.Commands() {
		if cmd.Name() == "completion" {
			cmd.RunE = func(cmd *cobra.Command, args []string) error {
				if len(args) == 0 {
					return cmd.Help()
				}
				return usageError("unknown shell %q: see `%s --help`", args[0], cmd.CommandPath())
			}
			cmd.Args = cobra.ArbitraryArgs
		}
	}
	return root
}

func suggestions(cmd *cobra.Command, word string) string {
	cmd.SuggestionsMinimumDistance = 2
	near := cmd.SuggestionsFor(word)
	if len(near) == 0 {
		return ""
	}
	return fmt.Sprintf(" (did you mean %s?)", strings.Join(near, " or "))
}
