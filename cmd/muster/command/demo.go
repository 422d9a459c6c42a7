package command

import (
	"context"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/musterhq/muster/cmd/muster/demo"
	"github.com/musterhq/muster/cmd/muster/localcluster"
	"github.com/musterhq/muster/examples"
)

func newDemo(streams genericiooptions.IOStreams) *cobra.Command {
	var folder string
	options := demo.Options{Out: streams.Out}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run the examples on a cluster of their own, and check how they end",
		Long: `Start an ephemeral cluster with one node that is this machine and 16 simulated GPU machines, apply the examples,
show queues and jobs until all are done, print a summary and the log of one worker, and stop the cluster.

The exit code is 0 if every job ended as expected.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			silenceLibraries()
			return runDemo(cmd.Context(), options, folder)
		},
	}
	cmd.Flags().BoolVar(&options.Keep, "keep", false, "Keep the cluster running after the end, until Ctrl-C.")
	cmd.Flags().StringVar(&folder, "examples", "",
		"Run the manifests <folder>/<name>.yaml of this directory instead of the built-in ones.")
	cmd.Flags().DurationVar(&options.Timeout, "timeout", 5*time.Minute, "Give up after this time.")
	return cmd
}

func runDemo(ctx context.Context, options demo.Options, folder string) error {
	options.Examples = fs.FS(examples.Files)
	if folder != "" {
		info, err := os.Stat(folder)
		if err != nil || !info.IsDir() {
			return usageError("--examples %q is not a directory that can be read: name one that holds <folder>/<name>.yaml", folder)
		}
		options.Examples = os.DirFS(folder)
	}
	if options.Timeout <= 0 {
		return usageError("--timeout must be more than 0, such as 5m")
	}
	var err error
	if options.Binary, err = localcluster.Binary(); err != nil {
		return err
	}
	return demo.Run(ctx, options)
}
